"""The command line: one line when something is wrong, tested rules otherwise, a page that stands alone."""

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from argparse import Namespace
from html.parser import HTMLParser

import numpy as np
import pytest
from browser.serve import chromium
from frame import ROOT
from hypothesis import given
from hypothesis import strategies as st
from shared.machine import slowness
from shared.needs import need

from fabinterp import cli
from fabinterp.bench.runner import TABLES
from fabinterp.rules.ruleset import RuleSet
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


def refused(capsys, *words):
    """Run, expect a refusal, return its line."""
    assert cli.main(list(map(str, words))) == 2
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
    (("explain",), "invalid choice"),
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
    (("demo", "extra"), "unrecognized arguments: extra"),
    (("simplify", "x.csv", "--target", "y", "--test-share", "1"), "got '1'"),
    (("simplify", "x.csv", "--target", "y", "--test-share", "nan"), "got 'nan'"),
    (("simplify", "gone.csv", "--target", "y"), "cannot read 'gone.csv': No such file"),
    (("simplify", ".", "--target", "y"), "cannot read '.'"),
])  # fmt: skip
def test_arguments_are_refused_in_one_line(capsys, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    assert told in refused(capsys, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content, target, told", [
    (b"", "y", "cannot read 't.csv'"),
    (b"a,b\n", "b", "has no rows"),
    (b"a,b\n1,2\n3,4,5,6\n", "b", "cannot read 't.csv' as CSV"),
    (b"\xff\xfe\x00a,b\n1,2\n", "b", "not UTF-8"),
    (b'a,b\n"1,2\n', "b", "cannot read 't.csv' as CSV"),
    (b"Age,b\n1,2\n3,4\n", "age", "--target 'age' is not a column: did you mean 'Age'?"),
    (b"a,b\n1,2\n3,4\n", "zzz", "the columns are 'a', 'b'"),
    (b"a,b\n1,2\n3,2\n", "b", "--target 'b' must have two different values, got '2'"),
    (b"a,b\n1,\n3,\n", "b", "--target 'b' must have two different values, got none"),
    (b"b\n1\n2\n", "b", "no column is left"),
    (b"a,b\n1,2\n", "b", "must have two different values"),
    (b"a,b\ninf,2\n3,4.5\n5,6\n7,8\n", "b", "infinity"),
])  # fmt: skip
def test_tables_are_refused_in_one_line(capsys, tmp_path, content, target, told):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert told in refused(capsys, "simplify", path, "--target", target)


def test_regression_needs_numbers(capsys, table):
    assert "--task regression needs numbers in 'kind'" in refused(
        capsys, "simplify", table, "--target", "kind", "--task", "regression")  # fmt: skip


def test_an_empty_column_is_left_out_and_alone_it_is_refused(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n,1\n,2\n,3\n")
    assert cli.main(["simplify", str(path), "--target", "b"]) == 2
    notes = capsys.readouterr().err.splitlines()
    assert notes == [
        "note: column 'a' is left out: it is empty",
        "fabinterp: no column is left to predict from",
    ]


def test_a_place_that_cannot_be_written(capsys, tmp_path, table, monkeypatch):
    (tmp_path / "x.html").mkdir()
    assert "it is a folder" in refused(capsys, "demo", "--out", tmp_path / "x.html")
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    assert "it cannot be written" in refused(capsys, "demo", "--out", tmp_path / "y.html")
    monkeypatch.undo()
    (tmp_path / "z.txt").mkdir()  # the place turns bad during the work
    with pytest.raises(cli.CommandError, match="Is a directory|Permission"):
        cli.write_out(str(tmp_path / "z.txt"), Namespace(rules=Namespace(to_text=lambda: "")))


def test_without_pandas(capsys, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install pandas" in refused(capsys, "simplify", table, "--target", "kind")


# What is read


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separators(tmp_path, sep):
    path = tmp_path / "t.csv"
    flowers().to_csv(path, index=False, sep=sep, encoding="utf-8-sig")
    assert list(cli.read_csv_file(path)) == list(flowers())


@pytest.mark.parametrize("values, task", [
    ([0, 1, 1], "classification"), ([0.0, 1.0, 2.0], "classification"), (["a", "b"], "classification"),
    ([True, False], "classification"), (list(range(11)), "regression"), ([0.5, 1.0], "regression"),
])  # fmt: skip
def test_task(values, task):
    assert cli.infer_task(pd.Series(values, name="y")) == task
    assert cli.infer_task(pd.Series(values, name="y"), "classification") == "classification"


def test_what_is_left_out_is_said():
    frame = flowers()
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    frame["nothing"] = np.nan
    frame.loc[3, "price"] = np.nan
    said = []
    X, y, task = cli.prepare(frame, "price", "auto", said.append)
    assert list(X) == ["length", "colour", "depth", "kind"] and len(X) == len(y) == len(frame) - 1
    assert task == "regression" and not X.isna().all().any()
    assert [re.search("1 rows|'[^']+'", line)[0] for line in said] == [
        "1 rows",
        "'Unnamed: 0'",
        "'id'",
        "'nothing'",
    ]


@given(st.integers(2, 300), st.floats(0.01, 0.99), st.integers(0, 9), st.booleans())
def test_rows_are_split_once(n, share, seed, labels):
    y = np.arange(n) % 3
    if int(np.ceil(share * n)) == n:
        with pytest.raises(cli.CommandError, match="--test-share"):
            cli.split_rows(n, y, "classification", share, seed)
        return
    task = "classification" if labels else "regression"
    train, test = cli.split_rows(n, y, task, share, seed)
    assert sorted([*train, *test]) == list(range(n)) and len(test) == int(np.ceil(share * n))
    again = cli.split_rows(n, y, task, share, seed)
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
    train, test = cli.split_rows(len(y), y, "classification", 0.25, 0)
    error = (rules.predict(X.iloc[test]) != y[test]).mean()
    assert f"error of the rules               {error:.3g}   on {len(test)} test rows" in text
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
        if tag not in {"meta", "img", "source", "link", "br"}:
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


def test_the_page_stands_alone(page):
    text = page.read_text(encoding="utf-8")
    parsed = Page(text)
    assert not parsed.open and not {"script", "link", "iframe", "b<i>"} & set(parsed.tags)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in parsed.addresses)
    assert "<script>" not in text and "&lt;script&gt;" in text
    assert "default-src 'none'" in text and str(page.parent) not in text
    assert "prefers-color-scheme: dark" in text and text.count("<figure>") == 2


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
    rows = [line.split() for line in lines[4:] if line and not line.startswith("* the rules")]
    sizes = [int(row[-4]) for row in rows]
    assert sizes == sorted(sizes) and sizes[0] == 1 and len(sizes) > 1
    (marked,) = (row for row in rows if row[0] == "*")
    assert int(marked[1]) == max(k for k in sizes if k <= 2)
    above = next(line for line in text.splitlines() if line.startswith("error of the rules"))
    assert above.split()[4] == marked[3]
    assert text.startswith(simplify(capsys, *words)[0])


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
    columns = cli.Columns(names, (None, tuple(f"label {k}" for k in range(30)), None), (True,) * 3)
    conditions = tuple((cli_split(j), True) for j in range(3))
    leaf = {"value": 1234.5678}
    rules = RuleSet((make_rule(conditions, leaf), make_rule((), leaf)), columns)
    text = cli.table_text(rules, wide)
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
    assert cli.printable("x ≤ 3 and y ∈ {é}", stream) == "x <= 3 and y in {\\xe9}"
    assert cli.printable("x ≤ 3", io.StringIO()) == "x ≤ 3"


def test_progress_counts_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    log = io.StringIO()
    with cli.progress_message("busy", stream):
        time.sleep(1.2)
    assert "busy 1 s" in stream.getvalue() and stream.getvalue().endswith("s\n")
    with cli.progress_message("busy", log):
        pass
    assert re.fullmatch(r"busy \d+\.\d s\n", log.getvalue())
    shown = log.getvalue()
    with pytest.raises(ZeroDivisionError), cli.progress_message("busy", log):
        _ = 1 / 0
    assert log.getvalue() == shown
    with cli.progress_message("slow", log):
        time.sleep(2.1)
    assert re.fullmatch(r"slow\nslow 2\.\d s\n", log.getvalue().removeprefix(shown))


def test_version_and_help(capsys):
    for words in (["--version"], ["-h"], ["demo", "-h"], ["simplify", "-h"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(words)
        assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"fabinterp {cli.__version__}\n") and "--target" in out


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

    monkeypatch.setattr(cli, "run_command", stop)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == "fabinterp: interrupted\n"
    code = "import sys; from fabinterp import cli; cli.run_command = lambda _: cli.signal(); sys.exit(cli.main([]))"
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
    assert not Page(page).open and page.count("<figure>") == 2
    measured = re.findall(r"<b>([\d.]+) %</b>[^/]*/span></td><td[^>]*>143 rows held out", page)
    assert [float(share) for share in measured[:2]] == [
        pytest.approx(100 * numbers[f"error of the {what}"], abs=0.06)
        for what in ("rules", "forest")
    ]
    # the steps on the page lead to the same rules
    import html

    steps = html.unescape(re.search(r"Make it again</h2><pre>(.*?)</pre>", page, re.S)[1])
    running = process(steps + "\nprint((model.predict(X_test) != y_test).mean())")
    out, err = running.communicate(timeout=120 * slowness())
    assert running.returncode == 0, err
    assert f"{float(out.splitlines()[-1]):.3g}" == f"{numbers['error of the rules']:.3g}"


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
