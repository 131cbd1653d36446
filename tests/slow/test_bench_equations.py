"""The page that measures equations and their peers: splits, jobs, sizes, stored lines."""

from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from frame import NBS
from hypothesis import given
from shared.effort import examples

from fabinterp.bench import rules
from fabinterp.bench.datasets import catalogue_entry
from fabinterp.bench.equations import (
    CLASSES,
    METHODS,
    NUMBERS,
    OF_NUMBERS,
    OURS,
    SLOW,
    TABLES,
    figures_to_judge,
    measure_equations,
    on_common_sizes,
)
from fabinterp.bench.rules import is_regression, n_splits, regrets, split_case
from fabinterp.bench.runner import UnavailableError, key_text, read_lines, render

RESULTS = NBS / "results"
PEERS = set(METHODS) - set(OURS) - {"line", "CART (cv)", "HistGB"}
CHOOSING = {
    "boston",
    "auto_mpg",
    "stock",
    "kin8nm",
    "cal_housing",
    "pima_diabetes",
    "banana",
    "titanic",
    "eeg_eye_state",
}
each_task = pytest.mark.parametrize("table", TABLES[::2], ids=lambda table: table.name)


def rows_of(X):
    """Return the distinct rows of a table."""
    return {tuple(row) for row in X}


# Rows


def test_tables_for_choosing_are_not_reported():
    assert not CHOOSING & set(NUMBERS + CLASSES)
    assert len(set(NUMBERS)) == 14 and len(set(CLASSES)) == 10
    assert all(map(is_regression, NUMBERS)) and not any(map(is_regression, CLASSES))
    for data in {*NUMBERS, *CLASSES} - set(rules._DRAWN):
        assert n_splits(data) == (10 if catalogue_entry(data).rows <= 5000 else 3)


@pytest.mark.parametrize("data", ["diabetes", "friedman1", "friedman2", "friedman3"])
def test_rows_to_judge_by_are_not_learnt_from(data):
    one, two = split_case(data, 0), split_case(data, 1)
    assert not rows_of(one.X) & rows_of(one.X_new) and one.model is None
    assert rows_of(one.X_new) != rows_of(two.X_new)


def test_rows_of_a_patient_stay_together(monkeypatch):
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(20.0), 30)
    table = SimpleNamespace(
        X=np.column_stack([rng.random(600), patients, patients + 100]),
        y=rng.random(600),
        feature_names=("age", "subject", "mark"),
    )
    monkeypatch.setattr(rules, "load_available", lambda name: table)
    held_out = []
    for split in range(3):
        X, _, X_new, _, names, groups = rules._split_rows("parkinsons", split)
        assert names == ("age", "mark") and X.shape[1] == 2 and len(X) + len(X_new) == 600
        assert not set(X[:, 1]) & set(X_new[:, 1])
        assert np.array_equal(groups + 100, X[:, 1])
        held_out.append(frozenset(X_new[:, 1]))
    assert len(set(held_out)) == 3


# Jobs


@each_task
def test_first_come_a_few_splits_of_every_table(table):
    jobs = list(table.jobs(False))
    assert set(table.keys(True)) <= set(table.keys()) and len(table.keys()) == len(jobs)
    wanted = NUMBERS if table.name == "equations" else CLASSES
    first = [job["split"] < 3 for job in jobs]
    early = jobs[: first.index(False)]
    assert not any(first[len(early) :])
    known = set(METHODS) - (set() if wanted == NUMBERS else set(OF_NUMBERS))
    assert {(job["data"], job["split"], job["method"]) for job in early} == {
        (data, split, method) for data in wanted for split in range(3) for method in known
    }
    slow = [job["method"] in SLOW for job in early]
    assert slow == sorted(slow) and not {job["method"] for job in jobs[len(early) :]} & set(SLOW)


def test_a_line_of_each_method():
    errors = {}
    for method in METHODS:
        key = {"part": "split", "split": 0, "data": "diabetes", "method": method}
        try:
            found = measure_equations(key)
        except UnavailableError:
            assert method in PEERS
            continue
        errors[method] = found["error"]
        assert 40 < found["error"] < 80 and found["numbers"] >= found["leaves"] >= 1
        assert found["seconds"] >= 0
        if method == "balanced":
            assert found["error"] in found["path"] and found["sizes"] == sorted(found["sizes"])
            assert found["numbers"] in found["sizes"]
            paths = found["path"]
    assert set(OURS) <= set(errors) and errors["small"] in paths


def test_classes_are_learnt_from_too():
    pytest.importorskip("sklearn", minversion="1.8", reason="the line is asked for by words of 1.8")
    for method in ("line", "CART (cv)", "HistGB"):
        key = {"part": "split", "split": 0, "data": "breast_cancer", "method": method}
        assert measure_equations(key)["error"] < 0.15


# Sizes


@given(st.integers(0, 2**32 - 1))
@examples(20)
def test_sizes_of_splits_are_brought_together(seed):
    rng = np.random.default_rng(seed)
    sizes = [np.sort(rng.integers(1, 30, rng.integers(1, 6))).tolist() for _ in range(4)]
    paths = [rng.random(len(each)).tolist() for each in sizes]
    figures = pd.DataFrame(
        {"data": "a", "method": "balanced", "error": 1.0, "sizes": sizes, "path": paths}
    )
    found = on_common_sizes(figures)["path"].to_list()
    common = sorted({size for each in sizes for size in each})
    assert {len(path) for path in found} == {len(common)}
    for k, size in enumerate(common):
        for path, own, errors in zip(found, sizes, paths, strict=True):
            below = [error for n, error in zip(own, errors, strict=True) if n <= size]
            assert path[k] == (below[-1] if below else errors[0])


def test_a_faultless_method_has_a_ratio():
    key = {"part": "split", "split": 0, "method": "balanced"}
    judged = figures_to_judge(
        [
            {"key": key | {"data": "banknote"}, "error": 0.0, "sizes": [1, 4], "path": [0.1, 0.0]},
            {"key": key | {"data": "diabetes"}, "error": 50.0},
        ]
    )
    half = 0.5 / 343  # rows held out of 1372
    assert judged["error"].tolist() == [half, 50.0]
    assert judged["path"][0] == [0.1 + half, half] and regrets(judged)["banknote"] == 0


# Stored lines


def test_every_stored_line_answers_a_job():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "equations.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    assert all(line.get("error", 0) >= 0 and line.get("numbers", 1) >= 1 for line in lines)


@each_task
def test_the_stored_figures_make_tables(table):
    grid = render(table, RESULTS)
    lines = [line for line in read_lines(RESULTS / "equations.jsonl") if "error" in line]
    data = NUMBERS if table.name == "equations" else CLASSES
    figures = figures_to_judge([line for line in lines if line["key"]["data"] in data])
    assert set(grid.frame.index) == set(figures["method"])
    found = regrets(figures)
    assert f"{100 * found.mean():.1f} % in the mean" in " ".join(grid.notes)
    splits = figures.groupby("data")["split"].nunique()
    assert all(f"{name} {n}" in " ".join(grid.notes) for name, n in splits.items())
    beside = TABLES[TABLES.index(table) + 1]
    assert set(render(beside, RESULTS).frame.index) == set(figures["data"])
