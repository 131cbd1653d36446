"""Experts: the M-step is the constrained maximum, and nothing depends on units."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from shared.effort import examples

from fabinterp.fab.constant_experts import (
    MIN_VAR,
    Categorical,
    ConstantGaussian,
    categorical,
    constant_gaussian,
    variance_floor,
)
from fabinterp.fab.experts import Gaussian, Softmax, Terms, gaussian_experts, softmax_experts

seeds = st.integers(0, 2**32 - 1)


def problem(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 40)
    k = rng.integers(1, 5)
    resp = rng.dirichlet(np.full(k, rng.choice([0.05, 1.0])), n)
    return rng, n, k, resp, rng.integers(0, 3, n) + (np.arange(n) == 0).astype(float)


def expected(expert, y, resp, w):
    return (w[:, None] * resp * expert.log_lik(y)).sum(axis=0)


@given(seeds)
def test_gaussian_update_is_never_beaten(seed):
    rng, n, k, resp, w = problem(seed)
    y = rng.normal(size=n).round(rng.integers(0, 3))
    best = constant_gaussian(y, resp, w)
    assert (best.var >= best.floor).all()
    value = expected(best, y, resp, w)
    for _ in range(20):
        var = np.maximum(best.var * np.exp(rng.normal(size=k)), best.floor)
        other = ConstantGaussian(best.mean + rng.normal(size=k) * rng.choice([1e-3, 1.0]), var)
        assert (expected(other, y, resp, w) <= value + 1e-8 * (1 + np.abs(value))).all()


@given(seeds, st.integers(-12, 12), st.sampled_from([0.0, 1.0, 1e9]))
def test_gaussian_follows_scale_and_offset(seed, power, offset):
    rng, n, k, resp, w = problem(seed)
    y = rng.normal(size=n)
    scale = 10.0**power
    assume(np.sum(w > 0) > 1)  # a single value has no scale
    plain = constant_gaussian(y, resp, w)
    moved = constant_gaussian(scale * (y + offset), resp, w)
    tolerance = 1e-6 if offset == 1e9 else 1e-12
    np.testing.assert_allclose(moved.mean / scale - offset, plain.mean, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(moved.var / scale**2, plain.var, rtol=1e-9, atol=tolerance)


@given(seeds)
def test_weights_are_repetitions(seed):
    rng, n, k, resp, w = problem(seed)
    times = w.astype(int)
    y = rng.normal(size=n)
    label = rng.integers(0, 3, n)
    again = np.repeat(resp, times, axis=0)
    ones = np.ones(times.sum())
    one = constant_gaussian(y, resp, w)
    two = constant_gaussian(np.repeat(y, times), again, ones)
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-12)
    np.testing.assert_allclose(one.var, two.var, rtol=1e-9)
    one = categorical(label, resp, w, 3, 1e-8)
    two = categorical(np.repeat(label, times), again, ones, 3, 1e-8)
    np.testing.assert_allclose(one.prob, two.prob, rtol=1e-9)


@given(seeds, st.sampled_from([0.0, 1e-8, 0.01, 0.2]))
def test_categorical_update_is_never_beaten(seed, floor):
    rng, n, k, resp, w = problem(seed)
    label = rng.integers(0, 4, n) * rng.integers(0, 2)
    best = categorical(label, resp, w, 4, floor)
    np.testing.assert_allclose(best.prob.sum(axis=1), 1, rtol=1e-12)
    assert (best.prob >= floor * (1 - 1e-12)).all()
    mass = (resp * w[:, None]).T @ np.eye(4)[label]
    for _ in range(20):
        other = floor + (1 - 4 * floor) * rng.dirichlet(np.full(4, 0.3), k)
        near = 0.99 * best.prob + 0.01 * other
        for prob in (other, near):
            gain = np.where(
                mass > 0, mass * (np.log(prob + 1e-300) - np.log(best.prob + 1e-300)), 0
            ).sum(axis=1)
            assert (gain <= 1e-9).all()


@given(seeds)
def test_codes_and_probabilities_say_the_same(seed):
    rng, n, k, resp, w = problem(seed)
    label = rng.integers(0, 3, n)
    hard = categorical(label, resp, w, 3, 1e-8)
    soft = categorical(np.eye(3)[label], resp, w, 3, 1e-8)
    np.testing.assert_allclose(hard.prob, soft.prob, rtol=1e-12)
    np.testing.assert_allclose(hard.log_lik(label), soft.log_lik(np.eye(3)[label]), rtol=1e-12)
    votes = rng.dirichlet(np.ones(3), n)
    expectation = sum(votes[:, [c]] * soft.log_lik(np.full(n, c)) for c in range(3))
    np.testing.assert_allclose(soft.log_lik(votes), expectation, rtol=1e-10)


def test_equal_answers_reach_the_floor_and_not_below():
    y = np.r_[np.zeros(5), np.random.default_rng(0).normal(size=50)]
    resp = np.eye(2)[np.repeat([0, 1], [5, 50])]
    expert = constant_gaussian(y, resp, np.ones(55))
    assert expert.var[0] == expert.floor == pytest.approx(MIN_VAR * y.var())


@pytest.mark.parametrize("value", [0.0, 7.0, 1e9 + 0.1, -1e-12])
def test_a_constant_target_has_a_finite_likelihood(value):
    y = np.full(20, value)
    resp = np.full((20, 2), 0.5)
    assert variance_floor(y, np.ones(20)) == 1
    assert np.isfinite(constant_gaussian(y, resp, np.ones(20)).log_lik(y)).all()


def test_an_empty_expert_stays_finite():
    resp = np.column_stack([np.ones(10), np.zeros(10)])
    y = np.arange(10.0)
    gaussian = constant_gaussian(y, resp, np.ones(10)).update(None, y, resp, np.ones(10))
    assert np.isfinite(gaussian.log_lik(y)).all()
    classes = categorical(np.zeros(10, int), resp, np.ones(10), 3, 1e-8)
    np.testing.assert_allclose(classes.prob[1], 1 / 3)


def test_keep_and_dims():
    gaussian = ConstantGaussian(np.arange(3.0), np.ones(3), 1e-6)
    kept = gaussian.keep(np.array([True, False, True]))
    assert list(kept.mean) == [0, 2] and kept.floor == 1e-6 and list(kept.dims) == [2, 2]
    classes = Categorical(np.full((3, 4), 0.25), 1e-8).keep(np.array([False, True, True]))
    assert classes.prob.shape == (2, 4) and list(classes.dims) == [3, 3] and classes.floor == 1e-8


def test_a_floor_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="floor must be at least 0 and below 1/3, got 0.5"):
        categorical(np.array([0, 1, 2]), np.ones((3, 1)), np.ones(3), 3, 0.5)


# Linear experts


def linear_problem(seed):
    """Design with awkward columns, responsibilities (some experts empty), integer weights; sometimes p > n."""
    rng, n, k, resp, w = problem(seed)
    p = rng.integers(1, 7)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    for j in range(1, p + 1):
        kind = rng.integers(0, 8)
        if kind < 3:  # zero, constant, a combination of others
            X[:, j] = [np.zeros(n), np.full(n, 3.0), X[:, rng.integers(0, j)] - 2 * X[:, 0]][kind]
    if k > 1 and rng.random() < 0.3:
        resp[:, 0] = 0.0
        resp[:, 1] += 1e-3  # somebody is responsible
    y = X @ rng.normal(size=p + 1) + rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=n)
    return rng, X, y, resp, w


def worth(expert, X, y, resp, w):
    """What the M-step maximises, expert by expert."""
    fit = np.sum(w[:, None] * resp * expert.log_lik(X, y), axis=0)
    return fit - 0.5 * expert.terms.penalty * expert.dims * np.log1p(w @ resp)


@given(seeds, st.booleans(), st.sampled_from([0.0, 1.0, 3.0]))
def test_linear_update_is_never_worse(seed, pooled, penalty):
    rng, X, y, resp, w = linear_problem(seed)
    k = resp.shape[1]
    p = X.shape[1]
    floor = variance_floor(y, w)
    var = np.full(k, floor + rng.exponential()) if pooled else floor + rng.exponential(size=k)
    coef = rng.normal(size=(k, p)) * (rng.random((k, p)) < 0.5)
    expert = Gaussian(coef, var, Terms.lines(p, penalty), floor=floor, pooled=pooled)
    for _ in range(3):
        after = expert.update(X, y, resp, w)
        before = worth(expert, X, y, resp, w)
        now = worth(after, X, y, resp, w)
        slack = 1e-7 * (1 + np.abs(before).sum())
        assert now.sum() >= before.sum() - slack
        assert pooled or (now >= before - slack).all()
        assert (after.var >= floor).all() and np.isfinite(after.coef).all()
        assert not pooled or np.ptp(after.var) == 0
        expert = after


@given(seeds)
def test_linear_is_weighted_least_squares_on_its_support(seed):
    _, X, y, resp, w = linear_problem(seed)
    best = gaussian_experts(X, y, resp, w)
    mass = w @ resp
    for k in np.flatnonzero(mass > 1e-3):
        v = w * resp[:, k]
        columns = np.flatnonzero(best.coef[k])
        coef = np.linalg.lstsq(np.sqrt(v)[:, None] * X[:, columns], np.sqrt(v) * y, rcond=None)[0]
        square = v @ (y - X @ best.coef[k]) ** 2
        assert square <= v @ (y - X[:, columns] @ coef) ** 2 + 1e-9 * (v @ y**2 + 1)
        assert best.var[k] == pytest.approx(max(square / mass[k], best.floor), rel=1e-9)
        assert best.dims[k] == (best.coef[k, 1:] != 0).sum() + 2


@given(seeds)
def test_pooled_variance_is_that_of_all_rows(seed):
    _, X, y, resp, w = linear_problem(seed)
    best = gaussian_experts(X, y, resp, w, pooled=True)
    square = np.sum(w[:, None] * resp * (y[:, None] - X @ best.coef.T) ** 2)
    assert best.var == pytest.approx(max(square / np.sum(w @ resp), best.floor), rel=1e-9)
    assert (best.dims == (best.coef[:, 1:] != 0).sum(axis=1) + 1).all()


def test_linear_update_is_not_beaten_by_moves_of_its_parameters():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 4))])
    y = X[:, 1] - X[:, 2] + rng.normal(size=60)
    resp = rng.dirichlet(np.ones(2), 60)
    w = rng.exponential(size=60)
    best = gaussian_experts(X, y, resp, w)
    top = worth(best, X, y, resp, w)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            coef = best.coef + size * rng.normal(size=best.coef.shape) * (best.coef != 0)
            var = best.var * np.exp(size * rng.normal(size=2))
            other = replace(best, coef=coef, var=var)
            assert (worth(other, X, y, resp, w) <= top + 1e-9).all()


def test_linear_finds_the_best_support_of_easy_data():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(100), rng.normal(size=(100, 4))])
    resp = np.ones((100, 1))
    w = np.ones(100)
    y = 2 + X[:, 1] - X[:, 3] + 0.5 * rng.normal(size=100)
    best = gaussian_experts(X, y, resp, w)
    values = {}
    for support in (s for size in range(5) for s in combinations(range(1, 5), size)):
        columns = [0, *support]
        coef = np.zeros((1, 5))
        coef[0, columns] = np.linalg.lstsq(X[:, columns], y, rcond=None)[0]
        var = np.array([np.mean((y - X @ coef[0]) ** 2)])
        values[support] = worth(Gaussian(coef, var, Terms.lines(5)), X, y, resp, w)[0]
    assert tuple(np.flatnonzero(best.coef[0])[1:]) == max(values, key=values.get)
    assert worth(best, X, y, resp, w)[0] == pytest.approx(max(values.values()))


def test_without_a_price_all_columns_are_in():
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(50), rng.normal(size=(50, 5))])
    y = rng.normal(size=50)
    best = gaussian_experts(X, y, np.ones((50, 1)), np.ones(50), Terms.lines(6, 0.0))
    np.testing.assert_allclose(best.coef[0], np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_linear_follows_scale_offset_and_repetition(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(30), rng.normal(size=(30, 4))])
    y = X @ rng.normal(size=5) + rng.normal(size=30)
    resp = rng.dirichlet(np.ones(2), 30)
    w = rng.integers(1, 4, 30)
    plain = gaussian_experts(X, y, resp, w.astype(float))
    moved = gaussian_experts(X, 1e3 * (y + 1e6), resp, w.astype(float))
    again = gaussian_experts(*(np.repeat(a, w, axis=0) for a in (X, y, resp)), np.ones(w.sum()))
    np.testing.assert_allclose(
        moved.coef / 1e3 - 1e6 * (np.arange(5) == 0), plain.coef, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(moved.var / 1e6, plain.var, rtol=1e-5)
    np.testing.assert_allclose(again.coef, plain.coef, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(again.var, plain.var, rtol=1e-7)


def test_an_exact_line_reaches_the_floor():
    X = np.column_stack([np.ones(20), np.arange(20.0) - 9.5])
    y = 3 * X[:, 1] + 1
    best = gaussian_experts(X, y, np.ones((20, 1)), np.ones(20))
    assert best.var[0] == best.floor == pytest.approx(MIN_VAR * y.var())
    np.testing.assert_allclose(best.coef[0], [1, 3], rtol=1e-6)


@pytest.mark.parametrize(("share", "enters"), [(0.9, True), (1.1, False)])
def test_a_term_of_a_leaf_enters_if_its_gain_exceeds_its_price(share, enters):
    x, noise = np.random.default_rng(0).normal(size=(2, 50))
    table = np.column_stack([np.ones(50), x, x + noise])
    leaf = Gaussian(np.zeros((1, 2)), np.array([4.0]), Terms.lines(2, 0.0))
    moments = table.T @ table
    log_lik = [leaf.fit_leaf(moments, price, np.zeros(2), 1)[1] for price in (0.0, np.inf)]
    coef, _ = leaf.fit_leaf(moments, share * (log_lik[0] - log_lik[1]), np.zeros(2), 1)
    assert (coef[1, 0] != 0) == enters


def test_a_constant_target_leaves_a_constant_line():
    X = np.column_stack([np.ones(20), np.random.default_rng(3).normal(size=(20, 3))])
    best = gaussian_experts(X, np.full(20, 7.0), np.full((20, 2), 0.5), np.ones(20))
    np.testing.assert_allclose(best.coef, np.tile([7.0, 0, 0, 0], (2, 1)))
    assert np.isfinite(best.log_lik(X, np.full(20, 7.0))).all()


@examples(40)
@given(seeds, st.integers(2, 4), st.sampled_from([0.0, 1.0]))
def test_softmax_update_is_never_worse(seed, n_classes, penalty):
    rng, X, _, resp, w = linear_problem(seed)
    label = (
        X @ rng.normal(size=(X.shape[1], n_classes)) + rng.gumbel(size=(len(X), n_classes))
    ).argmax(axis=1)
    k = resp.shape[1]
    p = X.shape[1]
    coef = rng.normal(size=(k, p, n_classes)) * (rng.random((k, p, 1)) < 0.5)
    expert = Softmax(coef, Terms.lines(p, penalty))
    for _ in range(2):
        after = expert.update(X, label, resp, w)
        before = worth(expert, X, label, resp, w)
        now = worth(after, X, label, resp, w)
        assert (now >= before - 1e-9 * (1 + np.abs(before))).all() and np.isfinite(after.coef).all()
        expert = after


def test_softmax_codes_and_probabilities_say_the_same():
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(40), rng.normal(size=(40, 2))])
    label = rng.integers(0, 3, 40)
    resp = rng.dirichlet(np.ones(2), 40)
    w = np.ones(40)
    one_hot = np.eye(3)[label]
    hard = softmax_experts(X, label, resp, w, 3)
    soft = softmax_experts(X, one_hot, resp, w, 3)
    np.testing.assert_array_equal(hard.coef, soft.coef)
    np.testing.assert_allclose(hard.log_lik(X, label), soft.log_lik(X, one_hot))
    scores = np.einsum("np,kpc->nkc", X, hard.coef)
    prob = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(hard.log_prob(X), np.log(prob), atol=1e-12)


def test_softmax_without_columns_is_the_share():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    label = rng.integers(0, 3, 60)
    resp = rng.dirichlet(np.ones(2), 60)
    w = rng.exponential(size=60)
    expert = softmax_experts(X, label, resp, w, 3, Terms.lines(3, 100.0))
    share = categorical(label, resp, w, 3, 0.0).prob
    np.testing.assert_allclose(np.exp(expert.log_prob(X)), np.tile(share, (60, 1, 1)), atol=1e-4)
    assert list(expert.dims) == [2, 2]


def test_linear_experts_without_rows_stay_as_they_are():
    rng = np.random.default_rng(6)
    X = np.column_stack([np.ones(20), rng.normal(size=(20, 2))])
    y = rng.normal(size=20)
    resp = np.column_stack([np.ones(20), np.zeros(20)])
    w = np.ones(20)
    line = Gaussian(np.ones((2, 3)), np.array([2.0, 3.0]), Terms.lines(3)).update(X, y, resp, w)
    np.testing.assert_allclose(line.coef[1], 1, rtol=1e-12)
    assert line.var[1] == 3
    start = rng.normal(size=(2, 3, 2))
    classes = Softmax(start, Terms.lines(3)).update(X, (y > 0).astype(int), resp, w)
    np.testing.assert_array_equal(classes.coef[1], start[1])


def test_linear_keep_and_dims():
    coef = np.array([[1.0, 0, 2], [3, 0, 0], [4, 5, 6]])
    line = Gaussian(coef, np.arange(1.0, 4), Terms.lines(3, 2.0), floor=1e-6, pooled=True)
    kept = line.keep(np.array([True, False, True]))
    assert list(kept.var) == [1, 3] and list(kept.dims) == [2, 3]
    assert (kept.floor, kept.terms.penalty, kept.pooled) == (1e-6, 2, True)
    classes = Softmax(np.repeat(coef[:, :, None], 4, axis=2), Terms.lines(3, 2.0))
    classes = classes.keep(np.array([False, True, True]))
    assert list(classes.dims) == [3, 9] and classes.terms.penalty == 2
