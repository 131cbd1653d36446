"""The page that measures meta-trees: its jobs, what a job finds, and what stands in its tables."""

import json

import numpy as np
import pytest
from frame import NBS
from shared.needs import need, need_data

from fabinterp.bench import nakahara
from fabinterp.bench.runner import (
    UnavailableError,
    is_worse,
    key_text,
    latest,
    read_lines,
    render,
    run_table,
    to_strict_json,
)

RESULTS = NBS / "results"
TABLES = {table.name: table for table in nakahara.TABLES}
LINES = latest(read_lines(RESULTS / "metatree.jsonl"))

every_table = pytest.mark.parametrize("table", nakahara.TABLES, ids=lambda table: table.name)


def stored(name):
    """The lines of a table, in the order of its jobs."""
    return [LINES[text] for text in TABLES[name].keys()]


# Jobs


@every_table
def test_jobs_are_the_same_each_time_and_quick_ones_are_some_of_them(table):
    keys = list(table.jobs(False))
    assert keys == list(table.jobs(False)) and len(table.keys()) == len(keys)
    assert table.keys(True) and set(table.keys(True)) <= set(table.keys())


def test_all_data_come_before_the_next_fold():
    for part in nakahara.FOLDS:
        at = [key["fold"] for key in nakahara.depth_fold_jobs(False, part)]
        assert at == sorted(at) and len(set(at)) == nakahara.FOLDS[part]


def test_everything_is_measured_and_nothing_else_is_stored():
    assert set().union(*(table.keys() for table in nakahara.TABLES)) == set(LINES)


# What a job finds


@pytest.mark.parametrize("kind", ["int64", "uint8"])
@pytest.mark.parametrize("depth, n_features", [(1, 1), (3, 5), (4, 2)])
def test_rows_one_by_one_and_all_at_once_say_the_same(kind, depth, n_features):
    X, y, levels = nakahara.coin_levels(40, depth, n_features, kind, 7)
    start = nakahara.empty_state(levels, nakahara.BetaBernoulli(), 0.5)
    state = nakahara.batch_update(start, levels, X, y)
    assert np.allclose(
        np.exp(nakahara.sequential_update(start, levels, X, y)),
        state.posterior.split_prob,
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.measure
def test_bayesml_says_the_same():
    need("bayesml")
    found = nakahara.measure_speed(30, 3, 4, 2, True, "int64")
    assert found["max_difference"] < 1e-12
    ways = {"update", "predict", "rows"}
    assert ways | {f"bayesml_{way}" for way in ways} | {"partial_fit"} < set(found)
    assert all(found[name]["mean"] > 0 for name in found if name != "max_difference")


def test_the_coins_of_a_test_are_those_of_its_number():
    one, two, other = (nakahara.coin_levels(20, 3, 5, "int64", r) for r in (0, 0, 1))
    assert (
        (one[0] == two[0]).all() and (one[1] == two[1]).all() and one[2].features == two[2].features
    )
    assert (one[0] != other[0]).any()


@pytest.mark.parametrize(
    "key",
    [
        {"part": "single", "data": "breast_cancer", "depth": 5, "fold": 3},
        pytest.param(
            {"part": "single", "data": "abalone", "depth": 5, "fold": 3}, marks=pytest.mark.measure
        ),
        {"part": "forest", "data": "breast_cancer", "depth": 5, "fold": 1, "trees": 100},
        pytest.param(
            {"part": "linear", "data": "abalone", "depth": 5, "fold": 1, "trees": 100},
            marks=pytest.mark.measure,
        ),
    ],
    ids=lambda key: f"{key['part']}-{key['data']}",
)
def test_a_fold_finds_what_is_stored(key):
    need_data(key["data"])
    line = LINES[key_text(key)]
    for name, value in json.loads(
        json.dumps(to_strict_json(nakahara.measure_metatrees(key)))
    ).items():
        if "seconds" not in name:
            assert value == pytest.approx(line[name], rel=1e-9), name


def test_weights_that_are_alike_amount_to_as_many_trees():
    assert nakahara.effective_number_of_trees(np.zeros(7)) == pytest.approx(7)
    assert nakahara.effective_number_of_trees(np.array([0.0, -800.0])) == pytest.approx(1)


@pytest.mark.parametrize("depth, n_features", [(3, 5), (7, 7), (9, 4), (16, 3)])
def test_leaves_of_codes_are_those_of_the_levels_in_small_integers(depth, n_features):
    X, y, levels = nakahara.coin_levels(300, depth, n_features, "int64", 1)
    leaves = levels.leaves_of_codes(X)
    assert leaves.dtype == np.min_scalar_type(levels.topology.size)
    assert (leaves == levels.leaves(X.astype(float))[:, 0]).all()
    family = nakahara.BetaBernoulli()
    counts = nakahara.sufficient_statistics(family, leaves, levels.topology.size, y, None)
    wide = nakahara.sufficient_statistics(
        family, leaves.astype(np.intp), levels.topology.size, y, None
    )
    assert (counts == wide).all() and counts.sum() == 300


# What is not there


def test_data_that_are_not_there_make_a_blank(monkeypatch, tmp_path):
    monkeypatch.setenv("FABINTERP_DATA", str(tmp_path))
    with pytest.raises(UnavailableError, match="banana"):
        nakahara.measure_metatrees({"part": "single", "data": "banana", "depth": 5, "fold": 0})


def test_without_bayesml_its_cells_are_blank(monkeypatch, tmp_path):
    monkeypatch.setattr(nakahara, "is_installed", lambda package: False)
    jobs = [{"part": "table1", "n": 50, "depth": 5, "features": 5, "codes": "int64"}]
    monkeypatch.setattr(nakahara, "N_TESTS", {"table1": 3})
    table = TABLES["nakahara-1"]
    grid = run_table(
        type(table)(**{**vars(table), "jobs": lambda quick: jobs}), tmp_path, verbose=0
    )
    for (_, _, role, _), blank in grid.frame.iloc[0].isna().items():
        assert blank == (role == "peer")


# Tables


def test_the_grid_shows_the_time_of_the_routing():
    line = stored("nakahara-grid")[-1]
    grid = nakahara.show_grid([line | {"routing": {"sd": 0.0, "median": 0.5}}])
    assert grid.frame.iloc[0, -1] == 0.5


@every_table
def test_tables_bear_that_lines_are_missing(table):
    assert len(table.show(stored(table.name)[:1]).frame) == 1


@every_table
def test_tables_are_rendered_with_the_stamp_of_their_lines(table):
    grid = render(table, RESULTS)
    assert (
        grid.title == table.title
        and "scikit-learn" in grid.stamp
        and "<table" in grid._repr_html_()
    )
    for loss in grid.shortfalls().itertuples():
        assert is_worse(loss.value, loss.value_other, "lower")
        assert grid.why.get(loss.row) or grid.why.get("")


def test_table_1_shows_the_paper_s_figures_and_the_means_of_the_lines():
    grid = nakahara.show_table(stored("nakahara-1"))
    raw = {
        line["key"]["n"]: line
        for row in (RESULTS / "metatree.jsonl").read_text().splitlines()
        if (line := json.loads(row))["key"]["part"] == "table1"
    }
    assert grid.frame.index.tolist() == ["50 rows", "100 rows", "200 rows"]
    for n, cells in zip((50, 100, 200), grid.frame.to_numpy(), strict=True):
        names = ("rows", "", "bayesml_rows", "update", "", "bayesml_update", "partial_fit")
        assert [cell.value for cell, name in zip(cells, names, strict=False) if name] == [
            raw[n][name]["mean"] for name in names if name
        ]
    assert [cell.value for cell in grid.frame.iloc[:, 1]] == [1.67, 3.29, 6.72]
    assert [(cell.value, cell.deviation) for cell in grid.frame.iloc[:, 4]] == [
        (1.78, 0.41),
        (1.89, 0.23),
        (1.90, 0.22),
    ]


@pytest.mark.parametrize("name", ["nakahara-single", "nakahara-forests"])
def test_folds_are_averaged_as_on_the_page_of_the_method(name):
    grid = nakahara.show_fold_losses(stored(name))
    for row, cells in grid.frame.iterrows():
        cells = cells[cells.index.get_level_values("group").isin(["loss", ""])].droplevel(
            ["group", "role", "better"]
        )
        data, depth, *more = row.split(", ")
        depth = None if depth == "no limit" else int(depth.removeprefix("depth "))
        part = "linear" if more else name.removeprefix("nakahara-").removesuffix("s")
        own = [
            line
            for line in LINES.values()
            if line["key"].get("data") == data
            and line["key"]["depth"] == depth
            and line["key"]["part"] == part
        ]
        assert len(own) == nakahara.FOLDS[part]
        unit = own[0].get("sd", 1.0)
        before, after = (np.mean([line[of] for line in own]) for of in ("base_loss", "loss"))
        assert cells["scikit-learn's"].value == pytest.approx(before / unit)
        assert cells["averaged"].value == pytest.approx(after / unit)
        assert cells["change, %"].value == pytest.approx(100 * (after / before - 1))
