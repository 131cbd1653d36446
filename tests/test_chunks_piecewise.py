"""Piecewise linear models over blocks of rows: whatever the cuts, the same model as from one block."""

from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples

from fabinterp import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.fab.engine import MIN_WEIGHT_FRACTION
from fabinterp.fab.experts import (
    Categorical,
    ConstantGaussian,
    LinearGaussian,
    LinearSoftmax,
    _constant_gaussian_search,
    _softmax_statistics,
    constant_gaussian,
    linear_gaussian,
    linear_gaussian_search,
    variance_floor,
)
from fabinterp.fab.foba import foba_softmax, foba_softmax_search
from fabinterp.fab.gates import BernoulliGate, GateTree, LogisticGate, full_tree_paths
from fabinterp.fab.hme import HME, MixtureInputs, harden, project, random_start, start_from_tree
from fabinterp.rows import chunks
from fabinterp.rows.blocks import InMemory, fit_by_sums, gather_coroutines, in_memory
from fabinterp.rows.chunks import split_training_data
from fabinterp.rows.tables import build_training_data

seeds = st.integers(0, 10**6)


def cut(part, rng, n_blocks):
    """A tuple of arrays with as many rows as `InMemory` blocks, some of one row."""
    n = len(part[-1])
    cuts = np.sort(rng.choice(np.arange(1, n), min(n_blocks, n) - 1, replace=False))
    return InMemory(tuple(column[rows] for column in part) for rows in np.split(np.arange(n), cuts))


def problem(seed, task, n=80, d=4, K=4):
    """Rows of a `MixtureInputs`, answers, weights, responsibilities; some weights and experts are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = np.asfortranarray(rng.integers(0, 6, (n, d)).astype(np.uint8))  # 5 is missing
    y = X[:, 0] * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 1e6])
    if task != "numbers":
        y = rng.integers(0, 3, n) if task == "codes" else rng.dirichlet(np.ones(3), n)
    w = rng.integers(0, 3, n) + 0.5 * (np.arange(n) == 0)
    resp = rng.dirichlet(np.full(K, 0.5), n)
    if seed % 3 == 0:
        resp = np.eye(K)[rng.integers(0, K - 1, n)]  # hard, and one expert without a row
    return rng, np.column_stack([np.ones(n), X]), codes, y, w, resp


def close(one, two, tol=1e-9):
    """Whether two experts or gate trees are the same up to rounding."""
    for name in ("mean", "var", "prob", "coef", "floor"):
        if hasattr(one, name) and not callable(getattr(one, name)):
            a = np.asarray(getattr(one, name), float)
            b = np.asarray(getattr(two, name), float)
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * (1 + np.abs(a).max(initial=0)))
    if isinstance(one, GateTree):
        assert np.array_equal(one.paths, two.paths)
        for a, b in zip(one.gates, two.gates, strict=True):
            assert replace(a, prob=0.5) == replace(b, prob=0.5) and a.prob == pytest.approx(
                b.prob, rel=tol
            )


@examples(40)
@given(seeds, st.integers(2, 9), st.sampled_from(["numbers", "codes", "shares"]))
def test_what_is_learnt_in_blocks_is_what_is_learnt_in_one(seed, n_blocks, task):
    rng, Z, codes, y, w, resp = problem(seed, task)
    part = cut((Z, codes, y, w, resp), rng, n_blocks).parts
    K = resp.shape[1]
    share = InMemory(p[4] for p in part)
    gates = GateTree(
        (BernoulliGate(1, 2, False, 0.7, 5),) * 3,
        full_tree_paths(2),
        MIN_WEIGHT_FRACTION,
        np.full(4, 5),
    )
    learners = [(1, gates)]
    if task == "numbers":
        floor = variance_floor(y, w)
        learners += [
            (0, ConstantGaussian(np.zeros(K), np.ones(K), floor)),
            (0, LinearGaussian(np.ones((K, 5)), np.full(K, 2.0), floor)),
            (0, LinearGaussian(np.ones((K, 5)), np.full(K, 2.0), floor, pooled=True)),
        ]
    else:
        learners += [
            (0, Categorical(np.full((K, 3), 1 / 3), 1e-8)),
            (0, LinearSoftmax(np.zeros((K, 5, 3)))),
        ]
    for place, learner in learners:
        rows = InMemory((p[place], p[2], p[3]) for p in part)
        X = (Z, codes)[place]
        args = (
            (y, resp, w)
            if isinstance(learner, (ConstantGaussian, Categorical))
            else (X, y, resp, w)
        )
        whole = gates.update(codes, resp, w) if learner is gates else learner.update(*args)
        close(
            whole,
            fit_by_sums(learner.update_search(), rows, share),
            1e-6 if isinstance(learner, LinearSoftmax) else 1e-9,
        )


@examples(25)
@given(seeds, st.integers(2, 9))
def test_first_experts_of_blocks(seed, n_blocks):
    rng, Z, _, y, w, resp = problem(seed, "numbers")
    rows = cut((Z, y, w, resp), rng, n_blocks).parts
    blocks = InMemory(p[:3] for p in rows)
    share = InMemory(p[3] for p in rows)
    close(constant_gaussian(y, resp, w), fit_by_sums(_constant_gaussian_search(4), blocks, share))
    for pooled in (False, True):
        close(
            linear_gaussian(Z, y, resp, w, pooled=pooled),
            fit_by_sums(linear_gaussian_search(4, 5, pooled=pooled), blocks, share),
        )
    flat = fit_by_sums(
        _constant_gaussian_search(4),
        InMemory((X, np.full(len(u), 7.0), v) for X, u, v in blocks.parts),
        share,
    )
    assert flat.floor == 1.0 and (flat.var == 1.0).all()


def test_searches_in_step_share_their_passes():
    rng, Z, _, y, w, resp = problem(1, "codes", n=200)
    asked = []

    class Counted(InMemory):
        def sum(self, function, *args):
            asked.append(args)
            return super().sum(function, *args)

    expert = LinearSoftmax(np.zeros((4, 5, 3)))
    found = fit_by_sums(expert.update_search(), Counted([(Z, y, w)]), in_memory(resp))
    n_together = len(asked)
    alone = []
    for k in range(4):
        asked.clear()
        price = 0.5 * np.log1p(resp[:, k] @ w)
        best = foba_softmax(Z, np.eye(3)[y], resp[:, k] * w, price, expert.coef[k])
        np.testing.assert_allclose(found.coef[k], best.coef, atol=1e-6)
        alone.append(
            fit_by_sums(one_expert(price, expert.coef[k], k), Counted([(Z, y, w)]), in_memory(resp))
        )
        np.testing.assert_allclose(found.coef[k], alone[-1].coef, atol=1e-9)
        alone[-1] = len(asked)
    assert n_together == 1 + max(alone) < sum(alone)


def one_expert(price, start, k):
    """The search of expert k by itself."""
    return (
        yield from gather_coroutines(
            {k: foba_softmax_search(price, start)}, partial(_softmax_statistics, n_classes=3)
        )
    )[k]


@examples(12)
@given(seeds, st.integers(2, 7), st.sampled_from(["numbers", "codes"]))
def test_mixture_projection_and_hardening_in_blocks(seed, n_blocks, task):
    rng, Z, codes, y, w, resp = problem(seed + (seed % 3 == 0), task)
    whole = in_memory((MixtureInputs(Z, codes), y, w))
    n_classes = 3 if task == "codes" else None
    tree = GateTree(
        (
            BernoulliGate(0, 1, False, 1.0, 5),
            BernoulliGate(1, 2, True, 1.0, 5),
            BernoulliGate(2, 3, False, 1.0, 5),
        ),
        full_tree_paths(2),
    )
    model, first = start_from_tree(whole, tree, np.full(4, 5), n_classes=n_classes)
    parts = cut((Z, codes, y, w, resp, first.single_block), rng, n_blocks).parts
    rows = InMemory((MixtureInputs(a, b), u, v) for a, b, u, v, _, _ in parts)
    share = InMemory(p[4] for p in parts)
    again, spread_out = start_from_tree(rows, tree, np.full(4, 5), n_classes=n_classes)
    close(model.gates, again.gates)
    close(model.expert, again.expert, 1e-6 if n_classes else 1e-9)
    np.testing.assert_array_equal(np.concatenate(spread_out.parts), first.single_block)
    one = model.maximise(whole, in_memory(resp))
    two = model.maximise(rows, share)
    close(one.gates, two.gates)
    close(one.expert, two.expert, 1e-6 if n_classes else 1e-9)
    close(one.gates, model.update(MixtureInputs(Z, codes), y, resp, w).gates, 0)
    close(one.expert, model.update(MixtureInputs(Z, codes), y, resp, w).expert, 0)
    got = project(model, rows, share, InMemory(p[5] for p in parts))
    expected = project(model, whole, in_memory(resp), first).single_block
    np.testing.assert_allclose(np.concatenate(got.parts), expected, atol=1e-9)
    (hard, said) = harden(model, MixtureInputs(Z, codes), y, w, 0.05)
    (hard_two, said_two) = harden(model, rows, min_weight_fraction=0.05)
    assert np.array_equal(said, np.concatenate(said_two.parts))
    close(hard.gates, hard_two.gates)


def test_a_mixture_whose_parts_do_not_add_needs_one_block():
    rng, Z, codes, y, w, resp = problem(1, "numbers")
    U = np.tanh(Z[:, 1:])
    gates = GateTree((LogisticGate(),) * 3, full_tree_paths(2)).update(U, resp, w)
    model = HME(gates, linear_gaussian(Z, y, resp, w))
    one = model.maximise(in_memory((MixtureInputs(Z, U), y, w)), in_memory(resp))
    assert one.gates.gates == model.update(MixtureInputs(Z, U), y, resp, w).gates.gates
    halves = [(MixtureInputs(Z[i::2], U[i::2]), y[i::2], w[i::2]) for i in (0, 1)]
    with pytest.raises(
        ValueError, match="rows must be in one block for a model without sums, got 2 blocks"
    ):
        model.maximise(InMemory(halves), InMemory(resp[i::2] for i in (0, 1)))


def test_random_shares_do_not_depend_on_slices():
    rng, Z, codes, y, w, _ = problem(2, "numbers")
    parts = cut((Z, codes, y, w), rng, 5).parts
    rows = InMemory((MixtureInputs(a, b), u, v) for a, b, u, v in parts)
    _, one = random_start(
        in_memory((MixtureInputs(Z, codes), y, w)), np.full(4, 5), np.random.default_rng(0), 2
    )
    _, two = random_start(rows, np.full(4, 5), np.random.default_rng(0), 2)
    np.testing.assert_array_equal(one.single_block, np.concatenate(two.parts))


# Estimators


def table_of(seed, task, n=300):
    """A frame with gaps, a constant column, labels and doubled rows; numbers or classes; weights."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=["a", "b", "c"])
    X["flat"] = 3.0
    X["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], n))
    X.loc[rng.random(n) < 0.1, "c"] = np.nan
    side = (X["a"] > 0.2) & (X["c"].fillna(1) > 0)
    y = np.where(side, 2 * X["b"], 1 - X["a"]) + 0.3 * rng.normal(size=n)
    if task != "numbers":
        y = np.digitize(y, [0.5] if task == "two" else [0.0, 1.2])
    at = np.r_[np.arange(n), rng.integers(0, n, n // 10)]
    return X.iloc[at], y[at], rng.integers(1, 4, len(at)) + rng.random(len(at))


def estimator_of(task, **options):
    kind = PiecewiseLinearRegressor if task == "numbers" else PiecewiseLinearClassifier
    return kind(search="em", max_depth=3, random_state=0, **options)


def same(one, two):
    """Same rules in words, numbers to 1e-10."""
    assert two.fic_ == pytest.approx(one.fic_, rel=1e-10)
    assert str(two.tree_) == str(one.tree_) and two.tree_.splits == one.tree_.splits
    assert str(two.rules_) == str(one.rules_)
    for a, b in zip(one.rules_.rules, two.rules_.rules, strict=True):
        assert (a.support, a.coverage) == pytest.approx((b.support, b.coverage), rel=1e-12)
        assert a.fidelity == pytest.approx(b.fidelity, rel=1e-9)
    if hasattr(one, "std_"):
        np.testing.assert_allclose(two.std_, one.std_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:FIC still rises")
@examples(8)
@given(seeds, st.integers(2, 12), st.sampled_from(["numbers", "two", "three"]), st.booleans())
def test_blocks_of_any_sizes_give_the_same_model(seed, n_blocks, task, hard):
    X, y, w = table_of(seed, task)
    one, two = (estimator_of(task, hard_gates=hard, max_iter=10) for _ in range(2))
    one.fit(X, y, w)
    chunked = split_training_data(build_training_data(two, X, y, w))
    rows = cut(chunked.rows.single_block, np.random.default_rng(seed), n_blocks)
    two._fit(replace(chunked, rows=rows))
    same(one, two)
    np.testing.assert_allclose(two.trace_, one.trace_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:FIC still rises")
@pytest.mark.parametrize("task", ["numbers", "three"])
def test_small_tables_in_chunks_are_tables(task):
    X, y, w = table_of(3, task)
    one = estimator_of(task, max_iter=10).fit(X, y, w)
    two = estimator_of(task, max_iter=10).fit_chunks(
        lambda: ((X[i::7], y[i::7], w[i::7]) for i in range(7))
    )
    assert two.tree_ == one.tree_ and two.fic_ == one.fic_
    searched = estimator_of(task).set_params(search="structure", n_perturbations=1, max_depth=2)
    whole = searched.fit(X, y, w).tree_
    assert searched.fit_chunks([(X, y, w)]).tree_ == whole  # every row is in the sample


def large(n, d, seed=0):
    """Rows whose first two columns say which of three lines holds."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.where(
        X[:, 0] > 0.4, X[:, 2] - X[:, 3], np.where(X[:, 1] > 0.7, 2 * X[:, 4], 1.0)
    ) + rng.normal(0, 0.1, n)
    return X, y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FIC still rises")
@pytest.mark.parametrize("task", ["numbers", "two"])
def test_streamed_is_in_memory(task):
    X, y = large(200_000 if task == "numbers" else 40_000, 10)
    options = (
        {"max_bins": 64, "max_iter": 12} if task == "numbers" else {"max_bins": 32, "max_iter": 3}
    )
    y = y if task == "numbers" else (y > 0.4).astype(int)
    with mock.patch.object(chunks, "N_SAMPLE", 8192):
        one = estimator_of(task, **options).fit(X, y)
        cuts = np.arange(0, len(y), 30_000)
        streamed = estimator_of(task, **options)
        streamed.fit_chunks(lambda: ((X[i : i + 30_000], y[i : i + 30_000]) for i in cuts))
    assert str(one.tree_) == str(streamed.tree_) and streamed.fic_ == pytest.approx(
        one.fic_, rel=1e-10
    )
    assert str(one.rules_) == str(streamed.rules_)
    if task == "numbers":
        assert {split.features for split in one.tree_.splits if split is not None} == {(0,), (1,)}


def test_gaps_outside_the_sample_keep_a_column_out_of_equations():
    X, y = large(6000, 5)
    X[X[:, 2] > 0.999, 2] = np.nan
    with mock.patch.object(chunks, "N_SAMPLE", 200):
        model = estimator_of("numbers", min_weight_fraction=0.05)
        chunked = split_training_data(build_training_data(model, X, y))
        sample = chunked.sample
        held = ~np.isnan(chunked.sample.Z[:, 2])
        sample = replace(
            sample,
            **{name: getattr(sample, name)[held] for name in ("Z", "y", "w", "first_positions")},
        )
        model._fit(replace(chunked, sample=sample))
    assert (
        2 not in model.design_.leaf_features
        and model.design_.bins.missing[2]
        and np.isfinite(model.predict(X)).all()
    )
    assert sum(rule.support for rule in model.rules_.rules) == 6000


def test_structure_search_has_all_rows_in_memory_and_none_elsewhere():
    X, y = large(3000, 5)
    model = PiecewiseLinearRegressor(n_perturbations=0, max_depth=2, random_state=0)
    whole = model.fit(X, y).tree_
    with mock.patch.object(chunks, "N_SAMPLE", 500):
        assert model.fit(X, y).tree_ == whole
        with pytest.raises(
            ValueError, match="search must be 'em' for 3000 rows that are not in memory"
        ):
            model.fit_chunks([(X, y)])


def test_parameters_are_read_before_rows():
    def never():
        raise AssertionError("read")

    with pytest.raises(ValueError, match="max_depth must be"):
        PiecewiseLinearRegressor(max_depth=-1).fit_chunks(never)
    with pytest.raises(ValueError, match="split_features must name columns"):
        estimator_of("numbers", split_features=["z"]).fit_chunks([large(100, 5)])


def test_one_class_and_one_number():
    X, _ = large(2000, 5)
    with mock.patch.object(chunks, "N_SAMPLE", 300):
        assert (estimator_of("two").fit_chunks([(X, np.ones(2000, int))]).predict(X) == 1).all()
        flat = estimator_of("numbers").fit_chunks([(X, np.full(2000, 2.5))])
    assert flat.n_components_ == 1 and (flat.predict(X) == 2.5).all()


def test_dask_is_in_memory():
    da = pytest.importorskip("dask.array")
    X, y = large(6000, 5)
    with mock.patch.object(chunks, "N_SAMPLE", 1000):
        one = estimator_of("numbers").fit(X, y)
        two = estimator_of("numbers").fit(
            da.from_array(X, chunks=(1700, 5)), da.from_array(y, chunks=1700)
        )
    assert str(one.tree_) == str(two.tree_) and two.fic_ == pytest.approx(one.fic_, rel=1e-10)
