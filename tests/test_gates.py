"""Gates: the best question against brute force, the tree against its definition, splicing, hard gates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from fabinterp.bins import codes, merge_identical, table_thresholds
from fabinterp.gates import BernoulliGate, Cut, GateTree, best_cut, gate_tree, side_sums, symmetric
from fabinterp.rules import Columns, Leaf, Split, Tree

seeds = st.integers(0, 2**32 - 1)
FLOOR = 1e-8


def table(rng, n=None, d=None, gaps=None):
    """A table with ties, its cells and their numbers; with gaps in some columns or in none."""
    n = int(rng.integers(1, 40)) if n is None else n
    d = int(rng.integers(1, 4)) if d is None else d
    X = rng.random((n, d)).round(int(rng.integers(1, 3)))
    X[rng.random((n, d)) < (rng.choice([0, 0.2]) if gaps is None else gaps)] = np.nan
    bins = merge_identical(X, table_thresholds(X))
    return X, bins, codes(X, bins), np.array([len(cuts) + 1 for cuts in bins.thresholds])


def questions(n_known):
    """Every question about codes."""
    for j, m in enumerate(n_known):
        for cell, missing in product(range(m), (False, True)):
            yield Cut(j, cell, missing, False, 0.0, int(m))


@settings(deadline=None, max_examples=150)
@given(seeds, st.booleans())
def test_side_sums_are_sums(seed, weighted):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    diff = rng.normal(size=len(cells)) if weighted else None
    told = np.ones(len(cells)) if diff is None else diff
    sums = side_sums(cells, n_known, diff)
    for cut in questions(n_known):
        yes = cut.answers(cells)
        expected = told[yes].sum() - told[~yes].sum()
        assert sums[cut.feature, cut.cell, int(cut.missing)] == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=200)
@given(seeds, st.booleans(), st.sampled_from([0.0, 2.0, 7.5]))
def test_best_cut_is_the_best_of_all(seed, weighted, min_side):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    n = len(cells)
    diff, weight = rng.normal(size=n), rng.integers(0, 3, n) + rng.random(n) if weighted else np.ones(n)
    best = None
    for cut in questions(n_known):
        yes = cut.answers(cells)
        lighter = min(weight[yes].sum(), weight[~yes].sum())
        if yes.any() and not yes.all() and lighter >= min_side:
            value = abs(diff[yes].sum() - diff[~yes].sum())
            best = value if best is None else max(best, value)
    found = best_cut(cells, n_known, diff, weight if weighted else None, min_side)
    assert (found is None) == (best is None)
    if found is not None:
        yes = found.answers(cells)
        signed = diff[yes].sum() - diff[~yes].sum()
        assert found.value == pytest.approx(best, abs=1e-9) and abs(signed) == pytest.approx(best, abs=1e-9)
        assert abs(signed) < 1e-9 or found.swap == (signed < 0)
        assert min(weight[yes].sum(), weight[~yes].sum()) >= min_side - 1e-9


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_the_objective_needs_no_search_over_g(seed):
    """The gate found beats every question with every g of a grid, (15)."""
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng, n=15)
    q, w = rng.dirichlet([0.4, 0.4], 15), rng.uniform(0, 2, 15)
    start = BernoulliGate(0, 0, False, 0.5, int(n_known[0]))
    gate, swapped = start.update(cells, n_known, w * (q[:, 1] - q[:, 0]), w, FLOOR)
    log_yes, log_no = gate.log_prob(cells)
    mine = w @ (q[:, int(not swapped)] * log_yes + q[:, int(swapped)] * log_no)
    for cut in questions(n_known):
        yes = cut.answers(cells)
        if not yes.any() or yes.all():
            continue
        agree = w[yes] @ q[yes, 1] + w[~yes] @ q[~yes, 0]
        values = xlogy(agree, grid) + xlogy(w.sum() - agree, 1 - grid)
        assert mine >= values.max() - 1e-6


grid = np.linspace(0.001, 0.999, 199)


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_equal_columns_and_their_order(seed):
    rng = np.random.default_rng(seed)
    X, _, _, _ = table(rng, n=30, d=1)
    doubled = np.hstack([X, -X, X])
    bins = merge_identical(doubled, table_thresholds(doubled))
    cells, n_known = codes(doubled, bins), [len(cuts) + 1 for cuts in bins.thresholds]
    diff = rng.normal(size=30)
    cut = best_cut(cells, n_known, diff)
    if cut is not None:
        assert cut.feature == 0 and cut == best_cut(cells, n_known, diff)
        assert best_cut(cells, n_known, diff, features=[2, 0]).feature == 2


def test_what_admits_no_cut():
    same = np.zeros((4, 2), np.uint8)
    assert best_cut(same, [1, 1], np.ones(4)) is None
    assert best_cut(same[:0], [3, 3], np.ones(0)) is None
    two = np.array([[0], [1]], np.uint8)
    assert best_cut(two, [2], np.ones(2), weight=np.array([1.0, 0.0])) is None
    assert best_cut(two, [2], np.ones(2), weight=np.zeros(2)) is None
    assert best_cut(two, [2], np.ones(2), min_side=2) is None
    assert best_cut(two, [2], np.ones(2), features=[]) is None
    assert best_cut(two, [2], np.array([-1.0, 1.0])) == Cut(0, 0, False, False, 2.0, 2)


def test_missing_values_go_where_they_belong():
    cells = np.array([[0], [0], [1], [1], [1], [2], [2]], np.uint8)  # the last two are missing
    like_yes = best_cut(cells, [2], np.array([-1.0, -1, 1, 1, 1, 1, 1]))
    like_no = best_cut(cells, [2], np.array([-1.0, -1, 1, 1, 1, -1, -1]))
    assert (like_yes.cell, like_yes.missing, like_no.cell, like_no.missing) == (0, True, 0, False)
    only_missing = best_cut(cells, [2], np.array([-1.0, -1, -1, -1, -1, 1, 1]))
    assert only_missing.cell == 1 and only_missing.missing and not only_missing.swap
    assert only_missing.split([np.array([0.5])]).threshold == np.inf
    heavier = best_cut(cells[:5], [2], np.array([-1.0, -1, 1, 1, 1]))
    assert heavier.missing  # three against two
    assert not best_cut(cells[:5], [2], np.array([-1.0, -1, 1, 1, 1]), weight=np.array([5.0, 5, 1, 1, 1])).missing


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_a_question_means_the_same_on_codes_and_numbers(seed):
    rng = np.random.default_rng(seed)
    X, bins, cells, n_known = table(rng)
    for cut in questions(n_known):
        assert np.array_equal(cut.answers(cells), cut.split(bins.thresholds)(X))


def random_tree(rng, n_known, depth=None):
    """A tree with random gates, and after dropping some leaves."""
    paths = symmetric(int(rng.integers(0, 4)) if depth is None else depth)
    gates = []
    for _ in paths:
        j = int(rng.integers(len(n_known)))
        cell, missing, prob = int(rng.integers(n_known[j])), bool(rng.integers(2)), rng.random()
        gates.append(BernoulliGate(j, cell, missing, prob, int(n_known[j])))
    tree = GateTree(tuple(gates), paths, FLOOR)
    mask = rng.random(paths.shape[1]) < 0.7
    mask[rng.integers(len(mask))] = True
    return tree, tree.keep(mask), mask


def by_nodes(tree, cells):
    """(n, E) probabilities of the leaves, walked through `nodes` instead of the path matrix."""
    gate, yes, no, leaf = tree.nodes()
    reached, out = np.ones((len(gate), len(cells))), np.zeros((len(cells), tree.paths.shape[1]))
    for k in range(len(gate)):  # parents come before their children
        if leaf[k] >= 0:
            out[:, leaf[k]] = reached[k]
            continue
        asked = tree.gates[gate[k]]
        says_yes = np.where(asked.answers(cells), max(asked.prob, 1 - asked.prob), min(asked.prob, 1 - asked.prob))
        reached[yes[k]], reached[no[k]] = reached[k] * says_yes, reached[k] * (1 - says_yes)
    return out


@settings(deadline=None, max_examples=150)
@given(seeds)
def test_a_tree_and_what_is_left_of_it(seed):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    tree, kept, mask = random_tree(rng, n_known)
    for one in (tree, kept):
        n_gates, n_leaves = one.paths.shape
        assert n_gates == n_leaves - 1 == len(one.gates)
        prob = np.exp(one.log_path(cells))
        np.testing.assert_allclose(prob.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(prob, by_nodes(one, cells), rtol=1e-9, atol=1e-15)
        assert sorted(one.nodes()[3][one.nodes()[3] >= 0]) == list(range(n_leaves))
        assert np.array_equal(one.blocks, one.paths != 0)
        assert np.array_equal(one.route(cells), one.hard().log_path(cells).argmax(axis=1))
        assert np.isin(np.exp(one.hard().log_path(cells)), (0, 1)).all()
    assert (kept.log_path(cells) >= tree.log_path(cells)[:, mask] - 1e-12).all()
    both = np.flatnonzero(mask)
    again = tree.keep(np.ones(len(mask), bool)).keep(mask)
    assert np.array_equal(again.paths, kept.paths) and again.gates == kept.gates and kept.paths.shape[1] == len(both)


@settings(deadline=None, max_examples=150)
@given(seeds)
def test_the_m_step_is_never_worse(seed):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    _, tree, _ = random_tree(rng, n_known)
    resp = rng.dirichlet(np.full(tree.paths.shape[1], rng.choice([0.1, 1.0])), len(cells))
    w = rng.integers(0, 2, len(cells)) * rng.random(len(cells))
    tree = GateTree(tuple(BernoulliGate(g.feature, g.cell, g.missing, np.clip(g.prob, FLOOR, 1 - FLOOR), g.n_known)
                          for g in tree.gates), tree.paths, FLOOR)
    for _ in range(2):
        after = tree.update(cells, n_known, resp, w)
        gain = np.sum(w[:, None] * resp * (after.log_path(cells) - tree.log_path(cells)))
        assert gain >= -1e-9 and np.array_equal(after.blocks, tree.blocks)
        assert all(0.5 <= gate.prob <= 1 - FLOOR for gate in after.gates)
        tree = after
    assert gain < 1e-9  # a second update with the same responsibilities changes nothing


def test_a_tree_finds_the_questions_of_another():
    rng = np.random.default_rng(1)
    X, bins, cells, n_known = table(rng, n=400, d=5, gaps=0.1)
    paths = symmetric(2)
    truth = GateTree(tuple(BernoulliGate(j, 3 + j, bool(j % 2), 1.0, int(n_known[j])) for j in (4, 0, 2)), paths)
    resp = np.exp(truth.log_path(cells))
    blank = GateTree((BernoulliGate(0, 0, False, 0.5, int(n_known[0])),) * 3, paths, FLOOR)
    found = blank.update(cells, n_known, resp, np.ones(400))
    assert [gate.feature for gate in found.gates] == [4, 0, 2]
    assert np.array_equal(found.route(cells), truth.route(cells))
    assert all(gate.prob > 1 - 1e-7 for gate in found.gates)
    order, yes, no, leaf = found.nodes()
    splits = [found.gates[i].split(bins.thresholds) if i >= 0 else None for i in order]
    leaves = [Leaf(float(j)) if j >= 0 else None for j in leaf]
    said = Tree(splits, yes, no, leaves, Columns(tuple("abcde"), (None,) * 5)).predict(X)
    assert np.array_equal(said, found.route(cells))


def test_a_gate_that_says_the_opposite_turns_its_branches():
    cells = np.array([[0], [0], [1], [1]], np.uint8)
    resp = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])  # leaf 0 is the yes leaf, and has the rows that say no
    tree = GateTree((BernoulliGate(0, 0, False, 0.5, 2),), np.array([[1, -1]], np.int8), 0.01)
    after = tree.update(cells, [2], resp, np.ones(4))
    assert after.paths.tolist() == [[-1, 1]] and after.gates[0].prob == pytest.approx(0.99)
    assert after.route(cells).tolist() == [0, 0, 1, 1]
    contrary = GateTree((BernoulliGate(0, 0, False, 0.01, 2),), tree.paths)
    assert contrary.route(cells).tolist() == [0, 0, 1, 1]
    assert contrary.nodes()[1].tolist() == [1, -1, -1] and contrary.nodes()[3].tolist() == [-1, 1, 0]


def test_a_single_leaf_is_a_tree():
    tree = GateTree((), symmetric(0), FLOOR)
    cells = np.zeros((3, 2), np.uint8)
    assert tree.log_path(cells).tolist() == [[0.0]] * 3 and tree.route(cells).tolist() == [0, 0, 0]
    after = tree.update(cells, [1, 1], np.ones((3, 1)), np.ones(3)).keep(np.array([True])).hard()
    assert after.paths.shape == (0, 1) and after.blocks.shape == (0, 1)
    assert [part.tolist() for part in after.nodes()] == [[-1], [-1], [-1], [0]]


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_a_tree_of_rules_and_its_gates_send_rows_alike(seed):
    rng = np.random.default_rng(seed)
    X, bins, cells, n_known = table(rng)
    _, tree, _ = random_tree(rng, n_known)
    order, yes, no, leaf = tree.nodes()
    splits = [tree.gates[i].split(bins.thresholds) if i >= 0 else None for i in order]
    columns = Columns(tuple("abc")[: X.shape[1]], (None,) * X.shape[1])
    said = Tree(splits, yes, no, [Leaf(float(j)) if j >= 0 else None for j in leaf], columns)
    back = gate_tree(said, bins.thresholds, FLOOR)
    assert np.array_equal(leaf[leaf >= 0][back.route(cells)], tree.route(cells))
    assert np.array_equal(said.predict(X), tree.route(cells))
    assert [part.shape for part in back.nodes()] == [part.shape for part in tree.nodes()]


def test_a_threshold_moves_to_the_nearest_cut():
    columns = Columns(("a",), (None,))
    leaves = (None, Leaf(1.0), Leaf(0.0))

    def one(split):
        return gate_tree(Tree((split, None, None), [1, -1, -1], [2, -1, -1], leaves, columns), [np.array([1.0, 2.0])])

    assert [one(Split((0,), t)).gates[0].cell for t in (-5, 1.4, 1.6, 7, np.inf)] == [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="one feature"):
        one(Split((0,), categories=(1,)))
