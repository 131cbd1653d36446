"""A damaged file is an error of one line; a file that is written is the old one or the new one."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import damage
from shared.effort import examples
from sklearn.compose import make_column_transformer  # noqa: F401
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline  # noqa: F401
from sklearn.preprocessing import OneHotEncoder  # noqa: F401

from fabinterp import (
    ObliqueAdditiveRegressor,
    PiecewiseLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    RuleMixtureRegressor,
    cli,
    load_rules,
)
from fabinterp.fab.engine import EM
from fabinterp.forests.reading import read_ensemble
from fabinterp.rows.chunks import scratch_folder
from fabinterp.rules.json_format import MAX_NESTING, parse_json, write_file
from fabinterp.rules.ruleset import MAX_DEPTH

# Reads paths from standard input; prints the exit code and the lines on standard error for each
PROGRAM = """
import contextlib, io, json, re, resource, sys
from pathlib import Path
from fabinterp import cli
import fabinterp.commands
now = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (now + 2**30, now + 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (300, 301))
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(json.loads(line))
        except BaseException as error:
            code = repr(error)
    print(json.dumps([code, err.getvalue().splitlines()]), flush=True)
"""


def results_of_commands(commands):
    """Exit code and lines on standard error of each command, in one process with 1 GB to itself."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(json.dumps(words) + "\n" for words in commands),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory as Linux does")
def test_damaged_files_are_errors_of_one_line(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x0,x1,x2\n1,2,3\n4,5,6\n7,8,9\n")
    kinds = {
        "show": [damage.own_files],
        "explain": [damage.xgboost_files, damage.lightgbm_files, damage.catboost_files],
    }
    names, commands = [], []
    for command, makers in kinds.items():
        for maker in makers:
            for name, text in maker().items():
                path = tmp_path / f"{len(commands)}.json"
                path.write_text(text)
                read = load_rules if command == "show" else read_ensemble
                with pytest.raises(ValueError):
                    pytest.fail(f"{maker.__name__}: {name} gives {read(path)!r:.80}")
                names.append(f"{maker.__name__}: {name}")
                commands.append(
                    [command, str(path), *([str(table)] if command == "explain" else [])]
                )
    assert len(commands) >= 60
    results = results_of_commands(commands)
    wrong = {
        name: result
        for name, result in zip(names, results, strict=True)
        if result[0] != 1 or len(result[1]) != 1 or not result[1][0].startswith("fabinterp: ")
    }
    assert not wrong


@given(st.integers(0, 2**32 - 1))
@examples(40)
def test_a_random_change_is_harmless_or_a_value_error(seed):
    text = damage.random_file(np.random.default_rng(seed))
    try:
        model = load_rules(text)
        str(model), model.to_sql("t"), model.to_html()
        model.predict(np.array([[0.2, 0.3, 0.0], [0.7, np.nan, 1.0]]))
    except ValueError as error:
        assert "\n" not in str(error)


def test_messages_name_the_place():
    files = damage.own_files()
    for name, words in {
        "missing text": r"model\.splits\[0\]\.missing must be true or false, got 'no'",
        "newer version": "upgrade fabinterp to read the file",
        "side text": r"rules\[0\]\.conditions\[0\]\[1\] must be true or false",
        "chain of 5000": f"at most {MAX_DEPTH} steps",
        "nested 100 000 deep": f"at most {MAX_NESTING} deep",
    }.items():
        with pytest.raises(ValueError, match=words):
            load_rules(files[name])
    with pytest.raises(ValueError, match="tree 1: "):
        read_ensemble(damage.xgboost_files()["cycle"])


def test_brackets_in_texts_do_not_nest():
    text = json.dumps({"[" * 1000 + '"\\': "{" * 1000})
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize("failing", ["fsync", "link", "replace"])
def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "model.json"
    write_file(path, "old")
    path.chmod(0o640)

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, fail)
        if failing != "link" or sys.platform == "linux":
            with pytest.raises(OSError, match="No space left on device.*model.json"):
                write_file(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["model.json"]
    write_file(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_kept(tmp_path):
    (tmp_path / "model.json").write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "model.json")
    write_file(link, "new")
    assert link.is_symlink() and (tmp_path / "model.json").read_text() == "new"


WRITER = """
import sys
from fabinterp.rules.json_format import write_file
print("ready", flush=True)
k = 0
while True:
    write_file(sys.argv[1], str(k % 10) * 1_000_000)
    k += 1
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_a_killed_write_leaves_a_complete_file(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("0" * 1_000_000)
    for k in range(20):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        )
        writer.stdout.readline()
        time.sleep(0.003 * k)
        writer.kill()
        writer.wait()
        text = path.read_text()
        assert len(text) == 1_000_000 and len(set(text)) == 1
        partial = [p for p in tmp_path.iterdir() if p != path]
        assert all(p.stat().st_size == 1_000_000 for p in partial)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_the_next_run_removes_scratch_folders_of_killed_runs(tmp_path):
    program = (
        "import sys, time\n"
        "from fabinterp.rows.chunks import scratch_folder\n"
        "with scratch_folder(sys.argv[1]) as folder:\n"
        "    open(folder + '/rows', 'wb').write(b'x' * 1000)\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    killed, alive = (Path(run.stdout.readline().strip()) for run in runs)
    runs[0].send_signal(signal.SIGKILL)
    runs[0].wait()
    assert killed.exists()
    try:
        with scratch_folder(tmp_path):
            pass
        assert not killed.exists() and alive.exists()
    finally:
        runs[1].kill()
        runs[1].wait()


def decades(rng, n):
    """Numbers (n,) over 24 decades."""
    return 10.0 ** rng.uniform(-12, 12, n)


@given(st.integers(0, 2**32 - 1))
@examples(10)
def test_every_fitted_model_prints_and_is_read_back(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 60))
    X = np.column_stack(
        [
            rng.normal(size=n) * decades(rng, n),
            1.0 + np.arange(n) * 2.2e-16,
            np.full(n, 3.0),
            rng.integers(0, 4, n),
        ]
    )
    w = decades(rng, n)
    y = rng.normal(size=n) * decades(rng, n)
    tree = ProxyTreeRegressor(size=6, random_state=0)
    labels = ProxyTreeClassifier(size=6, random_state=0)
    for model, target in ((tree, y), (labels, np.where(X[:, 3] > 1, "a", "b"))):
        model.fit(X, target, sample_weight=w)
        assert str(model.rules_) and model.rules_.to_html()
        again = load_rules(model.to_json())
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again == model.tree_


@pytest.mark.parametrize(
    "kind", [ProxyTreeRegressor, PiecewiseLinearRegressor, RuleMixtureRegressor]
)
def test_weights_that_overflow_are_rejected(kind):
    X = np.arange(20.0)[:, None]
    for weight in (1e300, 1e-300):
        with pytest.raises(ValueError, match="sample_weight must sum to"):
            kind().fit(X, X[:, 0], sample_weight=np.full(20, weight))


@pytest.mark.parametrize(
    "settings, name",
    [
        (dict(size=1, penalty=0.5), "size"),
        (dict(size="small", search="em"), "size"),
        (dict(max_leaves=2, search="em"), "max_leaves"),
        (dict(max_terms=3, penalty=0.5), "max_terms"),
    ],
)
def test_arguments_that_the_search_would_ignore_are_rejected(settings, name):
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=f"^{name} must be .* got"):
        PiecewiseLinearRegressor(**settings).fit(X, X[:, 0])


def test_oblique_em_keeps_the_most_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    model = ObliqueAdditiveRegressor(search=EM(max_iter=5), max_leaves=2, random_state=0)
    assert model.fit(X, np.abs(X[:, 0])).tree_.n_leaves <= 2


def test_an_unfitted_reference_names_the_labels_and_a_pipeline_that_works():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "c": rng.choice(["red", "blue"], 60)})
    y = X.a + (X.c == "red")
    with pytest.raises(ValueError, match=r"reference=RandomForestRegressor .* 'c', take") as error:
        ProxyTreeRegressor(RandomForestRegressor(3)).fit(X, y)
    pipeline = eval(str(error.value).partition(", take ")[2])
    fitted = ProxyTreeRegressor(pipeline, size=3, random_state=0).fit(X, y)
    assert fitted.tree_.n_leaves > 1


def test_kept_columns_are_as_they_are_written(tmp_path, capsys):
    fitted = tmp_path / "model.json"
    X = np.arange(40.0)[:, None]
    ProxyTreeRegressor(size=2).fit(X, 1.0 * (X[:, 0] > 20)).save(fitted)
    table = tmp_path / "table.csv"
    rows = [("007", "1.50"), ("=1+1", "NA"), ("-3", "30"), ("+a", ""), ("@x", "-1e3"), ("-", "2")]
    table.write_text("id,x0\n" + "".join(f"{a},{b}\n" for a, b in rows))
    words = ["predict", str(fitted), str(table), "--keep", "id,x0"]
    assert cli.main(words) == 0
    plain = list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]
    assert [tuple(row[:2]) for row in plain] == rows


def test_a_damaged_gzip_file_and_a_full_output_are_errors_of_one_line(tmp_path, capsys):
    fitted = tmp_path / "model.json"
    fitted.write_text(json.dumps(damage.tree_dict()))
    table = tmp_path / "table.csv.gz"
    data = bytearray(gzip.compress(b"u,v,c\n" + b"0.1,0.2,red\n" * 500, mtime=0))
    data[20:40] = bytes(20)
    table.write_bytes(data)
    code = cli.main(["predict", str(fitted), str(table)])
    lines = capsys.readouterr().err.splitlines()
    assert code == 1 and len(lines) == 1 and "damaged" in lines[0]
    if Path("/dev/full").exists():
        command = [sys.executable, "-m", "fabinterp", "show", str(fitted)]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
