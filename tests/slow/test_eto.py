"""The tables of Eto and others: what is typed, what is measured, how lines become tables."""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from frame import NBS
from hypothesis import given
from hypothesis import strategies as st
from shared.needs import need, need_data

from fabinterp.bench import eto as bench_pieces
from fabinterp.bench.eto import (
    CLASSIFIERS,
    LOADS,
    REGRESSORS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLES,
    calibration_error,
    demand,
    demand_parts,
    equation_sizes,
    mean_sizes,
    measure_linear_methods,
    round_figures,
    same_folds,
    settings_of,
)
from fabinterp.bench.runner import (
    UnavailableError,
    figures_of,
    key_text,
    read_lines,
    render,
    run_table,
)

STORED = NBS / "results"
by_name = {table.name: table for table in TABLES}
tables = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def toy(n=120, seed=0):
    """A table of two straight pieces."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return X, np.where(X[:, 0] > 0, X[:, 1], -2 * X[:, 2]) + 0.01 * X[:, 2]


def measured_if_peer(method):
    """Leave a method of a peer to the measured tier."""
    marks = [pytest.mark.measure] if method.startswith("linear-tree") else []
    return pytest.param(method, marks=marks)


# What is typed


def test_a_row_of_table_1_has_a_figure_and_a_deviation_for_each_method():
    assert TABLE_1.shape == (9, 6)
    assert TABLE_1.map(lambda f: f.deviation is not None and f.digits == 2).all(axis=None)


@pytest.mark.parametrize("sizes", [TABLE_2, TABLE_3], ids=["2", "3"])
def test_the_printed_total_is_experts_times_cardinality(sizes):
    size = sizes.map(lambda cell: cell.value).T
    assert (size["experts"] * size["cardinality"] - size["total"]).abs().max() < 0.6


def test_table_4_is_the_model_whose_size_table_3_counts():
    coef = TABLE_4.map(lambda cell: cell.value).to_numpy()
    printed = TABLE_3["FAB/HMEs+"].map(lambda cell: cell.value)
    experts, cardinality, total = printed[["experts", "cardinality", "total"]]
    assert coef.shape == (14, experts) and np.count_nonzero(coef) == total
    assert np.count_nonzero(coef, axis=0).mean() == cardinality


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
    assert set(table.keys(True)) <= set(table.keys()) and len(table.keys(True)) <= 18


@pytest.mark.parametrize("study", ["pieces", "load"])
def test_every_stored_line_answers_a_job(study):
    asked = {text for table in TABLES if table.study == study for text in table.keys()}
    lines = read_lines(STORED / f"{study}.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    assert all(
        line["date"] and line["processor"] and line["versions"]["scikit-learn"] for line in lines
    )


@tables
def test_the_stored_figures_make_a_table(table):
    grid = render(table, STORED)
    assert len(grid.frame) and "Measured" in grid.stamp
    for row in grid.shortfalls()["row"]:
        assert grid.why.get(row, grid.why.get("")), f"{table.name}: no reason for {row}"


def test_stored_figures_of_ours_are_of_the_settings_of_today():
    own = {
        name: how for name, how in REGRESSORS.items() if name in ("structure", *bench_pieces.OWN)
    }
    today = {
        name: bench_pieces.settings_digest(
            settings_of(how.make(random_state=0), **{"asked by": how.predict})
        )
        for name, how in own.items()
    }
    lines = [
        line for line in read_lines(STORED / "pieces.jsonl") if line["key"]["part"] == "regression"
    ]
    assert {
        (line["key"]["method"], line["settings"]) for line in lines if line["key"]["method"] in own
    } == set(today.items())


# Measuring


def test_a_simulation_is_measured_alike_twice():
    key = {"part": "simulation", "data": "simulation sd 0.1", "method": "structure", "fold": 0}
    first = measure_linear_methods(key)
    second = measure_linear_methods(key)
    for row in (first, second):
        assert row.pop("seconds") > 0 and row.pop("cpu") > 0 and row.pop("tuning") == 0
    assert first == second and first["experts_right"] and first["folds"] == 20


@pytest.mark.measure
@pytest.mark.parametrize("method", ["structure", "tree"])
def test_a_fold_is_measured_as_it_is_stored(method):
    need_data("abalone")
    key = {"part": "regression", "data": "abalone", "method": method, "fold": 0}
    stored = [line for line in read_lines(STORED / "pieces.jsonl") if line["key"] == key][0]
    row = measure_linear_methods(key)
    assert (
        row["rmse"] == pytest.approx(stored["rmse"], rel=0.02)
        and row["settings"] == stored["settings"]
    )
    assert set(row) <= set(stored)


def test_data_that_are_not_there_are_a_blank(monkeypatch, tmp_path):
    monkeypatch.setenv("FABINTERP_DATA", str(tmp_path))
    monkeypatch.setattr(
        bench_pieces, "standardised_table", bench_pieces.standardised_table.__wrapped__
    )
    with pytest.raises(UnavailableError, match="communities is not there"):
        measure_linear_methods(
            {"part": "regression", "data": "communities", "method": "tree", "fold": 0}
        )


def test_a_peer_that_is_not_installed_is_a_blank_and_the_others_stand(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lineartree", None)
    monkeypatch.setattr(bench_pieces, "standardised_table", lambda name: toy())
    wanted = [
        {"part": "regression", "data": "abalone", "method": m, "fold": 0}
        for m in ("structure", "linear-tree")
    ]
    grid = run_table(replace(by_name["eto-1"], jobs=lambda quick: wanted), tmp_path, verbose=0)
    cells = grid.frame.loc["abalone", "RMSE on the same folds"].droplevel(["role", "better"])
    assert np.isnan(cells["linear-tree"]) and cells["structure"].value < 1
    assert any("linear-tree is not installed" in note for note in grid.notes)


@pytest.mark.measure
def test_linear_tree_fits_under_the_shim():
    need("lineartree")
    X, y = toy()
    how = REGRESSORS["linear-tree"]
    model = how.make(random_state=0).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.2 * y.var()
    assert how.size(model, X)["experts"] > 1


@pytest.mark.parametrize("method", [measured_if_peer(method) for method in (*REGRESSORS, "linear")])
def test_every_method_tells_its_size(method):
    if method.startswith("linear-tree"):
        need("lineartree")
    X, y = toy(300)
    how = {**REGRESSORS, **LOADS}[method]
    model = how.make(random_state=0)
    if method == "svr":
        model.set_params(C=(1,), gamma=(1,))
    found = how.size(model.fit(X, y), X)
    assert set(found) == {"experts", "features", "coefficients"} and found["coefficients"] >= 1
    assert np.isfinite(getattr(model, how.predict)(X)).all()


def test_classes_are_measured(monkeypatch):
    X, y = toy(300)
    monkeypatch.setattr(bench_pieces, "standardised_table", lambda name: (X, (y > 0).astype(int)))
    rows = {
        m: measure_linear_methods(
            {"part": "classification", "data": "titanic", "method": m, "fold": 1}
        )
        for m in CLASSIFIERS
    }
    assert rows["structure"]["experts"] >= 1 and rows["logistic"]["experts"] is None
    assert all(
        0 <= row["accuracy"] <= 1 and row["log_loss"] > 0 and row["folds"] == 5
        for row in rows.values()
    )


# The load


@pytest.mark.measure
def test_a_row_of_demand_knows_the_five_days_before_and_not_its_own():
    need_data("bike_rental")
    X, y = demand()
    assert X.shape == (726, len(TABLE_4))
    for k in range(5):
        assert np.array_equal(X[5:, 2 + k], y[4 - k : -1 - k])
    assert (X[:, 7:].sum(axis=1) == 1).all() and (X[7:, 7:] == X[:-7, 7:]).all()
    assert X[0, 7 + 3] == 1  # the sixth of January 2011 was a Thursday


@pytest.mark.measure
def test_demand_is_cut_in_order_of_time():
    need_data("bike_rental")
    X, y, X_new, y_new = demand_parts(0)
    assert np.array_equal(np.concatenate([y, y_new]), demand()[1]) and len(y) == round(726 * 7 / 9)


@pytest.mark.measure
def test_a_load_and_its_equations_are_measured():
    need_data("energy")
    row = measure_linear_methods(
        {"part": "heating", "data": "energy", "method": "structure", "fold": 0}
    )
    said = measure_linear_methods(
        {"part": "equations", "data": "heating", "method": "structure", "fold": 0}
    )
    assert 2 <= row["experts"] <= 12 and row["rmse"] < 0.1 and 1 < row["relative"] < 10
    assert (
        np.shape(said["coef"])
        == (len(said["questions"]), len(said["features"]))
        == (len(said["rows"]), 8)
    )
    assert any("roof_area" in question for question in said["questions"])


# From lines to tables


def line(data, method, fold, **more):
    """A line as the runner keeps it."""
    return {
        "key": {"part": "regression", "data": data, "method": method, "fold": fold},
        "converged": True,
        **more,
    }


def test_ours_stands_beside_the_paper_on_all_folds_and_beside_peers_on_theirs():
    lines = [line("pol", "structure", k, rmse=r) for k, r in enumerate((0.1, 0.3, 0.8))]
    lines += [line("pol", "svr", 0, rmse=0.2), line("pol", "svr", 1, rmse=0.4)]
    grid = by_name["eto-1"].show(lines)
    cells = grid.frame.loc["pol"].droplevel(["role", "better"])
    assert len(grid.frame) == 1 and cells["RMSE", "BTLMs"] == (0.59, 0.05, 2)
    assert cells["RMSE", "structure"].value == pytest.approx(0.4)
    assert cells["RMSE on the same folds", "structure"].value == pytest.approx(0.2)
    assert cells["RMSE on the same folds", "svr"].value == pytest.approx(0.3)
    assert np.isnan(cells["RMSE on the same folds", "tree"])
    assert "structure 3, svr 2" in grid.notes[0] and "svr on 1 of 1 tables" in grid.notes[1]


def test_the_same_folds_are_those_of_all_that_were_run_on_a_table():
    lines = [line("pol", "a", k) for k in range(3)] + [line("pol", "b", k) for k in (1, 2, 3)]
    kept = same_folds(figures_of([*lines, line("kin8nm", "a", 0)]), ("a", "b", "c"))
    assert list(kept[["data", "method", "fold"]].itertuples(index=False, name=None)) == [
        ("pol", "a", 1),
        ("pol", "a", 2),
        ("pol", "b", 1),
        ("pol", "b", 2),
        ("kin8nm", "a", 0),
    ]


def test_a_constant_in_a_leaf_counts_one_as_in_the_paper():
    leaves = line("pol", "tree", 0, cpu=1.0, **equation_sizes([0] * 7))
    equations = line("pol", "structure", 0, cpu=1.0, **equation_sizes([2, 0, 4]))
    found = mean_sizes(figures_of([leaves, equations])).loc[TABLE_2.index]
    assert found["tree"].tolist() == [7, 1, 7] and found["structure"].tolist() == [3, 2, 6]


def test_the_share_of_runs_that_converged_stands_beside_em():
    runs = [line("pol", "fab", k, rmse=0.2, converged=k == 0) for k in range(4)]
    frame = by_name["eto-1-em"].show(runs).frame.droplevel(["role", "better"], axis=1)
    assert frame.loc["pol", ("converged, %", "fab")].value == 25


def test_our_run_of_the_papers_algorithm_is_marked_where_it_is_larger_than_printed():
    sizes = equation_sizes([8] * 12)
    grid = by_name["eto-2"].show([line("pol", "fab+", 0, rmse=0.2, cpu=1.0, **sizes)])
    lost = grid.shortfalls().query("name == 'fab+' and role_other == 'paper'")
    assert set(lost["row"]) == {"experts", "cardinality", "total"}


def test_a_table_with_one_line_is_a_table():
    for name in ("eto-1", "eto-1-em", "eto-2"):
        method = "em" if name == "eto-1-em" else "structure"
        grid = by_name[name].show(
            [line("pol", method, 0, rmse=0.2, cpu=1.0, **equation_sizes([2, 3]))]
        )
        assert grid.to_text() and len(grid.frame) == (4 if name == "eto-2" else 1)


# Small parts


@given(
    st.dictionaries(
        st.text(max_size=3), st.one_of(st.floats(-1e9, 1e9), st.integers(), st.text(), st.none())
    )
)
def test_rounding_twice_is_rounding_once(row):
    once = round_figures(row)
    assert round_figures(once) == once
    assert all(abs(once[k] - v) <= 1e-5 * abs(v) for k, v in row.items() if isinstance(v, float))


@given(st.integers(1, 200), st.integers(0, 9))
def test_calibration_error_is_a_distance_between_probabilities(n, seed):
    rng = np.random.default_rng(seed)
    prob = rng.random(n)
    y = (rng.random(n) < prob).astype(int)
    assert 0 <= calibration_error(y, prob) <= 1
    assert calibration_error(y, y.astype(float)) == pytest.approx(0)


def test_settings_leave_the_seed_out_and_tell_the_price():
    how = REGRESSORS["structure"]
    assert (
        settings_of(how.make(random_state=0)) == settings_of(how.make(random_state=7))
        and settings_of(how.make(random_state=0))["penalty"] > 1
    )
    numbers = Counter(
        bench_pieces.settings_digest(settings_of(REGRESSORS[name].make(random_state=0)))
        for name in bench_pieces.OWN
    )
    assert len(numbers) == len(bench_pieces.OWN)
