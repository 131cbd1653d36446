"""Experts: the M-step is the constrained maximum, and nothing depends on units."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabinterp.experts import (
    MIN_VAR,
    Categorical,
    ConstantGaussian,
    categorical,
    constant_gaussian,
    variance_floor,
)

seeds = st.integers(0, 2**32 - 1)


def problem(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 40), rng.integers(1, 5)
    resp = rng.dirichlet(np.full(k, rng.choice([0.05, 1.0])), n)
    return rng, n, k, resp, rng.integers(0, 3, n) + (np.arange(n) == 0).astype(float)


def expected(expert, y, resp, w):
    return (w[:, None] * resp * expert.log_lik(y)).sum(axis=0)


@settings(deadline=None)
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


@settings(deadline=None)
@given(seeds, st.integers(-12, 12), st.sampled_from([0.0, 1.0, 1e9]))
def test_gaussian_follows_scale_and_offset(seed, power, offset):
    rng, n, k, resp, w = problem(seed)
    y, scale = rng.normal(size=n), 10.0**power
    assume(np.sum(w > 0) > 1)  # a single value has no scale
    plain, moved = constant_gaussian(y, resp, w), constant_gaussian(scale * (y + offset), resp, w)
    tolerance = 1e-6 if offset == 1e9 else 1e-12
    np.testing.assert_allclose(moved.mean / scale - offset, plain.mean, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(moved.var / scale**2, plain.var, rtol=1e-9, atol=tolerance)


@settings(deadline=None)
@given(seeds)
def test_weights_are_repetitions(seed):
    rng, n, k, resp, w = problem(seed)
    times = w.astype(int)
    y, label = rng.normal(size=n), rng.integers(0, 3, n)
    again, ones = np.repeat(resp, times, axis=0), np.ones(times.sum())
    one, two = constant_gaussian(y, resp, w), constant_gaussian(np.repeat(y, times), again, ones)
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-12)
    np.testing.assert_allclose(one.var, two.var, rtol=1e-9)
    one, two = categorical(label, resp, w, 3, 1e-8), categorical(np.repeat(label, times), again, ones, 3, 1e-8)
    np.testing.assert_allclose(one.prob, two.prob, rtol=1e-9)


@settings(deadline=None)
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
            gain = np.where(mass > 0, mass * (np.log(prob + 1e-300) - np.log(best.prob + 1e-300)), 0).sum(axis=1)
            assert (gain <= 1e-9).all()


@settings(deadline=None)
@given(seeds)
def test_codes_and_probabilities_say_the_same(seed):
    rng, n, k, resp, w = problem(seed)
    label = rng.integers(0, 3, n)
    hard, soft = categorical(label, resp, w, 3, 1e-8), categorical(np.eye(3)[label], resp, w, 3, 1e-8)
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
    y, resp = np.full(20, value), np.full((20, 2), 0.5)
    assert variance_floor(y, np.ones(20)) == 1
    assert np.isfinite(constant_gaussian(y, resp, np.ones(20)).log_lik(y)).all()


def test_an_empty_expert_stays_finite():
    resp = np.column_stack([np.ones(10), np.zeros(10)])
    y = np.arange(10.0)
    gaussian = constant_gaussian(y, resp, np.ones(10)).update(y, resp, np.ones(10))
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
    with pytest.raises(ValueError, match=r"floor must be in \[0, 1/3\), got 0.5"):
        categorical(np.array([0, 1, 2]), np.ones((3, 1)), np.ones(3), 3, 0.5)
