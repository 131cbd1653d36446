"""Planes between experts: line searches against enumeration, curvature against refits, and the search on top."""

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import comb, expit
from shared.effort import examples

from fabinterp.fab.criterion import fic
from fabinterp.fab.experts import Terms
from fabinterp.fab.oblique_gate import LogisticGate, cost_weights, gate_path, logistic_gate
from fabinterp.search.moves import neighbouring_trees, promote, refit_on_rows, resplit
from fabinterp.search.plane_search import (
    MAX_ROW_NATS,
    N_SEED_CUTS,
    N_SUBSAMPLE_COLUMNS,
    N_SUBSAMPLE_ROWS,
    LeafSubsample,
    ObliqueSearchProblem,
    cut_gains,
    expert_log_ratio,
    subsample_leaf,
)
from fabinterp.search.planes import best_shift, candidate_planes, line_search_plane
from fabinterp.search.tree_search import search_steps
from fabinterp.search.tree_value import gaussian_leaves, softmax_leaves

seeds = st.integers(0, 2**32 - 1)
quick = examples(60)
few = examples(12)


def slanted(rng, n=300, d=4, noise=0.25):
    """Two lines parted by a plane of two features: features, answers, true side."""
    U = rng.uniform(-1, 1, (n, d))
    side = U[:, 0] - 0.6 * U[:, 1] > 0.1
    return U, np.where(side, 0.5 + U[:, 2], -0.5 - 0.5 * U[:, 2]) + noise * rng.normal(size=n), side


def problem_of(U, y, penalty=1.0, var=0.0625, task="gaussian", w=None, **options):
    n, d = U.shape
    w = np.ones(n) if w is None else w
    design = np.column_stack([np.ones(n), U])
    if task == "gaussian":
        ridge = np.r_[0.0, np.linspace(0, 2, d)]
        terms = Terms(np.arange(d + 1) - 1, ridge, count="parameters")
        experts = gaussian_leaves(np.column_stack([design, y]), w, var, 1e-4, terms, smoothing=var)
    else:
        experts = softmax_leaves(design, y > 0, w, 2, prior=0.3)
    least = 0.03 * w.sum()
    features = tuple(range(d))
    return ObliqueSearchProblem(
        experts, U, None, penalty, least, 3, features, np.log(d), np.log(d), **options
    )


def everyone(problem):
    return np.arange(len(problem.w), dtype=np.int32)


def in_table_columns(problem, gate):
    """The gate in the columns of `codes`, where it was fitted among `features` alone."""
    return replace(gate, features=tuple(problem.features[f] for f in gate.features))


def view_at(problem):
    """The subsample of everyone's leaf."""
    return subsample_leaf(problem.experts, problem.leaf(everyone(problem)))


# Turning planes


@examples(200)
@given(seeds, st.booleans())
def test_the_best_shift_is_the_best_of_all(seed, ties):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    score, slope, diff = rng.normal(size=(3, n))
    if ties:
        score = score.round(1)
        slope = rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0], n)
        diff = np.sign(diff)
    shift, value = best_shift(score, slope, diff)
    moves = np.abs(slope) > 1e-12
    ends = np.sort(np.unique(-score[moves] / slope[moves]))
    if not len(ends):
        assert shift is None and value == pytest.approx(diff[score > 0].sum())
        return
    between = np.r_[ends[0] - 1, 0.5 * (ends[1:] + ends[:-1]), ends[-1] + 1]
    sums = diff @ (score[:, None] + between * slope[:, None] > 0)
    assert value == pytest.approx(sums.max())
    assert diff[score + shift * slope > 0].sum() == pytest.approx(value)
    widths = np.r_[1e-3, np.diff(ends), 1e-3]
    mine = np.searchsorted(ends, shift)
    assert widths[mine] >= widths[sums >= sums.max() - 1e-9].max() * (
        1 - 1e-9
    )  # the widest of the best


@examples(100)
@given(seeds)
def test_rounding_does_not_turn_a_plane(seed):
    """Rows on a grid, where many sums and widths are equal: as another processor would round them."""
    rng = np.random.default_rng(seed)
    U = np.column_stack([rng.uniform(-1, 1, 40).round(1), rng.choice([-1.0, 1.0], 40)])
    diff = rng.choice([-1.0, 1.0, 2.0], 40)
    first = LogisticGate((0, 1), (1.0, 0.317), 0.1234)  # no row lies on it
    gate, value = line_search_plane(U, diff, first)
    for _ in range(5):
        blurred = U * (1 + rng.uniform(-1, 1, U.shape) * 1e-15)
        other, same = line_search_plane(blurred, diff * (1 + rng.uniform(-1, 1, 40) * 1e-15), first)
        assert same == pytest.approx(value)
        assert np.array_equal(gate.answers(U), other.answers(U))
        if 0 < gate.answers(U).sum() < 40:  # a plane that parts nobody may lie anywhere
            assert (other.bias, *other.coef) == pytest.approx((gate.bias, *gate.coef), abs=1e-9)


def partings(U):
    """All ways to part rows of two features by a line, (q, n)."""
    found = {(False,) * len(U)}
    for i, j in combinations(range(len(U)), 2):
        yes = (U - U[i]) @ np.array([U[i, 1] - U[j, 1], U[j, 0] - U[i, 0]]) > 0
        for yes[i], yes[j] in product((False, True), repeat=2):
            found |= {tuple(yes), tuple(~yes)}
    return np.array(sorted(found))


def wishes(rng, n=25, d=2, noise=0.6):
    U = rng.uniform(-1, 1, (n, d))
    return U, (U @ rng.normal(size=d) + noise * rng.normal(size=n)) * rng.exponential(size=n)


@examples(25)
@given(seeds)
def test_turning_never_loses_and_no_line_is_better_than_the_best(seed):
    rng = np.random.default_rng(seed)
    U, diff = wishes(rng)
    largest = (partings(U) @ diff).max()
    for first in gate_path(U, (diff > 0).astype(float), cost_weights(np.abs(diff)), max_features=2):
        gate, value = line_search_plane(U, diff, first)
        assert gate.is_hard and gate.const == 0 and gate.features == first.features
        assert value == pytest.approx(diff[gate.answers(U)].sum())
        assert diff[first.answers(U)].sum() - 1e-9 <= value <= largest + 1e-9
        again, same = line_search_plane(U, diff, gate)
        for _ in range(30):  # until only the last digits move
            last = again
            again, same = line_search_plane(U, diff, last)
        assert same >= value - 1e-9
        rows = np.column_stack([np.ones(25), U[:, list(gate.features)]])
        theta = np.array([again.bias, *again.coef])
        still = np.allclose(theta, (last.bias, *last.coef), rtol=1e-6)
        for j in range(len(theta) if len(theta) > 2 else 1):
            grid = theta[:, None] + np.eye(len(theta))[j][:, None] * np.linspace(-4, 4, 2001)
            assert (diff @ (rows @ grid > 0)).max() <= same + 1e-9 or not still


def test_planes_are_nearly_the_best_lines():
    shares = []
    for seed in range(30):
        U, diff = wishes(np.random.default_rng(seed), noise=0.3)
        shares.append(
            max(value for _, value in candidate_planes(U, diff, 2)) / (partings(U) @ diff).max()
        )
    assert (
        max(shares) <= 1 + 1e-9
        and np.mean(shares) > 0.97
        and np.mean(np.array(shares) > 1 - 1e-9) > 0.5
    )


@quick
@given(seeds, st.integers(1, 4))
def test_planes_say_what_they_are_worth(seed, most):
    rng = np.random.default_rng(seed)
    U, diff = wishes(rng, int(rng.integers(2, 60)), 5)
    U *= rng.choice([1.0, 1.5])  # the tails of features may stick out of [−1, 1]
    for gate, value in candidate_planes(U, diff, most):
        assert 1 <= len(gate.features) <= most and any(gate.coef)
        assert value == pytest.approx(diff[gate.answers(U)].sum())
    assert candidate_planes(U, 0 * diff, most) == []


# Views


@pytest.mark.parametrize("task", ["gaussian", "classes"])
@given(seed=seeds)
@few
def test_a_step_is_newtons(task, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(*slanted(rng, 80)[:2], task=task, w=rng.uniform(0.5, 2, 80))
    view = view_at(problem)
    share = rng.random(80)
    w = problem.w

    def value(b):
        return w * share @ view.log_lik(b[:, None]) - 0.5 * view.ridge @ b**2

    now = view.start + 0.1 * rng.normal(size=view.start.shape)
    b = now[:, 0]
    q = len(now)
    slope = approx_fprime(b, value, 1e-6)
    hessian = np.array(
        [approx_fprime(b, lambda z, j=j: approx_fprime(z, value, 1e-4)[j], 1e-4) for j in range(q)]
    )
    np.testing.assert_allclose(
        view.step(now, share)[:, 0], b - np.linalg.solve(hessian, slope), atol=5e-3
    )
    for _ in range(12):
        now = view.step(now, share)
    assert np.abs(approx_fprime(now[:, 0], value, 1e-6)).max() < 2e-2


def test_a_view_tells_the_leafs_scores():
    rng = np.random.default_rng(0)
    U, y, _ = slanted(rng, 2500, 60)
    y += U @ np.linspace(0, 2, 60)  # more columns than a subsample takes
    problem = problem_of(U, y)
    leaf = problem.leaf(everyone(problem))
    view = subsample_leaf(problem.experts, leaf)
    assert len(view.rows) <= N_SUBSAMPLE_ROWS and np.array_equal(view.rows, everyone(problem)[::3])
    assert view.X.shape[1] == 1 + N_SUBSAMPLE_COLUMNS and (view.X[:, 0] == 1).all()
    np.testing.assert_allclose(
        view.X @ view.start + view.offset, problem.experts.design(view.rows) @ leaf.coef
    )


@few
@given(seeds)
def test_gains_are_those_of_refitted_sides(seed):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 2, 120)
    problem = problem_of(*slanted(rng, 120)[:2], w=w)
    view = view_at(problem)
    x = problem.codes[:, int(rng.integers(4))].round(1)
    cuts = np.unique(rng.choice(x, 6))

    def refitted(rows):
        A = view.experts.A
        root = np.sqrt(w[rows] / view.experts.var)
        stacked = np.vstack([view.X[rows] * root[:, None], np.diag(np.sqrt(view.ridge))])
        target = np.r_[(A[rows, -1] - view.offset[rows, 0]) * root, np.zeros(len(view.ridge))]
        b = np.linalg.lstsq(stacked, target, rcond=None)[0]
        return 0.5 * (
            np.sum((target - stacked @ view.start[:, 0]) ** 2) - np.sum((target - stacked @ b) ** 2)
        )

    exact = [refitted(x > cut) + refitted(x <= cut) for cut in cuts]
    np.testing.assert_allclose(cut_gains(view, x, cuts), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", ["gaussian", "classes"])
def test_two_experts_disagree_where_the_truth_does(task):
    agreed = []
    for seed in range(5):
        U, y, side = slanted(np.random.default_rng(seed), 600)
        view = view_at(problem_of(U, y, task=task))
        diff = expert_log_ratio(view, U, U[:, 0] > 0, 3.0, 3)
        assert np.abs(diff).max() <= MAX_ROW_NATS
        gate, _ = max(candidate_planes(U, diff, 2), key=lambda pair: pair[1])
        agreed.append(np.mean(gate.answers(U) == side))
        assert agreed[-1] > np.mean((U[:, 0] > 0) == side)  # tilted the right way
    assert np.mean(agreed) > (0.97 if task == "gaussian" else 0.9)


def test_disagreement_is_em_written_out():
    rng = np.random.default_rng(6)
    w = rng.uniform(0.5, 2, 200)
    U, y, _ = slanted(rng, 200)
    view = view_at(problem_of(U, y, w=w))
    share = np.where(U[:, 0] > 0, 0.95, 0.05)
    for _ in range(3):
        off = []
        for q in (share, 1 - share):
            H = (view.X * (q * w / view.experts.var)[:, None]).T @ view.X + np.diag(view.ridge)
            b = np.linalg.solve(H, view.X.T @ (q * w * (y - view.offset[:, 0]) / view.experts.var))
            off.append((y - view.offset[:, 0] - view.X @ b) ** 2)
        diff = np.clip((off[1] - off[0]) / (2 * view.experts.var), -MAX_ROW_NATS, MAX_ROW_NATS)
        gate, _ = logistic_gate(U, share, w, price=3.0, max_features=2)
        share = expit(gate.score(U) + diff)
    np.testing.assert_allclose(expert_log_ratio(view, U, U[:, 0] > 0, 3.0, 2), diff, atol=1e-6)


def test_a_view_is_asked_by_shares_alone():
    """A row of share 0 has no say in a step; all rows of share 0 leave the ridge."""
    rng = np.random.default_rng(1)
    problem = problem_of(*slanted(rng, 60)[:2])
    view = view_at(problem)
    share = (rng.random(60) < 0.5).astype(float)
    kept = np.flatnonzero(share)
    part = LeafSubsample(
        view.rows[kept], view.X[kept], view.offset[kept], view.start, view.ridge, view.experts
    )
    np.testing.assert_allclose(
        view.step(view.start, share), part.step(view.start, np.ones(len(kept))), atol=1e-9
    )


# The search problem


def engine_value(problem, tree):
    """FIC as the engine counts it: a plane of k features has k + 1 parameters."""
    leaves = tree.leaves()
    internal_nodes = tree.internal_nodes()
    below = [[np.isin(leaf.rows, node.rows).all() for leaf in leaves] for node in internal_nodes]
    blocks = np.vstack([np.array(below, float).reshape(-1, len(leaves)), np.eye(len(leaves))])
    size = [len(node.cut.features) for node in internal_nodes]
    dims = np.array([k + 1.0 for k in size] + [leaf.dims for leaf in leaves])
    const = [k * problem.log_cuts for k in size] + [
        (leaf.dims - 1) * problem.log_columns for leaf in leaves
    ]
    resp = np.zeros((len(problem.w), len(leaves)))
    log_joint = np.full((len(problem.w), len(leaves)), -np.inf)
    for j, leaf in enumerate(leaves):
        resp[leaf.rows, j] = 1
        log_joint[leaf.rows, j] = problem.experts.log_lik(leaf.coef, leaf.rows)
    prices = SimpleNamespace(blocks=blocks, dims=dims, const=problem.penalty * np.array(const))
    return fic(resp, log_joint, prices, problem.w, problem.penalty)


def check(problem, tree):
    """All that must hold of a tree of planes."""
    assert tree.value == pytest.approx(engine_value(problem, tree), rel=1e-9, abs=1e-7)
    assert np.array_equal(
        np.sort(np.concatenate([leaf.rows for leaf in tree.leaves()])), np.sort(tree.rows)
    )
    for node in tree.internal_nodes():
        yes = node.cut.answers(problem.codes)[node.rows]
        for side, mask in zip(node.sides, (yes, ~yes), strict=True):
            assert np.array_equal(node.rows[mask], side.rows)
            assert problem.total_weight(side.rows) >= problem.min_side_weight
        assert node.cut.is_hard and set(node.cut.features) <= set(problem.features)
        assert len(node.cut.features) <= problem.max_features


@pytest.mark.parametrize("penalty", [1.0, 2.5])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_toll_is_a_code_length(penalty, k):
    problem = problem_of(*slanted(np.random.default_rng(0), 100, 6)[:2], penalty)
    split_penalty = problem.split_penalty(
        everyone(problem), LogisticGate(tuple(range(k)), (1.0,) * k, is_hard=True)
    )
    message = split_penalty / penalty - 0.5 * (k + 1) * np.log1p(100)
    assert 6**k * np.exp(-message) == pytest.approx(1)  # Kraft's sum over all sequences of k names
    assert message >= np.log(comb(6, k)) - 1e-12


@pytest.mark.parametrize("task", ["gaussian", "classes"])
def test_what_is_looked_at_is_worth_what_it_says(task):
    problem = problem_of(*slanted(np.random.default_rng(0))[:2], task=task)
    rows = everyone(problem)
    options = problem.score_candidates(problem.leaf(everyone(problem)))
    assert 1 <= len(options) <= 2 * N_SEED_CUTS
    for worth, gate in options:
        tree = problem.node(rows, gate, *map(problem.leaf, problem.split_rows(rows, gate)))
        assert worth == pytest.approx(tree.value)
        check(problem, tree)
    numbers = {len(gate.features) for _, gate in options}
    assert 1 in numbers and max(numbers) > 1  # cuts, and planes


@few
@given(seeds, st.integers(1, 3), st.booleans())
def test_part_is_the_best_plane_that_fits(seed, most, restricted):
    rng = np.random.default_rng(seed)
    U, y, _ = slanted(rng, 120, 5)
    w = rng.uniform(0.5, 2, 120)
    problem = problem_of(U, y, w=w, max_features=most)
    if restricted:
        problem.features = (1, 3, 4)
    diff = w * wishes(rng, 120)[1] * 5
    heard = np.clip(diff, -MAX_ROW_NATS * w, MAX_ROW_NATS * w)
    options = [
        (gate, value) for gate, value in candidate_planes(U[:, list(problem.features)], heard, most)
    ]
    worth = [
        value - problem.split_penalty(everyone(problem), gate)
        for gate, value in options
        if problem.split_rows(everyone(problem), in_table_columns(problem, gate)) is not None
    ]
    found = problem.best_split(everyone(problem), diff)
    if not worth:
        assert found is None
        return
    gate, swap = found
    assert not swap and set(gate.features) <= set(problem.features)
    assert heard[gate.answers(U)].sum() - problem.split_penalty(
        everyone(problem), gate
    ) == pytest.approx(max(worth))


def test_a_row_alone_cannot_buy_a_feature():
    rng = np.random.default_rng(2)
    problem = problem_of(*slanted(rng, 300, 4)[:2])
    diff = np.where(problem.codes[:, 0] > 0, 2.0, -2.0)
    odd = int(np.argmin(problem.codes[:, 0]))
    diff[odd] = 1e6
    gate, _ = problem.best_split(everyone(problem), diff)
    assert gate.features == (0,) and not gate.answers(problem.codes)[odd]


def three_regions(seed, n=900):
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (n, 4))
    first = U[:, 0] + 0.8 * U[:, 1] > 0.2
    second = U[:, 2] - 0.5 * U[:, 0] > 0.1
    y = np.where(first, 1.5 * U[:, 3], np.where(second, 0.8 - U[:, 3], -1.0 + 0.5 * U[:, 1]))
    return U, y + 0.25 * rng.normal(size=n), np.where(first, 0, np.where(second, 1, 2))


def test_a_promoted_plane_is_refined():
    U, y, _ = three_regions(5)
    problem = problem_of(U, y)
    rows = everyone(problem)
    upper = [LogisticGate((0, 1), (1.0, c), -0.2, is_hard=True) for c in (0.65, 0.95)]
    lower = LogisticGate((2, 0), (1.0, -0.5), -0.1, is_hard=True)
    wrong = problem.node(
        rows,
        lower,
        *(
            problem.node(part, cut, *map(problem.leaf, problem.split_rows(part, cut)))
            for part, cut in zip(problem.split_rows(rows, lower), upper, strict=True)
        ),
    )
    bare = problem.node(
        rows,
        upper[0],
        *(refit_on_rows(problem, wrong, part) for part in problem.split_rows(rows, upper[0])),
    )
    tuned = promote(problem, wrong, upper[0])
    check(problem, tuned)
    assert tuned.n_leaves == 3 and bare.n_leaves > 3
    assert tuned.value > max(wrong.value, bare.value) + 100
    assert problem.refine_promoted(tuned).value >= tuned.value


@few
@given(seeds, st.sampled_from(["gaussian", "classes"]))
def test_the_search_never_falls_and_every_move_is_sound(seed, task):
    rng = np.random.default_rng(seed)
    U, y, _ = slanted(rng, 150, 3)
    problem = problem_of(U, y, var=1.0, task=task)
    before = -np.inf
    for now, tree in search_steps(problem, 2, rng):
        check(now, tree)
        assert tree.depth <= 3 and tree.value >= before - 1e-7 * (1 + abs(before))
        before = tree.value
    if tree.sides:
        for _, new in neighbouring_trees(now, tree):
            if new is not None:
                check(now, new)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_true_tree_is_found(seed):
    U, y, truth = three_regions(seed)
    *_, (problem, tree) = search_steps(
        problem_of(U, y, penalty=2.0, var=1.0), 5, np.random.default_rng(seed)
    )
    assert tree.n_leaves == 3 and problem.experts.var**0.5 == pytest.approx(0.25, abs=0.02)
    assert sum(np.bincount(truth[leaf.rows]).max() for leaf in tree.leaves()) / len(y) > 0.98
    assert {frozenset(node.cut.features) for node in tree.internal_nodes()} == {
        frozenset({0, 1}),
        frozenset({0, 2}),
    }


def test_features_that_may_not_be_asked_are_not():
    U, y, _ = slanted(np.random.default_rng(3))
    problem = replace(problem_of(U, y, var=1.0), features=(0, 3))
    *_, (_, tree) = search_steps(problem, 2, np.random.default_rng(0))
    assert {f for node in tree.internal_nodes() for f in node.cut.features} <= {0, 3}
    assert tree.n_leaves > 1


def test_one_feature_a_plane():
    U, y, _ = slanted(np.random.default_rng(4))
    *_, (_, tree) = search_steps(problem_of(U, y, max_features=1), 2, np.random.default_rng(0))
    assert tree.n_leaves > 1 and all(len(node.cut.features) == 1 for node in tree.internal_nodes())


def test_a_resplit_turns_an_askew_plane():
    U, y, side = slanted(np.random.default_rng(5), 600)
    problem = problem_of(U, y)
    askew = LogisticGate((0, 1), (1.0, -0.3), -0.1, is_hard=True)
    node = problem.node(
        everyone(problem), askew, *map(problem.leaf, problem.split_rows(everyone(problem), askew))
    )
    turned = resplit(problem, node)
    check(problem, turned)
    assert turned.value > node.value + 50 and np.mean(turned.cut.answers(U) == side) > 0.99
