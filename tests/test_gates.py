"""Gates: the best question against brute force, the tree against its definition, oblique gates against optimisers."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from shared.effort import examples

from fabinterp.fab.bernoulli_gate import BernoulliGate, Cut, best_cut, feature_histograms, side_sums
from fabinterp.fab.gate_selection import log_branches, weighted_rows
from fabinterp.fab.gate_tree import GateTree, full_tree_paths, gates_from_rules_tree, stack_fisher
from fabinterp.fab.oblique_gate import (
    PRIOR_RIDGE,
    LogisticGate,
    _gate_fic_sums,
    cost_weights,
    gate_path,
    logistic_gate,
)
from fabinterp.rows.bins import bin_codes, merge_identical, table_thresholds
from fabinterp.rules.core import Columns, Leaf, Split
from fabinterp.rules.ruleset import Tree

seeds = st.integers(0, 2**32 - 1)
FLOOR = 1e-8


def table(rng, n=None, d=None, gaps=None):
    """A table with ties, its cells and their numbers; with gaps in some columns or in none."""
    n = int(rng.integers(1, 40)) if n is None else n
    d = int(rng.integers(1, 4)) if d is None else d
    X = rng.random((n, d)).round(int(rng.integers(1, 3)))
    X[rng.random((n, d)) < (rng.choice([0, 0.2]) if gaps is None else gaps)] = np.nan
    bins = merge_identical(X, table_thresholds(X))
    return X, bins, bin_codes(X, bins), np.array([len(cuts) + 1 for cuts in bins.thresholds])


def fic_terms(gate, U, diff, mass):
    """The terms of FIC that depend on a gate, for masses yes − no and yes + no."""
    return gate._fic_value(*_gate_fic_sums(weighted_rows(U, diff, mass), gate))


def questions(n_known):
    """Every question about codes."""
    for j, m in enumerate(n_known):
        for cell, missing in product(range(m), (False, True)):
            yield Cut(j, cell, missing, False, 0.0, int(m))


@examples(150)
@given(seeds, st.booleans())
def test_side_sums_are_sums(seed, weighted):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    diff = rng.normal(size=len(cells)) if weighted else None
    told = np.ones(len(cells)) if diff is None else diff
    (histogram,) = feature_histograms(cells, n_known, [diff], range(cells.shape[1]))
    sums = side_sums(histogram)
    for cut in questions(n_known):
        yes = cut.answers(cells)
        expected = told[yes].sum() - told[~yes].sum()
        assert sums[cut.feature, cut.cell, int(cut.missing)] == pytest.approx(expected, abs=1e-9)


@examples(200)
@given(seeds, st.booleans(), st.sampled_from([0.0, 2.0, 7.5]))
def test_best_cut_is_the_best_of_all(seed, weighted, min_side_weight):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    n = len(cells)
    diff = rng.normal(size=n)
    weight = rng.integers(0, 3, n) + rng.random(n) if weighted else np.ones(n)
    best = None
    for cut in questions(n_known):
        yes = cut.answers(cells)
        lighter = min(weight[yes].sum(), weight[~yes].sum())
        if yes.any() and not yes.all() and lighter >= min_side_weight:
            value = abs(diff[yes].sum() - diff[~yes].sum())
            best = value if best is None else max(best, value)
    found = best_cut(cells, n_known, diff, weight if weighted else None, min_side_weight)
    assert (found is None) == (best is None)
    if found is not None:
        yes = found.answers(cells)
        signed = diff[yes].sum() - diff[~yes].sum()
        assert found.value == pytest.approx(best, abs=1e-9) and abs(signed) == pytest.approx(
            best, abs=1e-9
        )
        assert abs(signed) < 1e-9 or found.swap == (signed < 0)
        assert min(weight[yes].sum(), weight[~yes].sum()) >= min_side_weight - 1e-9


@examples(60)
@given(seeds)
def test_the_objective_needs_no_search_over_g(seed):
    """The gate found beats every question with every g of a grid (Eto 15)."""
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng, n=15)
    q = rng.dirichlet([0.4, 0.4], 15)
    w = rng.uniform(0, 2, 15)
    start = BernoulliGate(0, 0, False, 0.5, int(n_known[0]))
    tree = GateTree((start,), full_tree_paths(1), FLOOR, n_known)
    sums = start.histogram_sums(cells, w * (q[:, 1] - q[:, 0]), w, tree)
    gate, swapped = start.best_gate(*sums, tree)
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


@examples(60)
@given(seeds)
def test_equal_columns_and_their_order(seed):
    rng = np.random.default_rng(seed)
    X, _, _, _ = table(rng, n=30, d=1)
    doubled = np.hstack([X, -X, X])
    bins = merge_identical(doubled, table_thresholds(doubled))
    cells = bin_codes(doubled, bins)
    n_known = [len(cuts) + 1 for cuts in bins.thresholds]
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
    assert best_cut(two, [2], np.ones(2), min_side_weight=2) is None
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
    assert not best_cut(
        cells[:5], [2], np.array([-1.0, -1, 1, 1, 1]), weight=np.array([5.0, 5, 1, 1, 1])
    ).missing


@examples(60)
@given(seeds)
def test_a_question_means_the_same_on_codes_and_numbers(seed):
    rng = np.random.default_rng(seed)
    X, bins, cells, n_known = table(rng)
    for cut in questions(n_known):
        assert np.array_equal(cut.answers(cells), cut.split(bins.thresholds)(X))


def random_tree(rng, n_known, depth=None):
    """A tree with random gates, and after dropping some leaves."""
    paths = full_tree_paths(int(rng.integers(0, 4)) if depth is None else depth)
    gates = []
    for _ in paths:
        j = int(rng.integers(len(n_known)))
        cell = int(rng.integers(n_known[j]))
        missing = bool(rng.integers(2))
        prob = rng.random()
        gates.append(BernoulliGate(j, cell, missing, prob, int(n_known[j])))
    tree = GateTree(tuple(gates), paths, FLOOR)
    mask = rng.random(paths.shape[1]) < 0.7
    mask[rng.integers(len(mask))] = True
    return tree, tree.keep(mask), mask


def by_nodes(tree, cells):
    """(n, E) probabilities of the leaves, walked through `nodes` instead of the path matrix."""
    gate, yes, no, leaf = tree.nodes()
    reached = np.ones((len(gate), len(cells)))
    out = np.zeros((len(cells), tree.paths.shape[1]))
    for k in range(len(gate)):  # parents come before their children
        if leaf[k] >= 0:
            out[:, leaf[k]] = reached[k]
            continue
        asked = tree.gates[gate[k]]
        says_yes = np.where(
            asked.answers(cells), max(asked.prob, 1 - asked.prob), min(asked.prob, 1 - asked.prob)
        )
        reached[yes[k]], reached[no[k]] = reached[k] * says_yes, reached[k] * (1 - says_yes)
    return out


@examples(150)
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
    assert (
        np.array_equal(again.paths, kept.paths)
        and again.gates == kept.gates
        and kept.paths.shape[1] == len(both)
    )


@examples(150)
@given(seeds)
def test_the_m_step_is_never_worse(seed):
    rng = np.random.default_rng(seed)
    _, _, cells, n_known = table(rng)
    _, tree, _ = random_tree(rng, n_known)
    resp = rng.dirichlet(np.full(tree.paths.shape[1], rng.choice([0.1, 1.0])), len(cells))
    w = rng.integers(0, 2, len(cells)) * rng.random(len(cells))
    tree = GateTree(
        tuple(
            BernoulliGate(
                g.feature, g.cell, g.missing, np.clip(g.prob, FLOOR, 1 - FLOOR), g.n_known
            )
            for g in tree.gates
        ),
        tree.paths,
        FLOOR,
        n_known,
    )
    for _ in range(2):
        after = tree.update(cells, None, resp, w)
        gain = np.sum(w[:, None] * resp * (after.log_path(cells) - tree.log_path(cells)))
        assert gain >= -1e-9 and np.array_equal(after.blocks, tree.blocks)
        assert all(0.5 <= gate.prob <= 1 - FLOOR for gate in after.gates)
        tree = after
    assert gain < 1e-9  # a second update with the same responsibilities changes nothing


def test_a_tree_finds_the_questions_of_another():
    rng = np.random.default_rng(1)
    X, bins, cells, n_known = table(rng, n=400, d=5, gaps=0.1)
    paths = full_tree_paths(2)
    truth = GateTree(
        tuple(BernoulliGate(j, 3 + j, bool(j % 2), 1.0, int(n_known[j])) for j in (4, 0, 2)), paths
    )
    resp = np.exp(truth.log_path(cells))
    blank = GateTree((BernoulliGate(0, 0, False, 0.5, int(n_known[0])),) * 3, paths, FLOOR, n_known)
    found = blank.update(cells, None, resp, np.ones(400))
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
    resp = np.array(
        [[1, 0], [1, 0], [0, 1], [0, 1.0]]
    )  # leaf 0 is the yes leaf, and has the rows that say no
    tree = GateTree((BernoulliGate(0, 0, False, 0.5, 2),), np.array([[1, -1]], np.int8), 0.01, [2])
    after = tree.update(cells, None, resp, np.ones(4))
    assert after.paths.tolist() == [[-1, 1]] and after.gates[0].prob == pytest.approx(0.99)
    assert after.route(cells).tolist() == [0, 0, 1, 1]
    contrary = GateTree((BernoulliGate(0, 0, False, 0.01, 2),), tree.paths)
    assert contrary.route(cells).tolist() == [0, 0, 1, 1]
    assert contrary.nodes()[1].tolist() == [1, -1, -1] and contrary.nodes()[3].tolist() == [
        -1,
        1,
        0,
    ]


def test_a_single_leaf_is_a_tree():
    tree = GateTree((), full_tree_paths(0), FLOOR, [1, 1])
    cells = np.zeros((3, 2), np.uint8)
    assert tree.log_path(cells).tolist() == [[0.0]] * 3 and tree.route(cells).tolist() == [0, 0, 0]
    after = tree.update(cells, None, np.ones((3, 1)), np.ones(3)).keep(np.array([True])).hard()
    assert after.paths.shape == (0, 1) and after.blocks.shape == (0, 1)
    assert [part.tolist() for part in after.nodes()] == [[-1], [-1], [-1], [0]]


@examples(60)
@given(seeds)
def test_a_tree_of_rules_and_its_gates_send_rows_alike(seed):
    rng = np.random.default_rng(seed)
    X, bins, cells, n_known = table(rng)
    _, tree, _ = random_tree(rng, n_known)
    order, yes, no, leaf = tree.nodes()
    splits = [tree.gates[i].split(bins.thresholds) if i >= 0 else None for i in order]
    columns = Columns(tuple("abc")[: X.shape[1]], (None,) * X.shape[1])
    said = Tree(splits, yes, no, [Leaf(float(j)) if j >= 0 else None for j in leaf], columns)
    back = gates_from_rules_tree(said, bins.thresholds, FLOOR)
    assert np.array_equal(leaf[leaf >= 0][back.route(cells)], tree.route(cells))
    assert np.array_equal(said.predict(X), tree.route(cells))
    assert [part.shape for part in back.nodes()] == [part.shape for part in tree.nodes()]


def test_a_threshold_moves_to_the_nearest_cut():
    columns = Columns(("a",), (None,))
    leaves = (None, Leaf(1.0), Leaf(0.0))

    def one(split):
        return gates_from_rules_tree(
            Tree((split, None, None), [1, -1, -1], [2, -1, -1], leaves, columns),
            [np.array([1.0, 2.0])],
        )

    assert [one(Split((0,), t)).gates[0].cell for t in (-5, 1.4, 1.6, 7, np.inf)] == [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="a single feature"):
        one(Split((0,), categories=(1,)))


def ballot(rng, n=None, d=None, hard=None):
    """Features within [-1, 1], with a constant and a copy now and then, shares and weights, some of them zero."""
    n = int(rng.integers(2, 120)) if n is None else n
    d = int(rng.integers(1, 7)) if d is None else d
    U = rng.uniform(-1, 1, (n, d)).round(int(rng.integers(1, 4)))
    if d > 2 and rng.random() < 0.3:
        U[:, 1] = U[:, 2]
        U[:, 0] = 0.3
    coef = rng.normal(size=d) * rng.choice([0, 1, 8], d)
    target = expit(U @ coef + rng.normal(size=n))
    if rng.random() < 0.4 if hard is None else hard:
        target = (target > rng.choice([0.2, 0.5, 1.1])).astype(float)
    return U, target, rng.exponential(size=n) * (rng.random(n) < 0.8)


def likelihood(theta, Z, target, weight, ridge):
    """Q less the prior, written out row by row (Wang 21)."""
    score = theta[0] + Z @ theta[1:]
    yes, no = log_branches(score)
    spread = np.average((score - np.average(score, weights=weight)) ** 2, weights=weight)
    return weight @ (target * yes + (1 - target) * no) - 0.5 * ridge * spread


def slope_of(theta, Z, target, weight, ridge):
    """(1 + k,) its derivatives."""
    score = theta[0] + Z @ theta[1:]
    pull = weight * (
        target - expit(score) - ridge * (score - np.average(score, weights=weight)) / weight.sum()
    )
    return np.append(pull.sum(), pull @ Z)


def by_optimiser(U, features, target, weight, ridge):
    """The largest Q of these features, found by another algorithm."""
    args = (U[:, list(features)], target, weight, ridge)
    return -minimize(
        lambda theta: -likelihood(theta, *args),
        np.zeros(1 + len(features)),
        jac=lambda theta: -slope_of(theta, *args),
        options={"gtol": 1e-8, "maxiter": 1000},
    ).fun


@examples(60)
@given(seeds, st.sampled_from([0.01, 1.0]), st.integers(0, 3))
def test_a_logistic_gate_is_the_best_of_its_features(seed, ridge, most):
    rng = np.random.default_rng(seed)
    U, target, weight = ballot(rng)
    if len(np.unique(target[weight > 0])) < 2:
        target[:2] = (0, 1)  # else its bias has no best value
        weight[:2] = 1.0
    price = rng.choice([0.0, 1.0, 4.0])
    gate, value = logistic_gate(U, target, weight, price=price, max_features=most, ridge=ridge)
    assert len(gate.features) == len(set(gate.features)) == len(gate.coef) <= most
    theta = np.array([gate.bias, *gate.coef])
    own = likelihood(theta, U[:, list(gate.features)], target, weight, ridge) - price * len(
        gate.features
    )
    assert value == pytest.approx(own, abs=1e-8)
    assert (
        value
        >= by_optimiser(U, gate.features, target, weight, ridge) - price * len(gate.features) - 1e-5
    )
    assert value >= by_optimiser(U, (), target, weight, ridge) - 1e-5
    slope = slope_of(theta, U[:, list(gate.features)], target, weight, ridge)
    assert np.abs(slope).max() < 1e-3 * (1 + weight.sum())  # (Wang 23) at rest
    fitted = weight @ (target * gate.log_prob(U)[0] + (1 - target) * gate.log_prob(U)[1])
    assert value == pytest.approx(fitted - gate.const - price * gate.dims, abs=1e-8)


@pytest.mark.slow
def test_of_all_supports_of_three_in_six_the_best_is_found():
    """Greedy cannot beat brute force; where features matter it equals it nearly always."""
    n_equal = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        U = (
            rng.uniform(-1, 1, (300, 6)) @ (np.eye(6) + 0.3 * rng.normal(size=(6, 6))) / 3
        )  # features correlate
        true = rng.choice(6, 3, replace=False)
        target = (U[:, true] @ rng.normal(0, 9, 3) + rng.logistic(size=300) > 0).astype(float)
        weight = rng.uniform(0.5, 1.5, 300)
        price = 0.5 * np.log(300)
        best = max(
            by_optimiser(U, some, target, weight, PRIOR_RIDGE) - price * k
            for k in range(4)
            for some in combinations(range(6), k)
        )
        _, value = logistic_gate(U, target, weight, price=price)
        assert value <= best + 1e-5
        n_equal += value > best - 0.05  # nats: what supports are compared to
    assert n_equal >= 28


@examples(60)
@given(seeds, st.booleans(), st.sampled_from([0.0, 1.0, 2.0]))
def test_the_oblique_m_step_is_never_worse(seed, factors, penalty):
    rng = np.random.default_rng(seed)
    U, target, mass = ballot(rng)
    diff = mass * (2 * target - 1)
    features = tuple(
        rng.permutation(U.shape[1])[: rng.integers(0, min(3, U.shape[1]) + 1)].tolist()
    )
    gate = LogisticGate(
        features,
        tuple(rng.normal(size=len(features)) * 5),
        rng.normal(),
        penalty=penalty,
        fisher_factors=factors,
    )
    for _ in range(2):
        before = fic_terms(gate, U, diff, mass)
        better, swapped = gate.update(U, diff, mass)
        assert fic_terms(better, U, -diff if swapped else diff, mass) >= before - 1e-9 * (
            1 + abs(before)
        )
        assert max(better.coef, key=abs, default=1) >= 0 and (
            better.penalty,
            better.fisher_factors,
        ) == (
            penalty,
            factors,
        )
        gate = better
        diff = -diff if swapped else diff
    assert (
        factors or fic_terms(gate, U, diff, mass) <= before + 1e-3
    )  # a second update finds nothing new


@examples(60)
@given(seeds)
def test_opposite_wishes_make_the_opposite_gate(seed):
    U, target, weight = ballot(np.random.default_rng(seed))
    if weight.sum() == 0 or not 0.01 < np.average(target, weights=weight) < 0.99:
        return
    one, value = logistic_gate(U, target, weight, price=1.0)
    other, same = logistic_gate(U, 1 - target, weight, price=1.0)
    assert same == pytest.approx(value, abs=1e-6)
    if one.features == other.features:  # ties between equal columns may be cut either way
        np.testing.assert_allclose(
            one.score(U), -other.score(U), atol=1e-3 * (1 + np.abs(one.score(U)).max())
        )


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(0)
    U, target, _ = ballot(rng, 80, 5)
    times = rng.integers(0, 4, 80)
    one, value = logistic_gate(U, target, times.astype(float), price=1.0)
    U = np.repeat(U, times, axis=0)
    target = np.repeat(target, times)
    two, same = logistic_gate(U, target, np.ones(len(U)), price=1.0)
    assert one.features == two.features and value == pytest.approx(same, abs=1e-6)
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-3)


@pytest.mark.parametrize("n", [4, 40, 4000])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_separable_wishes_give_finite_gates(n, scale):
    rng = np.random.default_rng(n)
    U = rng.uniform(-1, 1, (n, 3))
    U[:2, 0] = -0.9, 0.9
    gate, value = logistic_gate(U, (U[:, 0] > 0.1).astype(float), np.full(n, scale), price=scale)
    assert np.isfinite([*gate.coef, gate.bias, value]).all()
    if n > 4 and scale >= 1:
        assert gate.features == (0,) and np.mean(gate.answers(U) == (U[:, 0] > 0.1)) > 0.97
        assert -gate.bias / gate.coef[0] == pytest.approx(0.1, abs=0.1)


@pytest.mark.parametrize("ridge", [10.0, 1000.0])
def test_a_strong_prior_is_no_obstacle(ridge):
    rng = np.random.default_rng(0)
    U, target, weight = ballot(rng, 60, 2, hard=True)
    gate, value = logistic_gate(U, target, weight, price=0.0, ridge=ridge)
    assert value >= by_optimiser(U, (0, 1), target, weight, ridge) - 1e-6


@pytest.mark.parametrize("start", [(0, 1), (0, 2)], ids=["a constant", "a copy"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_start_with_dependent_features_is_solved(start, scale):
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (60, 3))
    U[:, 1] = 0.25
    U[:, 2] = U[:, 0]
    target = (U[:, 0] > 0.1).astype(float)
    gate, _ = logistic_gate(U, target, np.full(60, scale), price=scale, start=start)
    assert gate.features == (0,)


def test_wishes_that_need_no_question():
    U = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    for target in (np.zeros(50), np.ones(50), np.full(50, 0.3)):
        gate, _ = logistic_gate(U, target, np.ones(50), price=1.0)
        assert gate.features == () and expit(gate.bias) == pytest.approx(
            np.clip(target[0], 1e-8, 1 - 1e-8)
        )
        assert np.isfinite(gate.log_prob(U)).all()
        said = gate.split((np.zeros(3), np.ones(3)))(U)
        assert (said == gate.answers(U)).all() and len(set(said)) == 1
    for weight in (np.zeros(50), np.zeros(0)):
        gate, value = logistic_gate(U[: len(weight)], target[: len(weight)], weight, price=1.0)
        assert (gate, value) == (LogisticGate(), 0.0)
    for gate in (LogisticGate(), LogisticGate((0,), (-2.0,), 0.5)):
        assert gate.update(U, np.zeros(50), np.zeros(50)) == (gate, False)


def test_a_feature_with_gaps_is_left_out_and_a_later_gap_goes_with_most():
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (400, 3))
    target = (U[:, 0] > 0.5).astype(float)
    holed = U.copy()
    holed[3, 0] = np.nan
    assert 0 not in logistic_gate(holed, target, np.ones(400), price=1.0, start=(0,))[0].features
    gate, _ = logistic_gate(U, target, np.ones(400), price=3.0)
    assert gate.features == (0,) and not gate.answers(holed)[3]
    assert np.exp(gate.log_prob(holed)[0][3]) == pytest.approx(target.mean())
    split = gate.split((np.zeros(3), np.ones(3)), U)
    assert np.array_equal(split(holed), gate.answers(holed)) and not split.missing


@examples(100)
@given(seeds, st.sampled_from([0.0, 1e-9, 1.0, 1e12]), st.sampled_from([1e-9, 1.0, 1e9]))
def test_the_split_says_what_the_gate_answers(seed, offset, scale):
    """In any units: rows keep their sides, unless the table itself is too coarse to tell them apart."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 80))
    d = int(rng.integers(1, 4))
    units = (rng.choice([0.0, offset], d), rng.choice([1.0, scale], d))
    X = units[0] + units[1] * rng.uniform(-1, 1, (n, d))
    centre = (X.max(axis=0) + X.min(axis=0)) / 2
    half = (X.max(axis=0) - X.min(axis=0)) / 2
    half[half == 0] = 1.0
    U = (X - centre) / half
    features = tuple(rng.permutation(d).tolist())
    gate = LogisticGate(
        features, tuple(rng.normal(size=d) * 10), rng.normal() * 5, missing_score=rng.normal()
    )
    split = gate.split((centre, half), X)
    assert split.features == features and max(map(abs, split.coef)) == 1.0
    slack = sum(
        abs(c) / h * np.spacing(abs(m) + h)
        for c, h, m in zip(gate.coef, half[list(features)], centre[list(features)])
    )  # what half a digit of x moves the score
    sure = np.abs(gate.score(U)) > 8 * slack * d + 1e-12
    assert np.array_equal(split(X)[sure], gate.answers(U)[sure])
    if slack < 1e-9:
        assert np.array_equal(split(X), gate.answers(U))
        assert np.array_equal(gate.split((centre, half))(X)[sure], gate.answers(U)[sure])
    X[0] = np.nan
    assert split(X)[0] == (gate.missing_score > 0) == gate.answers((X - centre) / half)[0]


def test_a_short_split_is_short():
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    gate = LogisticGate((0, 2), (7.1234567, -5.4321987), 1.2345678)
    split = gate.split((np.full(3, 0.5), np.full(3, 0.5)), X)
    assert all(len(repr(c)) <= 7 for c in split.coef) and len(repr(split.threshold)) <= 8
    assert np.array_equal(split(X), gate.answers(2 * X - 1))


@examples(60)
@given(seeds)
def test_fisher_factors_are_second_derivatives(seed):
    rng = np.random.default_rng(seed)
    gate = LogisticGate(
        (0, 1), tuple(rng.normal(size=2) * 3), rng.normal(), fisher_factors=True, const=0.25
    )
    U = rng.uniform(-1, 1, (20, 2))
    h = 1e-4
    score = gate.score(U)
    for side in (0, 1):  # (Wang 16): the same for both branches
        second = (
            log_branches(score + h)[side]
            - 2 * log_branches(score)[side]
            + log_branches(score - h)[side]
        ) / h**2
        np.testing.assert_allclose(gate.fisher(U), -second, atol=1e-6)
    tree = GateTree((gate, LogisticGate(), BernoulliGate(0, 0, False, 0.5, 2)), full_tree_paths(2))
    assert LogisticGate().fisher(U) is None and np.array_equal(tree.fisher(U)[:, 0], gate.fisher(U))
    assert (tree.fisher(U)[:, 1:] == 1).all() and tree.dims.tolist() == [2, 0, 2]
    assert tree.const.tolist() == [0.25, 0, 0]
    assert gate.hard().const == 0 and gate.hard().fisher(U) is None
    assert stack_fisher([None, None], (1, 2), 20) is None
    assert stack_fisher([None, np.zeros((20, 2))], (1, 2), 20).shape == (20, 3)


def test_a_tree_of_oblique_gates_finds_another():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 15))
    truth = GateTree(
        (
            LogisticGate((8, 9), (25.0, -16.0), 0.0),
            LogisticGate((5, 3), (15.0, -7.0), 1.0),
            LogisticGate((2,), (20.0,), 2.0),
        ),
        full_tree_paths(2),
    )
    U = 2 * X - 1
    resp = np.exp(truth.log_path(U))
    np.testing.assert_allclose(resp.sum(axis=1), 1)
    found = GateTree((LogisticGate(),) * 3, full_tree_paths(2)).update(U, None, resp, np.ones(3000))
    assert [set(gate.features) for gate in found.gates] == [{8, 9}, {5, 3}, {2}]
    assert np.array_equal(found.blocks, truth.blocks)
    np.testing.assert_allclose(found.gates[0].coef, (25, -16), rtol=0.06)
    hard = found.hard()
    assert np.array_equal(hard.log_path(U).argmax(axis=1), hard.route(U))
    assert np.mean(found.route(U) == truth.route(U)) > 0.99
    assert (
        np.isin(np.exp(hard.log_path(U)), (0, 1)).all()
        and hard.update(U, None, resp, np.ones(3000)).gates == hard.gates
    )
    order, yes, no, leaf = hard.nodes()
    scale = np.full(15, 0.5), np.full(15, 0.5)
    splits = [hard.gates[i].split(scale, X) if i >= 0 else None for i in order]
    columns = Columns(tuple(f"x{j}" for j in range(15)), (None,) * 15)
    said = Tree(splits, yes, no, [Leaf(float(j)) if j >= 0 else None for j in leaf], columns)
    assert np.array_equal(said.predict(X), hard.route(U))


@examples(60)
@given(seeds)
def test_votes_are_votes(seed):
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0, 3, 50) * (rng.random(50) < 0.7)
    cast = cost_weights(weight)
    assert cast @ cast == pytest.approx(cast.sum()) and np.array_equal(cast > 0, weight > 0)
    assert cast.sum() <= (weight > 0).sum() + 1e-9  # no more than one each, on average
    np.testing.assert_allclose(cost_weights(1e9 * weight), cast, rtol=1e-9)
    np.testing.assert_allclose(cost_weights(np.full(7, 3.0)), 1.0)
    assert cost_weights(np.zeros(3)).tolist() == [0, 0, 0]


@examples(30)
@given(seeds, st.integers(1, 4))
def test_the_winner_is_on_the_path(seed, most):
    rng = np.random.default_rng(seed)
    U, target, weight = ballot(rng, 80, 5)
    target[:2] = (0, 1)
    weight[:2] = 1.0
    path = gate_path(U, target, weight, max_features=most)
    sets = {frozenset(gate.features) for gate in path}
    sizes = {len(gate.features) for gate in path}
    assert len(sets) == len(path) and sizes == set(range(1, max(sizes) + 1)) and max(sizes) <= most
    worth = []
    for gate in path:  # each is the best of its features, to a hundredth of a nat
        theta = np.array([gate.bias, *gate.coef])
        worth.append(likelihood(theta, U[:, list(gate.features)], target, weight, PRIOR_RIDGE))
        assert worth[-1] >= by_optimiser(U, gate.features, target, weight, PRIOR_RIDGE) - 0.02
    price = rng.choice([0.1, 0.8, 3.0])
    winner, value = logistic_gate(U, target, weight, price=price, max_features=most)
    best = max(q - price * len(gate.features) for q, gate in zip(worth, path, strict=True))
    assert not winner.features or best >= value - 0.02


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("tail", ["unit", "t", "lognormal", "sometimes wrong"])
def test_the_true_two_of_fifteen_features(n, tail):
    """2.5 x9 − 1.6 x10 < .613, decided hard, weights of any tail: no third feature comes in."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.random((n, 15))
        sign = np.where(2.5 * X[:, 8] - 1.6 * X[:, 9] < 0.613, -1.0, 1.0)
        gain = sign * {"unit": np.ones(n), "lognormal": rng.lognormal(0, 3, n)}.get(
            tail, 10 * np.abs(rng.standard_t(1.5, n))
        )
        if tail == "sometimes wrong":
            gain += rng.normal(0, 2, n)
        weight = cost_weights(np.abs(gain))
        gate, _ = logistic_gate(
            2 * X - 1, (gain > 0).astype(float), weight, price=0.5 * np.log1p(weight.sum())
        )
        assert set(gate.features) == {8, 9}, (seed, gate)
        assert np.mean(gate.answers(2 * X - 1) == (sign > 0)) > 0.98 - 0.03 * (n == 300)


@pytest.mark.parametrize("likeness", [0.0, 1e-3, 0.1])
def test_a_copy_of_a_feature_is_not_asked_too(likeness):
    """A prior on coefficients would reward sharing them out between copies; one on the score does not."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        U = rng.uniform(-1, 1, (4000, 8))
        U[:, 5] = U[:, 0] + likeness * rng.normal(size=4000)
        target = (U[:, 0] - 0.64 * U[:, 1] > 0.1).astype(float)
        gate, _ = logistic_gate(U, target, np.ones(4000), price=0.5 * np.log1p(4000))
        assert set(gate.features) == {0, 1} or (likeness < 0.1 and set(gate.features) == {5, 1})


@examples(40)
@given(seeds, st.sampled_from([1e-3, 1e3]))
def test_the_units_of_a_feature_do_not_matter(seed, unit):
    rng = np.random.default_rng(seed)
    U, target, weight = ballot(rng, 80, 4)
    scaled = U * np.array([1.0, unit, 1.0, 1 / unit])
    one, value = logistic_gate(U, target, weight, price=2.0)
    two, same = logistic_gate(scaled, target, weight, price=2.0)
    assert same == pytest.approx(value, abs=1e-4) or one.features != two.features
    if one.features == two.features:
        np.testing.assert_allclose(
            one.score(U), two.score(scaled), atol=1e-2 * (1 + np.abs(one.score(U)).max())
        )
