"""Figures are kept line by line: what was killed goes on where it stopped, and the table is the same."""

import io
import json
import math
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from frame import ROOT
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.needs import PATIENCE
from threadpoolctl import threadpool_info

from fabinterp.bench import runner as bench
from fabinterp.bench.runner import (
    BenchmarkTable,
    Cell,
    Grid,
    UnavailableError,
    add_line,
    figures_of,
    mean_and_deviation,
    name_columns,
    parse_figure,
    read_lines,
    render,
    run_table,
    summarise,
)

PAPER = {"a<b": "0.31 ± 0.03", "abalone": "0.60"}
METHODS = ("ours", "peer", "gone")
ROLES = {"FAB": "paper", "ours": "ours", "peer": "peer", "gone": "peer"}


def jobs(quick):
    for fold in range(2 if quick else 5):
        for data in PAPER:
            for method in METHODS:
                yield {"data": data, "method": method, "fold": fold}


def measure(key):
    time.sleep(float(os.environ.get("TEST_BENCH_SLEEP", 0)))
    if key["method"] == "gone":
        raise UnavailableError("gone is not installed")
    rng = np.random.default_rng(key["fold"])
    return {
        "rmse": len(key["data"]) / 10 + 0.05 * (key["method"] == "ours") + 0.01 * rng.normal(),
        "odd": math.inf,
    }


def show(lines):
    figures = figures_of(lines)
    assert (figures["odd"] == math.inf).all()
    cells = summarise(figures, "rmse", digits=3)
    cells["FAB"] = pd.Series(PAPER).map(parse_figure)
    return Grid(name_columns(cells, ROLES, "RMSE", "lower"), ("A note.",))


TABLE = BenchmarkTable(
    "test-1",
    "A table",
    "toy",
    jobs,
    measure,
    show,
    ("no-such-thing",),
    "Two folds.",
    {"a<b": "So it is."},
)


def column_of(grid, name):
    """The cells of a column, by row."""
    return grid.frame.xs(name, axis=1, level="name").iloc[:, 0]


def counted(measure=measure, **changes):
    """The table, and the keys that it measures."""
    seen = []

    def noted(key):
        seen.append(key)
        return measure(key)

    return bench.replace(TABLE, measure=noted, **changes), seen


def started(folder, sleep=0.0):
    """A process that measures the table."""
    code = (
        "import sys, test_runner; from fabinterp.bench.runner import run_table; "
        "run_table(test_runner.TABLE, sys.argv[1])"
    )
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "slow")))
    env = {**os.environ, "PYTHONPATH": path, "TEST_BENCH_SLEEP": str(sleep)}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], env=env, stderr=subprocess.PIPE, text=True
    )


def wait_for_lines(file, n):
    """Wait until a file has n lines."""
    until = time.monotonic() + PATIENCE
    while not file.exists() or file.read_bytes().count(b"\n") < n:
        assert time.monotonic() < until
        time.sleep(0.02)


# The run


def test_killed_and_started_again_gives_the_same_table(tmp_path):
    whole = run_table(TABLE, tmp_path / "whole", verbose=0)
    file = tmp_path / "killed" / "toy.jsonl"
    for n in (4, 9):  # killed twice
        running = started(file.parent, sleep=0.1)
        wait_for_lines(file, n)
        running.kill()
        assert running.wait(30) == -signal.SIGKILL
        assert len(read_lines(file)) < len(TABLE.keys())
    before = {bench.key_text(line["key"]) for line in read_lines(file) if "missing" not in line}
    partial = render(TABLE, file.parent)
    assert "measurements were not made" in partial.to_text() and partial != whole
    table, seen = counted()
    assert run_table(table, file.parent, verbose=0) == whole
    assert not before & {bench.key_text(key) for key in seen}  # nothing twice
    assert run_table(TABLE, file.parent, verbose=0) == whole


def test_two_processes_at_one_file_do_no_harm(tmp_path):
    running = [started(tmp_path, sleep=0.02) for _ in range(2)]
    for process in running:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
    rows = (tmp_path / "toy.jsonl").read_text().splitlines()
    assert all(json.loads(row)["key"] for row in rows) and len(rows) <= 2 * len(TABLE.keys())
    assert render(TABLE, tmp_path) == run_table(TABLE, tmp_path / "alone", verbose=0)


def test_lines_added_at_the_same_time_are_all_kept(tmp_path):
    file = tmp_path / "lines.jsonl"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: add_line(file, {"key": {"fold": k}}), range(200)))
    assert sorted(line["key"]["fold"] for line in read_lines(file)) == list(range(200))


@examples(15)
@given(st.floats(0, 1))
def test_half_a_line_is_measured_again(tmp_path_factory, share):
    folder = tmp_path_factory.mktemp("half")
    whole = run_table(TABLE, folder, True, 0)
    file = folder / "toy-quick.jsonl"
    text = file.read_bytes()
    file.write_bytes(text[: round(share * len(text))])
    assert run_table(TABLE, folder, True, 0) == whole
    shuffled = file.read_bytes().splitlines(keepends=True)
    random.Random(0).shuffle(shuffled)
    file.write_bytes(b"".join(shuffled))
    assert render(TABLE, folder, True) == whole  # whatever the order of measuring


def test_other_jobs_than_before(tmp_path):
    run_table(TABLE, tmp_path, verbose=0)

    def fewer_and_new(quick):
        yield from (key for key in jobs(quick) if key["fold"] < 2 and key["method"] == "ours")
        yield {"data": "abalone", "method": "ours", "fold": 7}

    table, seen = counted(jobs=fewer_and_new)
    grid = run_table(table, tmp_path, verbose=0)
    assert seen == [{"data": "abalone", "method": "ours", "fold": 7}]
    folds = [0, 1, 7]
    value = np.mean(
        [measure({"data": "abalone", "method": "ours", "fold": fold})["rmse"] for fold in folds]
    )
    assert column_of(grid, "ours")["abalone"].value == pytest.approx(value)
    assert column_of(grid, "peer").isna().all()
    assert sum(line["key"]["method"] == "peer" for line in read_lines(tmp_path / "toy.jsonl")) == 10


def test_what_is_missing_is_a_note_and_tried_again(tmp_path):
    grid = run_table(TABLE, tmp_path, verbose=0)
    assert column_of(grid, "gone").isna().all()
    assert "gone is not installed: 10 of 30 measurements are blank." in grid.notes
    table, seen = counted()
    size = (tmp_path / "toy.jsonl").stat().st_size
    assert run_table(table, tmp_path, verbose=0) == grid and {key["method"] for key in seen} == {
        "gone"
    }
    assert (tmp_path / "toy.jsonl").stat().st_size == size  # the same blank is not written again
    table, _ = counted(lambda key: {"rmse": 0.5, "odd": math.inf})
    found = run_table(table, tmp_path, verbose=0)
    assert [cell.value for cell in column_of(found, "gone")] == [0.5, 0.5]

    def all_gone(key):
        raise UnavailableError("nothing is installed")

    table, seen = counted(all_gone)
    again = run_table(table, tmp_path, again=True, verbose=0)
    kept = [cell.value for cell in column_of(again, "gone")]
    assert len(seen) == 30 and kept == [0.5, 0.5]  # a blank replaces no figure
    nothing = run_table(table, tmp_path / "new", verbose=0)
    assert (
        nothing.frame.empty
        and "nothing is installed: 30 of 30" in nothing.to_text()
        and nothing._repr_html_()
    )


def test_again_measures_everything_again(tmp_path):
    run_table(TABLE, tmp_path, verbose=0)
    table, seen = counted(lambda key: {"rmse": 0.25, "odd": math.inf})
    grid = run_table(table, tmp_path, again=True, verbose=0)
    measured = grid.frame.drop(columns="paper", level="role").to_numpy().flat
    assert len(seen) == 30 and all(cell.value == 0.25 for cell in measured)


def test_quick_has_a_file_of_its_own(tmp_path):
    grid = run_table(TABLE, tmp_path, quick=True, verbose=0)
    assert os.listdir(tmp_path) == ["toy-quick.jsonl"] and "Two folds." in grid.notes
    with pytest.raises(UnavailableError, match="`python -m fabinterp.bench test-1` does it"):
        render(TABLE, tmp_path)
    assert render(TABLE, tmp_path, quick=True) == grid
    assert "Two folds." not in run_table(TABLE, tmp_path, verbose=0).notes


def test_a_failure_names_the_job_and_keeps_what_was_measured(tmp_path):
    def broken(key):
        return measure(key) if key["fold"] < 1 else 1 / 0

    table, _ = counted(broken)
    with pytest.raises(ZeroDivisionError) as failure:
        run_table(table, tmp_path, verbose=0)
    assert (
        "'fold': 1" in failure.value.__notes__[0] and len(read_lines(tmp_path / "toy.jsonl")) == 6
    )
    table, _ = counted(lambda key: {"load": 1})
    with pytest.raises(ValueError, match="names that the runner does not use itself, got 'load'"):
        run_table(table, tmp_path / "new", verbose=0)
    table, _ = counted(jobs=lambda quick: [{"data": ["a"]}])
    with pytest.raises(ValueError, match="a key must be a dict of"):
        run_table(table, tmp_path / "new", verbose=0)


def test_one_thread(tmp_path):
    seen = []
    table, _ = counted(
        lambda key: seen.extend(pool["num_threads"] for pool in threadpool_info()) or measure(key)
    )
    run_table(table, tmp_path, quick=True, verbose=0)
    assert set(seen) == {1}


# The lines


values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text().filter(
    lambda text: text not in ("NaN", "Infinity", "-Infinity")), lambda inner: st.lists(inner) | st.dictionaries(
    st.text(), inner), max_leaves=8)  # fmt: skip


@given(st.dictionaries(st.text(), values))
def test_figures_come_back_as_they_were(tmp_path_factory, figures):
    file = tmp_path_factory.mktemp("lines") / "x.jsonl"
    bench.add_line(file, {"key": {"a": 1}, "figures": figures})
    row = file.read_text().strip()
    json.loads(row, parse_constant=pytest.fail)
    assert repr(read_lines(file)[0]["figures"]) == repr(figures)  # nan is not equal to itself


def test_numpy_figures_become_plain():
    said = bench.to_strict_json(
        {"a": np.float32(0.5), "b": np.arange(2), "c": (np.int64(3), np.nan), "d": np.bool_(True)}
    )
    assert (
        json.dumps(said, allow_nan=False) == '{"a": 0.5, "b": [0, 1], "c": [3, "NaN"], "d": true}'
    )


def test_the_stamp(tmp_path):
    line = bench.stamp("pytest", "no-such-thing", fits=("MetaTree",))
    assert list(line) == [
        "date",
        "python",
        "machine",
        "processor",
        "cores",
        "versions",
        "fits",
        "load",
    ]
    assert line["fits"] == {"MetaTree": bench.FIT_VERSION["MetaTree"]}
    assert (
        line["versions"]["pytest"] == pytest.__version__
        and line["versions"]["no-such-thing"] is None
    )
    text = json.dumps(line)
    assert platform.node() not in text and os.getcwd() not in text
    grid = run_table(TABLE, tmp_path, verbose=0)
    assert f"numpy {np.__version__}" in grid.stamp and "no-such-thing" not in grid.stamp
    old = [{"date": "2020-01-02", "versions": {"numpy": "1"}, "load": 0.5}, {"date": "2020-01-01", "versions": None},
           {"date": "2020-01-03", "versions": {"numpy": "2"}, "load": 3.0, "took": 7e3, "machine": "m"}]  # fmt: skip
    assert bench.stamp_text(old) == (
        "Measured: date 2020-01-01 to 2020-01-03; machine m; load 0.5 to 3.0; numpy 1 and 2; "
        "1.94 hours."
    )
    assert bench.stamp_text([{}]) == ""


def test_lines_of_an_earlier_fit_are_counted(tmp_path, monkeypatch):
    table = replace(TABLE, fits=("MetaTree",))
    note = "Measured with an earlier version of the fit: "
    assert note not in run_table(table, tmp_path, verbose=0).to_text()
    later = bench.FIT_VERSION["MetaTree"] + 1
    monkeypatch.setitem(bench.FIT_VERSION, "MetaTree", later)
    lines = [line for line in read_lines(tmp_path / "toy.jsonl") if "missing" not in line]
    assert f"{note}{len(lines)} of MetaTree." in " ".join(render(table, tmp_path).to_text().split())


# What is worse


def test_figures_as_printed():
    assert parse_figure("0.21 ± 0.03") == parse_figure("0.21 (0.03)") == Cell(0.21, 0.03, 2)
    assert parse_figure(".210") == Cell(0.21, None, 3) and parse_figure("1.2e-3") == Cell(
        0.0012, None, 4
    )
    assert parse_figure("1200") == Cell(1200.0, None, 0) and parse_figure("-3") == Cell(
        -3.0, None, 0
    )
    for text in ("none", "1 2 3"):
        with pytest.raises(ValueError, match="a number and at most one spread"):
            parse_figure(text)


@given(
    st.integers(0, 10**6), st.integers(0, 4), st.floats(-2, 2), st.sampled_from(["lower", "higher"])
)
def test_worse_means_beyond_rounding(k, digits, apart, better):
    unit = 10.0**-digits
    paper = Cell(round(k * unit, digits), None, digits)
    ours = Cell(round(k * unit, digits) + apart * unit)
    worse = bench.is_worse(ours, paper, better)
    distance = apart if better == "lower" else -apart
    if abs(abs(distance) - 0.5) > 1e-6:  # at the half itself the rounding of floats decides
        assert worse == (distance > 0.5)
    assert not (worse and bench.is_worse(paper, ours, better))


def grid_of(*cells, better="lower"):
    frame = pd.DataFrame([cells], ["r"], ["FAB", "ours", "SVR", "EBM", "sec", "n"], dtype=object)
    roles = {"FAB": "paper", "ours": "ours", "SVR": "printed", "EBM": "peer"}
    parts = [name_columns(frame, roles, "E", better), name_columns(frame, {"sec": "peer"}, "time")]
    return Grid(pd.concat([*parts, name_columns(frame, {"n": ""})], axis=1))


def lost_to(grid):
    """Against whom ours is worse, and whether within the other's ±."""
    return list(grid.shortfalls()[["name_other", "within"]].itertuples(index=False, name=None))


def test_shortfalls():
    grid = grid_of(parse_figure("0.50 ± 0.10"), 0.57, parse_figure("0.5"), 0.56, 0.1, 3)
    assert lost_to(grid) == [("FAB", True), ("SVR", False), ("EBM", False)]
    assert bench.shortfall_reasons(grid) == [
        "r: E ours 0.570 against FAB (the paper's) 0.50 ± 0.10; "
        "E ours 0.570 against SVR (printed) 0.5; E ours 0.570 against EBM 0.560."
    ]
    assert [sign for sign in bench.shortfall_signs(grid).to_numpy().flat if sign] == ["(†)‡"]
    assert "in brackets" in grid.to_text()
    higher = grid_of(0.5, 0.57, 0.6, 0.56, 0.1, 3, better="higher")
    assert lost_to(higher) == [("SVR", False)]
    for ours in (None, "n/a", math.nan):
        assert grid_of(0.5, ours, 0.5, 0.5, 0.1, 3).shortfalls().empty
    assert len(grid_of(0.5, math.inf, None, "?", math.nan, 3).shortfalls()) == 1
    assert grid_of(0.5, 0.6, 0.5, 0.5, 0.1, 3, better="").shortfalls().empty


def test_every_comparison_is_there_and_rows_keep_their_order():
    cells = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 1.0]}, index=["z", "y"])
    pairs = bench.compare(name_columns(cells, {"a": "ours", "b": "peer"}, "E", "lower"))
    assert list(pairs["row"]) == ["z", "y"] and list(pairs["worse"]) == [False, True]


def test_columns_that_were_not_measured_are_empty():
    assert name_columns(
        pd.DataFrame({"a": [1]}), {"b": "peer", "a": ""}
    ).isna().to_numpy().tolist() == [[True, False]]


def test_figures_are_summed_up_by_their_keys():
    lines = [{"key": {"data": d, "method": m}, "e": e, "part": {"n": n}, "s": [1.0, e]}
             for d, m, e, n in (("q", "a", 1.0, 1), ("p", "a", 2.0, 3), ("q", "a", 3.0, 3))]  # fmt: skip
    figures = figures_of([*lines, {"key": {"data": "p", "method": "b"}}])
    assert summarise(figures, "e")["a"].to_dict() == {"q": Cell(2.0, math.sqrt(2)), "p": Cell(2.0)}
    assert summarise(figures, "part.n", digits=1).loc["q", "a"] == Cell(2.0, math.sqrt(2), 1)
    assert summarise(figures, "s", middle=np.median).loc["q", "a"] == Cell(1.0)
    assert summarise(figures, "nothing").empty and summarise(figures, "e").columns.tolist() == ["a"]


def test_reasons(tmp_path):
    grid = run_table(TABLE, tmp_path, verbose=0)
    assert set(grid.shortfalls()["row"]) == {"a<b", "abalone"}
    first, second = bench.shortfall_reasons(grid)
    assert first.endswith(". So it is.") and second.startswith("abalone: RMSE ours")
    assert bench.shortfall_reasons(bench.replace(grid, why={"": "For all."}))[-1] == "For all."


def test_numbers():
    said = [
        bench.number_text(v)
        for v in (0.0, 1234.4, 0.12345, 12.345, -0.00123, 3e-9, 2e8, math.inf, math.nan)
    ]
    assert said == ["0", "1234", "0.123", "12.3", "-0.00123", "3.00e-09", "2.00e+08", "∞", "–"]
    assert mean_and_deviation([]) is None and mean_and_deviation([2.0]) == Cell(2.0, None, None)
    assert mean_and_deviation([1.0, 3.0], 1) == Cell(2.0, math.sqrt(2), 1)
    assert bench.format_cell(mean_and_deviation([1.0, 3.0], 1)) == "2.0 ± 1.4"


# How it looks


class Page(HTMLParser):
    """Tags of a page, and whether all close."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.open = []
        self.said = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


def test_a_hostile_grid_as_html():
    evil = "<script>alert(1)</script>&\"'"
    cells = pd.DataFrame({evil: [1.0, 1.0], "b": [0.5, 2.0], "c": [evil, None]},
                         index=pd.Index([evil, "r"], name=evil), dtype=object)  # fmt: skip
    columns = [name_columns(cells, {evil: "ours", "b": "peer"}, evil, "lower")]
    columns.append(name_columns(cells, {"c": ""}))
    grid = Grid(pd.concat(columns, axis=1), (evil,), evil, {evil: evil}, evil)
    text = grid._repr_html_()
    page = Page(text)
    assert not page.open and "script" not in page.tags and "".join(page.said).count("<script>") >= 8
    assert "‡" in text and text == grid._repr_html_()


def test_texts_whole_numbers_and_commands():
    cells = pd.DataFrame(
        {"n": [3, np.int64(1200)], "rule": ["x ≤ 1", None]}, ["a", "b"], dtype=object
    )
    grid = Grid(name_columns(cells, {"n": "", "rule": ""}), ("`run <x>` goes on",))
    assert [bench.format_cell(cell) for cell in grid.frame.to_numpy().flat] == [
        "3",
        "x ≤ 1",
        "1200",
        "–",
    ]
    lines = [line.split() for line in grid.to_text().splitlines()]
    assert ["a", "3", "x", "≤", "1"] in lines and ["b", "1200", "–"] in lines
    text = grid._repr_html_()
    assert "`run &lt;x&gt;` goes on" in text and "<td>x ≤ 1</td>" in text


def test_the_bar_spoils_no_log(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    run_table(TABLE, tmp_path / "log")
    assert log.getvalue().count("\r") <= 3 and log.getvalue().endswith("\n")
    assert re.search(r"\rtest-1: 100%.* 30/30 \[", log.getvalue())
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    run_table(TABLE, tmp_path / "terminal")
    said = terminal.getvalue()
    assert (
        said.count("\n") == 1
        and "30/30" in said.rpartition("\r")[2]
        and re.search(r" 15/30 .*abalone ours 2", said)
    )
    monkeypatch.setattr(sys, "stderr", quiet := io.StringIO())
    run_table(TABLE, tmp_path / "quiet", verbose=0)
    assert not quiet.getvalue()


# All tables


def test_an_unknown_table_is_rejected():
    with pytest.raises(ValueError, match="name must be one of 'hara-2', .*, got 'nakahara-11'"):
        bench.find_table("nakahara-11")


@pytest.mark.parametrize(
    ("module", "loaded"),
    [("commands", []), ("bench.runner", ["fabinterp.bench.datasets", "fabinterp.bench.runner"])],
)
def test_benchmarks_are_loaded_when_they_are_asked_for(module, loaded):
    code = (
        f"import sys, fabinterp.{module}; "
        "print([name for name in sys.modules if name.startswith('fabinterp.bench.')])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{loaded}\n"


def test_every_table_is_in_order():
    measured = {}
    for name, table in bench.TABLES.items():
        assert (
            bench.TABLES[name] is table
            and re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name)
            and table.title
        )
        for quick in (False, True):
            keys = table.keys(quick)
            assert keys and list(keys) == list(table.keys(quick)), name
            assert not quick or table.quick or keys == table.keys(), (
                f"{name} does not say what --quick leaves out"
            )
        for key in table.keys():  # tables of one study that share a key measure the same
            assert measured.setdefault((table.study, key), table.measure) is table.measure, (
                name,
                key,
            )
    assert len(bench.TABLES) == len(set(bench.TABLES)) > 7


def test_every_table_bears_a_few_of_its_figures_and_explains_its_losses():
    folder = ROOT / "nbs" / "results"
    for table in bench.TABLES.values():
        kept = bench.latest(read_lines(bench.lines_file(table, folder)))
        lines = [
            kept[text] for text in table.keys() if "missing" not in kept.get(text, {"missing": 0})
        ]
        grids = [table.show(lines[:few]) for few in (1, 9) if lines]
        for grid in grids:
            assert grid.to_text() and not Page(grid._repr_html_()).open, table.name
        if any(
            role == "ours" and better for grid in grids for *_, role, better in grid.frame.columns
        ):
            grid = render(table, folder)
            unsaid = set(grid.shortfalls()["row"]) - set(grid.why)
            assert not unsaid or "" in grid.why, (
                f"{table.name} does not say why ours is worse on {unsaid}"
            )


def test_the_command_lists_tables(capsys):
    bench.run_bench([])
    out = capsys.readouterr().out
    assert all(re.search(rf"^{name}  +\S", out, re.M) for name in bench.TABLES)


def test_the_command_rejects_an_unknown_table(capsys):
    with pytest.raises(SystemExit) as stop:
        bench.run_bench(["nakahara-11"])
    assert stop.value.code == 2 and "got 'nakahara-11'" in capsys.readouterr().err


def test_the_command_measures_a_table_once(capsys, tmp_path):
    arguments = ["nakahara-1", "--quick", "--out", str(tmp_path / "new")]
    bench.run_bench(arguments)
    (file,) = (tmp_path / "new").iterdir()
    before = file.read_bytes()
    first = capsys.readouterr().out
    assert bench.TABLES["nakahara-1"].title in first and f"numpy {np.__version__}" in first
    bench.run_bench(arguments)
    assert file.read_bytes() == before and capsys.readouterr().out == first
