"""FoBa: exact gains, local optimality, never worse than the incumbent, and nothing depends on units."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from shared.effort import examples

from fabinterp.fab.foba import TOL, foba
from fabinterp.fab.foba_batches import foba_many
from fabinterp.fab.foba_classes import (
    _proposals,
    base_ridge,
    foba_logistic,
    foba_softmax,
    foba_softmax_search,
    row_evaluator,
    softmax_log_lik,
)
from fabinterp.rows.blocks import run_coroutine

seeds = st.integers(0, 2**32 - 1)
quick = examples(60)


def problem(seed):
    """Design with awkward columns, target and integer weights; often more columns than rows."""
    rng = np.random.default_rng(seed)
    n = rng.integers(3, 30)
    p = rng.integers(1, 9)
    X = np.column_stack(
        [np.ones(n), rng.normal(size=(n, p)) + rng.integers(0, 2) * rng.normal(size=(n, 1))]
    )
    for j in range(1, p + 1):
        kind = rng.integers(0, 8)
        if kind < 3:  # zero, constant, a combination of others
            X[:, j] = [np.zeros(n), np.full(n, 3.0), X[:, rng.integers(0, j)] - 2 * X[:, 0]][kind]
    y = X @ rng.normal(size=p + 1) * rng.integers(0, 2) + rng.normal(size=n)
    w = rng.integers(0, 3, n) + (np.arange(n) == 0).astype(float)
    return rng, X, y, w, 0.5 * np.log1p(w.sum())


def plain_problem(seed):
    """The same without ties: independent columns and rows enough."""
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 7)
    X = np.column_stack([np.ones(p + 6), rng.normal(size=(p + 6, p))])
    w = rng.integers(1, 4, p + 6).astype(float)
    return rng, X, X @ rng.normal(size=p + 1) + rng.normal(size=p + 6), w, 0.5 * np.log1p(w.sum())


def moments(X, y, w, var=0.5):
    return (X * w[:, None]).T @ X / var, X.T @ (w * y.T).T / var


def value(X, y, w, support, price, var=0.5):
    """Best log-likelihood on the support less price, by least squares on the rows."""
    root = np.sqrt(w)
    columns = [0, *support]
    coef = np.linalg.lstsq(root[:, None] * X[:, columns], root * y, rcond=1e-9)[0]
    return w @ (y**2 - (y - X[:, columns] @ coef) ** 2) / (2 * var) - price * len(support)


@quick
@given(seeds)
def test_gain_is_that_of_its_coefficients(seed):
    _, X, y, w, price = problem(seed)
    gram, cross = moments(X, y, w)
    found = foba(gram, cross, price)
    assert set(np.flatnonzero(found.coef)) <= {0, *found.support} and list(found.support) == sorted(
        found.support
    )
    told = cross @ found.coef - 0.5 * found.coef @ gram @ found.coef - price * len(found.support)
    assert found.gain == pytest.approx(told, rel=1e-6, abs=1e-6)
    assert found.gain == pytest.approx(value(X, y, w, found.support, price), rel=1e-6, abs=1e-6)


@quick
@given(seeds)
def test_no_single_exchange_pays(seed):
    _, X, y, w, price = problem(seed)
    found = foba(*moments(X, y, w), price)
    for j in range(1, X.shape[1]):
        other = set(found.support) ^ {j}
        assert value(X, y, w, sorted(other), price) <= found.gain + 1e-6 * (1 + abs(found.gain))


def greedy(X, y, w, price):
    """The support that greed ends at if every candidate of every step is refitted on the rows."""
    support = frozenset()
    while True:
        now = value(X, y, w, sorted(support), price)
        fewer = [support - {j} for j in support]
        more = [support | {j} for j in range(1, X.shape[1]) if j not in support]
        for exchanges in (fewer, more):
            worth = {other: value(X, y, w, sorted(other), price) for other in exchanges}
            best = max(worth, key=worth.get, default=support)
            if best != support and worth[best] > now + 1e-9:
                support = best
                break
        else:
            return tuple(sorted(support))


@quick
@given(seeds)
def test_ends_where_greed_by_refits_ends(seed):
    _, X, y, w, price = plain_problem(seed)
    found = foba(*moments(X, y, w), price)
    assert found.support == greedy(X, y, w, price)


@quick
@given(seeds)
def test_between_incumbent_and_oracle(seed):
    rng, X, y, w, price = problem(seed)
    gram, cross = moments(X, y, w)
    free = range(1, X.shape[1])
    supports = [support for size in range(len(free) + 1) for support in combinations(free, size)]
    best = max(value(X, y, w, support, price) for support in supports)
    start = tuple(np.flatnonzero(rng.random(X.shape[1]) < 0.5).tolist())
    incumbent = value(X, y, w, [j for j in start if j], price)
    slack = 1e-6 * (1 + abs(best))
    found = foba(gram, cross, price, start=start)
    assert incumbent - slack <= found.gain <= best + slack


@quick
@given(seeds)
def test_scales_of_columns_do_not_matter(seed):
    rng, X, y, w, price = plain_problem(seed)
    scale = 2.0 ** rng.integers(-20, 20, X.shape[1])  # powers of two round nothing
    plain = foba(*moments(X, y, w), price)
    scaled = foba(*moments(X * scale, y, w), price)
    assert plain.support == scaled.support
    np.testing.assert_allclose(scaled.coef * scale, plain.coef, rtol=1e-6, atol=1e-9)


@quick
@given(seeds)
def test_a_weight_is_a_repetition(seed):
    _, X, y, w, price = plain_problem(seed)
    times = w.astype(int)
    again = np.repeat(X, times, axis=0), np.repeat(y, times), np.ones(times.sum())
    one = foba(*moments(X, y, w), price)
    two = foba(*moments(*again), price)
    assert one.gain == pytest.approx(two.gain, rel=1e-6, abs=1e-6)


def test_a_dear_price_leaves_nothing_and_no_price_takes_all():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(50), rng.normal(size=(50, 6))])
    y = rng.normal(size=50)
    w = np.ones(50)
    assert foba(*moments(X, y, w), 1e6).support == ()
    free = foba(*moments(X, y, w), 0.0)
    assert free.support == tuple(range(1, 7))
    np.testing.assert_allclose(free.coef, np.linalg.lstsq(X, y, rcond=None)[0])


def test_collinear_constant_and_zero_columns_stay_out():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 40))
    X = np.column_stack([np.ones(40), a, b, a - 3 * b, np.full(40, 7.0), np.zeros(40), a])
    found = foba(*moments(X, a + b, np.ones(40)), 0.0)
    assert len(found.support) == 2 and not {4, 5} & set(found.support)
    np.testing.assert_allclose(X @ found.coef, a + b, atol=1e-6)
    incumbent = foba(*moments(X, a + b, np.ones(40)), 1.0, start=range(7))
    assert len(incumbent.support) == 2 and incumbent.gain == pytest.approx(found.gain - 2)


def test_more_columns_than_rows():
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(8), rng.normal(size=(8, 40))])
    y = rng.normal(size=8)
    found = foba(*moments(X, y, np.ones(8)), 0.0)
    assert len(found.support) <= 7 and np.isfinite(found.coef).all()
    np.testing.assert_allclose(X @ found.coef, y, atol=1e-5)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_at_most_so_many_columns(size):
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(90), rng.normal(size=(90, 6))])
    gram, cross = moments(X, X.sum(axis=1) + rng.normal(size=90), np.ones(90))
    assert len(foba(gram, cross, 1.0, max_size=size).support) == size
    assert len(foba(gram, cross, 1.0, max_size=size, start=range(1, 7)).support) == size


@quick
@given(seeds)
def test_groups_come_and_go_together(seed):
    rng, X, y, w, price = problem(seed)
    p = X.shape[1]
    labels = rng.integers(0, 4, p)
    start = np.flatnonzero(rng.random(p) < 0.5)
    gram, cross = moments(X, y, w)
    found = foba(gram, cross, price, start=start, groups=labels)
    names = np.unique(labels[1:])
    own = {g: [j for j in range(1, p) if labels[j] == g] for g in names}

    def worth(chosen):
        columns = [j for g in chosen for j in own[g]]
        return value(X, y, w, columns, 0.0) - price * len(columns)

    chosen = {g for g in names if set(own[g]) & set(found.support)}
    slack = 1e-6 * (1 + abs(found.gain))
    assert found.gain == pytest.approx(worth(chosen), rel=1e-6, abs=1e-6)
    if (
        np.linalg.matrix_rank(X * np.sqrt(w)[:, None]) == p
    ):  # groups that share a column overestimate their losses
        assert all(worth(chosen ^ {g}) <= found.gain + slack for g in names)
    assert worth({labels[j] for j in start if j}) <= found.gain + slack
    assert (
        found.gain
        <= max(worth(set(names[list(s)])) for s in product([False, True], repeat=len(names)))
        + slack
    )


@quick
@given(seeds)
def test_copies_in_a_group_change_only_its_price(seed):
    _, X, y, w, price = plain_problem(seed)
    p = X.shape[1]
    twice = np.column_stack([X, X[:, 1:]])
    plain = foba(*moments(X, y, w), 2 * price)
    grouped = foba(*moments(twice, y, w), price, groups=np.r_[np.arange(p), np.arange(1, p)])
    assert grouped.gain == pytest.approx(plain.gain, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(
        twice @ grouped.coef, X @ plain.coef, atol=1e-6 * (1 + np.abs(y).max())
    )


@quick
@given(seeds, st.integers(1, 4))
def test_right_hand_sides_share_a_support(seed, m):
    rng, X, y, w, price = problem(seed)
    many = np.column_stack([y] + [rng.normal(size=len(y)) for _ in range(m - 1)])
    found = foba(*moments(X, many, w), price)
    total = sum(value(X, column, w, found.support, price) for column in many.T)
    assert found.coef.shape == (X.shape[1], m) and found.gain == pytest.approx(
        total, rel=1e-6, abs=1e-6
    )
    for j in range(1, X.shape[1]):
        other = sorted(set(found.support) ^ {j})
        assert sum(value(X, column, w, other, price) for column in many.T) <= total + 1e-6 * (
            1 + abs(total)
        )


@pytest.mark.parametrize(
    "wrong", [{"price": -1.0}, {"price": np.nan}, {"price": 1.0, "per_group": True}]
)
def test_bad_arguments_are_named(wrong):
    with pytest.raises(
        ValueError,
        match="price must be at least 0, and groups must be given if per_group is True, got",
    ):
        foba(np.eye(2), np.ones(2), **wrong)


# Many at once


def alike(grams, crosses, prices):
    """Compare `foba_many` with `foba`, problem by problem; return the coefficients."""
    coefs, gains = foba_many(grams, crosses, prices, np.full(len(prices), len(crosses[0])))
    assert coefs.shape == crosses.shape and gains.shape == (len(crosses),)
    for gram, cross, price, coef, gain in zip(grams, crosses, prices, coefs, gains, strict=True):
        one = foba(gram, cross, price)
        assert gain == pytest.approx(one.gain, rel=1e-9, abs=1e-9)
        assert tuple(1 + np.flatnonzero(coef[1:])) == one.support
        np.testing.assert_allclose(coef, one.coef, rtol=1e-6, atol=1e-9)
    return coefs


@quick
@given(seeds, st.integers(1, 6))
def test_many_are_as_one_by_one(seed, n_problems):
    rng = np.random.default_rng(seed)
    p = plain_problem(seed)[1].shape[1]
    both = []
    for _ in range(n_problems):
        n = p + int(rng.integers(6, 30))
        X = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
        both.append(
            moments(
                X, X @ (rng.normal(size=p) * rng.integers(0, 2, p)) + rng.normal(size=n), np.ones(n)
            )
        )
    grams, crosses = (np.array(part) for part in zip(*both, strict=True))
    alike(grams, crosses, rng.uniform(0, 5, n_problems))


@quick
@given(seeds)
def test_many_with_awkward_columns(seed):
    """Ties among copies may go either way: the gain must be that of the coefficients, and no exchange may pay."""
    _, X, y, w, price = problem(seed)
    gram, cross = moments(X, y, w)
    prices = price * np.array([0.5, 1.0, 3.0])
    coefs, gains = foba_many(
        np.array([gram] * 3), np.array([cross] * 3), prices, np.full(3, len(gram))
    )
    assert np.isfinite(coefs).all()
    for coef, gain, cost in zip(coefs, gains, prices, strict=True):
        support = (1 + np.flatnonzero(coef[1:])).tolist()
        slack = 1e-6 * (1 + abs(gain))
        assert gain == pytest.approx(value(X, y, w, support, cost), abs=slack)
        assert gain == pytest.approx(foba(gram, cross, cost).gain, abs=slack)
        others = [sorted(set(support) ^ {j}) for j in range(1, X.shape[1])]
        assert all(value(X, y, w, other, cost) <= gain + slack for other in others)


def test_many_leave_zero_and_constant_columns_out():
    rng = np.random.default_rng(10)
    a, b = rng.normal(size=(2, 40))
    X = np.column_stack([np.ones(40), a, np.zeros(40), np.full(40, 7.0), b, a - 3 * b])
    both = [
        moments(X, target, np.ones(40)) for target in (a + b, rng.normal(size=40), np.zeros(40))
    ]
    grams, crosses = (np.array(part) for part in zip(*both, strict=True))
    coefs = alike(grams, crosses, np.array([0.5, 2.0, 1.0]))
    assert not coefs[:, [2, 3]].any() and not coefs[2].any()
    assert np.count_nonzero(coefs[0, 1:]) == 2


def test_many_without_weight_are_zero():
    rng, X, y, w, price = plain_problem(0)
    gram, cross = moments(X, y, w)
    coefs = alike(np.array([0 * gram, gram]), np.array([cross, cross]), np.full(2, price))
    assert not coefs[0].any() and coefs[1].any()


def test_many_of_more_columns_than_rows():
    rng = np.random.default_rng(11)
    designs = [np.column_stack([np.ones(8), rng.normal(size=(8, 40))]) for _ in range(5)]
    both = [moments(X, rng.normal(size=8), np.ones(8)) for X in designs]
    grams, crosses = (np.array(part) for part in zip(*both, strict=True))
    coefs = alike(grams, crosses, np.full(5, 1.0))
    assert ((coefs[:, 1:] != 0).sum(axis=1) <= 7).all()


def test_many_of_one_and_at_no_price():
    rng = np.random.default_rng(12)
    X = np.column_stack([np.ones(50), rng.normal(size=(50, 6))])
    gram, cross = moments(X, X.sum(axis=1) + rng.normal(size=50), np.ones(50))
    coefs = alike(gram[None], cross[None], np.array([2.0]))
    assert coefs.shape == (1, 7)
    free = alike(np.array([gram, gram]), np.array([cross, cross]), np.array([0.0, 1e9]))
    np.testing.assert_allclose(free[0], np.linalg.solve(gram, cross))
    assert not free[1, 1:].any()


# Classes


def classes(seed, n_classes, problem=problem):
    rng, X, _, w, price = problem(seed)
    scores = X @ rng.normal(size=(X.shape[1], n_classes)) * rng.choice([0.3, 3.0])
    label = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return rng, X, np.eye(n_classes)[label], w, price


def soft_value(X, Y, w, coef, price):
    n_columns = coef[1:].any(axis=1).sum()
    return (
        w @ (Y * log_softmax(X @ coef, axis=1)).sum(axis=1) - price * (Y.shape[1] - 1) * n_columns
    )


@quick
@given(seeds, st.integers(2, 4))
def test_softmax_is_never_worse_than_the_incumbent(seed, n_classes):
    rng, X, Y, w, price = classes(seed, n_classes)
    start = rng.normal(size=(X.shape[1], n_classes)) * (rng.random(X.shape[1]) < 0.5)[:, None]
    for begin in (None, start):
        found = foba_softmax(X, Y, w, price, begin)
        assert found.gain == pytest.approx(soft_value(X, Y, w, found.coef, price))
        assert found.support == tuple(1 + np.flatnonzero(found.coef[1:].any(axis=1)))
        assert found.gain >= soft_value(
            X, Y, w, np.zeros_like(start) if begin is None else begin, price
        )
        assert np.isfinite(found.coef).all()
        again = foba_softmax(X, Y, w, price, found.coef)
        assert again.gain >= found.gain - 1e-12 * abs(found.gain)  # sums of other order


@quick
@given(seeds, st.integers(2, 4))
def test_softmax_is_at_the_top_on_its_support(seed, n_classes):
    rng, X, Y, w, price = classes(seed, n_classes)
    found = foba_softmax(X, Y, w, price)
    columns = [0, *found.support]
    np.testing.assert_allclose(
        found.coef.sum(axis=1), 0, atol=1e-9 * (1 + np.abs(found.coef).max())
    )
    ridge = base_ridge(w @ X**2)[:, None]

    def hill(coef):
        return soft_value(X, Y, w, coef, 0.0) - (ridge * coef**2).sum()

    top = hill(found.coef)
    for size in (1e-3, 0.1, 1.0):
        other = found.coef.copy()
        other[columns] += (
            size * rng.normal(size=(len(columns), n_classes)) @ (np.eye(n_classes) - 1 / n_classes)
        )
        assert hill(other) <= top + 1e-5


@quick
@given(seeds)
def test_logistic_is_softmax_of_two(seed):
    _, X, Y, w, price = classes(seed, 2)
    one = foba_logistic(X, Y[:, 1], w, price)
    two = foba_softmax(X, Y, w, price)
    assert one.support == two.support
    assert one.gain == pytest.approx(two.gain, rel=1e-9, abs=1e-9)
    scores = X @ one.coef
    told = w @ (Y[:, 1] * scores - np.logaddexp(0, scores)) - price * len(one.support)
    assert one.gain == pytest.approx(told, abs=1e-8)
    again = foba_logistic(X, Y[:, 1], w, price, one.coef)
    assert again.gain >= one.gain - 1e-9


@quick
@given(seeds, st.integers(2, 3))
def test_classes_follow_weights_and_scales(seed, n_classes):
    rng, X, Y, w, price = classes(seed, n_classes, plain_problem)
    times = w.astype(int)
    scale = 2.0 ** rng.integers(-6, 6, X.shape[1])
    plain = foba_softmax(X, Y, w, price)
    again = foba_softmax(
        np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), np.ones(times.sum()), price
    )
    scaled = foba_softmax(X * scale, Y, w, price)
    assert again.gain == pytest.approx(plain.gain, abs=1e-4)
    assert scaled.gain == pytest.approx(plain.gain, abs=1e-4)


def test_proposals_are_at_the_price_at_a_quarter_and_at_double():
    gains = np.array([1.5, 0.75])  # of columns 1 and 2, at a price of 1
    cross = np.append(0.0, np.sqrt(2 * gains))
    found = _proposals(
        np.eye(3), cross, np.zeros((3, 1)), 3, 1.0, np.array([[1], [2]]), np.ones(2, int)
    )
    assert [np.flatnonzero(theta).tolist() for theta in found] == [[1], [1], []]


def test_logistic_equals_the_oracle_on_easy_data():
    rng = np.random.default_rng(6)
    for _ in range(10):
        X = np.column_stack([np.ones(200), rng.normal(size=(200, 4))])
        y = (X[:, 1] - X[:, 2] + rng.logistic(size=200) > 0).astype(float)
        found = foba_logistic(X, y, np.ones(200), 2.65)
        others = []
        for k in range(5):
            for s in combinations(range(1, 5), k):
                columns = [0, *s]
                others.append(foba_logistic(X[:, columns], y, np.ones(200), 0.0).gain - 2.65 * k)
        assert found.gain >= max(others) - 0.02


def test_separable_classes_and_one_class_stay_finite():
    rng = np.random.default_rng(7)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 3))])
    w = np.ones(60)
    apart = foba_logistic(X, (X[:, 1] > 0).astype(float), w, 2.0)
    assert apart.support == (1,) and np.isfinite(apart.coef).all() and apart.gain > -10
    alone = foba_softmax(X, np.tile([0.0, 1.0, 0.0], (60, 1)), w, 2.0)
    assert alone.support == () and np.isfinite(alone.coef).all() and -0.01 < alone.gain <= 0


def test_an_incumbent_with_dead_columns_is_no_trouble():
    rng = np.random.default_rng(8)
    X = np.column_stack([np.ones(30), rng.normal(size=30), np.zeros(30), np.ones(30)])
    y = (X[:, 1] + rng.logistic(size=30) > 0).astype(float)
    found = foba_logistic(X, y, np.ones(30), 1.7, np.array([0.5, 1.0, 3.0, -0.5]))
    assert not {2, 3} & set(found.support)


def test_tolerance_is_a_share_of_the_column():
    x, e = np.random.default_rng(9).normal(size=(2, 100))
    for own, comes in [(10 * np.sqrt(TOL), True), (0.1 * np.sqrt(TOL), False)]:
        X = np.column_stack([np.ones(100), x, x + own * e])
        assert (len(foba(*moments(X, e, np.ones(100)), 0.0).support) == 2) == comes


# Curves: groups at a price for all of them, and a ridge


def curves(seed):
    """Grouped columns, some of them awkward, a ridge on some, and what a group costs."""
    rng, X, y, w, price = problem(seed)
    p = X.shape[1]
    ridge = rng.choice([0.0, 0.1, 10.0], p) * (np.arange(p) > 0)
    return rng, X, y, w, rng.integers(0, 3, p), ridge, 2 * price


def curve_value(X, y, w, columns, ridge, var=0.5):
    """Best value on the columns, ridge included, by least squares on the rows and those the ridge adds."""
    on = [0, *columns]
    rows = np.vstack([np.sqrt(w / var)[:, None] * X[:, on], np.diag(np.sqrt(ridge[on]))])
    told = np.r_[np.sqrt(w / var) * y, np.zeros(len(on))]
    coef = np.linalg.lstsq(rows, told, rcond=1e-9)[0]
    return 0.5 * (told @ told - np.sum((told - rows @ coef) ** 2))


@quick
@given(seeds)
def test_curves_have_one_price_and_a_ridge(seed):
    rng, X, y, w, labels, ridge, price = curves(seed)
    p = X.shape[1]
    (gram, cross) = moments(X, y, w)
    start = np.flatnonzero(rng.random(p) < 0.5)
    found = foba(gram, cross, price, start=start, groups=labels, per_group=True, ridge=ridge)
    names = np.unique(labels[1:]).tolist()
    own = {g: [j for j in range(1, p) if labels[j] == g] for g in names}
    every = {}
    for chosen in product([False, True], repeat=len(names)):
        on = frozenset(g for g, yes in zip(names, chosen, strict=True) if yes)
        every[on] = curve_value(X, y, w, [j for g in on for j in own[g]], ridge) - price * len(on)
    chosen = frozenset(labels[j] for j in found.support)
    slack = 1e-6 * (1 + abs(found.gain))
    told = cross @ found.coef - 0.5 * found.coef @ gram @ found.coef - 0.5 * ridge @ found.coef**2
    assert found.gain == pytest.approx(told - price * len(chosen), abs=slack)
    assert found.gain == pytest.approx(every[chosen], abs=slack)
    assert every[frozenset(labels[j] for j in start if j)] <= found.gain + slack
    assert found.gain <= max(every.values()) + slack
    if np.linalg.matrix_rank(X * np.sqrt(w)[:, None]) == p:
        assert all(every[chosen ^ {g}] <= found.gain + slack for g in names)


@quick
@given(seeds)
def test_a_ridge_is_more_rows(seed):
    _, X, y, w, labels, ridge, price = curves(seed)
    gram, cross = moments(X, y, w)
    for options in ({}, {"groups": labels}):
        with_ridge = foba(gram, cross, price, ridge=ridge, **options)
        added = foba(gram + np.diag(ridge), cross, price, **options)
        assert with_ridge.gain == pytest.approx(added.gain, rel=1e-9, abs=1e-9)


@quick
@given(seeds)
def test_blocks_are_swept_as_their_columns(seed):
    _, X, y, w, price = plain_problem(seed)
    gram, cross = moments(X, y, w)
    labels = np.arange(X.shape[1]) % 3
    size = np.bincount(labels[1:], minlength=3)
    if len(set(size[size > 0].tolist())) == 1:  # groups of one size: the two prices say the same
        one = foba(gram, cross, price, groups=labels)
        other = foba(gram, cross, price * size.max(), groups=labels, per_group=True)
        assert one.support == other.support and one.gain == pytest.approx(other.gain)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-6, atol=1e-9)


def test_a_group_costs_as_many_prices_as_there_are_right_hand_sides():
    rng = np.random.default_rng(13)
    X = np.column_stack([np.ones(40), rng.normal(size=(40, 4))])
    many = rng.normal(size=(40, 3))
    gram = X.T @ X
    cross = X.T @ many
    labels = np.array([0, 1, 1, 2, 2])
    free = foba(gram, cross, 0.0, groups=labels, per_group=True)
    dear = foba(gram, cross, 1e-6, groups=labels, per_group=True, start=range(5))
    assert dear.support == free.support == (1, 2, 3, 4)
    assert free.gain - dear.gain == pytest.approx(6e-6, rel=1e-3)


@quick
@given(seeds, st.integers(2, 3))
def test_classes_have_curves_too(seed, n_classes):
    rng, X, Y, w, price = classes(seed, n_classes)
    p = X.shape[1]
    labels = rng.integers(0, 3, p)
    ridge = rng.choice([0.0, 0.1, 10.0], p) * (np.arange(p) > 0)
    options = {"groups": labels, "per_group": True, "ridge": ridge}

    def worth(coef):
        chosen = np.unique(labels[1:][coef[1:].any(axis=1)])
        return (
            soft_value(X, Y, w, coef, 0.0)
            - (ridge @ coef**2).sum()
            - price * (n_classes - 1) * len(chosen)
        )

    begin = rng.normal(size=(p, n_classes)) * (rng.random(p) < 0.5)[:, None]
    begin -= begin.mean(axis=1, keepdims=True)
    for start in (None, begin):
        found = foba_softmax(X, Y, w, price, start, **options)
        assert found.gain == pytest.approx(worth(found.coef), abs=1e-6)
        assert found.gain >= worth(np.zeros_like(begin) if start is None else start) - 1e-9
    on = np.isin(labels, labels[list(found.support)]) | (np.arange(p) == 0)
    alone = foba_softmax(
        X[:, on], Y, w, 0.0, None, groups=labels[on], per_group=True, ridge=ridge[on]
    )
    charged = price * (n_classes - 1) * len(np.unique(labels[list(found.support)]))
    assert found.gain == pytest.approx(alone.gain - charged, abs=0.01 + 1e-4 * abs(alone.gain))


def test_a_large_group_of_columns_enters_alone():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(200), rng.normal(size=(200, 3))])
    scores = 3 * (X[:, [2]] + X[:, [3]]) * [-1.0, 0.0, 1.0] + rng.gumbel(size=(200, 3))
    Y = np.eye(3)[scores.argmax(axis=1)]
    search = foba_softmax_search(10.0, np.zeros((4, 3)), groups=[0, 1, 2, 2])
    assert run_coroutine(search, row_evaluator(X, Y, np.ones(200))).support == (2, 3)


def test_large_scores_of_classes_do_not_overflow():
    scores = np.array([[800.0, 0.0], [0.0, -800.0]])
    assert softmax_log_lik(scores, np.eye(2), np.ones(2)) == -800.0


@quick
@given(seeds)
def test_logistic_curves_are_those_of_two_classes(seed):
    rng, X, Y, w, price = classes(seed, 2)
    p = X.shape[1]
    options = {
        "groups": rng.integers(0, 3, p),
        "ridge": rng.choice([0.1, 10.0], p) * (np.arange(p) > 0),
    }
    one = foba_logistic(X, Y[:, 1], w, price, **options)
    two = foba_softmax(X, Y, w, price, **options)
    assert one.support == two.support and one.gain == two.gain
    scores = X @ one.coef
    size = np.isin(options["groups"][1:], options["groups"][list(one.support)]).sum()
    told = (
        w @ (Y[:, 1] * scores - np.logaddexp(0, scores))
        - 0.5 * options["ridge"] @ one.coef**2
        - price * size
    )
    assert one.gain == pytest.approx(told, abs=1e-6)
