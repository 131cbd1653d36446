"""The page that measures rule lists and their peers: sizes, jobs, words for judging, stored lines."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from frame import NBS
from hypothesis import given
from shared.effort import examples
from sklearn.tree import DecisionTreeClassifier

from fabinterp.bench import rules
from fabinterp.bench.datasets import catalogue_entry
from fabinterp.bench.rules import (
    CHOICE,
    METHODS,
    OF_FOREST,
    OURS,
    REPORT,
    TABLES,
    compare_methods,
    geometric_mean,
    is_worse_over_splits,
    measure_rules,
    regret,
    rule_case,
    sizes_of_cart,
    sizes_of_texts,
)
from fabinterp.bench.runner import UnavailableError, key_text, read_lines, render
from fabinterp.forests.reading import read_ensemble

RESULTS = NBS / "results"
PEERS = {"FIGS(10)", "HSTree(20)", "RuleFit", "TE2Rules", "STreeD(3)"}
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


# Sizes


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
@examples(10)
def test_a_tree_has_the_conditions_of_its_rules(seed, leaves):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (80, 3)).astype(float)
    tree = DecisionTreeClassifier(max_leaf_nodes=leaves).fit(X, rng.integers(0, 3, 80))
    said = read_ensemble(tree).trees[0].rules()
    assert sizes_of_cart(tree) == (len(said), said.n_conditions)


def test_texts_are_counted_by_their_columns():
    assert sizes_of_texts([]) == (0, 0)
    assert sizes_of_texts(["X_3 <= 1.5 and X_0 > 2 and X_3 > -1", "X_1"]) == (2, 3)
    assert sizes_of_texts(["x3 <= 1.5 & x3 > 1"]) == (1, 1)


# Rows


def test_tables_for_choosing_are_not_reported():
    assert not set(CHOICE) & set(REPORT) and len(REPORT) == 13 and len(CHOICE) == 10
    for data in set(CHOICE + REPORT) - set(rules._DRAWN):
        assert rules.n_splits(data) == (10 if catalogue_entry(data).rows <= 5000 else 3)


def test_three_and_eight_are_told_apart():
    case = rule_case("digits", 0)
    assert set(case.y) == set(case.y_new) == {0, 1} and len(case.y) + len(case.y_new) == 357
    assert case.model.n_estimators == 100


def test_drawn_tables_are_drawn_anew_for_each_split():
    one, two = rule_case("synthetic2", 0), rule_case("synthetic2", 1)
    assert len(one.y) == len(one.y_new) == 1000 and not np.array_equal(one.X, two.X)


def test_a_bootstrap_sample_is_of_the_rows_to_learn_from():
    case, drawn = rule_case("wine", 0), rule_case("wine", 0, 3)
    rows = {tuple(row) for row in drawn.X}
    assert rows < {tuple(row) for row in case.X} and len(rows) < len(drawn.X) == len(case.X)
    assert np.array_equal(case.X_new, drawn.X_new)


# Jobs


@every_table
def test_first_come_a_few_splits_of_every_table(table):
    jobs = list(table.jobs(False))
    assert set(table.keys(True)) <= set(table.keys())
    wanted = REPORT if "choice" not in table.name else CHOICE
    parts = [job["part"] for job in jobs]
    early = jobs[: parts.index("bootstrap")]
    assert {(job["data"], job["split"]) for job in early} == {
        (data, split) for data in wanted for split in range(3)
    }
    for data in wanted:
        asked = {job["method"] for job in jobs if job["data"] == data}
        missing = set(METHODS) - asked
        task = (
            "regression"
            if data not in rules._DRAWN and catalogue_entry(data).task == "regression"
            else ""
        )
        assert missing == (
            {"TE2Rules", "RuleFit"} if data == "wine" else {"TE2Rules"} if task else set()
        )


def test_a_line_of_each_method():
    errors = {}
    for method in METHODS:
        key = {"part": "split", "split": 0, "data": "digits", "method": method}
        try:
            found = measure_rules(key)
        except UnavailableError:
            assert method in PEERS
            continue
        errors[method] = found["error"]
        assert 0 <= found["error"] < 0.5 and found["rules"] > 1 and found["conditions"] > 1
        assert ("fidelity" in found) == (method in OF_FOREST)
        if method == "balanced":
            assert found["error"] in found["path"] and len(found["path"]) == 10
    case = rule_case("digits", 0)
    ours = rules.list_of_size(case)
    leaves = METHODS["CART, as many leaves"](case)
    short = METHODS["forest's CART, as many conditions"](case)
    assert leaves.rules == ours.rules and short.conditions <= ours.conditions
    assert METHODS["five rules"](case).rules <= 5 and set(OURS) <= set(errors)


def test_answers_of_bootstrap_samples_are_compared():
    key = {"part": "bootstrap", "split": 0, "data": "digits", "method": "CART(5)"}
    found = measure_rules(key)
    answers = [METHODS["CART(5)"](rule_case("digits", 0, b)).predict for b in range(rules.DRAWS)]
    said = [predict(rule_case("digits", 0).X_new) for predict in answers]
    pairs = [np.mean(said[i] != said[j]) for i in range(len(said)) for j in range(i)]
    assert found["apart"] == pytest.approx(np.mean(pairs)) and found["apart"] > 0


# Words for judging


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(0.1, 10))
@examples(20)
def test_worse_is_one_sided_and_has_no_unit(seed, k, unit):
    rng = np.random.default_rng(seed)
    ours = 1 + rng.random(k)
    theirs = ours + rng.normal(0.1, 0.2, k)
    worse = is_worse_over_splits(theirs, ours)
    assert not (worse and is_worse_over_splits(ours, theirs))
    assert worse == is_worse_over_splits(unit * theirs, unit * ours)
    gap = theirs - ours
    error = np.sqrt((1 / k + 1 / 3) * gap.var(ddof=1))
    assert worse == (gap.mean() > 2 * error and gap.mean() > 0.01 * ours.mean())


def test_one_split_proves_nothing():
    assert not is_worse_over_splits([2.0], [1.0])


@given(st.integers(0, 2**32 - 1))
@examples(20)
def test_the_best_size_has_no_regret(seed):
    paths = np.random.default_rng(seed).uniform(1, 2, (6, 4))
    each = [regret(paths[:, m], paths) for m in range(4)]
    assert each[paths.mean(axis=0).argmin()] == 0
    assert regret(paths.min(axis=1), paths) <= 0


def test_methods_meet_on_the_splits_that_both_have():
    figures = pd.DataFrame(
        [("a", 0, "one", 1.0), ("a", 1, "one", 2.0), ("a", 2, "one", 9.0), ("a", 0, "two", 2.0)]
        + [("a", 1, "two", 4.0), ("b", 0, "one", 1.0)],
        columns=["data", "split", "method", "error"],
    )
    found = compare_methods(figures, "one", "two")
    assert found.index.tolist() == ["a"] and found.loc["a", "splits"] == 2
    assert found.loc["a", "ratio"] == 0.5 == geometric_mean(found["ratio"])
    assert found.loc["a", "better"] == is_worse_over_splits([2.0, 4.0], [1.0, 2.0])
    assert compare_methods(figures, "one", "three").empty


# Stored lines


def test_every_stored_line_answers_a_job():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "lists.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    assert all(line.get("fidelity", 1) <= 1 and line.get("error", 0) >= 0 for line in lines)


@pytest.mark.parametrize("table", TABLES[:2], ids=lambda table: table.name)
def test_the_stored_figures_make_a_table(table):
    grid = render(table, RESULTS)
    assert "Regret" in "".join(grid.notes) or "regret" in grid.to_text()
    assert len(grid.frame) == (len(METHODS) if table.name == "rules" else len(REPORT))
