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
import time
import warnings
from html.parser import HTMLParser
from pathlib import Path

import joblib
import numpy as np
import pytest
from browser.serve import chromium
from frame import ROOT
from hypothesis import given
from hypothesis import strategies as st
from shared.machine import slowness
from shared.needs import need
from sklearn.ensemble import RandomForestRegressor

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
from fabinterp.bench.runner import TABLES
from fabinterp.explanation import split_positions
from fabinterp.rows.tables import seed_entropy
from fabinterp.rules import size_path
from fabinterp.rules.core import Columns, Leaf
from fabinterp.rules.ruleset import RuleSet, Tree, as_ruleset
from fabinterp.rules.size_path import sizes_of
from fabinterp.rules.text import display_width

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
    assert (
        not out
        and err.count("\n") == 1
        and err.startswith("fabinterp: ")
        and "Traceback" not in err
    )
    return err


def simplify(capsys, *words):
    """Run, expect success, return what was printed."""
    code = cli.main(["simplify", *map(str, words)])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out, err


# What is refused


@pytest.mark.parametrize("words, told", [
    ((), "the following arguments are required: command"),
    (("explained",), "invalid choice"),
    (("explain",), "required: MODEL, DATA"),
    (("simplify", "x.csv"), "--target"),
    (("demo", "--max-rules", "-3"), "--max-rules: a whole number from 1 up is needed, got '-3'"),
    (("demo", "--max-rules", "0"), "got '0'"),
    (("demo", "--size", "tiny"), "or a whole number from 1, got 'tiny'"),
    (("demo", "--max-rules", "many"), "got 'many'"),
    (("demo", "--max-conditions", "0"), "got '0'"),
    (("demo", "--random-state", "-1"), "got '-1'"),
    (("demo", "--random-state", "4294967296"), "got '4294967296'"),
    (("demo", "--out", "rules.docx"), "--out must end in one of .html, .json, .sql, .py, .txt, got 'rules.docx'"),
    (("demo", "--out", "nowhere/rules.html"), "its folder does not exist"),
    (("demo", "extra"), "unrecognized arguments: extra (fabinterp demo -h tells more)"),
    (("fit", "t.csv", "--traget", "y"), "unrecognized arguments: --traget; did you mean --target?"),
    (("predict", "m.json", "t.csv", "--sise=3"), "unrecognized arguments: --sise; did you mean --si"),
    (("demo", "--zebra"), "unrecognized arguments: --zebra (fabinterp demo -h tells more)"),
    (("simplify", "x.csv", "--target", "y", "--test-share", "1"), "got '1'"),
    (("simplify", "x.csv", "--target", "y", "--test-share", "nan"), "got 'nan'"),
    (("simplify", "x.csv", "--target", "y", "--sep", "ab"), "--sep: one character or the word tab"),
    (("simplify", "x.csv", "--target", "y", "--encoding", "utf-9"), "--encoding: an encoding such as"),
    (("simplify", "x.csv", "--target", "y", "--decimal", ";"), "--decimal: invalid choice"),
    (("simplify", "x.csv", "--target", "y", "--sample", "0"), "--sample: a whole number from 1 up"),
    (("fit", "x.csv", "--target", "y", "--method", "forest"), "--method: invalid choice"),
    (("fit", "x.csv", "--target", "y", "--out", "x.csv"), "--out must end in one of .html"),
    (("predict", "m.json", "x.csv", "--out", "p.json"), "--out must end in one of .csv, got 'p.json'"),
    (("report", "m.json", "x.csv", "--out", "p.json"), "--out must end in one of .html, got"),
])  # fmt: skip
def test_arguments_are_refused_in_one_line(capsys, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    assert told in refused(capsys, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content, target, code, told", [
    (b"", "y", 1, "cannot read 't.csv'"),
    (b"a,b\n", "b", 1, "has no rows"),
    (b"a,b\n1,2\n3,4,5,6\n", "b", 1, "--sep names what separates columns"),
    (b"\xff\xfe\x00a,b\n1,2\n", "b", 1, "not UTF-16 text; --encoding names another"),
    (b"a,b\n1,\xe4\n", "b", 1, "not UTF-8 text; --encoding names another"),
    (b"PK\x03\x04", "b", 1, "a spreadsheet or an archive"),
    (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "b", 1, "the gzip file is damaged or incomplete"),
    (b"\x1f\x8bzzzzzzzz", "b", 1, "cannot read 't.csv'"),
    (b"PAR1zzzz", "b", 1, "cannot read 't.csv'"),
    (b'a,b\n"1,2\n', "b", 1, "cannot read 't.csv'"),
    (b"Age,b\n1,2\n3,4\n", "age", 2, "--target 'age' is not a column of t.csv: did you mean 'Age'?"),
    (b"a,b\n1,2\n3,4\n", "zzz", 2, "the columns are 'a', 'b'"),
    (b"a:b\n1:2\n3:4\n", "zzz", 2, "the columns are 'a:b'; --sep names what separates"),
    (b"a,b\n1,2\n3,2\n", "b", 1, "--target 'b' must have two different values, got '2'"),
    (b"a,b\n1,\n3,\n", "b", 1, "--target 'b' must have two different values, got none"),
    (b"b\n1\n2\n", "b", 1, "no column is left"),
    (b"a,b\n1,2\n", "b", 1, "must have two different values"),
    (b"a,b\ninf,2\n3,4.5\n5,6\n7,8\n", "b", 1, "infinity"),
])  # fmt: skip
def test_tables_are_refused_in_one_line(capsys, tmp_path, content, target, code, told):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert told in refused(capsys, "simplify", path, "--target", target, code=code)


def test_files_that_are_not_there(capsys, table):
    words = ("simplify", "gone.csv", "--target", "y")
    assert "cannot read 'gone.csv': No such file" in refused(capsys, *words, code=1)
    assert "cannot read '.'" in refused(capsys, "simplify", ".", "--target", "y", code=1)
    assert "cannot read 'm.json'" in refused(capsys, "predict", "m.json", table, code=1)
    assert "cannot read 'm.json'" in refused(capsys, "report", "m.json", table, code=1)
    assert "cannot read 'm.json'" in refused(capsys, "explain", "m.json", table, code=1)


def test_regression_needs_numbers(capsys, table):
    assert "--task regression needs numbers in 'kind'" in refused(
        capsys, "simplify", table, "--target", "kind", "--task", "regression")  # fmt: skip


def test_an_empty_column_is_left_out_and_alone_it_is_refused(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n,1\n,2\n,3\n")
    assert cli.main(["simplify", str(path), "--target", "b"]) == 1
    empty, refusal = capsys.readouterr().err.splitlines()
    assert empty == "note: column 'a' is left out: it is empty"
    assert refusal.startswith("fabinterp: no column is left to predict from")


def test_a_place_that_cannot_be_written(capsys, tmp_path, table, monkeypatch):
    (tmp_path / "x.html").mkdir()
    assert "it is a folder" in refused(capsys, "demo", "--out", tmp_path / "x.html")
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    assert "it cannot be written" in refused(capsys, "demo", "--out", tmp_path / "y.html")
    monkeypatch.undo()
    (tmp_path / "z.txt").mkdir()  # the place turns bad during the work
    with pytest.raises(terminal.CommandError, match="Is a directory|Permission"):
        commands.write_out(tmp_path / "z.txt", "", force=True)


def test_no_file_is_overwritten_unasked(capsys, tmp_path, table):
    out = tmp_path / "rules.txt"
    out.write_text("mine")
    words = (table, "--target", "kind", "--max-rules", 2, "--out", out)
    assert "it exists; --force overwrites it" in refused(capsys, "simplify", *words)
    with pytest.raises(terminal.CommandError, match="File exists"):  # come since it was checked
        commands.write_out(out, "ours")
    assert out.read_text() == "mine"
    simplify(capsys, *words, "--force")
    assert out.read_text() != "mine"


# What is read


@pytest.fixture
def without_pandas(monkeypatch):
    monkeypatch.setattr(files, "import_pandas", lambda: None)


def same(table, frame):
    """Say whether a table that was read holds what a frame does."""
    X = pd.DataFrame(table.columns)
    pd.testing.assert_frame_equal(X, frame.astype(X.dtypes), check_dtype=False)
    return True


@pytest.mark.parametrize("pandas", [True, False])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separators(tmp_path, sep, pandas, monkeypatch):
    path = tmp_path / "t.csv"
    flowers().to_csv(path, index=False, sep=sep, encoding="utf-8-sig")
    if not pandas:
        monkeypatch.setattr(files, "import_pandas", lambda: None)
    assert same(files.read_table(str(path)), flowers())


@pytest.mark.parametrize("ending, options", [
    (".csv", {"sep": ":"}), (".csv", {"encoding": "latin-1"}), (".csv", {"encoding": "utf-16"}),
    (".csv", {"sep": ";", "decimal": ","}), (".csv.gz", {}), (".csv.gz", {"sep": ";"}),
])  # fmt: skip
def test_ways_to_write_a_table(tmp_path, ending, options, monkeypatch):
    path = tmp_path / f"t{ending}"
    frame = flowers().assign(größe=1.5)
    frame.to_csv(path, index=False, **options)
    assert same(files.read_table(str(path), **options), frame)
    monkeypatch.setattr(files, "import_pandas", lambda: None)
    assert same(files.read_table(str(path), **options), frame)


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
    monkeypatch.setattr(files, "import_pandas", lambda: None)
    with pytest.raises(terminal.CommandError, match=r"pip install 'fabinterp\[frames\]'"):
        files.read_table(str(path))


def test_a_sample_is_drawn_and_told(capsys, tmp_path, table):
    drawn = [files.read_table(str(table), sample=40, random_state=seed) for seed in (0, 0, 1)]
    ids = [read.columns["id"].tolist() for read in drawn]
    assert ids[0] == ids[1] != ids[2] and drawn[0].n_read == 150 and len(drawn[0]) == 40
    assert ids[0] == sorted(ids[0], key=lambda name: int(name[1:])) and len(set(ids[0])) == 40
    words = (table, "--target", "kind", "--max-rules", 2)
    text, notes = simplify(capsys, *words, "--sample", 80)
    assert "note: 80 of 150 rows are used, drawn at random" in notes and "20 test rows" in text
    assert "are used" not in simplify(capsys, *words, "--sample", "none")[1]


def test_a_decimal_comma_is_seen(capsys, tmp_path):
    path = tmp_path / "t.csv"
    flowers().to_csv(path, index=False, sep=";", decimal=",")
    _, notes = simplify(capsys, path, "--target", "kind", "--max-rules", 2)
    assert "numbers with a comma in 'length', 'depth', 'price', taken for text" in notes
    assert "--decimal , reads" in notes
    _, notes = simplify(capsys, path, "--target", "kind", "--max-rules", 2, "--decimal", ",")
    assert "comma" not in notes


def test_without_pandas(capsys, tmp_path, without_pandas):
    frame = flowers()
    numbers = frame.drop(columns=["id", "colour"])
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    out = tmp_path / "rules.json"
    words = (tmp_path / "numbers.csv", "--target", "kind", "--max-rules", 3)
    text, _ = simplify(capsys, *words, "--out", out)
    assert "length" in text and RuleSet.from_json(out.read_text()).columns.names[0] == "length"
    assert cli.main(["predict", str(out), str(tmp_path / "numbers.csv")]) == 0
    assert set(capsys.readouterr().out.split()) <= {"kind", "rose", "other"}
    frame.drop(columns="id").to_csv(tmp_path / "texts.csv", index=False)
    assert cli.main(["simplify", str(tmp_path / "texts.csv"), "--target", "kind"]) == 1
    assert "column 'colour' holds text, which needs pandas" in capsys.readouterr().err


@pytest.mark.parametrize("values, task", [
    ([0, 1, 1], "classification"), ([0.0, 1.0, 2.0] * 2, "classification"), ([0.0, 1.0, 2.0], "regression"),
    ([3, 5, 5, 7, 9], "regression"), (["a", "b"], "classification"),
    ([True, False], "classification"), (list(range(11)), "regression"), ([0.5, 1.0], "regression"),
])  # fmt: skip
def test_task(values, task):
    assert commands.infer_task(np.array(values)) == task
    assert commands.infer_task(np.array(values), "classification") == "classification"


def test_what_is_left_out_is_said(tmp_path):
    frame = flowers()
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    frame["nothing"] = np.nan
    frame.loc[3, "price"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = files.read_table(str(tmp_path / "t.csv"))
    read.columns["when"] = np.arange(len(frame)).astype("M8[D]")
    said = []
    table, y, task = commands.prepare(read, "price", "auto", said.append)
    assert list(table.columns) == ["length", "colour", "depth", "kind"]
    assert len(table) == len(y) == len(frame) - 1
    assert task == "regression" and not table.rows().isna().all().any()
    assert [re.search("1 row |'[^']+'", line)[0] for line in said] == [
        "1 row ",
        "'Unnamed: 0'",
        "'id'",
        "'nothing'",
        "'when'",
    ]


@given(st.integers(2, 300), st.floats(0.01, 0.99), st.integers(0, 9), st.booleans())
def test_rows_are_split_once(n, share, seed, labels):
    y = np.arange(n) % 3
    if int(np.ceil(share * n)) == n:
        with pytest.raises(terminal.UsageError, match="--test-share"):
            commands.split_rows(n, y, "classification", share, seed)
        return
    task = "classification" if labels else "regression"
    train, test = commands.split_rows(n, y, task, share, seed)
    assert sorted([*train, *test]) == list(range(n)) and len(test) == int(np.ceil(share * n))
    again = commands.split_rows(n, y, task, share, seed)
    assert (train == again[0]).all()


# What comes out


def test_classification_out_as_json_reproduces_the_printed_errors(capsys, tmp_path, table):
    out = tmp_path / "rules.json"
    text, notes = simplify(capsys, table, "--target", "kind", "--max-rules", 4, "--out", out)
    rules = RuleSet.from_json(out.read_text())
    assert json.loads(out.read_text())["target"] == "kind" and len(rules.rules) <= 4
    assert "column 'id' is left out" in notes and "task: classification" in notes
    frame = flowers()
    X = frame.drop(columns=["id", "kind"])
    y = frame.kind.to_numpy()
    train, test = commands.split_rows(len(y), y, "classification", 0.25, 0)
    error = (rules.predict(X.iloc[test]) != y[test]).mean()
    printed = re.search(rf"^error of the rules +(\S+)   on {len(test)} test rows", text, re.M)[1]
    assert float(printed) == pytest.approx(error, abs=0.0005)
    assert sum(rule.support for rule in rules.rules) == len(train)


@pytest.mark.slow
def test_regression_out_as_sql_answers_like_the_rules(capsys, tmp_path, table):
    out = tmp_path / "rules.sql"
    words = (
        table,
        "--target",
        "price",
        "--max-rules",
        5,
        "--max-conditions",
        "none",
        "--test-share",
        0,
    )
    text, _ = simplify(capsys, *words, "--out", out)
    assert "rmse" not in text and "test" not in text  # nothing was held out, so nothing is claimed
    simplify(capsys, *words, "--out", tmp_path / "rules.json")
    simplify(capsys, *words, "--out", tmp_path / "rules.py")
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
def test_what_is_fitted_predicts_and_is_reported(capsys, tmp_path, table, method, target):
    """The error printed is that of the file; predictions come in the order of the rows."""
    fitted, answers = tmp_path / "model.json", tmp_path / "answers.csv"
    words = ["fit", table, "--target", target, "--method", method, "--out", fitted]
    assert cli.main(list(map(str, words))) == 0
    shown = capsys.readouterr().out
    frame = flowers().sort_index(axis=1)
    frame.to_parquet(tmp_path / "t.parquet")
    words = ["predict", fitted, tmp_path / "t.parquet", "--out", answers]
    assert cli.main(list(map(str, words))) == 0
    answered = pd.read_csv(answers)
    assert list(answered) == [target] and len(answered) == len(frame)
    y = frame[target].to_numpy()
    task = "classification" if target == "kind" else "regression"
    _, test = commands.split_rows(len(y), y, task, 0.25, 0)
    wrong = answered[target].to_numpy()[test]
    error = (
        (wrong != y[test]).mean() if target == "kind" else ((wrong - y[test]) ** 2).mean() ** 0.5
    )
    printed = re.search(rf"(\S+) +on {len(test)} test rows", shown)[1]
    assert float(printed) == pytest.approx(error, rel=0.005)


KEPT = {
    "piecewise": ("price", PiecewiseLinearRegressor),
    "tree": ("kind", ProxyTreeClassifier),
    "rules": ("kind", RuleMixtureClassifier),
}


def write_model(method, more=""):
    """Fit the flowers in t.csv by a method of `KEPT`, write model.json, return the frame."""
    frame = flowers().drop(columns="id")
    frame.to_csv("t.csv", index=False)
    words = f"fit t.csv --target {KEPT[method][0]} --method {method} --out model.json {more}"
    assert cli.main(words.split()) == 0
    return frame


@pytest.mark.parametrize("method", KEPT)
def test_a_file_keeps_all_sizes(capsys, tmp_path, monkeypatch, method):
    """Each answers as the estimator does at that size, whichever is asked for."""
    monkeypatch.chdir(tmp_path)
    target, kind = KEPT[method]
    frame = write_model(method, "--test-share 0")
    X = files.read_table("t.csv").without([target]).rows()
    y = frame[target].to_numpy()
    model = kind(
        random_state=0, size="balanced", **({"max_rules": 10} if method == "rules" else {})
    )
    model.fit(X, y)
    kept = load_rules(tmp_path / "model.json")
    found = sizes_of(kept)
    assert len(found) > 1 and Path("model.json").stat().st_size < 1e6
    for (entry, other, chosen), (fitted, at, is_chosen) in zip(found, sizes_of(model), strict=True):
        assert (entry.size, entry.n_numbers, chosen) == (fitted.size, fitted.n_numbers, is_chosen)
        assert np.array_equal([*entry.error, entry.criterion], [*fitted.error, fitted.criterion])
        assert (other.predict(X) == at.predict(X)).all()
    capsys.readouterr()
    for words, at in [("", model), ("--size 1", model.at(1))]:
        assert cli.main(f"predict model.json t.csv {words}".split()) == 0
        answers = pd.read_csv(io.StringIO(capsys.readouterr().out))[target]
        assert (
            (answers == at.predict(X)).all()
            if target == "kind"
            else np.allclose(answers, at.predict(X))
        )
    page, _ = reported(capsys, "model.json", "t.csv", "--size", "1")
    assert page.count('<input type="radio"') == len(found)
    assert f"1 {'rule' if method == 'rules' else 'leaf'} for {target}" in page
    old = json.loads(Path("model.json").read_text())
    del old["sizes"]  # what a reader finds that does not know of sizes
    assert load_rules(json.dumps(old)) == found[model._at][1] == kept
    if method == "rules":
        told = refused(capsys, *"predict model.json t.csv --size small".split())
        assert "--size must be one of the sizes that are kept" in told
    else:
        assert cli.main("predict model.json t.csv --size small".split()) == 0
    Path("model.json").write_text(json.dumps(old))
    capsys.readouterr()
    for words in ("predict model.json t.csv --size 1", "show model.json --size 1"):
        told = refused(capsys, *words.split())
        assert "--size must be left out for a model that keeps one size" in told
    assert "--path must be left out" in refused(capsys, *"show model.json --path".split())


@pytest.mark.parametrize("method", KEPT)
def test_a_file_is_shown_and_written_at_another_size(capsys, tmp_path, monkeypatch, method):
    monkeypatch.chdir(tmp_path)
    write_model(method)
    capsys.readouterr()
    kept = load_rules(tmp_path / "model.json")
    small = kept.at(2)
    sizes = [entry.size for entry, _, _ in sizes_of(kept)]
    assert len(as_ruleset(small).rules) == max(size for size in sizes if size <= 2)
    assert cli.main("show model.json --size 2 --path --out small.json".split()) == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("All sizes") :]
    assert [int(row) for row in re.findall(r"^[* ] +(\d+) ", table, re.M)] == sizes
    assert table.count("\n* ") == 2  # the row of this size, and the note on it
    assert ("rows of the fit" in table) == (method == "rules")
    again = load_rules(tmp_path / "small.json")
    assert again == small and [e.size for e, _, _ in sizes_of(again)] == sizes
    first, then = again.source.pop("command").split("\n")
    assert first == f"{kept.source.pop('command')} --out model.json"
    assert then == "fabinterp show model.json --size 2" and again.source == kept.source
    page, _ = reported(capsys, "small.json", "t.csv")
    made = html.unescape(page)
    assert f"{first}\n{then} --out small.json\nfabinterp report small.json t.csv" in made
    for ending in (".sql", ".py", ".txt"):
        assert cli.main(f"show model.json --size 2 --table homes --out m{ending}".split()) == 0
    query = small.to_sql("homes") + ";\n"
    assert Path("m.sql").read_text().endswith(query)
    assert cli.main("show model.json --size 2 --table main.homes --out s.sql".split()) == 0
    assert 'FROM "main"."homes"' in Path("s.sql").read_text()
    comment = Path("m.sql").read_text().removesuffix(query)
    assert comment.startswith("-- IS NULL says where a gap goes") == (" IS NULL" in query)
    assert Path("m.py").read_text() == small.to_python()
    assert Path("m.txt").read_text() == str(small) + "\n"
    capsys.readouterr()
    told = refused(capsys, *"show model.json --out m.html".split())
    assert "--out must end in" in told and told.strip().endswith("report writes pages")


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


def test_a_path_that_is_too_long_keeps_the_small_sizes(capsys, tmp_path, monkeypatch, table):
    monkeypatch.setattr(size_path, "_MOST_LETTERS", 4000)
    words = ["fit", str(table), "--target", "price", "--method", "tree"]
    assert cli.main([*words, "--out", str(tmp_path / "model.json")]) == 0
    notes = capsys.readouterr().err
    found = sizes_of(load_rules(tmp_path / "model.json"))
    n_kept, n = map(int, re.search(r"the file keeps (\d+) of (\d+) sizes", notes).groups())
    assert 1 < len(found) == n_kept < n and [entry.size for entry, _, _ in found][0] == 1
    assert [chosen for _, _, chosen in found].count(True) == 1


def test_labels_unknown_to_a_model_are_told(capsys, tmp_path):
    kinds = np.array(["oak", "elm", "ash"])[np.arange(90) % 3]
    frame = pd.DataFrame({"kind": kinds, "tall": np.where(kinds == "oak", "yes", "no")})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = tmp_path / "model.json"
    words = ["fit", tmp_path / "trees.csv", "--target", "tall", "--out", fitted]
    assert cli.main(list(map(str, words))) == 0
    capsys.readouterr()
    for kind, told in (("oak", False), ("", False), ("fir", True)):
        (tmp_path / "new.csv").write_text(f"kind,tall\n{kind},\nelm,no\n")
        assert cli.main(["predict", str(fitted), str(tmp_path / "new.csv")]) == 0
        note = "'kind' holds labels that training did not know in 1 row"
        assert (note in capsys.readouterr().err) == told


def test_warnings_of_predictions_are_notes(capsys, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120), "kind": np.tile(["oak", "elm", "ash"], 40)})
    frame["height"] = 3 * frame.a + frame.kind.map({"oak": 5.0, "elm": 0.0, "ash": -4.0})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = str(tmp_path / "model.json")
    words = ["fit", str(tmp_path / "trees.csv"), "--target", "height", "--method", "piecewise"]
    assert cli.main([*words, "--out", fitted]) == 0
    new = tmp_path / "new.csv"
    new.write_text("a,kind\n,oak\n1,fir\n0.5,elm\n")
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cli.main(["predict", fitted, str(new)]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2 and all(line.startswith("note: ") for line in told)
    assert "the equation of 1 row meets a gap in 'a', which had none in training" in told[0]
    assert "'kind' holds labels that training did not know in 1 row" in told[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cli.main(["predict", fitted, str(new), "--level", "0.8"]) == 0
    ends = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(ends) == ["height", "height_low", "height_high"]
    seen = tmp_path / "seen.csv"
    pd.read_csv(new).assign(height_low=[7, 8, 9]).to_csv(seen, index=False)
    words = ["predict", fitted, str(seen), "--level", "0.8", "--keep", "height_low"]
    assert cli.main(words) == 0
    beside = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(beside) == ["height_low", "height", "height_low_predicted", "height_high"]
    assert beside.height_low.tolist() == [7, 8, 9]
    assert (beside.height_low_predicted == ends.height_low).all()
    with sqlite3.connect(":memory:") as base:
        pd.read_csv(new).to_sql("trees", base, index=False)
        said = base.execute(load_rules(Path(fitted)).to_sql("trees", level=0.8)).fetchall()
    assert np.allclose(ends, said) and (ends.height_low < ends.height_high).all()


def notes_on_new_rows(capsys, folder, frame, method):
    """The function that says what is noted on new rows a,b,kind by a model of a frame's column y."""
    fitted, new = str(folder / "model.json"), folder / "new.csv"
    frame.to_csv(folder / "t.csv", index=False)
    words = ["fit", str(folder / "t.csv"), "--target", "y", "--method", method]
    assert cli.main([*words, "--test-share", "0", "--out", fitted]) == 0

    def notes(rows):
        new.write_text(f"a,b,kind\n{rows}")
        capsys.readouterr()
        assert cli.main(["predict", fitted, str(new)]) == 0
        return capsys.readouterr().err.splitlines()

    return notes


def test_rows_outside_the_ranges_of_training_are_counted(capsys, tmp_path):
    frame = pd.DataFrame({"a": np.arange(60.0), "b": np.tile([1.0, 2.0, 3.0], 20)})
    frame["kind"] = np.tile(["oak", "fir"], 30)
    notes = notes_on_new_rows(capsys, tmp_path, frame.assign(y=2 * frame.a), "piecewise")
    assert notes("0,1,oak\n59,3,fir\n") == []
    said = "note: 2 of 3 rows have numbers outside what training had, in 'a', 'b'"
    assert notes("60,1,oak\n-1,0.5,fir\n5,2,oak\n") == [said]
    assert notes("5,4,oak\n5,1,oak\n") == [
        "note: 1 of 2 rows has numbers outside what training had, in 'b'"
    ]


def test_gaps_that_training_had_not_are_counted(capsys, tmp_path):
    frame = pd.DataFrame({"a": np.arange(60.0), "b": np.tile([1.0, np.nan, 3.0], 20)})
    frame["kind"] = np.tile(["oak", "fir"], 30)
    frame["y"] = np.where(frame.a < 30, "no", "yes")
    notes = notes_on_new_rows(capsys, tmp_path, frame, "tree")
    assert notes("5,,oak\n7,1,fir\n") == []  # b had gaps before
    [said] = notes(",1,oak\n7,1,\n,3,oak\n")  # of the kind nothing is asked
    assert said.startswith("note: 2 of 3 rows lack what no row of training lacked, 'a': ")
    [said] = notes("7,1,elm\n")  # a label that is new is no gap
    assert "labels that training did not know" in said


def test_text_where_a_model_knows_numbers_names_file_and_column(capsys, tmp_path):
    frame = pd.DataFrame({"a": np.arange(60.0), "tall": np.repeat(["no", "yes"], 30)})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    fitted = str(tmp_path / "model.json")
    words = ["fit", str(tmp_path / "trees.csv"), "--target", "tall", "--out", fitted]
    assert cli.main(words) == 0
    late = tmp_path / "late.csv"
    late.write_text("a,tall\n1,no\n,yes\nmany,yes\n")
    assert cli.main(["predict", fitted, str(late), "--level", "0.9"]) != 0
    assert "--level needs a tree of equations for numbers" in capsys.readouterr().err
    for words in (["predict", fitted, str(late)], ["report", fitted, str(late), "--out", "p.html"]):
        capsys.readouterr()
        assert cli.main(words) != 0
        said = capsys.readouterr().err.splitlines()[-1]
        assert said == f"fabinterp: {late.name} must hold numbers in column 'a', got 'many'"


def test_shares_of_classes(capsys, tmp_path, table):
    fitted = tmp_path / "model.json"
    words = ["fit", table, "--target", "kind", "--method", "tree", "--out", fitted]
    assert cli.main(list(map(str, words))) == 0
    capsys.readouterr()
    assert cli.main(["predict", str(fitted), str(table), "--proba"]) == 0
    answered = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(answered) == ["kind", "P(other)", "P(rose)"]
    assert np.allclose(answered["P(other)"] + answered["P(rose)"], 1)
    assert ((answered["P(rose)"] > 0.5) == (answered.kind == "rose")).all()
    flowers().drop(columns="length").to_csv(tmp_path / "less.csv", index=False)
    refusal = refused(capsys, "predict", fitted, tmp_path / "less.csv", code=1)
    assert "less.csv has no column 'length', which the model asks for" in refusal
    (tmp_path / "other.json").write_text('{"learner": {}}')
    assert "must have an entry 'format'" in refused(
        capsys, "predict", tmp_path / "other.json", table, code=1
    )


def test_a_column_that_is_there_is_not_proposed_for_one_that_lacks(capsys, tmp_path, table):
    fitted = tmp_path / "model.json"
    near = flowers().rename(columns={"length": "longitude", "depth": "latitude"})
    near.to_csv(tmp_path / "near.csv", index=False)
    words = ["fit", tmp_path / "near.csv", "--target", "kind", "--method", "tree", "--out", fitted]
    assert cli.main(list(map(str, words))) == 0
    capsys.readouterr()
    near.drop(columns="longitude").to_csv(tmp_path / "less.csv", index=False)
    told = refused(capsys, "predict", fitted, tmp_path / "less.csv", code=1)
    assert "no column 'longitude'" in told and "did you mean" not in told
    near.rename(columns={"longitude": "Longitude"}).to_csv(tmp_path / "less.csv", index=False)
    told = refused(capsys, "predict", fitted, tmp_path / "less.csv", code=1)
    assert "did you mean 'Longitude'?" in told


def test_a_size_that_a_method_has_not(capsys, table):
    words = ["fit", table, "--target", "kind", "--method", "metatree", "--size", "small"]
    assert "--size must be left out with --method metatree" in refused(capsys, *words)
    words = [*words[:-2], "--path"]
    assert "--path must be left out with --method metatree" in refused(capsys, *words)


def reported(capsys, *words):
    """The page that `report` writes, and what it tells on standard error."""
    words = ["report", *map(str, words), "--out", "page.html", "--force"]
    assert cli.main(words) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert not Page(page).open
    return page, capsys.readouterr().err


def test_a_report_on_a_file(capsys, tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = f"fit {table} --target price --method tree --out model.json"
    assert cli.main(words.split()) == 0
    assert cli.main(["report", "model.json", str(table)]) == 0
    assert capsys.readouterr().err.endswith("wrote fabinterp-report.html\n")
    page = (tmp_path / "fabinterp-report.html").read_text(encoding="utf-8")
    assert not Page(page).open and "fabinterp report model.json flowers.csv" in page
    capsys.readouterr()
    assert "it exists" in refused(capsys, "report", "model.json", table)


@pytest.mark.parametrize("target", ["kind", "price"])
def test_a_report_on_one_row_without_a_target(capsys, tmp_path, table, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    words = f"fit {table} --target {target} --method tree --out model.json"
    assert cli.main(words.split()) == 0
    flowers().drop(columns=target).iloc[:1].to_csv("one.csv", index=False)
    page, notes = reported(capsys, "model.json", "one.csv")
    assert f"note: one.csv has no column '{target}', which the model predicts" in notes
    assert "wrote page.html" in notes and "How good is it?" not in page
    assert ">1 row, " in page and "1 rows" not in page
    assert not re.findall("(?:mean squared error|wrong answers)(?! on rows left out|: less)", page)
    refusal = refused(capsys, "report", "model.json", "one.csv", "--target", "cost", "--force")
    assert "--target 'cost' is not a column" in refusal


@pytest.mark.parametrize("command, target", [
    ("simplify --max-rules 2", "kind"), ("fit --method tree", "price"),
])  # fmt: skip
def test_a_report_tells_the_rows_held_out_apart(
    capsys, tmp_path, table, monkeypatch, command, target
):
    """Of the table of the fit, of no other; the error is the one that the fit printed."""
    monkeypatch.chdir(tmp_path)
    words = [*command.split(), table, "--target", target, "--test-share", 0.3]
    words += ["--random-state", 4, "--out", "model.json"]
    assert cli.main(list(map(str, words))) == 0
    shown = capsys.readouterr().out
    n_out = int(re.search(r"on (\d+) test rows", shown)[1])
    page, notes = reported(capsys, "model.json", table)
    assert f"note: {n_out} of the" in notes and f"{n_out} rows held out" in page
    assert f"{len(flowers()) - n_out} rows of the fit" in page  # by their hash, of trees as well
    error = re.search(r"^(?:error|rmse)(?: of the rules)? +(\S+) +on \d+ test", shown, re.M)[1]
    value = f"{100 * float(error):.0f}." if target == "kind" else f"{float(error):.3g}"
    assert re.search(rf"{re.escape(value)}\S*(?: %)? .{{,20}}\(", page) or value in page
    model = commands.load_fitted("model.json")
    X, y = flowers().drop(columns=target), flowers()[target].to_numpy()
    X = X[list(model.columns.names)]
    learnt, held_out = commands.positions_again(model, X, y, "")
    assert len(held_out) == n_out and len(learnt) == len(y) - n_out
    assert commands.positions_again(model, X.iloc[1:], y[1:], "") is None
    capsys.readouterr()
    assert cli.main(["predict", "model.json", str(table), "--held-out"]) == 0
    answers, notes = capsys.readouterr()
    answers = pd.read_csv(io.StringIO(answers))
    assert f"note: {n_out} of the" in notes
    assert np.array_equal(np.flatnonzero(answers.held_out), np.sort(held_out))
    said, truth = answers[target][answers.held_out], y[answers.held_out]
    again = (said != truth).mean() if target == "kind" else np.sqrt(np.mean((said - truth) ** 2))
    assert again == pytest.approx(float(error), rel=5e-3)
    flowers().iloc[1:].to_csv("other.csv", index=False)
    told = refused(capsys, *"predict model.json other.csv --held-out".split())
    assert "--held-out needs the table of the fit" in told
    flowers().assign(**{target: "?"}).to_csv("other.csv", index=False)  # a target of another kind
    assert cli.main("predict model.json other.csv".split()) == 0
    assert "held out" not in capsys.readouterr().err
    refused(capsys, *"predict model.json other.csv --held-out".split())


def test_two_rows_are_another_table_whatever_share_was_held_out(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = write_model("tree", "--test-share 0.75")
    frame[:2].to_csv("two.csv", index=False)
    capsys.readouterr()
    told = refused(capsys, *"predict model.json two.csv --held-out".split())
    assert "two.csv is another" in told
    page, notes = reported(capsys, "model.json", "two.csv")
    assert "held out" not in notes and "rows held out" not in page


@pytest.mark.parametrize("line", [
    "report m.json t.csv", "report m.json t.csv --target y --max-seconds 2 --random-state 3",
    "explain m.joblib t.csv --trust --sep tab --decimal ,", "explain m.txt t.csv --sample none",
    "fit t.csv --target y --method tree --size 3 --categories a,b --test-share 0",
    "fit t.csv --target y --method tree --max-depth 0 --max-leaves 4",
    "fit t.csv --target y --max-rules 4",
    "simplify t.csv --target 'a b' --max-conditions none --encoding latin-1 --sep ;",
    "demo --max-rules 3 --size small",
    "report m.json t.csv --reference m.joblib --held-out new.csv --trust --target y",
    "report m.joblib t.csv --trust --max-rules 4 --max-conditions 2 --min-support 9",
])  # fmt: skip
def test_the_command_on_a_page_asks_for_what_was_asked(line):
    """It is read as the options that it was made of, but where the answer goes."""
    asked = vars(cli.build_parser().parse_args(shlex.split(line)))
    code = commands.command_of(argparse.Namespace(**asked))
    told = vars(cli.build_parser().parse_args(shlex.split(code)[1:]))
    assert told == asked


def test_the_commands_on_a_page_run(capsys, tmp_path, table, monkeypatch):
    """That of the model, which its file knows, and that of the page."""
    monkeypatch.chdir(tmp_path)
    words = f"fit {table} --target price --method tree --size 3 --out model.json"
    assert cli.main(words.split()) == 0
    flowers().to_csv("flowers.csv", index=False)
    page, _ = reported(capsys, "model.json", "flowers.csv")
    code = html.unescape(re.search(r"Make it again</h2><pre>(.*?)</pre>", page, re.S)[1])
    made, shown = code.splitlines()
    assert made.startswith("fabinterp fit flowers.csv") and "--size 3" in made
    assert "--target" not in shown
    model = Path("model.json").read_bytes()
    Path("model.json").unlink()
    assert cli.main(shlex.split(made)[1:]) == 0
    assert Path("model.json").read_bytes() == model
    assert cli.main([*shlex.split(shown)[1:], "--out", "again.html"]) == 0
    assert Path("again.html").read_text(encoding="utf-8").count("<section") == page.count(
        "<section"
    )
    # a file that does not know its command: that of the page alone
    said = json.loads(model)
    del said["source"]["command"]
    Path("model.json").write_text(json.dumps(said))
    page, _ = reported(capsys, "model.json", "flowers.csv")
    assert f"Make it again</h2><pre>{html.escape(shown)}</pre>" in page


def test_a_report_on_a_model_that_was_not_written_here(capsys, tmp_path, table, monkeypatch):
    """An estimator of this package with its sizes; any other model by way of its explanation."""
    import joblib
    from sklearn.tree import DecisionTreeRegressor

    from fabinterp import RuleMixtureClassifier

    monkeypatch.chdir(tmp_path)
    X = flowers()[["depth", "length"]].fillna(0)
    X.assign(kind=flowers().kind, price=flowers().price).to_csv("t.csv", index=False)
    own = RuleMixtureClassifier(max_rules=3, random_state=0).fit(X, flowers().kind)
    joblib.dump(own, "own.joblib")
    assert "--trust reads it" in refused(capsys, "report", "own.joblib", "t.csv")
    page, _ = reported(capsys, "own.joblib", "t.csv", "--trust", "--target", "kind")
    assert "At other sizes" in page and "RuleMixtureClassifier" in page
    assert "after 0 boxes" not in page
    words = ("own.joblib", "t.csv", "--trust", "--target", "kind", "--max-seconds")
    page, _ = reported(capsys, *words, 0)
    assert "was proven after 0 boxes" in page and "--max-seconds 0 --target kind" in page
    assert "a number of seconds is needed, got '-1'" in refused(capsys, "report", *words, -1)
    joblib.dump(DecisionTreeRegressor(max_depth=2).fit(X, flowers().price), "tree.joblib")
    words = ("tree.joblib", "t.csv", "--trust", "--max-rules", 2)
    page, _ = reported(capsys, *words, "--target", "price")
    assert "held out by explain" in page and "mean squared error" in page
    page, _ = reported(capsys, *words)
    assert "DecisionTreeRegressor" in page and "mean squared error" not in page
    Path("half.json").write_text('{"learner": {}}')
    told = refused(capsys, "report", "half.json", "t.csv", code=1)
    assert told.startswith("fabinterp: 'half.json': parts of the model are missing")


def test_a_report_beside_the_model_and_on_rows_that_neither_has_seen(capsys, tmp_path, monkeypatch):
    import joblib
    from sklearn.ensemble import RandomForestClassifier

    monkeypatch.chdir(tmp_path)
    X = flowers()[["depth", "length"]].fillna(0)
    table = X.assign(kind=flowers().kind)
    old, new = table[::2], table[1::2]
    old.to_csv("old.csv", index=False)
    new.to_csv("new.csv", index=False)
    forest = RandomForestClassifier(5, random_state=0).fit(old[["depth", "length"]], old.kind)
    joblib.dump(forest, "forest.joblib")
    words = "explain forest.joblib old.csv --trust --target kind --max-rules 3 --out rules.json"
    assert cli.main(words.split()) == 0
    capsys.readouterr()
    assert cli.main("show rules.json --path".split()) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "on which a rule agrees with RandomForestClassifier" in told
    assert "error is the share of rows that get another answer than by RandomForestCl" in told
    words = ("rules.json", "old.csv", "--held-out", "new.csv", "--reference", "forest.joblib")
    assert "--trust reads it" in refused(capsys, "report", *words)
    page, told = reported(capsys, *words, "--trust")
    n_apart = int(0.2 * len(old))  # which explain held out, so that they are no rows of the fit
    assert (
        f"note: {n_apart} of the {len(old)} rows were held out from the fit; the page lea" in told
    )
    assert f"{len(old) - n_apart} rows of the fit" in page
    assert f"{len(old)} rows of the fit" not in page
    rules = RuleSet.from_json(Path("rules.json").read_text())
    answers = rules.predict(new[["depth", "length"]])
    wrong = 100 * np.mean(answers != new.kind.to_numpy())
    agree = 100 * np.mean(answers == forest.predict(new[["depth", "length"]]))
    lead = " ".join(re.sub("<[^>]*>", " ", page[: page.index("What it says")]).split())
    assert f"{wrong:.1f} % wrong answers" in lead
    assert f"{agree:.1f} % agreement with RandomForestClassifier" in lead
    assert f"{len(new)} rows held out" in lead
    assert "--trust --reference forest.joblib --held-out new.csv" in html.unescape(page)
    page, _ = reported(capsys, "rules.json", "old.csv")
    assert "agreement with RandomForestClassifier" not in page
    assert "on which a rule agrees with RandomForestClassifier" in page
    X.to_csv("bare.csv", index=False)
    told = refused(capsys, *"report rules.json old.csv --held-out bare.csv".split())
    assert "--target 'kind' is not a column of bare.csv" in told
    told = refused(capsys, *"report rules.json old.csv --max-seconds 1".split())
    assert "--max-seconds is for rules beside an ensemble of trees, which --reference" in told
    page, _ = reported(capsys, *words, "--trust", "--max-seconds", 1)
    assert "the rules and the ensemble part" in page
    for more in ("--held-out new.csv", "--reference forest.joblib"):
        told = refused(capsys, *f"report forest.joblib old.csv --trust {more}".split())
        assert "must be left out for a model that is explained first" in told


def test_explain_is_bounded_and_its_rows_held_out_are_known_again(capsys, tmp_path, monkeypatch):
    import joblib
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    monkeypatch.chdir(tmp_path)
    X = flowers()[["depth", "length"]].fillna(0)
    X.assign(colour=flowers().colour, kind=flowers().kind).to_csv("t.csv", index=False)
    for name, model in (
        ("trees", RandomForestClassifier(5, random_state=0)),
        ("line", LogisticRegression()),
    ):
        joblib.dump(model.fit(X, flowers().kind), f"{name}.joblib")
        words = (
            f"explain {name}.joblib t.csv --trust --target kind --min-support 12 --path --force "
        )
        words += "--max-conditions 1 --test-share 0.3 --max-rules 3 --out rules.json"
        assert cli.main(words.split()) == 0
        said = capsys.readouterr()
        n_out = int(0.3 * len(X))
        assert f"on {n_out} held out from the rules" in said.out
        is_full = "; 3 rules\n" in said.out
        assert ("note: 3 rules, the most allowed; a higher --max-rules" in said.err) == is_full
        assert ("All sizes:" in said.out) != ("--path shows nothing" in said.err)
        assert name == "line" or "All sizes:" in said.out
        rules = RuleSet.from_json(Path("rules.json").read_text())
        assert min(rule.support for rule in rules.rules) >= 12
        assert all(
            len({split.features for split, _ in rule.conditions}) <= 1 for rule in rules.rules
        )
        assert "--max-conditions 1 --min-support 12 --test-share 0.3" in rules.source["command"]
        page, told = reported(
            capsys, "rules.json", "t.csv", "--reference", f"{name}.joblib", "--trust"
        )
        assert f"{n_out} of the {len(X)} rows were held out from the fit" in told
        held = rules.source["rows"]
        out = split_positions(len(X), held["share"], np.random.default_rng(seed_entropy(0)))[1]
        wrong = 100 * np.mean(rules.predict(X.iloc[out]) != flowers().kind.to_numpy()[out])
        assert f"<b>{wrong:.1f} %</b>" in page and f"{n_out} rows held out" in page
        assert cli.main("predict rules.json t.csv --proba".split()) == 0
        told = capsys.readouterr().err
        assert "note: P(…): " in told and rules.source["explains"] in told
        X[:-1].assign(kind=flowers().kind[:-1]).to_csv("other.csv", index=False)
        _, told = reported(capsys, "rules.json", "other.csv")
        assert "were held out" not in told


def test_a_model_of_another_library(capsys, tmp_path, table):
    """A text is read; a file that holds code only when it is trusted."""
    from sklearn.ensemble import GradientBoostingClassifier

    xgboost = pytest.importorskip("xgboost")
    frame = flowers()
    X, y = frame[["depth", "length"]].fillna(0), (frame.kind == "rose").astype(int)
    xgboost.XGBClassifier(n_estimators=5).fit(X, y).save_model(tmp_path / "model.json")
    out = tmp_path / "rules.json"
    words = ["explain", tmp_path / "model.json", table, "--max-rules", 3, "--out", out]
    assert cli.main(list(map(str, words))) == 0
    shown = capsys.readouterr().out
    assert "XGBoost" in shown and "held out from the rules" in shown
    rules = RuleSet.from_json(out.read_text())
    assert rules.columns.names == ("depth", "length") and len(rules) <= 3
    asked = ["explain", tmp_path / "model.json", table, "--target", "kind"]
    assert "--target 'kind' must hold labels among" in refused(capsys, *asked, code=1)
    import joblib

    joblib.dump(
        GradientBoostingClassifier(n_estimators=5).fit(X, frame.kind), tmp_path / "m.joblib"
    )
    words = ["explain", tmp_path / "m.joblib", table, "--target", "kind", "--max-rules", 3]
    assert "--trust reads it" in refused(capsys, *words)
    assert cli.main([*map(str, words), "--trust"]) == 0
    assert "right answers on the 30 held out" in capsys.readouterr().out
    (tmp_path / "m.joblib").write_bytes(b"\x80\x05nonsense")
    assert "cannot read 'm.joblib'" in refused(capsys, *words, "--trust", code=1)


def test_the_page_stands_alone(page):
    text = page.read_text(encoding="utf-8")
    parsed = Page(text)
    assert not parsed.open and not {"script", "link", "iframe", "b<i>"} & set(parsed.tags)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in parsed.addresses)
    assert "<script>" not in text and "&lt;script&gt;" in text
    assert "default-src 'none'" in text and str(page.parent) not in text
    assert "prefers-color-scheme: dark" in text and text.count("<figure>") == 3


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
            grounds.append(tab.evaluate("document.images[0].currentSrc"))
    assert not complaints
    assert len(set(grounds[1::2])) == 3 and grounds[0] != grounds[2] == grounds[4]


@pytest.mark.slow
def test_the_path_tells_of_every_size(capsys, table):
    """The size asked for is marked, and its error is the one printed above."""
    words = [table, "--target", "kind", "--max-rules", 4, "--size", 2]
    text, _ = simplify(capsys, *words, "--path")
    lines = text[text.index("All sizes") :].splitlines()
    assert lines[2].split() == ["error", "on", "agreement", "on"]
    rows = [line.split() for line in lines[5 : lines.index("", 5)]]
    sizes = [int(row[-6]) for row in rows]
    assert sizes == sorted(sizes) and sizes[0] == 1 and len(sizes) > 1
    (marked,) = (row for row in rows if row[0] == "*")
    assert int(marked[1]) == max(k for k in sizes if k <= 2)
    above = next(line for line in text.splitlines() if line.startswith("error of the rules"))
    assert above.split()[4] == marked[3] and marked[4] == "±"
    assert text.startswith(simplify(capsys, *words)[0])


def test_the_path_of_a_tree(capsys, table):
    """Leaves, numbers, the error on the test rows and the one that chose; the tree above is marked."""
    words = ["fit", table, "--target", "price", "--method", "piecewise"]
    assert cli.main([*map(str, words), "--path"]) == 0
    shown = capsys.readouterr().out
    lines = shown[shown.index("All sizes") :].splitlines()
    assert lines[2].split() == ["rmse", "on"] * 2
    assert lines[3].split() == "leaves numbers 38 test rows rows left out".split()
    rows = [line.replace("*", " ").split() for line in lines[5 : lines.index("", 5)]]
    (marked,) = (line.split()[1:] for line in lines[5:] if line[:2] == "* " and "above" not in line)
    above = re.search(r"^rmse +(\S+) +on \d+ test rows", shown, re.M)[1]
    assert float(marked[2]) == pytest.approx(float(above), rel=0.01)
    X = files.read_table(str(table)).without(["id", "price"]).rows()
    train, _ = commands.split_rows(150, flowers().price.to_numpy(), "regression", 0.25, 0)
    model = PiecewiseLinearRegressor(random_state=0, n_jobs=1)
    path = model.fit(X.iloc[train], flowers().price.to_numpy()[train]).path_
    assert list(path["size"]) == [int(row[0]) for row in rows]
    told = np.array([[float(row[5]), float(row[7])] for row in rows])
    root = np.sqrt(path.cv_error)
    unit = 0.6 * 10.0 ** -len(rows[0][5].partition(".")[2])
    np.testing.assert_allclose(told[:, 0], root, atol=unit)
    np.testing.assert_allclose(told[:, 1], path.cv_se / (2 * root), atol=unit)


def test_the_path_of_rules_says_what_chose(capsys, tmp_path):
    """Description length, and not the errors beside it; fidelity is to the forest trained for them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((160, 2)), columns=["a", "b"])
    frame["y"] = 3 * (frame.a > 0.5) + frame.b + rng.normal(0, 0.5, 160)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--test-share", "0", "--path"]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(
        "balanced, small and accurate go by description length on the train"
    )
    assert not any("rows left out" in line or "of several of one size" in line for line in lines)
    assert "fidelity: how far a rule agrees with the forest that was trained for these" in " ".join(
        lines
    )
    model = RuleMixtureRegressor(random_state=0, n_jobs=1).fit(frame[["a", "b"]], frame.y)
    forest = model.estimator_.predict(frame[["a", "b"]].to_numpy())
    off = (forest - model.predict(frame[["a", "b"]])) ** 2
    at = model.rules_.apply(frame[["a", "b"]].to_numpy())
    path = model.path_
    assert path["chosen"].idxmax() == path["criterion"].idxmin()
    shown = [float(line.split()[-1]) for line in lines if re.match(r"^ ?\d+  \S.* 0\.\d{3}$", line)]
    told = [1 - off[at == k].mean() / forest.var() for k in range(len(model.rules_.rules))]
    assert shown == [pytest.approx(one, abs=6e-4) for one in told] and len(shown) > 1


def test_a_list_shorter_than_allowed_says_why(capsys, tmp_path, table):
    words = ["simplify", str(table), "--target", "price", "--path", "--max-rules"]
    for most in (2, 12):
        assert cli.main([*words, str(most)]) == 0
        shown, notes = capsys.readouterr()
        sizes = [
            int(row) for row in re.findall(r"^[* ] +(\d+) ", shown[shown.index("All") :], re.M)
        ]
        n = int(re.match(r"\n(\d+) rule", shown)[1])
        told = re.search(r"note: (\d+) rules?, (.*); --size accurate", notes)
        if n == most:
            assert told is None
        elif n == max(sizes):
            assert told.groups() == (str(n), "as no longer list paid for its length")
        else:
            assert told[2] == f"chosen by description length among lists of up to {max(sizes)}"
    assert told


def test_several_trees_of_one_size_are_told_apart(capsys):
    from fabinterp.rules.size_path import SizeEntry, choose_size

    entries = [
        SizeEntry(size, k, 9.0 - k, {}, cv_error=error, cv_se=0.1)
        for k, (size, error) in enumerate(((1, 2.0), (1, 1.0), (1, 1.5), (3, 0.5)))
    ]
    (note,) = commands._taken_of_alike(entries)
    assert note == "of several of one size --size N takes that of least error on rows left out"
    assert choose_size(entries, 1) == 1
    bare = [SizeEntry(entry.size, k, entry.criterion, {}) for k, entry in enumerate(entries)]
    assert commands._taken_of_alike(bare)[0].endswith("takes that of least criterion")
    assert choose_size(bare, 1) == 2
    assert commands._taken_of_alike(entries[2:]) == []


def test_the_path_names_what_chose_a_tree_of_classes(capsys, table):
    words = ["fit", table, "--target", "kind", "--method", "piecewise", "--path"]
    assert cli.main(list(map(str, words))) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = next(line for line in lines if "error on" in line)
    assert heads.split() == ["error", "on", "log", "loss", "on"]
    assert any(line.startswith("log loss is the mean of") for line in lines)


@given(st.lists(st.floats(1e-3, 1e8), min_size=1, max_size=9))
def test_figures_of_a_column_are_rounded_alike(values):
    """All with as many decimals, none with an exponent, and the least to three digits."""
    style = commands.figure_style(values)
    texts = [f"{value:{style}}" for value in values]
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
    assert not any("e" in text for text in texts)
    least = int(np.argmin(values))
    assert float(texts[least]) == pytest.approx(values[least], rel=0.0051)
    assert (
        commands.figure_style([0.0]) == ".3f"
        and f"{1e-9:{commands.figure_style([1e-9])}}" == "1.00e-09"
    )


@pytest.mark.parametrize("option", ["--min-support", "--max-conditions"])
def test_bounds_of_an_explanation_are_refused_for_what_was_written(
    capsys, tmp_path, monkeypatch, option
):
    monkeypatch.chdir(tmp_path)
    write_model("tree").to_csv("t.csv", index=False)
    capsys.readouterr()
    told = refused(capsys, "report", "model.json", "t.csv", option, "9")
    assert f"{option} must be left out for a model of this package" in told


def test_of_many_sizes_a_table_shows_some_and_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 600)
    pd.DataFrame({"x": x, "y": np.sin(40 * x) + rng.normal(0, 0.05, 600)}).to_csv("t.csv", index=0)
    asked = "fit t.csv --target y --method tree --max-leaves 60 --out m.json"
    assert cli.main(asked.split()) == 0
    capsys.readouterr()
    assert cli.main("show m.json --path".split()) == 0
    shown = capsys.readouterr().out
    sizes = [entry.size for entry, _, _ in commands.sizes_of(load_rules("m.json"))]
    assert len(sizes) > commands._MOST_SIZES
    rows = re.findall(r"^(\*?) +(\d+) +\d+  ", shown, re.M)
    counts = [int(count) for _, count in rows]
    assert f"{len(counts)} of {len(sizes)} sizes:" in shown
    assert len(counts) <= commands._MOST_SIZES and counts == sorted(set(counts))
    assert counts[0] == sizes[0] and counts[-1] == sizes[-1] and set(counts) < set(sizes)
    (chosen,) = [int(count) for star, count in rows if star]
    at = sizes.index(chosen)
    assert set(sizes[at - 1 : at + 2]) <= set(counts)


def test_a_limit_of_the_search_is_told_and_can_be_moved(capsys, table):
    words = ["fit", table, "--target", "price", "--method"]
    asked = [*map(str, words), "piecewise", "--max-depth", "0"]
    assert cli.main(asked) == 0
    told = capsys.readouterr()
    assert "note: the tree asks nothing, the most allowed; a higher --max-depth may" in told.err
    assert "├" not in told.out
    assert cli.main([*map(str, words), "oblique", "--max-leaves", "1", "--size", "1"]) == 0
    told = capsys.readouterr().err
    assert "note: the tree has 1 leaf, the most allowed; a higher --max-leaves may" in told
    assert cli.main([*map(str, words), "tree", "--max-leaves", "3"]) == 0
    told = capsys.readouterr()
    assert told.out.split("Answers are rounded")[0].count(":") == 3
    assert "note: the tree has 3 leaves, the most allowed; a higher --max-leaves may" in told.err
    assert cli.main([*map(str, words), "tree", "--size", "2"]) == 0
    assert "most allowed" not in capsys.readouterr().err
    assert cli.main([*map(str, words), "rules", "--max-rules", "2"]) == 0
    told = capsys.readouterr()
    assert "note: 2 rules, the most allowed; a higher --max-rules may find more" in told.err
    assert "--max-rules must be left out" in refused(capsys, *words, "tree", "--max-rules", 2)
    refusal = refused(capsys, *words, "rules", "--max-depth", 2)
    assert refusal == "fabinterp: --max-depth must be left out with --method rules, got 2\n"
    assert "--max-leaves must be left out" in refused(capsys, *words, "metatree", "--max-leaves", 2)


def test_which_rows_the_model_was_fitted_to_is_said(capsys, table):
    """A quarter is held out and stays out, as the last lines say; with none held out there are none."""
    words = ["fit", table, "--target", "price", "--method", "tree"]
    said = "The model was fitted to the 112 training rows, and is kept as it was tested."
    assert cli.main(list(map(str, words))) == 0
    assert said in capsys.readouterr().out.splitlines()
    assert cli.main([*map(str, words), "--test-share", "0"]) == 0
    assert "kept as it was tested" not in capsys.readouterr().out


def test_small_is_told_of_where_it_is_smaller():
    from types import SimpleNamespace

    from fabinterp.rules.size_path import SizeEntry

    errors = ((1, 2.0), (3, 1.05), (9, 1.0))
    entries = [SizeEntry(k, k, -k, {}, cv_error=error, cv_se=0.1) for k, error in errors]
    sizes = [(entry, SimpleNamespace(), entry.size == 9) for entry in entries]
    (told,) = commands._smaller_notes(sizes, "balanced")
    assert told.startswith("note: 9 rules, the least expected error; --size small takes 3,")
    tree = Tree([None], [-1], [-1], [Leaf(1.0)], Columns(["a"], [None], [False]))
    of_trees = [(entry, tree, shown) for entry, _, shown in sizes]
    (told,) = commands._smaller_notes(of_trees, "balanced")
    assert told.startswith("note: 9 leaves, the least")
    assert not list(commands._smaller_notes(sizes, "small"))
    assert not list(commands._smaller_notes(sizes[:1], "balanced"))


def test_the_same_again(capsys, tmp_path, table):
    files = [tmp_path / "a.html", tmp_path / "b.html"]
    texts = [
        simplify(capsys, table, "--target", "kind", "--max-rules", 3, "--out", file)[0]
        for file in files
    ]
    assert texts[0] == texts[1] and files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("wide", [60, 80, 110])
def test_the_table_fits_and_loses_nothing(wide):
    names = ("a name of some length that goes on and on " * 3, "b", "c")
    columns = Columns(names, (None, tuple(f"label {k}" for k in range(30)), None), (True,) * 3)
    conditions = tuple((cli_split(j), True) for j in range(3))
    leaf = {"value": 1234.5678}
    rules = RuleSet((make_rule(conditions, leaf), make_rule((), leaf)), columns)
    text = commands.table_text(rules, wide)
    assert all(display_width(line) <= wide for line in text.splitlines())
    squeezed = re.sub(r"\s+", "", text)
    for j in (0, 1, 2):
        assert re.sub(r"\s+", "", names[j]) in squeezed.replace("1235100.900", "")
    assert "otherwise" in text and "1235" in text


def cli_split(j):
    from fabinterp.rules.core import Split

    return Split((j,), categories=tuple(range(0, 30, 2))) if j == 1 else Split((j,), 0.5)


def make_rule(conditions, leaf):
    from fabinterp.rules.core import Leaf, Rule

    return Rule(conditions, Leaf(**leaf), 10, 0.5, 0.9)


def test_a_terminal_without_signs():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert terminal.printable("x ≤ 3 and y ∈ {é}", stream) == "x <= 3 and y in {\\xe9}"
    assert terminal.printable("x ≤ 3", io.StringIO()) == "x ≤ 3"


def test_progress_counts_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    log = io.StringIO()
    with terminal.progress_message("busy", stream, share=lambda: 0.5):
        time.sleep(1.2)
    assert "busy 1 s, about 1 s left" in stream.getvalue() and stream.getvalue().endswith("\033[K")
    with terminal.progress_message("busy with " + "much " * 40, stream, share=lambda: 0.5):
        time.sleep(1.2)
    assert stream.getvalue().count("\r1 s, about 1 s left") == 1  # no room for more
    with terminal.progress_message("busy", log):
        print("something that a library says")
    with pytest.raises(ZeroDivisionError), terminal.progress_message("busy", log):
        _ = 1 / 0
    assert not log.getvalue()
    with terminal.progress_message("slow", log):
        print("tree 3 of 10, good, 1 s, about 20 s left of this stage\n")
        time.sleep(2.3)
    assert re.fullmatch(
        r"slow 2 s, tree 3 of 10, about 1[78] s left of this stage\nslow 2\.\d s\n", log.getvalue()
    )


def test_what_is_over_is_not_told_as_left():
    """A stage that goes on after the time that it gave shows no time left."""
    log = io.StringIO()
    with terminal.progress_message("slow", log):
        print("tree 9 of 10, 12 s, about 1 s left")
        time.sleep(2.3)
    assert re.fullmatch(r"slow 2 s\nslow 2\.\d s\n", log.getvalue())


def test_version_and_help(capsys):
    names = "demo simplify fit explain predict report reproduce".split()
    for words in (["--version"], ["-h"], *([name, "-h"] for name in names)):
        with pytest.raises(SystemExit) as stop:
            cli.main(words)
        assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"fabinterp {cli.__version__}\n") and "--target" in out
    assert all(ending in out for ending in commands.WRITERS) and "exit codes: 0 done; 1" in out


def test_help_loads_nothing():
    """Neither NumPy nor scikit-learn; so it is there at once."""
    code = (
        "import sys; sys.argv = ['fabinterp', '--help']; import runpy\n"
        "try:\n    runpy.run_module('fabinterp', run_name='__main__')\n"
        "except SystemExit as stop:\n    print(stop.code, {'numpy', 'sklearn'} & set(sys.modules))"
    )
    out, err = process(code).communicate(timeout=60 * slowness())
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
    _, err = running.communicate(timeout=60 * slowness())
    assert running.returncode == 130 and err == "fabinterp: interrupted\n"


@pytest.mark.slow
def test_demo_without_pandas(tmp_path):
    code = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.meta_path.insert(0, Without())
from fabinterp.cli import main
sys.exit(main(["demo", "--random-state", "1"]))
"""
    running = process(code, cwd=tmp_path)
    out, err = running.communicate(timeout=120 * slowness())
    assert running.returncode == 0, err
    assert (
        "rules for diagnosis" in out
        and "otherwise" in out
        and all(len(line) <= 80 for line in out.splitlines())
    )
    numbers = {
        what: float(value)
        for what, value in re.findall(r"^(error of the \w+) +([\d.]+)", out, re.M)
    }
    assert numbers["error of the rules"] <= numbers["error of the forest"] + 0.05
    page = (tmp_path / "fabinterp-demo.html").read_text(encoding="utf-8")
    assert not Page(page).open and page.count("<figure>") == 3
    measured = re.findall(
        r"<b>([\d.]+) %</b>[^/]*/span></td><td[^>]*>less</td><td[^>]*>143 rows held out", page
    )
    assert [float(share) for share in measured[:2]] == [
        pytest.approx(100 * numbers[f"error of the {what}"], abs=0.06)
        for what in ("rules", "forest")
    ]
    # the steps on the page lead to the same rules
    steps = html.unescape(re.search(r"Make it again</h2><pre>(.*?)</pre>", page, re.S)[1])
    running = process(steps + "\nprint((model.predict(X_test) != y_test).mean())")
    out, err = running.communicate(timeout=120 * slowness())
    assert running.returncode == 0, err
    assert float(out.splitlines()[-1]) == pytest.approx(numbers["error of the rules"], abs=0.0005)


# The papers' tables


def test_tables_are_listed(capsys):
    assert cli.main(["reproduce"]) == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^{name}  +\S", out, re.M) for name in TABLES)
    assert all(len(line) <= 110 for line in out.splitlines())


def test_a_table_that_is_none(capsys, tmp_path):
    assert "table 'nakahara-11' is not known: did you mean 'nakahara-1'" in refused(
        capsys, "reproduce", "nakahara-11"
    )
    assert "the tables are 'hara-2'" in refused(capsys, "reproduce", "qqqqqq")
    (tmp_path / "file").write_text("")
    refusal = refused(capsys, "reproduce", "nakahara-1", "--out", tmp_path / "file")
    assert re.search("--out must be a folder, got '.*': File exists", refusal)


def test_a_table_made_again_from_the_shell(capsys, tmp_path):
    def reproduce():
        assert (
            cli.main(["reproduce", "nakahara-1", "--quick", "--out", str(tmp_path / "new" / "out")])
            == 0
        )
        return capsys.readouterr()

    out, err = reproduce()
    (file,) = (tmp_path / "new" / "out").iterdir()
    assert file.name.endswith("-quick.jsonl") and re.search(r" (\d+)/\1 \[.*\n$", err)
    said = out.strip().splitlines()
    assert said[0] == TABLES["nakahara-1"].title and f"numpy {np.__version__}" in out
    before = file.read_bytes()
    again, _ = reproduce()
    assert file.read_bytes() == before and again == out


@pytest.mark.parametrize("command", ["fit", "simplify"])
def test_a_size_that_the_path_lacks_is_told(capsys, table, command):
    words = [command, str(table), "--target", "kind", "--size", "99"]
    assert cli.main(words) == 0
    told = capsys.readouterr()
    n = told.out.split()[0]
    note = f"note: the path has no size 99: {n}, the largest, is taken; --path shows what each size"
    assert note in told.err
    assert cli.main([*words[:-1], n]) == 0
    assert "the path has no size" not in capsys.readouterr().err


@pytest.fixture
def coded(tmp_path):
    """A table whose colours are codes, in an order that says nothing, some of them missing."""
    frame = flowers(300).drop(columns="id")
    frame["colour"] = frame.colour.map({"red": 2, "blue": 1, "white": 3})
    frame["depth"] = frame.depth.fillna(0)
    frame.loc[::23, "colour"] = np.nan
    frame["price"] += 4 * (frame.colour == 2)  # 2 apart from 1 and 3: no one cut tells
    path = tmp_path / "coded.csv"
    frame.to_csv(path, index=False)
    return path, frame


@pytest.mark.parametrize("command", ["fit", "simplify"])
def test_codes_are_read_as_labels(capsys, tmp_path, coded, command):
    path, frame = coded
    asked = [command, path, "--target", "price", "--size", 4, "--categories", "colour"]
    for ending in ("json", "sql"):
        assert cli.main([*map(str, asked), "--out", str(tmp_path / f"m.{ending}")]) == 0
    model = commands.load_fitted(tmp_path / "m.json")
    assert sorted(model.columns.categories[model.columns.names.index("colour")]) == [1, 2, 3]
    assert re.search(r"colour (is not|is|∈|∉) \{?[123]", capsys.readouterr().out)
    X = frame.drop(columns=["kind", "price"]).assign(kind=frame.kind)
    expected = model.predict(X.assign(colour=pd.Categorical(X.colour.astype("Int64"))))
    words = ["predict", tmp_path / "m.json", path, "--out", tmp_path / "said.csv"]
    assert cli.main(list(map(str, words))) == 0
    assert np.allclose(pd.read_csv(tmp_path / "said.csv").price, expected, rtol=1e-12)
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("coded", base, index=False)
        said = base.execute((tmp_path / "m.sql").read_text().rstrip(";\n")).fetchall()
    assert np.allclose(np.ravel(said), expected)
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert cli.main(["report", str(tmp_path / "m.json"), str(path), "--out", str(page)]) == 0
    assert "75 of the 300 rows were held out from the fit" in capsys.readouterr().err
    again = tmp_path / "again.html"
    assert cli.main([*map(str, asked), "--out", str(again)]) == 0
    assert "--categories colour --target price" in again.read_text(encoding="utf-8")


def test_codes_written_as_text_are_the_same_labels(capsys, tmp_path, coded):
    path, frame = coded
    words = ["fit", str(path), "--target", "price", "--categories", "colour"]
    assert cli.main([*words, "--out", str(tmp_path / "m.json")]) == 0
    frame = frame.assign(colour=frame.colour.astype("Int64").astype(object))
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.loc[1, "colour"] = "unknown"  # the column becomes text
    frame.to_csv(tmp_path / "text.csv", index=False)
    said = {}
    for name in ("coded", "plain", "text"):
        capsys.readouterr()
        assert cli.main(["predict", str(tmp_path / "m.json"), str(tmp_path / f"{name}.csv")]) == 0
        out, err = capsys.readouterr()
        said[name] = np.array(out.split()[1:], dtype=float)
        assert ("did not know in 1 row;" in err) == (name == "text")
    assert (said["coded"] == said["plain"]).all()
    assert (np.delete(said["text"], 1) == np.delete(said["coded"], 1)).all()


def test_text_that_looks_like_numbers_in_a_later_file(tmp_path):
    labels = Columns(("size",), (("1", "2", "XL"),), (False,))
    table = files.NamedTable({"size": np.array([2, 1, 3])}, "late.csv", 3).as_known_to(labels)
    assert table.columns["size"].tolist() == ["2", "1", 3] and not table.labels
    truth = Columns(("owns",), ((False, True),), (False,))
    table = files.NamedTable({"owns": np.array([0, 1])}, "late.csv", 2)
    assert commands.encode(table.as_known_to(truth).rows(), truth).ravel().tolist() == [0, 1]


def test_categories_that_are_refused(capsys, coded):
    path, _ = coded
    words = ["fit", path, "--target", "price", "--categories"]
    told = refused(capsys, *words, "color")
    assert "--categories 'color' is not a column: did you mean 'colour'" in told
    assert "must leave out the --target 'price'" in refused(capsys, *words, "colour,price")
    assert "names between commas are needed, got 'a,,b'" in refused(capsys, *words, "a,,b")
    assert cli.names_of_text('"a, b",c') == ["a, b", "c"]
    assert commands._comma_list(["a, b", "c"]) == '"a, b",c'


def test_categories_without_pandas(capsys, coded, without_pandas, tmp_path):
    path, frame = coded
    frame[["colour", "price"]].to_csv(tmp_path / "two.csv", index=False)
    words = ["fit", tmp_path / "two.csv", "--target", "price", "--categories", "colour"]
    assert cli.main(list(map(str, words))) == 1
    assert "column 'colour' holds labels, which needs pandas" in capsys.readouterr().err


def test_predictions_beside_columns_of_the_data(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = write_model("tree").assign(id=np.arange(7, 7 + len(flowers())))
    frame["note"] = np.where(frame["id"] % 2, 'a, "b"', None)
    frame["part"] = np.where(frame["id"] % 3, 0.5, np.nan)
    frame.to_csv("t.csv", index=False)
    capsys.readouterr()
    model = commands.load_fitted("model.json")
    assert (
        cli.main(["predict", "model.json", "t.csv", "--keep", f"id,note,part,{model.target}"]) == 0
    )
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    kept = ["id", "note", "part", model.target]
    pd.testing.assert_frame_equal(found[kept], pd.read_csv("t.csv")[kept])
    assert list(found) == [*kept, f"{model.target}_predicted"]
    assert cli.main("predict model.json t.csv --keep id".split()) == 0
    alone = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(alone) == ["id", model.target]
    assert (alone[model.target] == found[f"{model.target}_predicted"]).all()
    told = refused(capsys, *"predict model.json t.csv --keep ID".split())
    assert "--keep 'ID' is not a column of t.csv: did you mean 'id'" in told
