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

from fabinterp.fab.engine import fic
from fabinterp.fab.gates import LogisticGate, gate_path, logistic_gate, votes
from fabinterp.search.moves import (
    GaussianLeaves,
    LogisticLeaves,
    Tip,
    ask,
    hoist,
    neighbours,
    regate,
    search_steps,
)
from fabinterp.search.planes import (
    FAR,
    N_BEGUN,
    N_LOOK,
    N_SHORT,
    ObliqueGround,
    View,
    best_shift,
    cut_gains,
    disagreement,
    planes,
    sharpened,
    view_of_leaf,
)

seeds = st.integers(0, 2**32 - 1)
quick = examples(60)
few = examples(12)


class Lines(GaussianLeaves):
    """Gaussian experts, with a ridge."""

    bending = property(lambda self: np.r_[0.0, np.linspace(0, 2, self.A.shape[1] - 2)])
    groups = property(lambda self: np.arange(self.A.shape[1] - 1) - 1)

    def design(self, rows):
        return self.A[rows, :-1]

    def row_lik(self, scores, rows):
        return -0.5 * (
            np.log(2 * np.pi * self.var) + (self.A[rows, -1] - scores[:, 0]) ** 2 / self.var
        )

    def bend(self, scores, rows):
        rate = self.w[rows] / self.var
        return rate, rate[:, None] * (self.A[rows, -1:] - scores)


class Odds(LogisticLeaves):
    """Two classes, with a ridge."""

    bending = property(lambda self: np.full(self.A.shape[1], 0.3))
    groups = property(lambda self: np.arange(self.A.shape[1]) - 1)

    def design(self, rows):
        return self.A[rows]

    def row_lik(self, scores, rows):
        return -np.logaddexp(0, (1 - 2 * self.y[rows]) * scores[:, 0])

    def bend(self, scores, rows):
        prob = expit(scores[:, 0])
        return self.w[rows] * prob * (1 - prob), (self.w[rows] * (self.y[rows] - prob))[:, None]


def slanted(rng, n=300, d=4, noise=0.25):
    """Two lines parted by a plane of two features: features, answers, true side."""
    U = rng.uniform(-1, 1, (n, d))
    side = U[:, 0] - 0.6 * U[:, 1] > 0.1
    return U, np.where(side, 0.5 + U[:, 2], -0.5 - 0.5 * U[:, 2]) + noise * rng.normal(size=n), side


def ground_of(U, y, penalty=1.0, var=0.0625, task="gaussian", w=None, **options):
    n, d = U.shape
    w = np.ones(n) if w is None else w
    design = np.column_stack([np.ones(n), U])
    if task == "gaussian":
        experts = Lines(np.column_stack([design, y]), w, var, 1e-4)
    else:
        experts = Odds(design, (y > 0).astype(float), w)
    least = 0.03 * w.sum()
    features = tuple(range(d))
    return ObliqueGround(
        experts, U, None, w, penalty, least, 3, features, np.log(d), np.log(d), **options
    )


def everyone(ground):
    return np.arange(len(ground.w), dtype=np.int32)


def view_at(ground):
    """The view of everyone's leaf."""
    return view_of_leaf(ground.experts, ground.tip(everyone(ground)))


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
    for first in gate_path(U, (diff > 0).astype(float), votes(np.abs(diff)), max_features=2):
        gate, value = sharpened(U, diff, first)
        assert gate.sharp and gate.const == 0 and gate.features == first.features
        assert value == pytest.approx(diff[gate.answers(U)].sum())
        assert diff[first.answers(U)].sum() - 1e-9 <= value <= largest + 1e-9
        again, same = sharpened(U, diff, gate)
        rows = np.column_stack([np.ones(25), U[:, list(gate.features)]])
        theta = np.array([again.bias, *again.coef])
        for j in range(len(theta) if len(theta) > 2 else 1):
            grid = theta[:, None] + np.eye(len(theta))[j][:, None] * np.linspace(-4, 4, 2001)
            assert (
                diff @ (rows @ grid > 0)
            ).max() <= same + 1e-9 or same > value  # unless it is still on its way


def test_planes_are_nearly_the_best_lines():
    shares = []
    for seed in range(30):
        U, diff = wishes(np.random.default_rng(seed), noise=0.3)
        shares.append(max(value for _, value in planes(U, diff, 2)) / (partings(U) @ diff).max())
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
    for gate, value in planes(U, diff, most):
        assert 1 <= len(gate.features) <= most and any(gate.coef)
        assert value == pytest.approx(diff[gate.answers(U)].sum())
    assert planes(U, 0 * diff, most) == []


# Views


@pytest.mark.parametrize("task", ["gaussian", "classes"])
@given(seed=seeds)
@few
def test_a_step_is_newtons(task, seed):
    rng = np.random.default_rng(seed)
    ground = ground_of(*slanted(rng, 80)[:2], task=task, w=rng.uniform(0.5, 2, 80))
    view = view_at(ground)
    share = rng.random(80)
    w = ground.w

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
    y += U @ np.linspace(0, 2, 60)  # more columns than a view takes
    ground = ground_of(U, y)
    tip = ground.tip(everyone(ground))
    view = view_of_leaf(ground.experts, tip)
    assert len(view.rows) <= N_LOOK and np.array_equal(view.rows, everyone(ground)[::3])
    assert view.X.shape[1] == 1 + N_SHORT and (view.X[:, 0] == 1).all()
    np.testing.assert_allclose(
        view.X @ view.start + view.offset, ground.experts.design(view.rows) @ tip.coef
    )


@few
@given(seeds)
def test_gains_are_those_of_refitted_sides(seed):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 2, 120)
    ground = ground_of(*slanted(rng, 120)[:2], w=w)
    view = view_at(ground)
    x = ground.codes[:, int(rng.integers(4))].round(1)
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
        view = view_at(ground_of(U, y, task=task))
        diff = disagreement(view, U, U[:, 0] > 0, 3.0, 3)
        assert np.abs(diff).max() <= FAR
        gate, _ = max(planes(U, diff, 2), key=lambda pair: pair[1])
        agreed.append(np.mean(gate.answers(U) == side))
        assert agreed[-1] > np.mean((U[:, 0] > 0) == side)  # tilted the right way
    assert np.mean(agreed) > (0.97 if task == "gaussian" else 0.9)


def test_disagreement_is_em_written_out():
    rng = np.random.default_rng(6)
    w = rng.uniform(0.5, 2, 200)
    U, y, _ = slanted(rng, 200)
    view = view_at(ground_of(U, y, w=w))
    share = np.where(U[:, 0] > 0, 0.95, 0.05)
    for _ in range(3):
        off = []
        for q in (share, 1 - share):
            H = (view.X * (q * w / view.experts.var)[:, None]).T @ view.X + np.diag(view.ridge)
            b = np.linalg.solve(H, view.X.T @ (q * w * (y - view.offset[:, 0]) / view.experts.var))
            off.append((y - view.offset[:, 0] - view.X @ b) ** 2)
        diff = np.clip((off[1] - off[0]) / (2 * view.experts.var), -FAR, FAR)
        gate, _ = logistic_gate(U, share, w, price=3.0, max_features=2)
        share = expit(gate.score(U) + diff)
    np.testing.assert_allclose(disagreement(view, U, U[:, 0] > 0, 3.0, 2), diff, atol=1e-6)


def test_a_view_is_asked_by_shares_alone():
    """A row of share 0 has no say in a step; all rows of share 0 leave the ridge."""
    rng = np.random.default_rng(1)
    ground = ground_of(*slanted(rng, 60)[:2])
    view = view_at(ground)
    share = (rng.random(60) < 0.5).astype(float)
    kept = np.flatnonzero(share)
    part = View(
        view.rows[kept], view.X[kept], view.offset[kept], view.start, view.ridge, view.experts
    )
    np.testing.assert_allclose(
        view.step(view.start, share), part.step(view.start, np.ones(len(kept))), atol=1e-9
    )


# The ground


def engine_value(ground, tree):
    """FIC as the engine counts it: a plane of k features has k + 1 parameters."""
    tips = tree.tips()
    forks = tree.forks()
    below = [[np.isin(tip.rows, fork.rows).all() for tip in tips] for fork in forks]
    blocks = np.vstack([np.array(below, float).reshape(-1, len(tips)), np.eye(len(tips))])
    size = [len(fork.cut.features) for fork in forks]
    dims = np.array([k + 1.0 for k in size] + [tip.dims for tip in tips])
    const = [k * ground.log_cuts for k in size] + [
        (tip.dims - 1) * ground.log_columns for tip in tips
    ]
    resp = np.zeros((len(ground.w), len(tips)))
    log_joint = np.full((len(ground.w), len(tips)), -np.inf)
    for j, tip in enumerate(tips):
        resp[tip.rows, j] = 1
        log_joint[tip.rows, j] = ground.experts.log_lik(tip.coef, tip.rows)
    prices = SimpleNamespace(blocks=blocks, dims=dims, const=ground.penalty * np.array(const))
    return fic(resp, log_joint, prices, ground.w, ground.penalty)


def check(ground, tree):
    """All that must hold of a tree of planes."""
    assert tree.value == pytest.approx(engine_value(ground, tree), rel=1e-9, abs=1e-7)
    assert np.array_equal(
        np.sort(np.concatenate([tip.rows for tip in tree.tips()])), np.sort(tree.rows)
    )
    for fork in tree.forks():
        yes = fork.cut.answers(ground.codes)[fork.rows]
        assert np.array_equal(fork.rows[yes], fork.yes.rows) and np.array_equal(
            fork.rows[~yes], fork.no.rows
        )
        assert min(ground.mass(fork.yes.rows), ground.mass(fork.no.rows)) >= ground.min_side
        assert fork.cut.sharp and set(fork.cut.features) <= set(ground.features)
        assert len(fork.cut.features) <= ground.max_features


@pytest.mark.parametrize("penalty", [1.0, 2.5])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_toll_is_a_code_length(penalty, k):
    ground = ground_of(*slanted(np.random.default_rng(0), 100, 6)[:2], penalty)
    toll = ground.toll(everyone(ground), LogisticGate(tuple(range(k)), (1.0,) * k, sharp=True))
    message = toll / penalty - 0.5 * (k + 1) * np.log1p(100)
    assert 6**k * np.exp(-message) == pytest.approx(1)  # Kraft's sum over all sequences of k names
    assert message >= np.log(comb(6, k)) - 1e-12


@pytest.mark.parametrize("task", ["gaussian", "classes"])
def test_what_is_looked_at_is_worth_what_it_says(task):
    ground = ground_of(*slanted(np.random.default_rng(0))[:2], task=task)
    rows = everyone(ground)
    options = ground.look(ground.tip(everyone(ground)))
    assert 1 <= len(options) <= 2 * N_BEGUN
    for worth, gate in options:
        tree = ground.fork(rows, gate, *map(ground.tip, ground.sides(rows, gate)))
        assert worth == pytest.approx(tree.value)
        check(ground, tree)
    assert {len(gate.features) for _, gate in options} >= {1, 2}


@few
@given(seeds, st.integers(1, 3), st.booleans())
def test_part_is_the_best_plane_that_fits(seed, most, restricted):
    rng = np.random.default_rng(seed)
    U, y, _ = slanted(rng, 120, 5)
    w = rng.uniform(0.5, 2, 120)
    ground = ground_of(U, y, w=w, max_features=most)
    if restricted:
        ground.features = (1, 3, 4)
    diff = w * wishes(rng, 120)[1] * 5
    heard = np.clip(diff, -FAR * w, FAR * w)
    options = [(gate, value) for gate, value in planes(U[:, list(ground.features)], heard, most)]
    worth = [
        value - ground.toll(everyone(ground), gate)
        for gate, value in options
        if ground.sides(everyone(ground), ground.named(gate)) is not None
    ]
    found = ground.part(everyone(ground), diff)
    if not worth:
        assert found is None
        return
    gate, swap = found
    assert not swap and set(gate.features) <= set(ground.features)
    assert heard[gate.answers(U)].sum() - ground.toll(everyone(ground), gate) == pytest.approx(
        max(worth)
    )


def test_a_row_alone_cannot_buy_a_feature():
    rng = np.random.default_rng(2)
    ground = ground_of(*slanted(rng, 300, 4)[:2])
    diff = np.where(ground.codes[:, 0] > 0, 2.0, -2.0)
    odd = int(np.argmin(ground.codes[:, 0]))
    diff[odd] = 1e6
    gate, _ = ground.part(everyone(ground), diff)
    assert gate.features == (0,) and not gate.answers(ground.codes)[odd]


def three_regions(seed, n=900):
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (n, 4))
    first = U[:, 0] + 0.8 * U[:, 1] > 0.2
    second = U[:, 2] - 0.5 * U[:, 0] > 0.1
    y = np.where(first, 1.5 * U[:, 3], np.where(second, 0.8 - U[:, 3], -1.0 + 0.5 * U[:, 1]))
    return U, y + 0.25 * rng.normal(size=n), np.where(first, 0, np.where(second, 1, 2))


def test_a_hoisted_plane_is_tuned():
    U, y, _ = three_regions(5)
    ground = ground_of(U, y)
    rows = everyone(ground)
    upper = [LogisticGate((0, 1), (1.0, c), -0.2, sharp=True) for c in (0.65, 0.95)]
    lower = LogisticGate((2, 0), (1.0, -0.5), -0.1, sharp=True)
    wrong = ground.fork(
        rows,
        lower,
        *(
            ground.fork(part, cut, *map(ground.tip, ground.sides(part, cut)))
            for part, cut in zip(ground.sides(rows, lower), upper, strict=True)
        ),
    )
    bare = ground.fork(
        rows, upper[0], *(ask(ground, wrong, part) for part in ground.sides(rows, upper[0]))
    )
    tuned = hoist(ground, wrong, upper[0])
    check(ground, tuned)
    assert tuned.n_tips == 3 and bare.n_tips > 3
    assert tuned.value > max(wrong.value, bare.value) + 100
    assert ground.tuned(tuned).value >= tuned.value


@few
@given(seeds, st.sampled_from(["gaussian", "classes"]))
def test_the_search_never_falls_and_every_move_is_sound(seed, task):
    rng = np.random.default_rng(seed)
    U, y, _ = slanted(rng, 150, 3)
    ground = ground_of(U, y, var=1.0, task=task)
    before = -np.inf
    for now, tree in search_steps(ground, 2, rng):
        check(now, tree)
        assert tree.depth <= 3 and tree.value >= before - 1e-7 * (1 + abs(before))
        before = tree.value
    if not isinstance(tree, Tip):
        for _, new in neighbours(now, tree):
            if new is not None:
                check(now, new)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_true_tree_is_found(seed):
    U, y, truth = three_regions(seed)
    *_, (ground, tree) = search_steps(
        ground_of(U, y, penalty=2.0, var=1.0), 5, np.random.default_rng(seed)
    )
    assert tree.n_tips == 3 and ground.experts.var**0.5 == pytest.approx(0.25, abs=0.02)
    assert sum(np.bincount(truth[tip.rows]).max() for tip in tree.tips()) / len(y) > 0.98
    assert {frozenset(fork.cut.features) for fork in tree.forks()} == {
        frozenset({0, 1}),
        frozenset({0, 2}),
    }


def test_features_that_may_not_be_asked_are_not():
    U, y, _ = slanted(np.random.default_rng(3))
    ground = replace(ground_of(U, y, var=1.0), features=(0, 3))
    *_, (_, tree) = search_steps(ground, 2, np.random.default_rng(0))
    assert {f for fork in tree.forks() for f in fork.cut.features} <= {0, 3}
    assert tree.n_tips > 1


def test_one_feature_a_plane():
    U, y, _ = slanted(np.random.default_rng(4))
    *_, (_, tree) = search_steps(ground_of(U, y, max_features=1), 2, np.random.default_rng(0))
    assert tree.n_tips > 1 and all(len(fork.cut.features) == 1 for fork in tree.forks())


def test_a_regate_turns_an_askew_plane():
    U, y, side = slanted(np.random.default_rng(5), 600)
    ground = ground_of(U, y)
    askew = LogisticGate((0, 1), (1.0, -0.3), -0.1, sharp=True)
    fork = ground.fork(
        everyone(ground), askew, *map(ground.tip, ground.sides(everyone(ground), askew))
    )
    turned = regate(ground, fork)
    check(ground, turned)
    assert turned.value > fork.value + 50 and np.mean(turned.cut.answers(U) == side) > 0.99
