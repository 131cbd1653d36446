"""Oblique trees of curves over blocks of rows: whatever the cuts, the same model as from one block."""

from copy import deepcopy
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import case, examples
from shared.options import nested

from fabinterp import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
from fabinterp.models.curve_trees import CurveOptions
from fabinterp.rows import chunks
from fabinterp.rows.blocks import InMemory
from fabinterp.rows.chunks import split_training_data
from fabinterp.rows.tables import build_training_data

pytestmark = pytest.mark.filterwarnings("ignore:FIC still rises")
seeds = st.integers(0, 10**6)


def table_of(seed, task, n=240):
    """A frame with a plane between two curves, gaps, labels and doubled rows; answers; weights."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)).round(2), columns=["a", "b", "c"])
    side = X["a"] - 0.7 * X["b"] > 0.1
    y = np.where(side, np.sin(3 * X["c"]), 1.0 - X["c"] ** 2) + 0.2 * rng.normal(size=n)
    if task != "numbers":
        y = np.digitize(y, [0.5] if task == "two" else [0.2, 0.8])
    X["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], n))
    X.loc[rng.random(n) < 0.1, "c"] = np.nan
    at = np.r_[np.arange(n), rng.integers(0, n, n // 10)]
    return X.iloc[at], y[at], rng.integers(1, 4, len(at)) + rng.random(len(at))


def estimator_of(task, **options):
    kind = ObliqueAdditiveRegressor if task == "numbers" else ObliqueAdditiveClassifier
    settings = {"search": "em", "max_depth": 2, "n_knots": 3, "max_iter": 6, "random_state": 0}
    return kind(**nested(**settings | options))


def same(one, two, tol):
    """The same tree and rules up to rounding, in all that a reader or a prediction sees."""
    assert two.fic_ == pytest.approx(one.fic_, rel=tol)
    np.testing.assert_allclose(two.trace_, one.trace_, rtol=tol)
    assert two.n_components_ == one.n_components_
    for a, b in zip(one.tree_.splits, two.tree_.splits, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.features == b.features and a.missing == b.missing
            assert b.threshold == pytest.approx(a.threshold, rel=1e-4, abs=1e-6)
            np.testing.assert_allclose(b.coef, a.coef, rtol=1e-4)
    for a, b in zip(one.rules_.rules, two.rules_.rules, strict=True):
        assert (a.support, a.coverage) == pytest.approx((b.support, b.coverage), rel=1e-12)
        assert a.leaf.used_features == b.leaf.used_features
        assert (a.leaf.lower, a.leaf.upper) == pytest.approx((b.leaf.lower, b.leaf.upper), rel=tol)
    if hasattr(one, "std_"):
        np.testing.assert_allclose(two.std_, one.std_, rtol=1e-5)


def cut(part, rng, n_blocks):
    """A tuple of arrays with as many rows as `InMemory` blocks."""
    n = len(part[-1])
    cuts = np.sort(rng.choice(np.arange(1, n), n_blocks - 1, replace=False))
    return InMemory(tuple(column[rows] for column in part) for rows in np.split(np.arange(n), cuts))


@examples(6)
@given(
    seeds,
    st.integers(2, 9),
    st.sampled_from(["numbers", "two", "three"]),
    st.booleans(),
    st.sampled_from([0.5, "gcv"]),
)
def test_blocks_of_any_sizes_give_the_same_model(seed, n_blocks, task, factors, smoothing):
    X, y, w = table_of(seed, task)
    options = {"fisher_factors": factors, "smoothing": smoothing}
    one, two = (estimator_of(task, **options) for _ in range(2))
    rng = np.random.default_rng(seed)
    for model, number in ((one, 2), (two, n_blocks + 1)):  # one block has a start of its own
        chunked = split_training_data(build_training_data(model, X, y, w))
        part = chunked.rows.single_block
        order = rng.permutation(len(part[1]))
        rows = cut(tuple(column[order] for column in part), rng, number)
        model._fit_rows(replace(chunked, rows=rows))
    same(one, two, 1e-5)
    np.testing.assert_allclose(two.tree_.predict(X[:0]), one.tree_.predict(X[:0]))
    used = [set(one.terms(k)) for k in range(1, 1 + len(one.rules_.rules))]
    assert used == [set(two.terms(k)) for k in range(1, 1 + len(two.rules_.rules))]
    for name, band in one.terms(1).items():
        np.testing.assert_allclose(two.terms(1)[name], band, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["numbers", case("three", quick=False)])
def test_small_tables_in_chunks_are_tables(task):
    X, y, w = table_of(3, task)
    one = estimator_of(task).fit(X, y, w)
    two = estimator_of(task).fit_chunks(lambda: ((X[i::7], y[i::7], w[i::7]) for i in range(7)))
    same(one, two, 1e-9)
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-6, atol=1e-9)
    searched = [
        estimator_of(task, search="structure", n_perturbations=1, max_depth=1) for _ in range(2)
    ]
    searched[0].fit(X, y, w)
    searched[1].fit_chunks([(X, y, w)])  # every row is in the sample
    same(*searched, 1e-9)


def few_in_a_block():
    """As if rows were too many for one block and for the sample."""
    return mock.patch.multiple(chunks, N_SAMPLE=800, block_rows=lambda d: 700)


def large(n, seed=0):
    """Rows whose first two columns say, added up, which of two curves holds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    side = X[:, 0] + 0.6 * X[:, 1] > 0.2
    return X, np.where(side, np.sin(3 * X[:, 2]), 2 * X[:, 3]) + rng.normal(0, 0.1, n)


@pytest.mark.parametrize("task", ["numbers", "two"])
def test_streamed_is_in_memory(task):
    X, y = large(4000)
    y = y if task == "numbers" else (y > 0).astype(int)
    with few_in_a_block():
        one = estimator_of(task, max_depth=1).fit(X, y)
        parts = [(X[i : i + 900], y[i : i + 900]) for i in range(0, 4000, 900)]
        two = estimator_of(task, max_depth=1).fit_chunks(parts)
    same(one, two, 1e-6)
    assert sum(rule.support for rule in two.rules_.rules) == 4000
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-3, atol=1e-3)


def test_dask_is_in_memory():
    da = pytest.importorskip("dask.array")
    X, y = large(3000)
    with few_in_a_block():
        one = estimator_of("numbers", max_depth=1).fit(X, y)
        two = estimator_of("numbers", max_depth=1).fit(
            da.from_array(X, chunks=(1100, 4)), da.from_array(y, chunks=1100)
        )
    same(one, two, 1e-6)


def test_gaps_outside_the_sample_keep_a_column_out_of_gates():
    X, y = large(3000)
    X[2999, 0] = np.nan
    model = estimator_of("numbers", max_depth=1)
    with mock.patch.object(chunks, "N_SAMPLE", 300):
        chunked = split_training_data(build_training_data(model, X, y))
        held = ~np.isnan(chunked.sample.Z[:, 0])
        names = ("Z", "y", "w", "first_positions")
        kept = {name: getattr(chunked.sample, name)[held] for name in names}
        model._fit_rows(replace(chunked, sample=replace(chunked.sample, **kept)))
    assert 0 not in model.design_.split_features and 1 in model.design_.split_features
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("task", ["numbers", "two"])
@pytest.mark.parametrize("smoothing", [0.5, case("reml", quick=False)])
def test_structure_search_finds_planes_on_the_sample_and_numbers_on_all_rows(task, smoothing):
    X, y = large(1500)
    kind = ObliqueAdditiveRegressor if task == "numbers" else ObliqueAdditiveClassifier
    y = y if task == "numbers" else (y > 0).astype(int)
    options = {
        "penalty": 1.0,
        "n_perturbations": 0,
        "max_depth": 1,
        "n_knots": 3,
        "smoothing": smoothing,
    }
    model = kind(random_state=0, **nested(**options))
    with mock.patch.object(chunks, "N_SAMPLE", 700):
        one = deepcopy(model.fit(X, y))
        model.fit_chunks([(X[i : i + 400], y[i : i + 400]) for i in range(0, 1500, 400)])
    same(one, model, 1e-6)
    assert sum(rule.support for rule in model.rules_.rules) == 1500


def test_parameters_are_read_before_rows():
    def never():
        raise AssertionError("read")

    with pytest.raises(ValueError, match="smoothing, unless"):
        ObliqueAdditiveRegressor(curves=CurveOptions(smoothing="some")).fit_chunks(never)


def test_one_class_and_one_number():
    X, _ = large(1000)
    with mock.patch.object(chunks, "N_SAMPLE", 300):
        assert (estimator_of("two").fit_chunks([(X, np.ones(1000, int))]).predict(X) == 1).all()
        flat = estimator_of("numbers").fit_chunks([(X, np.full(1000, 2.5))])
    assert flat.n_components_ == 1 and (flat.predict(X) == 2.5).all()
