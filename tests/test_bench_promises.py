"""The page that measures promised signs: jobs, signs that the data choose, pairs of rows, stored lines."""

from pathlib import Path

import numpy as np

from fabinterp.bench.promises import TABLES, count_wrong_pairs, pairs_of_rows, signs_of_data
from fabinterp.bench.runner import key_text, read_lines
from fabinterp.rules.core import Columns, Leaf, Split
from fabinterp.rules.ruleset import Tree

RESULTS = Path(__file__).resolve().parents[1] / "nbs" / "results"
AB = Columns(["a", "b"], [None] * 2, [False, True], [(0, 1), (2, 3)])
TREE = Tree(
    [Split([0], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, Leaf(1.0), Leaf(0.0)], AB
)


def test_signs_are_those_of_the_strongest_columns():
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[:, 3] = 1.0
    assert signs_of_data(X, 2 * X[:, 1] - X[:, 2], most=2) == {1: 1, 2: -1}


def test_pairs_differ_in_one_column_within_the_ranges():
    for at_borders in (True, False):
        low, high = pairs_of_rows(TREE, 0, 500, np.random.default_rng(0), at_borders)
        assert (low[:, 0] <= high[:, 0]).all()
        assert np.array_equal(low[:, 1], high[:, 1], equal_nan=True) and np.isnan(low[:, 1]).any()
        assert np.nanmin(low, axis=0)[1] >= 2 and np.nanmax(high, axis=0)[1] <= np.nextafter(3, 4)
        assert not at_borders or (TREE.apply(low) != TREE.apply(high)).all()


def test_wrong_pairs_are_counted():
    assert count_wrong_pairs(TREE, {0: 1}, 100, True) == 100
    assert count_wrong_pairs(TREE, {0: -1}, 100, True) == 0
    assert 0 < count_wrong_pairs(TREE, {0: 1}, 100, False) < 100


def test_every_stored_line_answers_a_job_and_holds():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "promises.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    for line in lines:
        assert line["holds"] and line["signed"]["at borders"] == line["signed"]["at random"] == 0
