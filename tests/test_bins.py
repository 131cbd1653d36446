"""Sums over questions against the N × L matrix of answers that the package never builds."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabinterp.rows.bins import (
    bin_codes,
    bit_log_likelihood,
    bit_masses,
    bit_probs,
    cell_log_probs,
    cell_masses,
    incidence,
    merge_identical,
    table_thresholds,
)

seeds = st.integers(0, 2**32 - 1)


def problem(seed, gaps=True):
    """A small table with ties, constant columns and gaps, and raw thresholds inside and outside its range."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 40)
    d = rng.integers(1, 5)
    X = rng.normal(size=(n, d)).round(rng.integers(0, 3)) * 10.0 ** rng.integers(-12, 13)
    if rng.random() < 0.3:
        X[:, 0] = X[0, 0]
    scale = np.abs(X).max() + 1e-300
    thresholds = []
    for x in X.T:
        raw = np.concatenate(
            [scale * rng.normal(size=rng.integers(0, 20)), rng.choice(x, rng.integers(0, 5))]
        )
        thresholds.append(np.unique(raw))
    if gaps:
        X[rng.random(X.shape) < rng.choice([0.0, 0.2, 1.0], p=[0.4, 0.5, 0.1])] = np.nan
    return rng, X, thresholds


def raw_answers(X, thresholds):
    """Answers to all raw questions, nan where x is missing, and the answers to "x is missing" where it ever is."""
    parts = []
    for x, cuts in zip(X.T, thresholds, strict=True):
        gap = np.isnan(x)[:, None]
        parts.append(np.where(gap, np.nan, x[:, None] > cuts))
        if gap.any():
            parts.append(gap.astype(float))
    return np.hstack(parts)


def spread(bins, values):
    """Values of merged statements (K, L'), one for each raw question (K, L)."""
    return np.repeat(values, bins.multiplicity.astype(int), axis=1)


@given(seeds)
def test_look_up_equals_the_dense_product_over_raw_questions(seed):
    rng, X, thresholds = problem(seed)
    bins = merge_identical(X, thresholds)
    answers = raw_answers(X, thresholds)
    assert bins.n_bits == answers.shape[1]
    eta = rng.uniform(1e-8, 1 - 1e-8, (3, len(bins.multiplicity)))
    yes = np.nan_to_num(answers)
    no = np.nan_to_num(1 - answers)
    dense = yes @ np.log(spread(bins, eta)).T + no @ np.log1p(-spread(bins, eta)).T
    ours = bit_log_likelihood(incidence(bin_codes(X, bins), bins), bins, eta)
    np.testing.assert_allclose(ours, dense, rtol=1e-12, atol=1e-10)


@given(seeds)
def test_masses_equal_the_dense_product_over_raw_questions(seed):
    rng, X, thresholds = problem(seed)
    bins = merge_identical(X, thresholds)
    answers = raw_answers(X, thresholds)
    resp = rng.dirichlet(np.ones(3), len(X)) * rng.integers(0, 3, (len(X), 1))
    yes, no = bit_masses(bins, cell_masses(incidence(bin_codes(X, bins), bins), resp))
    np.testing.assert_allclose(spread(bins, yes), resp.T @ np.nan_to_num(answers), atol=1e-10)
    np.testing.assert_allclose(spread(bins, no), resp.T @ np.nan_to_num(1 - answers), atol=1e-10)


@given(seeds)
def test_no_two_merged_thresholds_are_answered_alike(seed):
    _, X, thresholds = problem(seed)
    bins = merge_identical(X, thresholds)
    for x, cuts, kept, counts in zip(X.T, thresholds, bins.thresholds, bins.counts, strict=True):
        known = x[~np.isnan(x)]
        columns = (known[:, None] > kept).T
        assert len(np.unique(columns, axis=0)) == len(kept) <= len(cuts)
        assert counts.sum() == len(cuts) and np.isin(kept, cuts).all()
        assert (np.diff(kept) > 0).all()


@given(seeds)
def test_codes_say_every_answer(seed):
    _, X, thresholds = problem(seed)
    bins = merge_identical(X, thresholds)
    cell = bin_codes(X, bins)
    assert cell.dtype.kind == "u"
    for j, cuts in enumerate(bins.thresholds):
        known = ~np.isnan(X[:, j])
        rank = np.arange(1, len(cuts) + 1)
        assert np.array_equal(X[known, j][:, None] > cuts, cell[known, j][:, None] >= rank)
        assert (cell[~known, j] == len(cuts) + 1).all()


@given(seeds)
def test_masses_of_chunks_add(seed):
    rng, X, thresholds = problem(seed)
    bins = merge_identical(X, thresholds)
    S = incidence(bin_codes(X, bins), bins)
    resp = rng.random((len(X), 2))
    half = len(X) // 2
    parts = cell_masses(S[:half], resp[:half]) + cell_masses(S[half:], resp[half:])
    np.testing.assert_allclose(cell_masses(S, resp), parts, atol=1e-12)
    eta = rng.uniform(0.1, 0.9, (2, len(bins.multiplicity)))
    np.testing.assert_array_equal(
        bit_log_likelihood(S, bins, eta)[half:], bit_log_likelihood(S[half:], bins, eta)
    )


@given(seeds)
def test_thresholds_of_a_table_tell_all_values_apart(seed):
    _, X, _ = problem(seed)
    for x, cuts in zip(X.T, table_thresholds(X), strict=True):
        values = np.unique(x[~np.isnan(x)])
        assert len(cuts) == max(len(values) - 1, 0)
        assert np.array_equal((values[:, None] > cuts).sum(axis=1), np.arange(len(values)))


@given(seeds, st.integers(1, 12))
def test_weights_are_repetitions(seed, max_bins):
    rng, X, thresholds = problem(seed)
    weight = rng.integers(0, 3, len(X))
    repeated = np.repeat(X, weight, axis=0)
    for ours, theirs in zip(
        table_thresholds(X, max_bins, weight), table_thresholds(repeated, max_bins), strict=True
    ):
        assert np.array_equal(ours, theirs) and len(ours) <= max_bins - 1
    ours = merge_identical(X, thresholds, weight)
    theirs = merge_identical(repeated, thresholds)
    assert all(map(np.array_equal, ours.thresholds, theirs.thresholds))
    assert all(map(np.array_equal, ours.counts, theirs.counts)) and np.array_equal(
        ours.missing, theirs.missing
    )


def test_quantile_cuts_are_near_the_quantiles():
    x = np.random.default_rng(0).exponential(size=(10_000, 1))
    (cuts,) = table_thresholds(x, max_bins=10)
    np.testing.assert_allclose(np.mean(x > cuts, axis=0), np.arange(9, 0, -1) / 10, atol=1e-3)


def test_neighbouring_floats_and_huge_values_are_told_apart():
    x = np.array([1.0, np.nextafter(1, 2), 5e-324, 0.0, 1.7e308, -1.7e308])
    (cuts,) = table_thresholds(x[:, None])
    assert np.array_equal(np.sum(np.sort(x)[:, None] > cuts, axis=1), np.arange(6))


@given(seeds, st.floats(1e-8, 0.4))
def test_floored_probabilities_are_the_constrained_maximum(seed, floor):
    rng = np.random.default_rng(seed)
    yes, no = rng.exponential(size=(2, 1, 5)) * rng.integers(0, 2, (2, 1, 5))
    eta = bit_probs(yes, no, floor)
    assert (eta >= floor).all() and (eta <= 1 - floor).all()
    others = rng.uniform(floor, 1 - floor, (200, 5))
    assert (
        (yes * np.log(others) + no * np.log1p(-others))
        <= yes * np.log(eta) + no * np.log1p(-eta) + 1e-12
    ).all()


def test_a_gap_that_training_did_not_have_says_nothing():
    X = np.arange(10.0)[:, None] * [1, 2]
    bins = merge_identical(X, table_thresholds(X))
    eta = np.random.default_rng(0).uniform(0.1, 0.9, (2, len(bins.multiplicity)))
    row = bin_codes([[3.0, np.nan]], bins)
    known = cell_log_probs(bins, eta)[bins.cells(0)][3]
    np.testing.assert_allclose(bit_log_likelihood(incidence(row, bins), bins, eta)[0], known)


def test_a_constant_column_costs_no_likelihood_but_counts():
    X = np.column_stack([np.full(20, 3.0), np.arange(20.0)])
    bins = merge_identical(X, [np.array([1.0, 2.0, 4.0]), np.array([9.5])])
    assert bins.n_bits == 4 and [list(c) for c in bins.counts] == [[2, 1], [1]]
    S = incidence(bin_codes(X, bins), bins)
    eta = bit_probs(*bit_masses(bins, cell_masses(S, np.ones((20, 1)))), floor=1e-12)
    np.testing.assert_allclose(bit_log_likelihood(S, bins, eta)[:, 0], np.log(0.5), atol=1e-9)


def test_errors_name_the_argument():
    X = np.zeros((3, 2))
    bins = merge_identical(X, table_thresholds(X))
    with pytest.raises(ValueError, match=r"X must have 2 columns, got shape \(3, 1\)"):
        bin_codes(X[:, :1], bins)
    with pytest.raises(
        ValueError, match="max_bins must be None or an integer of at least 1, got 0"
    ):
        table_thresholds(X, max_bins=0)


def test_a_hundred_thousand_rows_and_questions_need_little_memory():
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        X = rng.random((100_000, 20))
        bins = merge_identical(X, [np.sort(rng.random(5000)) for _ in range(20)])
        S = incidence(bin_codes(X, bins), bins)
        resp = rng.dirichlet(np.ones(10), 100_000)
        eta = bit_probs(*bit_masses(bins, cell_masses(S, resp)), 1e-8)
        bit_log_likelihood(S, bins, eta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert bins.n_bits == 100_000 and S.indices.dtype == np.int32
    assert peak < 0.5e9
