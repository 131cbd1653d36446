"""The page that measures proxies: its jobs, what a job finds, and what stands in its tables."""

import json
import sys

import numpy as np
import pytest
from frame import NBS
from shared.needs import need, need_data
from sklearn.metrics import root_mean_squared_error

from fabinterp.bench import afrabandpey
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
TABLES = {table.name: table for table in afrabandpey.TABLES}
LINES = latest(read_lines(RESULTS / "proxy.jsonl")) | latest(read_lines(RESULTS / "local.jsonl"))
TIMES = {"reference_seconds", "seconds", "ms", "ms_alone"}


@pytest.fixture
def auto_risk():
    """The data set that the tests of the measured tier ask."""
    need_data("auto_risk")


def needs_data(test):
    """Mark a test of the measured tier that reads auto_risk."""
    return pytest.mark.measure(pytest.mark.usefixtures("auto_risk")(test))


every_table = pytest.mark.parametrize("table", afrabandpey.TABLES, ids=lambda table: table.name)


def without_times(found):
    """The figures that the key determines, as JSON holds them."""
    if isinstance(found, dict):
        return {name: without_times(value) for name, value in found.items() if name not in TIMES}
    return [without_times(value) for value in found] if isinstance(found, (list, tuple)) else found


def stored(name):
    """The lines of a table, in the order of its jobs."""
    return [LINES[text] for text in TABLES[name].keys() if text in LINES]


# Jobs


@every_table
def test_jobs_are_the_same_each_time_and_quick_ones_are_some_of_them(table):
    keys = list(table.jobs(False))
    quick = list(table.jobs(True))
    assert keys == list(table.jobs(False)) and len(table.keys()) == len(keys)
    assert quick and len(quick) < len(keys) and set(table.keys(True)) < set(table.keys())


@every_table
def test_all_data_come_before_the_next_repetition(table):
    for name in ("repeat", "split"):
        at = [key[name] for key in table.jobs(False) if name in key]
        assert at == sorted(at)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_everything_is_measured(name):
    assert len(stored(name)) == len(TABLES[name].keys())


# What a job finds


def test_a_data_set_is_cut_into_three_quarters_and_one(monkeypatch):
    X = np.arange(40.0).reshape(20, 2)
    monkeypatch.setattr(
        afrabandpey, "load_available", lambda name: type("", (), {"X": X, "y": X[:, 0]})
    )
    A, a, B, b = afrabandpey.train_test_rows("any", 3)
    assert len(A) == 15 and len(B) == 5 and sorted([*a, *b]) == X[:, 0].tolist()
    assert (A[:, 0] == a).all() and (B[:, 0] == b).all()
    assert all(
        (one == two).all()
        for one, two in zip(afrabandpey.train_test_rows("any", 3), (A, a, B, b), strict=True)
    )


@needs_data
@pytest.mark.parametrize(
    "key",
    [
        {"part": "stability", "data": "auto_risk", "method": "data"},
        {"part": "counterparts", "data": "auto_risk", "of": "forest", "repeat": 0},
        pytest.param(
            {"part": "stability", "data": "auto_risk", "method": "fixed"}, marks=pytest.mark.measure
        ),
        pytest.param(
            {"part": "sizes", "data": "auto_risk", "reference": "bart", "repeat": 3},
            marks=pytest.mark.measure,
        ),
        pytest.param(
            {"part": "fidelity", "data": "auto_risk", "split": 1}, marks=pytest.mark.measure
        ),
    ],
    ids=lambda key: key["part"],
)
def test_a_job_finds_what_is_stored(key):
    if key.get("reference") or key.get("method") == "fixed" or key["part"] == "fidelity":
        need("stochtree")
    if key["part"] == "fidelity":
        need("lime")
    assert same(
        without_times(json.loads(json.dumps(to_strict_json(afrabandpey.measure_proxies(key))))),
        LINES[key_text(key)],
    )


def same(found, line):
    """Whether figures equal those of a line but for the last digits."""
    if isinstance(found, dict):
        return all(same(value, line[name]) for name, value in found.items())
    if isinstance(found, list):
        return len(found) == len(line) and all(map(same, found, line))
    return found == pytest.approx(line, rel=1e-9) if isinstance(found, float) else found == line


@needs_data
def test_the_born_again_tree_repeats_the_forest():
    X, y, X_test, _ = afrabandpey.train_test_rows("auto_risk", 0)
    forest = afrabandpey.fit_third_forest(X, y, 0)
    tree = afrabandpey.born_again_of_forest(forest, X, y, 0)
    assert tree.get_depth() in afrabandpey.DEPTHS
    said = forest.predict(X_test)
    assert root_mean_squared_error(said, tree.predict(X_test)) < 0.7 * said.std()


def test_a_reference_is_asked_about_a_table_once():
    asked = []
    reference = afrabandpey.cached_reference(lambda X: asked.append(len(X)) or X[:, 0])
    X = np.arange(6.0).reshape(3, 2)
    assert (reference.mean_var(X)[0] == reference.mean_var(X.copy())[0]).all()
    assert len(asked) <= 2 and (reference.mean_var(X + 1)[0] == X[:, 0] + 1).all()
    before = len(asked)
    reference.mean_var(X)
    assert len(asked) == before


@pytest.mark.measure
def test_lime_s_equation_is_read_as_it_is_meant():
    tabular = pytest.importorskip("lime.lime_tabular", reason="lime is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    for how in afrabandpey.LIMES.values():
        explainer = tabular.LimeTabularExplainer(X, mode="regression", random_state=0, **how)
        found = explainer.explain_instance(
            X[3], lambda Z: Z[:, 0] ** 2 + Z[:, 1], num_features=2, num_samples=100
        )
        assert afrabandpey.lime_answers(explainer, found, X[3], X[3:4])[0] == pytest.approx(
            found.local_pred[0]
        )


# What is not there


def test_data_that_are_not_there_make_a_blank(monkeypatch, tmp_path):
    monkeypatch.setenv("FABINTERP_DATA", str(tmp_path))
    with pytest.raises(UnavailableError, match="baseball"):  # the one table that nobody else keeps
        afrabandpey.measure_proxies({"part": "stability", "data": "baseball", "method": "data"})


@needs_data
def test_without_stochtree_what_needs_it_is_blank(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "stochtree", None)
    jobs = [
        {"part": "counterparts", "data": "auto_risk", "of": of, "repeat": 0}
        for of in ("bart", "forest")
    ]
    table = TABLES["afrabandpey-2"]
    grid = run_table(
        type(table)(**{**vars(table), "jobs": lambda quick: jobs}), tmp_path, verbose=0
    )
    assert grid.frame.index.tolist() == ["auto_risk"]
    assert any("stochtree is not installed" in note for note in grid.notes)
    cells = grid.frame.loc["auto_risk"].droplevel(["role", "better"])
    assert np.isnan(cells["RMSE", "proxy"]) and cells["size", "node harvest"].value > 1


@needs_data
def test_without_lime_its_cells_are_blank(monkeypatch):
    need("stochtree")
    for name in ("lime", "lime.lime_tabular"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(
        afrabandpey, "TREES", {"tree": {}, "tree, at most 3 leaves": {"max_leaves": 3}}
    )
    key = {"part": "fidelity", "data": "auto_risk", "split": 0}
    grid = afrabandpey.show_local([{"key": key, **afrabandpey.measure_proxies(key)}])
    for (group, _, role, _), blank in grid.frame.loc["auto_risk"].isna().items():
        assert blank == (role == "peer" or group == "a tree per draw")
    assert any("lime was not installed" in note for note in grid.notes)


# Tables


@every_table
def test_tables_bear_that_lines_are_missing(table):
    for line in stored(table.name)[:1]:
        assert len(table.show([line]).frame) >= 1


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"afrabandpey-fig5"}))
def test_tables_are_rendered_with_the_stamp_of_their_lines(name):
    grid = render(TABLES[name], RESULTS)
    assert grid.title == TABLES[name].title and "stochtree" in grid.stamp and "20" in grid.stamp
    assert all(any(word in text for word in ("<table", "<td")) for text in [grid._repr_html_()])
    assert grid.frame.iloc[:, 0].notna().all()


def test_figure_4_shows_the_means_of_the_lines():
    grid = afrabandpey.show_errors_by_size(stored("afrabandpey-fig4"))
    raw = [json.loads(row) for row in (RESULTS / "proxy.jsonl").read_text().splitlines()]
    for name in afrabandpey.DATA:
        own = [
            line
            for line in raw
            if line["key"].get("reference") == "bart"
            and line["key"]["data"] == name
            and line["key"]["part"] == "sizes"
        ]
        for i, b in enumerate(afrabandpey.SIZES):
            means = [
                np.mean([line[method][i] for line in own]) for method in ("data", "paper", "proxy")
            ]
            shown = grid.frame.loc[f"{name}, {b} leaves"].tolist()
            assert shown[:3] == pytest.approx(means, rel=1e-12)


def test_figure_5_asks_whether_the_means_differ():
    lines = [line for line in stored("afrabandpey-fig5") if line["key"]["data"] == "auto_mpg"]
    few = afrabandpey.show_differences(lines[:2])
    assert few.frame.iloc[0].isna().all()
    grid = afrabandpey.show_differences(lines)
    assert len(grid.frame) == len(afrabandpey.SIZES)
    said = grid.frame.iloc[0].droplevel(["role", "better"])
    assert said["paired by split", "credibly"] == "worse"  # two leaves


def test_table_4_shows_the_means_of_the_lines():
    grid = afrabandpey.show_local(stored("afrabandpey-4"))
    raw = [json.loads(row) for row in (RESULTS / "local.jsonl").read_text().splitlines()]
    for name, cells in grid.frame.iterrows():
        for (group, shown, *_), cell in cells.items():
            of = {"loss at x": "loss", "loss near x": "near", "ms": "ms"}.get(group)
            method = next(
                (
                    m
                    for m in (*afrabandpey.TREES, *afrabandpey.LIMES, "tree, plain normal")
                    if m.replace(", highest weights", "") == shown
                ),
                None,
            )
            if of and method:
                values = [
                    line["methods"][method][of]
                    for line in raw
                    if line["key"]["part"] == "fidelity" and line["key"]["data"] == name
                ]
                assert (cell.value, cell.deviation) == pytest.approx(
                    (np.mean(values), np.std(values, ddof=1))
                )


@pytest.mark.parametrize(
    "name", ["afrabandpey-fig4", "afrabandpey-2", "afrabandpey-3", "afrabandpey-4"]
)
def test_every_shortfall_has_a_reason_and_is_one(name):
    grid = render(TABLES[name], RESULTS)
    for loss in grid.shortfalls().itertuples():
        assert is_worse(loss.value, loss.value_other, "lower")
        assert grid.why.get(loss.row) or grid.why.get("")
