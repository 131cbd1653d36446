"""The tables of Wang and others: what is typed, what is measured, how lines become tables."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from frame import NBS
from shared.needs import need, need_data
from sklearn.base import clone

from fabinterp.bench import wang as bench_oblique
from fabinterp.bench.datasets import OBLIQUE_TRUTH, Dataset
from fabinterp.bench.runner import (
    UnavailableError,
    key_text,
    read_lines,
    render,
    run_table,
)
from fabinterp.bench.wang import (
    BINARY,
    DESCRIBED,
    DIAL,
    GATES,
    TABLE_3,
    TABLE_4,
    TABLES,
    TRUE_GATES,
    PyGAMClassifier,
    PyGAMRegressor,
    additive_method,
    fold_row,
    gate_errors,
    gate_numbers,
    measure_additive_methods,
    nested_features,
    settings_of,
    size_of_additive,
    stratified_fold,
)
from fabinterp.rules.core import Columns, Leaf, Split
from fabinterp.rules.ruleset import Tree

STORED = NBS / "results"
by_name = {table.name: table for table in TABLES}
tables = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
OURS = ("em", "oblique", "oblique_balanced", "piecewise")


def toy(name, n=150, seed=0):
    """A small table of one curve and one question, under any of the names."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) + (X[:, 1] + X[:, 2] > 0)
    y = (y > 0.5).astype(int) if name in BINARY else y
    return Dataset(name=name, X=X, y=y)


# What is typed


@pytest.mark.parametrize("typed,methods", [(TABLE_3, 6), (TABLE_4, 9)], ids=["3", "4"])
def test_a_row_has_a_figure_and_a_deviation_for_each_method(typed, methods):
    assert typed.shape == (12, methods)
    assert typed.map(lambda f: f.deviation is not None and f.deviation < f.value).all(axis=None)


def test_the_last_two_columns_of_table_4_are_in_the_order_that_its_text_supports():
    value = TABLE_4.map(lambda cell: cell.value)
    short = value.index[value["OT-SpAM"] < value["SVM-RBF"] - 5]
    # D21: the one loss of accuracy that the paper calls significant
    assert short.tolist() == ["eeg_eye_state"]


def test_printed_gates_are_near_the_true_ones():
    for theirs, true in zip(GATES.values(), TRUE_GATES, strict=True):
        assert 0 < np.abs(np.subtract(theirs, gate_numbers(true, true))).max() < 0.15


# Jobs


@tables
@pytest.mark.parametrize("quick", [False, True])
def test_jobs_are_the_same_each_time_and_go_fold_by_fold(table, quick):
    jobs = list(table.jobs(quick))
    assert jobs == list(table.jobs(quick)) and len(jobs) == len(table.keys(quick)) > 0
    for part in {job["part"] for job in jobs}:
        folds = [job["fold"] for job in jobs if job["part"] == part]
        assert folds == sorted(folds)


@tables
def test_quick_is_part_of_the_whole_and_small(table):
    assert set(table.keys(True)) <= set(table.keys()) and len(table.keys(True)) <= 16


def test_every_stored_line_answers_a_job():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(STORED / "planes.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    assert all(
        line["date"] and line["processor"] and line["versions"]["scikit-learn"] for line in lines
    )


@tables
def test_the_stored_figures_make_a_table_with_a_reason_for_every_shortfall(table):
    grid = render(table, STORED)
    assert len(grid.frame) and "Measured" in grid.stamp
    for row in grid.shortfalls()["row"]:
        assert grid.why.get(row, grid.why.get("")), f"{table.name}: no reason for {row}"


def test_stored_figures_of_ours_are_of_the_settings_of_today():
    for name in ("abalone", "banana"):
        lines = [
            line
            for line in read_lines(STORED / "planes.jsonl")
            if line["key"]["data"] == name and line["key"]["method"] in OURS
        ]
        today = {
            method: bench_oblique.settings_digest(
                settings_of(additive_method(name, method).make(random_state=0))
            )
            for method in OURS
        }
        assert {(line["key"]["method"], line["settings"]) for line in lines} == set(today.items())


# Measuring


@pytest.mark.parametrize("name", ["stock", "titanic"])
def test_ten_folds_part_the_rows_and_are_the_same_each_time(monkeypatch, name):
    monkeypatch.setattr(bench_oblique, "load_available", toy)
    tests = [stratified_fold(name, fold)[2] for fold in range(10)]
    rows = np.concatenate(tests)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, toy(name).X))
    assert np.array_equal(stratified_fold(name, 3)[0], stratified_fold(name, 3)[0])
    assert all(
        len(stratified_fold(name, fold)[0]) + len(test) == 150 for fold, test in enumerate(tests)
    )


@pytest.mark.parametrize(
    "method", ["em", "oblique", "piecewise", pytest.param("pygam", marks=pytest.mark.measure)]
)
@pytest.mark.parametrize("name", ["stock", "titanic"])
def test_a_fold_is_measured_alike_twice(monkeypatch, name, method):
    if method == "pygam":
        need("pygam")
    monkeypatch.setattr(bench_oblique, "load_available", toy)
    key = {"part": "regression", "data": name, "method": method, "fold": 1}
    rows = [measure_additive_methods(key) for _ in range(2)]
    for row in rows:
        assert row.pop("seconds") > 0 and row.pop("cpu") > 0
    assert rows[0] == rows[1] and rows[0]["error"] < (45 if name in BINARY else 0.6)
    assert ("log_loss" in rows[0]) == (name in BINARY) and rows[0]["folds"] == 10


@pytest.mark.measure
def test_a_fold_is_measured_as_it_is_stored():
    need_data("auto_mpg")
    key = {"part": "regression", "data": "auto_mpg", "method": "oblique", "fold": 0}
    stored = [line for line in read_lines(STORED / "planes.jsonl") if line["key"] == key][0]
    row = measure_additive_methods(key)
    assert (
        row["error"] == pytest.approx(stored["error"], rel=0.02)
        and row["settings"] == stored["settings"]
    )
    assert set(row) <= set(stored)


@pytest.mark.measure
def test_ebm_is_measured(monkeypatch):
    need("interpret")
    monkeypatch.setattr(bench_oblique, "load_available", toy)
    row = fold_row("stock", "ebm", 0)
    assert row["experts"] == 1 and row["terms"] == 3 and row["error"] < 0.6


@pytest.mark.parametrize("method,module", [("ebm", "interpret.glassbox"), ("pygam", "pygam")])
def test_a_peer_that_is_not_installed_is_told(monkeypatch, method, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnavailableError, match="is not installed"):
        additive_method("stock", method).make(random_state=0)


def test_stored_figures_of_pygam_are_of_the_settings_of_today():
    """Its estimators are ours: their digests are known where pyGAM is not installed."""
    lines = [
        line
        for line in read_lines(STORED / "planes.jsonl")
        if line["key"]["method"] == "pygam" and "settings" in line
    ]
    kinds = {True: PyGAMClassifier, False: PyGAMRegressor}
    today = {
        (is_class, bench_oblique.settings_digest(settings_of(kind(tuned=tuned))))
        for is_class, kind in kinds.items()
        for tuned in (True, False)
    }
    assert {(line["key"]["data"] in BINARY, line["settings"]) for line in lines} == today


def test_a_missing_peer_is_a_blank_and_the_others_stand(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygam", None)
    monkeypatch.setattr(bench_oblique, "load_available", toy)
    wanted = [
        {"part": "regression", "data": "stock", "method": m, "fold": 0}
        for m in ("oblique", "pygam")
    ]
    grid = run_table(replace(by_name["wang-3"], jobs=lambda quick: wanted), tmp_path, verbose=0)
    cells = grid.frame.loc["stock"].droplevel(["role", "better"])
    assert np.isnan(cells["RMSE, on the peers' folds", "pygam"])
    assert cells["RMSE", "oblique"].value < 1
    assert any("pygam is not installed" in note for note in grid.notes)


@pytest.mark.measure
def test_pygam_under_the_shim_is_an_estimator():
    need("pygam")
    data = toy("titanic")
    model = clone(PyGAMClassifier(n_splines=8, tuned=False)).fit(data.X, data.y)
    prob = model.predict_proba(data.X)
    assert prob.shape == (150, 2) and np.allclose(prob.sum(axis=1), 1)
    assert np.mean(model.predict(data.X) == data.y) > 0.8


def test_a_term_counts_that_varies():
    terms = np.column_stack([np.linspace(0, 1, 9), np.full(9, 3.0), np.linspace(0, 1e-9, 9)])
    assert size_of_additive(terms, 4) == {
        "experts": 1,
        "features": 1.0,
        "terms": 1,
        "gate_features": 0.0,
        "coefficients": 4,
    }


# The simulation


def true_tree(scale=1.0):
    """The paper's tree, its questions multiplied by a factor, with experts that hold the right features."""
    splits = [
        Split(true.features, scale * true.threshold, tuple(scale * c for c in true.coef))
        for true in TRUE_GATES
    ]
    leaves = [
        Leaf(0.0, tuple(f), (1.0,) * len(f)) for f in ((0, 1, 6), (4, 6, 7), (0, 7), (1, 7, 9))
    ]
    return Tree(
        [*splits, *[None] * 4],
        [2, 4, 6, -1, -1, -1, -1],
        [1, 3, 5, -1, -1, -1, -1],
        [None] * 3 + leaves,
        Columns(tuple(f"x{j}" for j in range(15)), (None,) * 15),
    )


@pytest.mark.parametrize("scale", [1.0, 7.5, -0.2])
def test_the_true_tree_is_known_again_in_any_scale(scale):
    tree = true_tree(scale)
    assert nested_features(tree) == OBLIQUE_TRUTH
    assert {text: pytest.approx([0, 0], abs=1e-12) for text in GATES} == gate_errors(tree)


def test_another_tree_is_not_the_true_one():
    other = replace(true_tree(), splits=(Split((8, 10), 0.6, (2.5, -1.6)), *true_tree().splits[1:]))
    assert nested_features(other) != OBLIQUE_TRUTH and len(gate_errors(other)) == 2


def simulated():
    """What is measured now of the first simulation, and the line that is stored."""
    key = {"part": "simulation", "data": "1500 rows", "method": "oblique", "fold": 0}
    (stored,) = [line for line in read_lines(STORED / "planes.jsonl") if line["key"] == key]
    return measure_additive_methods(key), stored


def test_the_simulation_is_measured():
    row, stored = simulated()
    assert set(row) <= set(stored)
    for name in ("experts", "features", "terms", "exact"):
        assert row[name] == stored[name]


@pytest.mark.measure
def test_the_simulation_has_the_stored_error():
    """On another processor, or after a change of the search, the stored lines are due again."""
    row, stored = simulated()
    assert row["error"] == pytest.approx(stored["error"], rel=0.02)


# From lines to tables


def line(method, fold, error, name):
    """A line with an error and nothing else."""
    key = {"part": "regression", "data": name, "method": method, "fold": fold}
    return {"key": key, "error": error, "converged": fold == 0}


def test_ours_stands_beside_the_paper_on_all_folds_and_beside_peers_on_theirs():
    lines = [line("oblique", k, e, "ailerons") for k, e in enumerate((1e-4, 3e-4))] + [
        line("ebm", 0, 2e-4, "ailerons")
    ]
    grid = by_name["wang-3"].show(lines)
    cells = grid.frame.iloc[0].droplevel(["role", "better"])
    assert cells["RMSE", "OT-SpAM"].value == 1.66
    assert cells["RMSE", "oblique"].value == pytest.approx(2)
    both = [cells["RMSE, on the peers' folds", method].value for method in ("oblique", "ebm")]
    assert both == pytest.approx([1, 2])
    assert np.isnan(cells["RMSE, on the peers' folds", "pygam"])
    wrong = [line("oblique", 0, 12.5, "titanic")]
    right = by_name["wang-4"].show(wrong)
    ours = right.frame.xs("ours", axis=1, level="role").loc["titanic"]
    assert len(right.frame) == 1 and [cell.value for cell in ours] == [87.5, 87.5]
    assert grid.frame.index.tolist() == ["ailerons, in 0.0001"]


def test_the_papers_algorithm_stands_beside_the_default_on_the_folds_that_both_have():
    lines = [line("em", 0, 3.0, "boston"), line("em", 0, 3.0, "stock")]
    lines += [line("oblique", fold, 2.0 + fold, "boston") for fold in range(2)]
    grid = by_name["wang-3-em"].show([*lines, line("oblique", 0, 0.5, "stock")])
    cells = grid.frame.droplevel(["role", "better"], axis=1)["RMSE"]
    assert [cells.loc["boston", name].value for name in ("OT-SpAM", *DESCRIBED)] == [3.41, 3, 2]
    frame = grid.frame.droplevel(["role", "better"], axis=1)
    assert [cell.value for cell in frame["converged, %", "em"]] == [100, 100]
    assert "em on 1 of 2, oblique on 2 of 2 tables" in grid.notes[1]
    right = [line("em", 0, 10.0, "banana"), line("oblique", 0, 20.0, "banana")]
    assert "em on 1 of 1, oblique on 0 of 1" in by_name["wang-4-em"].show(right).notes[1]


def test_the_size_that_folds_choose_stands_beside_one_price_on_the_folds_that_both_have():
    sizes = {"experts": 3, "terms": 9, "cpu": 2.0}
    lines = [line(DIAL[0], 0, 3.0, "boston") | sizes]
    lines += [line(DIAL[1], fold, 2.0 + fold, "boston") | sizes for fold in range(2)]
    grid = by_name["wang-3-dial"].show(lines)
    cells = grid.frame.droplevel(["role", "better"], axis=1).loc["boston"]
    assert [cells["RMSE", name].value for name in ("OT-SpAM", *DIAL)] == [3.41, 3, 2]
    assert [cells["experts", name].value for name in DIAL] == [3, 3]
    assert grid.shortfalls().empty  # of 3.41; one price is judged elsewhere
    folds = [job["fold"] for job in by_name["wang-4-dial"].jobs(False)]
    assert folds == sorted(folds)  # a run that is cut has whole folds


def test_the_papers_algorithm_starts_once_where_rows_are_many():
    starts = {
        name: additive_method(name, "em").make(random_state=0).search.n_init
        for name in ("stock", "magic04", "")
    }
    assert starts == {"stock": 5, "magic04": 1, "": 5}


def test_the_simulations_trees_are_counted_method_by_method():
    def found(method, seed, exact):
        key = {"part": "simulation", "data": "5000 rows", "method": method, "fold": seed}
        return {"key": key, "exact": exact, "experts": 4 + seed, "error": 0.2, "cpu": 1.0,
                "converged": exact}  # fmt: skip

    lines = [found("em", 0, True), found("em", 1, False), found("oblique", 0, True)]
    cells = by_name["wang-sim-em"].show(lines).frame.iloc[0].droplevel(["role", "better"])
    assert [cells["em", name] for name in ("tree found", "of seeds")] == [1, 2]
    assert cells["converged, %", "em"].value == 50
    assert cells["em", "experts"].value == 4.5 and cells["oblique", "tree found"] == 1
