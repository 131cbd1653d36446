"""The page that measures promised signs: jobs, signs that the data choose, pairs of rows, stored lines."""

import numpy as np
from frame import NBS

from fabinterp.bench.promises import (
    MADE,
    METHODS,
    REAL,
    TABLES,
    count_wrong_pairs,
    made_truth,
    pairs_of_rows,
    signs_of_data,
)
from fabinterp.bench.runner import key_text, read_lines
from fabinterp.rules.core import Columns, Curve, Leaf, Split
from fabinterp.rules.ruleset import Tree

RESULTS = NBS / "results"
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


def test_pairs_at_a_tilted_cut_stand_on_both_sides_of_it():
    columns = Columns(["a", "b", "c"], [None] * 3, [False] * 3, [(0, 1)] * 3)
    split = Split([0, 1, 2], 1.0, (1, 1, 0.5))
    leaves = [None, Leaf(1.0), Leaf(0.0)]
    tree = Tree([split, None, None], [2, -1, -1], [1, -1, -1], leaves, columns)
    low, high = pairs_of_rows(tree, 0, 1000, np.random.default_rng(0), True)
    assert (low[:, 0] < high[:, 0]).all() and np.array_equal(low[:, 1:], high[:, 1:])
    assert low.min() >= 0 and high.max() <= 1
    rest = low[:, 1] + 0.5 * low[:, 2]
    within = (rest > 1e-9) & (rest < 1)  # the cut is met inside the range
    assert within.sum() > 500 and (tree.apply(low) != tree.apply(high))[within].all()


def test_of_pairs_at_a_knot_one_stands_there():
    bent = Leaf(0.0, curves=[Curve(0, [0, 0.6, 1], [[0, 1], [1, -1e-3]])])
    tree = Tree([None], [-1], [-1], [bent], AB)
    low, high = pairs_of_rows(tree, 0, 500, np.random.default_rng(0), True)
    assert np.isin([low[:, 0], high[:, 0]], [0, 0.6, 1]).any(axis=0).all()
    assert ((low[:, 0] == 0.6) & (high[:, 0] < 0.601)).any()
    # a fall of one in a thousand, from the knot on
    assert 0 < count_wrong_pairs(tree, {0: 1}, 1000, True) < 1000
    assert 0 < count_wrong_pairs(tree, {0: 1}, 1000, False) < 1000


def test_made_truths_keep_the_promise():
    rng = np.random.default_rng(0)
    X, other = rng.uniform(size=(2, 2000, 6))
    for column, sign in ((0, 1), (3, -1)):
        low, high = X.copy(), X.copy()
        low[:, column], high[:, column] = np.sort([X[:, column], other[:, column]], axis=0)
        for kind in MADE:
            assert (sign * (made_truth(kind, high) - made_truth(kind, low)) >= -1e-12).all(), kind
        assert (sign * (made_truth("against", high) - made_truth("against", low)) < 0).any()


def test_wrong_pairs_are_counted():
    assert count_wrong_pairs(TREE, {0: 1}, 100, True) == 100
    assert count_wrong_pairs(TREE, {0: -1}, 100, True) == 0
    assert 0 < count_wrong_pairs(TREE, {0: 1}, 100, False) < 100


def test_every_job_has_a_stored_line_that_holds():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "promises.jsonl")
    assert {key_text(line["key"]) for line in lines} == asked
    assert len(asked) == len(METHODS) * (2 * len(REAL) + 10 * len(MADE))
    for line in lines:
        assert line["holds"] and line["signed"]["at borders"] == line["signed"]["at random"] == 0
        assert line["key"]["method"] == "piecewise" or line["faces"] == 0
