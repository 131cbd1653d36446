"""The command line: files read or refused in one line, tested models, a page that stands alone."""

import argparse
import gzip
import html
import io
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from browser.serve import chromium
from frame import ROOT
from hypothesis import given
from hypothesis import strategies as st
from shared.needs import PATIENCE, need
from shared.snapshots import leave_out_pictures, page_text, steady_text
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from fabinterp import (
    PiecewiseLinearRegressor,
    ProxyTreeClassifier,
    RuleMixtureClassifier,
    RuleMixtureRegressor,
    cli,
    commands,
    explain,
    files,
    load_rules,
    terminal,
)
from fabinterp.rules import size_path
from fabinterp.rules.ruleset import RuleSet, as_ruleset
from fabinterp.rules.schema import ColumnSchema, Schema
from fabinterp.rules.size_path import sizes_of

pd = pytest.importorskip("pandas")


def flowers(n=150, seed=0):
    """A small table with labels, a gap here and there, an identifier, text classes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"F{k}" for k in range(n)],
            "length": rng.uniform(1, 7, n).round(1),
            "colour": rng.choice(["red", "blue", "white"], n),
            "depth": rng.normal(0, 1, n).round(2),
        }
    )
    frame["kind"] = np.where((frame.length > 4) & (frame.colour == "red"), "rose", "other")
    frame["price"] = (
        frame.length * 2 + (frame.colour == "blue") * 5 + rng.normal(0, 0.1, n)
    ).round(2)
    frame.loc[::17, "depth"] = np.nan
    return frame


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "flowers.csv"
    flowers().to_csv(path, index=False)
    return path


def refused(capsys, *words, code=2):
    """Run, expect a refusal with an exit code, return its line."""
    assert cli.main(list(map(str, words))) == code
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert err.startswith("fabinterp: ")
    return err


def refusals(capsys, *lines, code=2):
    """Return command lines and their refusals as one text."""
    found = [
        f"$ fabinterp {line}\n{refused(capsys, *shlex.split(line), code=code)}" for line in lines
    ]
    return transcript(*found)


def transcript(*texts):
    """Return printed texts and notes as one text that is the same on every machine."""
    return steady_text("\n".join(texts))


def run(*words):
    """Run, expect success, return what was printed and the notes."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(list(map(str, words)))
    assert code == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def pictures_where_needed(request, monkeypatch):
    if "page" not in request.fixturenames:
        leave_out_pictures(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def width():
    """A terminal of 80 columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        yield


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """Fit the flowers by the command line, each way once: what was printed, the notes, the file."""
    folder = tmp_path_factory.mktemp("fits")
    data = folder / "flowers.csv"
    flowers().to_csv(data, index=False)

    @cache
    def fit_once(words):
        path = folder / f"{'_'.join(re.findall(r'[a-z0-9]+', words))}.json"
        shown, notes = run("fit", data, *words.split(), "--out", path)
        return SimpleNamespace(shown=shown, notes=notes, path=path)

    return fit_once


KEPT = {
    "piecewise": ("price", PiecewiseLinearRegressor),
    "tree": ("kind", ProxyTreeClassifier),
    "rules": ("kind", RuleMixtureClassifier),
}


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    """Fit the estimator of a method of `KEPT` to the training rows of the flowers, once."""
    data = tmp_path_factory.mktemp("table") / "flowers.csv"
    flowers().to_csv(data, index=False)

    @cache
    def fit_once(method):
        target, kind = KEPT[method]
        X = files.read_table(str(data)).without(["id", target]).rows()
        y = flowers()[target].to_numpy()
        task = "classification" if target == "kind" else "regression"
        train, _ = commands.split_rows(len(y), y, task, 0.25, 0)
        settings = {"max_rules": 10} if method == "rules" else {}
        model = kind(random_state=0, size="balanced", **settings)
        return model.fit(X.iloc[train], y[train])

    return fit_once


# What is refused


ARGUMENTS = [
    "", "explained", "explain", "simplify x.csv", "fit t.csv --max-rules -3", "fit t.csv --max-rules 0",
    "fit t.csv --size tiny", "fit t.csv --max-rules many", "fit t.csv --max-conditions 0", "demo --size 3",
    "demo --random-state -1", "demo --random-state 4294967296", "demo --out rules.docx",
    "demo --out nowhere/rules.html", "demo extra", "fit t.csv --traget y", "predict m.json t.csv --sise=3",
    "demo --zebra", "simplify x.csv --target y --held-out 1", "simplify x.csv --target y --held-out nan",
    "simplify x.csv --target y --sep ab", "simplify x.csv --target y --decimal ';'",
    "simplify x.csv --target y --sample -1", "fit x.csv --target y --method forest",
    "fit x.csv --target y --out x.csv", "predict m.json x.csv --out p.json", "report m.json x.csv --out p.json",
]  # fmt: skip


def test_arguments_are_refused_in_one_line(capsys, tmp_path, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    text = refusals(capsys, *ARGUMENTS)
    choices = r"\(choose from .*\)"  # quoted or not: Python's versions differ
    snapshot("refused_arguments", re.sub(choices, lambda found: found[0].replace("'", ""), text))
    assert not list(tmp_path.iterdir())


TABLES_REFUSED = [
    ("nothing", b"", "y", 1),
    ("a head alone", b"a,b\n", "b", 1),
    ("long rows", b"a,b\n1,2\n3,4,5,6\n", "b", 1),
    ("UTF-16 that is none", b"\xff\xfe\x00a,b\n1,2\n", "b", 1),
    ("a spreadsheet", b"PK\x03\x04", "b", 1),
    ("half a gzip file", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "b", 1),
    ("another case", b"Age,b\n1,2\n3,4\n", "age", 2),
    ("another name", b"a,b\n1,2\n3,4\n", "zzz", 2),
    ("another separator", b"a:b\n1:2\n3:4\n", "zzz", 2),
    ("a constant target", b"a,b\n1,2\n3,2\n", "b", 1),
    ("an empty target", b"a,b\n1,\n3,\n", "b", 1),
    ("a target alone", b"b\n1\n2\n", "b", 1),
    ("one row", b"a,b\n1,2\n", "b", 1),
    ("infinity", b"a,b\ninf,2\n3,4.5\n5,6\n7,8\n", "b", 1),
]


def test_tables_are_refused_in_one_line(capsys, tmp_path, snapshot):
    path = tmp_path / "t.csv"
    lines = []
    for name, content, target, code in TABLES_REFUSED:
        path.write_bytes(content)
        told = refused(capsys, "simplify", path, "--target", target, code=code)
        lines.append(f"# {name}\n{told}")
    snapshot("refused_tables", transcript(*lines))


@pytest.mark.parametrize("content", [b"\x1f\x8bzzzzzzzz", b"PAR1zzzz", b'a,b\n"1,2\n'])
def test_tables_that_a_library_cannot_read_are_refused_in_one_line(capsys, tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    told = refused(capsys, "simplify", path, "--target", "b", code=1)
    assert "t.csv'" in told


def test_files_that_are_not_there(capsys, table, snapshot):
    lines = [
        "simplify gone.csv --target y",
        "simplify . --target y",
        "simplify a/gone.csv --target y",
    ]
    lines += [f"{command} m.json {table}" for command in ("predict", "report", "explain")]
    snapshot("refused_files", refusals(capsys, *lines, code=1))


def test_targets_that_do_not_fit_the_task_or_the_method(capsys, table, snapshot):
    words = f"fit {table} --target kind"
    lines = [
        f"simplify {table} --target kind --task regression",
        f"simplify {table} --target price --task classification",
        f"simplify {table} --target kind --held-out 0.99",
        f"{words} --method metatree --size small",
        f"{words} --method metatree --max-leaves 2",
        f"{words} --method tree --max-rules 2",
        f"{words} --method rules --max-depth 2",
    ]
    snapshot("refused_options_of_fit", refusals(capsys, *lines))


def test_an_empty_column_is_left_out_and_alone_it_is_refused(capsys, tmp_path, snapshot):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n,1\n,2\n,3\n")
    assert cli.main(["simplify", str(path), "--target", "b"]) == 1
    snapshot("refused_empty_column", capsys.readouterr().err)


def test_a_place_that_cannot_be_written(capsys, tmp_path, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    Path("x.html").mkdir()
    folder = refusals(capsys, "demo --out x.html")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda place, mode: False)
        closed = refusals(capsys, "demo --out y.html")
    snapshot("refused_places", transcript(folder, closed))
    Path("z.txt").mkdir()  # the place turns bad during the work
    with pytest.raises(terminal.CommandError, match="it is a folder"):
        commands.write_out(argparse.Namespace(command="show", out="z.txt", force=True), "")


def test_no_file_is_overwritten_unasked(capsys, tmp_path, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    write_model("tree")
    out = Path("rules.txt")
    out.write_text("mine")
    Path("page.html").write_text("mine")
    words = "fit t.csv --target kind --method tree --out rules.txt"
    snapshot(
        "refused_overwriting", refusals(capsys, words, "report model.json t.csv --out page.html")
    )
    with pytest.raises(terminal.CommandError, match="the file exists"):  # come since it was checked
        commands.write_out(argparse.Namespace(command="show", out="rules.txt", force=False), "ours")
    assert out.read_text() == "mine"
    run(*words.split(), "--force")
    assert out.read_text() != "mine"


# What is read


def same(table, frame):
    """Say whether a table that was read holds what a frame does."""
    X = pd.DataFrame(table.columns)
    pd.testing.assert_frame_equal(X, frame.astype(X.dtypes), check_dtype=False)
    return True


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separators(tmp_path, sep):
    path = tmp_path / "t.csv"
    flowers().to_csv(path, index=False, sep=sep, encoding="utf-8-sig")
    assert same(files.read_table(str(path)), flowers())


@pytest.mark.parametrize("ending, options", [
    (".csv", {"sep": ":"}), (".csv", {"encoding": "latin-1"}), (".csv", {"encoding": "utf-16"}),
    (".csv", {"sep": ";", "decimal": ","}), (".csv.gz", {}), (".csv.gz", {"sep": ";"}),
])  # fmt: skip
def test_ways_to_write_a_table(tmp_path, ending, options):
    path = tmp_path / f"t{ending}"
    frame = flowers().assign(größe=1.5)
    frame.to_csv(path, index=False, **options)
    assert same(files.read_table(str(path), files.TableOptions(**options)), frame)


def test_parquet_and_standard_input(tmp_path, monkeypatch):
    need("pyarrow")
    path = tmp_path / "t.parquet"
    frame = flowers().assign(kind=lambda table: table.kind.astype("category"))
    frame.to_parquet(path)
    for content in (path.read_bytes(), flowers().to_csv(index=False).encode()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert same(files.read_table("-"), flowers())
    reader, writer = os.pipe()  # as the shell makes of <(command)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(flowers().to_csv(index=False).encode())
    assert same(files.read_table(f"/dev/fd/{reader}"), flowers())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(terminal.CommandError, match=r"pip install 'fabinterp\[parquet\]'"):
        files.read_table(str(path))


def test_a_sample_is_drawn_and_told(table):
    drawn = [files.read_table(str(table), sample=40, random_state=seed) for seed in (0, 0, 1)]
    ids = [read.columns["id"].tolist() for read in drawn]
    assert ids[0] == ids[1] != ids[2] and drawn[0].n_read == 150 and len(drawn[0]) == 40
    assert ids[0] == sorted(ids[0], key=lambda name: int(name[1:])) and len(set(ids[0])) == 40
    words = ["fit", table, "--target", "kind", "--method", "tree"]
    shown, notes = run(*words, "--sample", 80)
    assert "80 of 150 rows" in notes and "20 rows held out" in shown
    assert "of 150 rows" not in run(*words, "--sample", 0)[1]


def test_a_decimal_comma_is_read(tmp_path):
    flowers().to_csv(tmp_path / "point.csv", index=False)
    flowers().to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    words = ["--target", "price", "--method", "tree"]
    expected, _ = run("fit", tmp_path / "point.csv", *words)
    shown, notes = run("fit", tmp_path / "comma.csv", *words)
    assert shown == expected and "decimal sign ','" in notes
    assert run("fit", tmp_path / "comma.csv", *words, "--decimal", ",")[0] == expected


def test_a_model_reads_numbers_with_and_without_thousands_separators(tmp_path):
    amounts = [f"{k}.{k:03},50" for k in range(1, 60)]
    lines = [f"{text};{k > 30}" for k, text in enumerate(amounts, 1)]
    (tmp_path / "t.csv").write_text("x;y\n" + "\n".join(lines))
    (tmp_path / "new.csv").write_text("x;z\n50.050,5;1\n50050,5;1\n")
    model = tmp_path / "m.json"
    run("fit", tmp_path / "t.csv", "--target", "y", "--method", "tree", "--out", model)
    for options in ((), ("--decimal", ",")):
        assert run("predict", model, tmp_path / "new.csv", *options)[0].split() == [
            "y",
            "True",
            "True",
        ]


@pytest.mark.parametrize("values, task", [
    ([0, 1, 1], "classification"), ([0.0, 1.0, 2.0] * 2, "classification"), ([0.0, 1.0, 2.0], "regression"),
    ([3, 5, 5, 7, 9], "regression"), (["a", "b"], "classification"),
    ([True, False], "classification"), (list(range(11)), "regression"), ([0.5, 1.0], "regression"),
])  # fmt: skip
def test_task(values, task):
    assert commands.infer_task(np.array(values)) == task
    if 0.5 in values:
        with pytest.raises(
            terminal.UsageError, match="labels or integers in column 'target', got '0.5'"
        ):
            commands.infer_task(np.array(values), "classification")
    else:
        assert commands.infer_task(np.array(values), "classification") == "classification"


def test_columns_that_are_left_out_are_listed(tmp_path, snapshot):
    frame = flowers()
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    frame["nothing"] = np.nan
    frame["when"] = pd.date_range("2020", periods=len(frame))
    frame.loc[3, "price"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = files.read_table(str(tmp_path / "t.csv"))
    X, y, task, notes = commands.prepare(read, "price", "auto")
    assert list(X) == ["length", "colour", "depth", "kind"]
    assert len(X) == len(y) == len(frame) - 1
    assert task == "regression" and not X.isna().all().any()
    snapshot("notes_on_what_is_left_out", "\n".join([*read.remarks, *notes]))


@given(st.integers(2, 300), st.floats(0.01, 0.99), st.integers(0, 9), st.booleans())
def test_rows_are_split_once(n, share, seed, labels):
    y = np.arange(n) % 3
    if n - int(np.ceil(share * n)) < 2:
        with pytest.raises(terminal.UsageError, match="--held-out"):
            commands.split_rows(n, y, "classification", share, seed)
        return
    task = "classification" if labels else "regression"
    train, test = commands.split_rows(n, y, task, share, seed)
    assert sorted([*train, *test]) == list(range(n)) and len(test) == int(np.ceil(share * n))
    again = commands.split_rows(n, y, task, share, seed)
    assert (train == again[0]).all()


# Rows in the order of time


def days(tmp_path, **more):
    """Write a table of days in random order, and return it and its path."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(0, 10, (2, 120)).round(2)
    y = np.where(x > 5, 2 * x, 8 - z).round(2)
    date = pd.date_range("2024-01-30", periods=120).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"date": date, "x": x, "z": z, "y": y} | more)
    frame = frame.sample(frac=1, random_state=0)
    frame.to_csv(tmp_path / "days.csv", index=False)
    return frame, tmp_path / "days.csv"


@pytest.mark.parametrize("method", ["rules", "piecewise", "tree"])
def test_the_last_rows_by_time_are_held_out(tmp_path, method):
    frame, path = days(tmp_path)
    words = f"--target y --time date --method {method} --out".split()
    shown, _ = run("fit", path, *words, tmp_path / "m.json")
    assert "on 30 rows held out" in shown
    model = load_rules(tmp_path / "m.json")
    assert "date" not in model.columns.names
    last = frame.sort_values("date")[90:]
    error = np.sqrt(np.mean((model.predict(last[["x", "z"]]) - last.y) ** 2))
    assert float(re.search(r"^rmse +(\S+)", shown, re.M)[1]) == pytest.approx(error, rel=0.01)
    frame.sort_values("date").to_csv(tmp_path / "days.csv", index=False)
    again, _ = run("fit", path, *words, tmp_path / "again.json")
    assert again == shown.replace("m.json", "again.json")


def test_folds_are_blocks_of_time(tmp_path):
    frame, path = days(tmp_path)
    run(*f"fit {path} --target y --time date --method piecewise --out {tmp_path}/m.json".split())
    train = frame.sort_values("date")[:90]
    model = PiecewiseLinearRegressor(cv=KFold(), random_state=0).fit(train[["x", "z"]], train.y)
    kept = sizes_of(load_rules(tmp_path / "m.json"))
    assert [entry.cv_error for entry, *_ in kept] == pytest.approx(model.path_.cv_error.tolist())


def test_a_column_that_cannot_order_the_rows_is_refused(capsys, tmp_path):
    day = [f"{k}. 1." for k in range(120)]
    _, path = days(tmp_path, day=day, gap=[np.nan, *range(119)])
    for name, why in (
        ("dat", "did you mean 'date'"),
        ("day", "2024-01-31"),
        ("gap", "missing values"),
    ):
        line = refused(capsys, "fit", path, "--target", "y", "--time", name)
        assert repr(name) in line and "--time" in line and why in line


def test_a_column_that_numbers_the_rows_is_told(tmp_path):
    frame, path = days(tmp_path)
    frame.assign(number=range(120)).to_csv(path, index=False)
    words = f"fit {path} --target y --method tree --label date".split()
    assert "column 'number' numbers the rows; --time leaves it out" in run(*words)[1]
    assert "numbers the rows" not in run(*words, "--time", "number")[1]


# What comes out


def test_classification_out_as_json_reproduces_the_printed_errors(tmp_path, table, snapshot):
    out = tmp_path / "rules.json"
    words = f"simplify {table} --target kind --max-rules 4 --size 99 --path --out {out}"
    text, notes = run(*words.split())
    snapshot("simplify", transcript(text, notes))
    rules = RuleSet.from_json(out.read_text())
    assert json.loads(out.read_text())["target"] == "kind" and len(rules.rules) <= 4
    frame = flowers()
    X = frame.drop(columns=["id", "kind"])
    y = frame.kind.to_numpy()
    train, test = commands.split_rows(len(y), y, "classification", 0.25, 0)
    error = (rules.predict(X.iloc[test]) != y[test]).mean()
    printed = re.search(r"^error +(\S+)$", text, re.M)[1]
    assert f"on {len(test)} rows held out" in text
    assert float(printed) == pytest.approx(error, abs=0.0005)
    assert sum(rule.support for rule in rules.rules) == len(train)


@pytest.mark.slow
def test_regression_out_as_sql_answers_like_the_rules(tmp_path, table):
    out = tmp_path / "rules.sql"
    words = ["simplify", table, "--target", "price", "--max-rules", 5, "--max-conditions", 99]
    words += ["--held-out", 0, "--out"]
    text, _ = run(*words, out)
    assert "rows of the fit" in text and "held out" not in text
    run(*words, tmp_path / "rules.json")
    run(*words, tmp_path / "rules.py")
    rules = RuleSet.from_json((tmp_path / "rules.json").read_text())
    frame = flowers()
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("flowers", base, index=False)
        answers = [row[0] for row in base.execute(out.read_text().rstrip(";\n"))]
    X = frame.drop(columns=["id", "price"])
    assert np.array_equal(answers, rules.predict(X))
    space = {}
    exec((tmp_path / "rules.py").read_text(), space)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    assert np.array_equal([space["predict"](row) for row in rows], answers)


class Page(HTMLParser):
    """Tags and addresses of a page, and whether all tags close."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.addresses = []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [
            value for name, value in attrs if name in {"src", "srcset", "href", "action"}
        ]
        if tag not in {"meta", "img", "source", "link", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about a hostile table."""
    folder = tmp_path_factory.mktemp("page")
    hostile = {"price": "<script>alert(1)</script> $x^", "length": "<i>$", "kind": 'a"b<i>'}
    frame = flowers().rename(columns=hostile)
    frame["colour"] = frame.colour.replace("red", "<b>red & 名</b>")
    frame.to_csv(folder / "a&b.csv", index=False)
    out = folder / "rules.html"
    words = [
        "simplify",
        str(folder / "a&b.csv"),
        "--target",
        'a"b<i>',
        "--max-rules",
        "4",
        "--out",
        str(out),
    ]
    assert cli.main(words) == 0
    return out


@pytest.mark.parametrize("method", ["rules", "piecewise", "oblique", "tree", "metatree"])
@pytest.mark.parametrize("target", ["kind", "price"])
def test_what_is_fitted_predicts_and_is_reported(tmp_path, fit, snapshot, method, target):
    """The error printed is that of the file; predictions come in the order of the rows."""
    fitted = fit(words_of_fit(target, method))
    snapshot(f"fit_{target}_{method}", transcript(fitted.shown, fitted.notes))
    frame = flowers().sort_index(axis=1)
    frame.to_parquet(tmp_path / "t.parquet")
    run("predict", fitted.path, tmp_path / "t.parquet", "--out", tmp_path / "answers.csv")
    answered = pd.read_csv(tmp_path / "answers.csv")
    assert list(answered) == [target] and len(answered) == len(frame)
    y = frame[target].to_numpy()
    task = "classification" if target == "kind" else "regression"
    _, test = commands.split_rows(len(y), y, task, 0.25, 0)
    wrong = answered[target].to_numpy()[test]
    error = (
        (wrong != y[test]).mean() if target == "kind" else ((wrong - y[test]) ** 2).mean() ** 0.5
    )
    printed = re.search(r"^(?:error|rmse) +(\S+)$", fitted.shown, re.M)[1]
    assert f"on {len(test)} rows held out" in fitted.shown
    assert float(printed) == pytest.approx(error, rel=0.005)


def words_of_fit(target, method):
    """Return the options of a fit, with the table of all sizes if the method has sizes."""
    return f"--target {target} --method {method}" + (" --path" if method != "metatree" else "")


def write_model(method, more=""):
    """Fit the flowers in t.csv by a method of `KEPT`, write model.json, return the frame."""
    frame = flowers().drop(columns="id")
    frame.to_csv("t.csv", index=False)
    run(*f"fit t.csv --target {KEPT[method][0]} --method {method} --out model.json {more}".split())
    return frame


@pytest.mark.parametrize("method", KEPT)
def test_a_file_keeps_all_sizes(capsys, tmp_path, monkeypatch, method, fit, estimator, snapshot):
    """Each answers as the estimator does at that size, whichever is asked for."""
    monkeypatch.chdir(tmp_path)
    target, _ = KEPT[method]
    flowers().to_csv("t.csv", index=False)
    Path("model.json").write_bytes(fit(words_of_fit(target, method)).path.read_bytes())
    X = files.read_table("t.csv").without(["id", target]).rows()
    model = estimator(method)
    kept = load_rules(tmp_path / "model.json")
    found = sizes_of(kept)
    assert len(found) > 1 and Path("model.json").stat().st_size < 1e6
    for (entry, other, chosen), (fitted, at, is_chosen) in zip(found, sizes_of(model), strict=True):
        assert (entry.size, entry.n_numbers, chosen) == (fitted.size, fitted.n_numbers, is_chosen)
        assert np.array_equal([*entry.error, entry.criterion], [*fitted.error, fitted.criterion])
        assert (other.predict(X) == at.predict(X)).all()
    for words, at in [("", model), ("--size 1", model.at(1))]:
        shown, _ = run(*f"predict model.json t.csv {words}".split())
        answers = pd.read_csv(io.StringIO(shown))[target]
        expected = at.predict(X)
        is_same = answers == expected if target == "kind" else np.isclose(answers, expected)
        assert is_same.all()
    page, _ = reported("model.json", "t.csv", "--size", "1")
    assert "criterion above the minimum" in page
    assert f"1 {'rule' if method == 'rules' else 'leaf'} for {target}" in page
    old = json.loads(Path("model.json").read_text())
    del old["sizes"]  # what a reader finds that does not know of sizes
    assert load_rules(json.dumps(old)) == found[model._at][1] == kept
    if method != "rules":
        run(*"predict model.json t.csv --size small".split())
    else:
        told = refusals(capsys, "predict model.json t.csv --size small", code=1)
        snapshot("refused_size_in_words", told)
    Path("model.json").write_text(json.dumps(old))
    lines = ["predict model.json t.csv --size 1", "show model.json --size 1"]
    snapshot("refused_sizes", refusals(capsys, *lines))


@pytest.mark.parametrize("method", KEPT)
def test_a_file_is_shown_and_written_at_another_size(
    capsys, tmp_path, monkeypatch, method, fit, snapshot
):
    monkeypatch.chdir(tmp_path)
    target, _ = KEPT[method]
    flowers().to_csv("t.csv", index=False)
    Path("model.json").write_bytes(fit(words_of_fit(target, method)).path.read_bytes())
    kept = load_rules(tmp_path / "model.json")
    size = max(entry.size for entry, _, _ in sizes_of(kept) if entry.size <= 2)
    small = kept.at(size)
    sizes = [entry.size for entry, _, _ in sizes_of(kept)]
    assert len(as_ruleset(small).rules) == size
    shown, notes = run(*"show model.json --size 2 --path --out small.json".split())
    snapshot(f"show_{method}", transcript(shown, notes))
    assert [int(row) for row in re.findall(r"^[* ] +(\d+) +\d+ ", shown, re.M)] == sizes
    again = load_rules(tmp_path / "small.json")
    assert again == small and [e.size for e, _, _ in sizes_of(again)] == sizes
    first, then = again.source.pop("command").split("\n")
    assert first == kept.source.pop("command") and again.source == kept.source
    assert then == "fabinterp show model.json --size 2 --path --out small.json"
    page, _ = reported("small.json", "t.csv")
    made = html.unescape(page)
    assert f"{first}\n{then}\nfabinterp report small.json t.csv" in made
    for ending in (".sql", ".py", ".txt"):
        run(*f"show model.json --size 2 --table homes --out m{ending}".split())
    assert Path("m.sql").read_text() == small.to_sql("homes") + ";\n"
    run(*"show model.json --size 2 --table main.homes --out s.sql".split())
    assert 'FROM "main"."homes"' in Path("s.sql").read_text()
    assert Path("m.py").read_text() == small.to_python()
    assert Path("m.txt").read_text() == str(small) + "\n"
    refused(capsys, *"show model.json --out m.html".split())


def test_an_explanation_is_written_with_all_its_sizes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = flowers()[["length", "depth", "price"]].dropna()
    frame.to_csv("t.csv", index=False)
    X = frame.drop(columns="price")
    forest = RandomForestRegressor(20, random_state=0).fit(X, frame.price)
    joblib.dump(forest, "forest.joblib")
    words = "explain forest.joblib t.csv --trust --target price --max-rules 5 --out rules.json"
    assert cli.main(words.split()) == 0
    kept = load_rules(tmp_path / "rules.json")
    assert len(sizes_of(kept)) > 2
    found = explain(forest, X, frame.price.to_numpy(), 5, random_state=0)
    found.save(tmp_path / "saved.json")
    again = load_rules(tmp_path / "saved.json")
    for (entry, rules, _), (other, saved, _) in zip(sizes_of(kept), sizes_of(again), strict=True):
        assert entry.size == other.size
        assert np.array_equal(rules.predict(X), saved.predict(X))
        assert np.array_equal(found.at(entry.size).predict(X), saved.predict(X))


def test_a_path_that_is_too_long_keeps_the_small_sizes(tmp_path, monkeypatch, table, fit):
    n = len(sizes_of(load_rules(fit(words_of_fit("price", "tree")).path)))
    monkeypatch.setattr(size_path, "_MOST_LETTERS", 4000)
    words = ["fit", table, "--target", "price", "--method", "tree"]
    run(*words, "--out", tmp_path / "model.json")
    found = sizes_of(load_rules(tmp_path / "model.json"))
    assert 1 < len(found) < n and [entry.size for entry, _, _ in found][0] == 1
    assert [chosen for _, _, chosen in found].count(True) == 1


def test_labels_unknown_to_a_model_are_told(tmp_path):
    kinds = np.array(["oak", "elm", "ash"])[np.arange(90) % 3]
    frame = pd.DataFrame({"kind": kinds, "tall": np.where(kinds == "oak", "yes", "no")})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = tmp_path / "model.json"
    run("fit", tmp_path / "trees.csv", "--target", "tall", "--method", "tree", "--out", fitted)
    for kind, is_told in (("oak", False), ("", False), ("fir", True)):
        (tmp_path / "new.csv").write_text(f"kind,tall\n{kind},\nelm,no\n")
        _, notes = run("predict", fitted, tmp_path / "new.csv")
        assert bool(re.search("labels .* 'kind' in 1 of", notes)) == is_told


def test_warnings_of_predictions_are_notes(tmp_path, snapshot):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120), "kind": np.tile(["oak", "elm", "ash"], 40)})
    frame["height"] = 3 * frame.a + frame.kind.map({"oak": 5.0, "elm": 0.0, "ash": -4.0})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = tmp_path / "model.json"
    words = ["fit", tmp_path / "trees.csv", "--target", "height", "--method", "piecewise"]
    run(*words, "--out", fitted)
    new = tmp_path / "new.csv"
    new.write_text("a,kind\n,oak\n1,fir\n0.5,elm\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, notes = run("predict", fitted, new)
        shown, _ = run("predict", fitted, new, "--level", "0.8")
    assert all(line.startswith("note: ") for line in notes.splitlines())
    snapshot("notes_on_predictions", notes)
    ends = pd.read_csv(io.StringIO(shown))
    assert list(ends) == ["height", "height_low", "height_high"]
    seen = tmp_path / "seen.csv"
    pd.read_csv(new).assign(height_low=[7, 8, 9]).to_csv(seen, index=False)
    shown, _ = run("predict", fitted, seen, "--level", "0.8", "--keep", "height_low")
    beside = pd.read_csv(io.StringIO(shown))
    assert list(beside) == ["height_low", "height", "height_low_predicted", "height_high"]
    assert beside.height_low.tolist() == [7, 8, 9]
    assert (beside.height_low_predicted == ends.height_low).all()
    with sqlite3.connect(":memory:") as base:
        pd.read_csv(new).to_sql("trees", base, index=False)
        answers = base.execute(load_rules(fitted).to_sql("trees", level=0.8)).fetchall()
    assert np.allclose(ends, answers) and (ends.height_low < ends.height_high).all()


def notes_on_new_rows(folder, frame, method):
    """Return a function: the notes on new rows a,b,kind by a model of a frame's column y."""
    fitted = folder / "model.json"
    new = folder / "new.csv"
    frame.to_csv(folder / "t.csv", index=False)
    words = ["fit", folder / "t.csv", "--target", "y", "--method", method]
    run(*words, "--held-out", "0", "--out", fitted)

    def notes(rows):
        new.write_text(f"a,b,kind\n{rows}")
        return run("predict", fitted, new)[1]

    return notes


def test_rows_outside_the_ranges_of_training_are_counted(tmp_path, snapshot):
    frame = pd.DataFrame({"a": np.arange(60.0), "b": np.tile([1.0, 2.0, 3.0], 20)})
    frame["kind"] = np.tile(["oak", "fir"], 30)
    notes = notes_on_new_rows(tmp_path, frame.assign(y=2 * frame.a), "piecewise")
    assert notes("0,1,oak\n59,3,fir\n") == ""
    told = [notes("60,1,oak\n-1,0.5,fir\n5,2,oak\n"), notes("5,4,oak\n5,1,oak\n")]
    snapshot("notes_on_rows_outside", "".join(told))


def test_gaps_that_training_had_not_are_counted(tmp_path, snapshot):
    frame = pd.DataFrame({"a": np.arange(60.0), "b": np.tile([1.0, np.nan, 3.0], 20)})
    frame["kind"] = np.tile(["oak", "fir"], 30)
    frame["y"] = np.where(frame.a < 30, "no", "yes")
    notes = notes_on_new_rows(tmp_path, frame, "tree")
    assert notes("5,,oak\n7,1,fir\n") == ""  # b had gaps before
    gaps = notes(",1,oak\n7,1,\n,3,oak\n")  # of the kind nothing is asked
    label = notes("7,1,elm\n")  # a label that is new is no gap
    snapshot("notes_on_gaps_and_labels", gaps + label)


def test_text_where_a_model_knows_numbers_names_file_and_column(capsys, tmp_path):
    frame = pd.DataFrame({"a": np.arange(60.0), "tall": np.repeat(["no", "yes"], 30)})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = tmp_path / "model.json"
    run("fit", tmp_path / "trees.csv", "--target", "tall", "--method", "tree", "--out", fitted)
    assert cli.main(["predict", str(fitted), str(tmp_path / "trees.csv"), "--level", "0.9"]) == 1
    assert "level must be None for a model without" in capsys.readouterr().err
    late = tmp_path / "late.csv"
    late.write_text("a,tall\n1,no\n,yes\nmany,yes\n")
    for words in (["predict", fitted, late], ["report", fitted, late, "--out", "p.html"]):
        assert cli.main(list(map(str, words))) != 0
        told = capsys.readouterr().err.splitlines()[-1]
        assert (
            told
            == f"fabinterp: cannot read '{late.name}': column 'a' must hold numbers, got 'many'"
        )


def test_shares_of_classes(fit, tmp_path):
    fitted = fit(words_of_fit("kind", "tree")).path
    flowers().to_csv(tmp_path / "t.csv", index=False)
    shown, _ = run("predict", fitted, tmp_path / "t.csv", "--proba")
    answered = pd.read_csv(io.StringIO(shown))
    assert list(answered) == ["kind", "P(other)", "P(rose)"]
    assert np.allclose(answered["P(other)"] + answered["P(rose)"], 1)
    assert ((answered["P(rose)"] > 0.5) == (answered.kind == "rose")).all()


def test_a_column_that_is_there_is_not_proposed_for_one_that_lacks(
    capsys, tmp_path, monkeypatch, fit, table, snapshot
):
    monkeypatch.chdir(tmp_path)
    near = flowers().rename(columns={"length": "longitude", "depth": "latitude"})
    near.to_csv("near.csv", index=False)
    run(*"fit near.csv --target kind --method tree --out model.json".split())
    near.drop(columns="longitude").to_csv("less.csv", index=False)
    near.rename(columns={"longitude": "Longitude"}).to_csv("case.csv", index=False)
    Path("other.json").write_text('{"learner": {}}')
    files_refused = ["model.json less.csv", "model.json case.csv", "other.json near.csv"]
    text = refusals(capsys, *(f"predict {names}" for names in files_refused), code=1)
    assert text.count("did you mean") == 1
    snapshot("refused_tables_of_predict", text)


def reported(*words):
    """Return the page that `report` writes, and its notes."""
    _, notes = run("report", *words, "--out", "page.html", "--force")
    page = Path("page.html").read_text(encoding="utf-8")
    assert not Page(page).open
    return page, notes


@pytest.mark.parametrize("target", ["kind", "price"])
def test_a_report_on_one_row_without_a_target(capsys, tmp_path, monkeypatch, target, fit, snapshot):
    monkeypatch.chdir(tmp_path)
    model = fit(words_of_fit(target, "tree")).path
    flowers().drop(columns=target).iloc[:1].to_csv("one.csv", index=False)
    page, notes = reported(model, "one.csv")
    snapshot(f"report_on_one_row_{target}", transcript(page_text(page), notes))
    refusal = refused(capsys, "report", model, "one.csv", "--target", "cost", "--force", code=1)
    assert "no column 'cost'" in refusal


def test_the_commands_on_a_page_run(tmp_path, table, monkeypatch):
    """That of the model, which its file contains, and that of the page, which has a default name."""
    monkeypatch.chdir(tmp_path)
    run(*f"fit {table} --target price --method tree --size 3 --out model.json".split())
    run("report", "model.json", table)
    page = Path("fabinterp-report.html").read_text(encoding="utf-8")
    assert not Page(page).open
    code = html.unescape(re.search(r"Reproduce the model</h2><pre>(.*?)</pre>", page, re.S)[1])
    made, shown = code.splitlines()
    assert (
        made == "fabinterp fit flowers.csv --target price --method tree --size 3 --out model.json"
    )
    assert shown == "fabinterp report model.json flowers.csv"
    model = Path("model.json").read_bytes()
    run(*shlex.split(made)[1:], "--force")
    assert load_rules(tmp_path / "model.json") == load_rules(model.decode())
    run(*shlex.split(shown)[1:], "--force")
    assert Path("fabinterp-report.html").read_text(encoding="utf-8").count(
        "<section"
    ) == page.count("<section")


@pytest.mark.parametrize("command, target", [
    ("simplify --max-rules 2", "kind"), ("fit --method tree", "price"),
])  # fmt: skip
def test_errors_are_measured_on_a_file_of_other_rows(
    capsys, tmp_path, monkeypatch, command, target
):
    """By fit and by report."""
    monkeypatch.chdir(tmp_path)
    frame = flowers()
    frame[:100].to_csv("old.csv", index=False)
    frame[100:].to_csv("new.csv", index=False)
    words = [*command.split(), "old.csv", "--target", target, "--held-out", "new.csv"]
    shown, _ = run(*words, "--out", "model.json")
    model = load_rules(tmp_path / "model.json")
    assert "on 50 rows held out" in shown
    X, y = frame[100:][list(model.columns.names)], frame[target][100:]
    wrong = model.predict(X) != y if target == "kind" else (model.predict(X) - y) ** 2
    error = wrong.mean() if target == "kind" else np.sqrt(wrong.mean())
    printed = float(re.search(r"^(?:error|rmse) +(\S+)$", shown, re.M)[1])
    assert printed == pytest.approx(error, rel=5e-3)
    page, notes = reported("model.json", "old.csv", "--held-out", "new.csv")
    assert "50 rows held out" in page and "note" not in notes
    assert ("100 rows of the fit" in page) == (
        target == "kind"
    )  # supports of rules are in the file
    page, notes = reported("model.json", "old.csv")
    assert "the fit may have used rows of old.csv" in notes and "rows held out |" not in page
    refused(capsys, "report", "model.json", "old.csv", "--held-out", "gone.csv", code=1)
    frame[["length"]].to_csv("less.csv", index=False)
    told = refused(capsys, *words[:-1], "less.csv", code=1)
    assert "less.csv has no column" in told
    frame.assign(**{target: ""}).to_csv("blank.csv", index=False)
    told = refused(capsys, *words[:-1], "blank.csv", code=1)
    kind = "labels" if target == "kind" else "numbers"
    assert f"blank.csv must hold {kind} in column {target!r}" in told


def test_further_notes_are_printed_by_verbose(capsys):
    notes = ["a", "b", "c", "d", "e"]
    commands.print_notes(notes, argparse.Namespace(verbose=False))
    assert capsys.readouterr().err.splitlines() == [
        "note: a", "note: b", "note: c", "2 more notes: --verbose"
    ]  # fmt: skip
    commands.print_notes(notes, argparse.Namespace(verbose=True))
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_notes_of_a_fit_are_in_its_file_and_its_report(tmp_path, monkeypatch, fit):
    monkeypatch.chdir(tmp_path)
    path = fit("--target kind --method tree --size 99").path
    (note,) = [note for note in load_rules(path).source["notes"] if "no size 99" in note]
    flowers().to_csv("t.csv", index=False)
    assert note in page_text(reported(path, "t.csv")[0])


def test_a_report_beside_the_model_and_on_rows_that_neither_has_seen(
    capsys, tmp_path, monkeypatch, snapshot
):
    monkeypatch.chdir(tmp_path)
    X = flowers()[["depth", "length"]].fillna(0)
    table = X.assign(kind=flowers().kind)
    old, new = table[::2], table[1::2]
    old.to_csv("old.csv", index=False)
    new.to_csv("new.csv", index=False)
    forest = RandomForestClassifier(5, random_state=0).fit(old[["depth", "length"]], old.kind)
    joblib.dump(forest, "forest.joblib")
    words = "explain forest.joblib old.csv --trust --target kind --max-rules 3 --out rules.json"
    run(*words.split())
    snapshot("show_rules_of_explain", transcript(*run(*"show rules.json --path".split())))
    words = ("rules.json", "old.csv", "--held-out", "new.csv", "--reference", "forest.joblib")
    page, notes = reported(*words, "--trust")
    snapshot("report_beside_the_model", transcript(page_text(page), notes))
    rules = RuleSet.from_json(Path("rules.json").read_text())
    answers = rules.predict(new[["depth", "length"]])
    wrong = 100 * np.mean(answers != new.kind.to_numpy())
    agree = 100 * np.mean(answers == forest.predict(new[["depth", "length"]]))
    lead = page_text(page[: page.index("<h2")])
    assert f"{wrong:.1f} %" in lead and f"{agree:.1f} %" in lead
    assert f"{len(new)} rows held out" in lead
    page, _ = reported("rules.json", "old.csv")
    assert "agreement with RandomForestClassifier" not in page
    X.to_csv("bare.csv", index=False)
    lines = [
        "report rules.json old.csv --held-out new.csv --reference forest.joblib",
        "report rules.json old.csv --held-out bare.csv",
        "report forest.joblib old.csv --trust",
    ]
    text = "".join(refusals(capsys, line, code=1 + (k == 0)) for k, line in enumerate(lines))
    snapshot("refused_references", text)


@pytest.mark.parametrize("name", ["trees", "line"])
def test_explain_is_bounded(tmp_path, monkeypatch, snapshot, name):
    monkeypatch.chdir(tmp_path)
    models = {"trees": RandomForestClassifier(5, random_state=0), "line": LogisticRegression()}
    X = flowers()[["depth", "length"]].fillna(0)
    X.assign(colour=flowers().colour, kind=flowers().kind).to_csv("t.csv", index=False)
    joblib.dump(models[name].fit(X, flowers().kind), f"{name}.joblib")
    words = f"explain {name}.joblib t.csv --trust --target kind --min-support 12 --path "
    words += "--max-conditions 1 --held-out 0.3 --max-rules 3 --out rules.json"
    shown, notes = run(*words.split())
    snapshot(f"explain_{name}", transcript(shown, notes))
    assert f"{int(0.3 * len(X))} held out" in shown
    rules = RuleSet.from_json(Path("rules.json").read_text())
    assert min(rule.support for rule in rules.rules) >= 12
    features = [{split.features for split, _ in rule.conditions} for rule in rules.rules]
    assert max(map(len, features)) <= 1
    assert "--max-conditions 1 --held-out 0.3" in rules.source["command"]
    _, notes = run(*"predict rules.json t.csv --proba".split())
    snapshot(f"notes_on_probabilities_of_{name}", notes)


def test_a_model_of_another_library(capsys, tmp_path, monkeypatch, snapshot):
    """A text is read; a file that holds code only when it is trusted."""
    xgboost = pytest.importorskip("xgboost")
    monkeypatch.chdir(tmp_path)
    frame = flowers()
    frame.to_csv("t.csv", index=False)
    X, y = frame[["depth", "length"]].fillna(0), (frame.kind == "rose").astype(int)
    xgboost.XGBClassifier(n_estimators=5).fit(X, y).save_model("model.json")
    shown, _ = run(*"explain model.json t.csv --max-rules 3 --out rules.json".split())
    assert "XGBoost" in shown
    rules = RuleSet.from_json(Path("rules.json").read_text())
    assert rules.columns.names == ("depth", "length") and len(rules) <= 3
    boosted = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, frame.kind)
    joblib.dump(boosted, "m.joblib")
    words = "explain m.joblib t.csv --target kind --max-rules 3"
    untrusted = refusals(capsys, words)
    shown, _ = run(*words.split(), "--trust")
    assert "30 held out" in shown
    Path("m.joblib").write_bytes(b"\x80\x05nonsense")
    unknown = refusals(capsys, "explain model.json t.csv --target kind", code=1)
    snapshot("refused_models", transcript(untrusted, unknown))
    assert "'m.joblib'" in refused(capsys, *words.split(), "--trust", code=1)


def test_the_page_stands_alone(page):
    text = page.read_text(encoding="utf-8")
    parsed = Page(text)
    assert not parsed.open and not {"script", "link", "iframe", "b<i>"} & set(parsed.tags)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in parsed.addresses)
    assert "<script>" not in text and "&lt;script&gt;" in text
    assert "default-src 'none'" in text and str(page.parent) not in text
    assert "prefers-color-scheme: dark" in text and text.count("<figure>") == 4


@pytest.mark.slow
def test_the_page_in_a_browser(page, tmp_path):
    need("chromium", "playwright")
    with chromium() as browser:
        grounds = []
        complaints = []
        for scheme, wide in (("light", 900), ("dark", 900), ("dark", 320)):
            tab = browser.new_page(color_scheme=scheme, viewport={"width": wide, "height": 700})
            tab.on("console", lambda message: complaints.append(message.text))
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.goto(page.as_uri())
            assert tab.evaluate(
                "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
            )
            assert tab.evaluate("document.documentElement.scrollWidth") <= wide
            grounds.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert not complaints
    assert grounds[0] != grounds[1] == grounds[2]


def test_the_path_of_a_tree(fit, estimator):
    """Leaves, numbers, the error on the test rows and the one that chose; the tree above is marked."""
    shown = fit(words_of_fit("price", "piecewise")).shown
    rows = re.findall(r"^([* ]) +(\d+) +\d+ +(\S+) ± (\S+)$", shown, re.M)
    path = estimator("piecewise").path_
    assert list(path["size"]) == [int(row[1]) for row in rows]
    assert [row[0] for row in rows].index("*") == path["chosen"].to_numpy().argmax()
    root = np.sqrt(path.cv_error)
    np.testing.assert_allclose([float(row[2]) for row in rows], root, rtol=6e-3)
    np.testing.assert_allclose([float(row[3]) for row in rows], path.cv_se / (2 * root), rtol=6e-3)


def test_the_path_of_rules_says_what_chose(tmp_path, snapshot):
    """Description length, and not the errors beside it; fidelity is to the forest trained for them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((160, 2)), columns=["a", "b"])
    frame["y"] = 3 * (frame.a > 0.5) + frame.b + rng.normal(0, 0.5, 160)
    frame.to_csv(tmp_path / "t.csv", index=False)
    shown, notes = run("fit", tmp_path / "t.csv", "--target", "y", "--held-out", "0", "--path")
    snapshot("fit_of_all_rows", transcript(shown, notes))
    model = RuleMixtureRegressor(random_state=0, n_jobs=1).fit(frame[["a", "b"]], frame.y)
    forest = model.estimator_.predict(frame[["a", "b"]].to_numpy())
    off = (forest - model.predict(frame[["a", "b"]])) ** 2
    at = model.rules_.apply(frame[["a", "b"]].to_numpy())
    path = model.path_
    assert path["chosen"].idxmax() == path["criterion"].idxmin()
    printed = [float(text) for text in re.findall(r"fidelity (\S+)\)", shown)]
    expected = [1 - off[at == k].mean() / forest.var() for k in range(len(model.rules_.rules))]
    assert printed == [pytest.approx(one, abs=6e-4) for one in expected] and len(printed) > 1


def test_a_list_shorter_than_allowed_says_why(table, snapshot):
    words = ["simplify", table, "--target", "price", "--path", "--max-rules"]
    told = []
    for most in (2, 12):
        shown, notes = run(*words, most)
        n = int(re.match(r"\n(\d+) rule", shown)[1])
        assert ("description" in notes) == (n < most)
        told.append(f"# at most {most} rules: {n}\n{notes}")
    snapshot("notes_on_a_short_list", transcript(*told))


LIMITED = [
    "piecewise --max-depth 0", "oblique --max-leaves 1 --size 1", "tree --max-leaves 3", "rules --max-rules 2",
]  # fmt: skip


def test_a_limit_of_the_search_is_told_and_can_be_moved(fit, snapshot):
    told = []
    for words in LIMITED:
        fitted = fit(f"--target price --method {words}")
        assert (
            len(as_ruleset(load_rules(fitted.path)).rules) == int(words.split()[2])
            or "depth" in words
        )
        told.append(f"# {words}\n{fitted.notes}")
    snapshot("notes_on_limits", transcript(*told))
    assert "its maximum" in told[0]
    assert "its maximum" not in fit("--target price --method tree --size 2").notes


def test_the_same_again(page):
    """The page holds nothing of the time or the folder."""
    before = page.read_bytes()
    words = ["simplify", page.with_name("a&b.csv"), "--target", 'a"b<i>', "--max-rules", "4"]
    run(*words, "--out", page, "--force")
    assert page.read_bytes() == before.replace(b"rules.html", b"rules.html --force")


def test_a_terminal_without_signs():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert terminal.printable("x ≤ 3 and y ∈ {é}", stream) == "x <= 3 and y in {\\xe9}"
    assert terminal.printable("x ≤ 3", io.StringIO()) == "x ≤ 3"


def test_a_stage_is_named_in_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, name in ((io.StringIO(), ""), (Terminal(), "a stage\n")):
        with redirect_stderr(stream), terminal.progress_message("a stage"):
            print("tree 3 of 10")
        assert stream.getvalue() == f"{name}tree 3 of 10\n"


def test_version_and_help(capsys, snapshot):
    def shown(*words):
        with pytest.raises(SystemExit) as stop:
            cli.main(words)
        assert stop.value.code == 0
        return capsys.readouterr().out

    assert shown("--version") == f"fabinterp {cli.__version__}\n"
    snapshot("help", transcript(shown("-h")))
    for name in "demo simplify fit explain predict report show".split():
        snapshot(f"help_{name}", transcript(shown(name, "-h")))


def test_help_loads_nothing():
    """Neither NumPy nor scikit-learn; so it is there at once."""
    code = (
        "import sys; sys.argv = ['fabinterp', '--help']; import runpy\n"
        "try:\n    runpy.run_module('fabinterp', run_name='__main__')\n"
        "except SystemExit as stop:\n    print(stop.code, {'numpy', 'sklearn'} & set(sys.modules))"
    )
    out, err = process(code).communicate(timeout=PATIENCE)
    assert out.endswith("0 set()\n"), err


# The process


def process(code, *words, **options):
    """A Python process that runs `code`, and can be interrupted although this one may have been told to ignore it."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                            **options)  # fmt: skip


def test_interrupted_and_a_closed_pipe(capsys, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_arguments", stop)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == "fabinterp: interrupted\n"
    code = "import sys; from fabinterp import cli; cli.run_arguments = lambda _: cli.signal(); sys.exit(cli.main([]))"
    code = code.replace(
        "cli.signal()", "(print('ready', flush=True), __import__('time').sleep(60))"
    )
    running = process(code)
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130 and err == "fabinterp: interrupted\n"


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, _ = run(*"demo --random-state 1".split())
    assert "rules for diagnosis" in out and "on 143 rows held out" in out
    errors = [float(text) for text in re.findall(r"^error.* ([\d.]+)$", out, re.M)]
    assert len(errors) == 2 and errors[0] <= errors[1] + 0.05
    page = Path("fabinterp-demo.html").read_text(encoding="utf-8")
    assert not Page(page).open and "143 rows held out" in page


def test_a_size_that_the_path_lacks_is_told(fit, snapshot):
    fitted = fit("--target kind --method tree --size 99")
    snapshot("notes_on_a_missing_size", transcript(fitted.notes))
    n = re.search(r"size 99: (\d+),", fitted.notes)[1]
    assert len(as_ruleset(load_rules(fitted.path)).rules) == int(n)
    assert f"size {n}" not in fit(f"--target kind --method tree --size {n}").notes


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A table whose colours are codes, in an order that says nothing, some of them missing."""
    frame = flowers(200).drop(columns="id")
    frame["colour"] = frame.colour.map({"red": 2, "blue": 1, "white": 3})
    frame["depth"] = frame.depth.fillna(0)
    frame.loc[::23, "colour"] = np.nan
    frame["price"] += 4 * (frame.colour == 2)  # 2 apart from 1 and 3: no one cut tells
    path = tmp_path_factory.mktemp("coded") / "coded.csv"
    frame.to_csv(path, index=False)
    return path, frame


@pytest.fixture(scope="module")
def fit_coded(coded):
    """Fit the table with codes by a command, each once: the file, and what was printed."""
    path, _ = coded

    @cache
    def fit_once(command):
        out = path.with_name(f"{command}.json")
        words = [command, path, "--target", "price", "--size", 4, "--label", "colour"]
        return out, run(*words, "--out", out)[0]

    return fit_once


@pytest.mark.parametrize("command", ["fit", "simplify"])
def test_codes_are_read_as_labels(tmp_path, coded, fit_coded, command):
    path, frame = coded
    fitted, shown = fit_coded(command)
    model = commands.load_fitted(fitted)
    assert sorted(model.columns.categories[model.columns.names.index("colour")]) == [1, 2, 3]
    assert re.search(r"colour (is not|is|∈|∉) \{?[123]", shown)
    X = frame.drop(columns=["kind", "price"]).assign(kind=frame.kind)
    expected = model.predict(X.assign(colour=pd.Categorical(X.colour.astype("Int64"))))
    predicted, _ = run("predict", fitted, path)
    assert np.allclose(pd.read_csv(io.StringIO(predicted)).price, expected, rtol=1e-12)
    run("show", fitted, "--table", "coded", "--out", tmp_path / "m.sql")
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("coded", base, index=False)
        answers = base.execute((tmp_path / "m.sql").read_text().rstrip(";\n")).fetchall()
    assert np.allclose(np.ravel(answers), expected)
    page = tmp_path / "page.html"
    run("report", fitted, path, "--out", page)
    assert "--label colour" in page.read_text(encoding="utf-8")


def test_codes_written_as_text_are_the_same_labels(tmp_path, coded, fit_coded):
    path, frame = coded
    fitted, _ = fit_coded("fit")
    frame = frame.assign(colour=frame.colour.astype("Int64").astype(object))
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.loc[1, "colour"] = "unknown"  # the column becomes text
    frame.to_csv(tmp_path / "text.csv", index=False)
    answers = []
    for file in (path, tmp_path / "plain.csv", tmp_path / "text.csv"):
        out, notes = run("predict", fitted, file)
        answers.append(np.array(out.split()[1:], dtype=float))
        assert bool(re.search("labels .* 1 of", notes)) == (file.name == "text.csv")
    assert (answers[0] == answers[1]).all()
    assert (np.delete(answers[2], 1) == np.delete(answers[0], 1)).all()


def test_text_that_looks_like_numbers_in_a_later_file(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("size,owns\n2,TRUE\n1,false\n3,True\n")
    schema = Schema(
        {
            "size": ColumnSchema("label", ("1", "2", "XL")),
            "owns": ColumnSchema("label", (False, True)),
        }
    )
    table = files.read_table(str(path), schema=schema)
    assert table.columns["size"].tolist() == ["2", "1", "3"]
    assert table.columns["owns"].tolist() == [True, False, True]


def test_labels_that_are_refused(capsys, coded, snapshot):
    path, _ = coded
    words = f"fit {path} --target price --label"
    lines = [f"{words} {names}" for names in ("color", "a,,b")]
    snapshot("refused_labels", refusals(capsys, *lines))
    assert cli.names_of_text('"a, b",c') == ["a, b", "c"]


def test_predictions_beside_columns_of_the_data(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = write_model("tree").assign(id=np.arange(7, 7 + len(flowers())))
    frame["note"] = np.where(frame["id"] % 2, 'a, "b"', None)
    frame["part"] = np.where(frame["id"] % 3, 0.5, np.nan)
    frame.to_csv("t.csv", index=False)
    model = commands.load_fitted("model.json")
    kept = ["id", "note", "part", model.target]
    shown, _ = run("predict", "model.json", "t.csv", "--keep", ",".join(kept))
    found = pd.read_csv(io.StringIO(shown))
    pd.testing.assert_frame_equal(found[kept], pd.read_csv("t.csv")[kept])
    assert list(found) == [*kept, f"{model.target}_predicted"]
    shown, _ = run(*"predict model.json t.csv --keep id".split())
    alone = pd.read_csv(io.StringIO(shown))
    assert list(alone) == ["id", model.target]
    assert (alone[model.target] == found[f"{model.target}_predicted"]).all()
    told = refused(capsys, *"predict model.json t.csv --keep ID".split())
    assert "--keep" in told and "no column 'ID'" in told and "did you mean 'id'" in told
