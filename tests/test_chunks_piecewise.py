"""Piecewise linear models over blocks of rows: whatever the cuts, the same model as from one block."""

from copy import deepcopy
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import case, examples
from shared.options import nested

from fabinterp import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.fab.bernoulli_gate import BernoulliGate
from fabinterp.fab.constant_experts import (
    Categorical,
    ConstantGaussian,
    constant_gaussian,
    first_constants,
    variance_floor,
)
from fabinterp.fab.criterion import MIN_WEIGHT_FRACTION
from fabinterp.fab.engine import Structure
from fabinterp.fab.experts import (
    Gaussian,
    Softmax,
    Terms,
    first_gaussian,
    first_softmax,
    gaussian_experts,
)
from fabinterp.fab.foba_classes import foba_softmax
from fabinterp.fab.gate_tree import GateTree, full_tree_paths
from fabinterp.fab.hme import MixtureInputs, harden, project
from fabinterp.fab.hme_starts import random_shares, start_from_resp, start_from_tree
from fabinterp.fab.oblique_gate import LogisticGate
from fabinterp.models.equation_trees import (
    block_inputs,
    hme_from_tree,
    refit_in_blocks,
)
from fabinterp.rows import chunks
from fabinterp.rows.blocks import Blocks, InMemory, in_memory
from fabinterp.rows.chunks import split_training_data
from fabinterp.rows.tables import build_training_data
from fabinterp.search.moves import grow_greedily
from fabinterp.search.prices import priced_tree
from fabinterp.search.tree_value import update_variance

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
    if task == "numbers":  # Fisher's factors want standardised numbers
        y = (y - y.mean()) / y.std()
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
    lines = Terms.lines(5)
    curves = Terms(np.array([-1, 0, 0, 1, 1]), np.array([0.0, 0.0, 1.0, 0.0, 2.0]))
    factors = replace(curves, fisher_factors=True)
    if task == "numbers":
        floor = variance_floor(y, w)
        learners += [
            (0, ConstantGaussian(np.zeros(K), np.ones(K), floor)),
            (0, Gaussian(np.ones((K, 5)), np.full(K, 2.0), lines, floor=floor)),
            (0, Gaussian(np.ones((K, 5)), np.full(K, 2.0), lines, floor=floor, pooled=True)),
            (0, Gaussian(np.ones((K, 5)), np.full(K, 2.0), curves, 0.5, floor)),
            (0, Gaussian(np.ones((K, 5)), np.full(K, 2.0), factors, 0.5, floor)),
        ]
    else:
        learners += [
            (0, Categorical(np.full((K, 3), 1 / 3), 1e-8)),
            (0, Softmax(np.zeros((K, 5, 3)), lines)),
            (0, Softmax(np.zeros((K, 5, 3)), curves, 0.5)),
            (0, Softmax(np.zeros((K, 5, 3)), factors, 0.5)),
        ]
    for place, learner in learners:
        rows = InMemory((p[place], p[2], p[3]) for p in part)
        X = (Z, codes)[place]
        close(
            learner.update(X, y, resp, w),
            learner.maximise(rows, share),
            1e-6 if isinstance(learner, Softmax) else 1e-9,
        )


@examples(25)
@given(seeds, st.integers(2, 9))
def test_first_experts_of_blocks(seed, n_blocks):
    rng, Z, _, y, w, resp = problem(seed, "numbers")
    rows = cut((Z, y, w, resp), rng, n_blocks).parts
    blocks = InMemory(p[:3] for p in rows)
    share = InMemory(p[3] for p in rows)
    close(constant_gaussian(y, resp, w), first_constants(blocks, share)[0])
    for pooled in (False, True):
        first = first_gaussian(blocks, share, Terms.lines(5), pooled=pooled)
        close(gaussian_experts(Z, y, resp, w, pooled=pooled), first.maximise(blocks, share))
    sevens = InMemory((X, np.full(len(u), 7.0), v) for X, u, v in blocks.parts)
    flat, _ = first_constants(sevens, share)
    assert flat.floor == 1.0 and (flat.var == 1.0).all()


class Elsewhere(Blocks):
    """One block that is not at hand, and how often it is passed over."""

    def __init__(self, part):
        self.held = in_memory(part)
        self.n_passes = 0

    def sum(self, function, *args):
        self.n_passes += 1
        return self.held.sum(function, *args)


def test_searches_in_step_share_their_passes():
    rng, Z, _, y, w, resp = problem(1, "codes", n=200)
    together = Elsewhere((Z, y, w))
    start = Softmax(np.zeros((4, 5, 3)), Terms.lines(5))
    found = start.maximise(together, in_memory(resp))
    in_turn = start.maximise(in_memory((Z, y, w)), in_memory(resp))
    np.testing.assert_allclose(found.coef, in_turn.coef, atol=1e-9)
    alone = []
    for k in range(4):
        price = 0.5 * np.log1p(resp[:, k] @ w)
        best = foba_softmax(Z, np.eye(3)[y], resp[:, k] * w, price)
        np.testing.assert_allclose(found.coef[k], best.coef, atol=1e-6)
        rows = Elsewhere((Z, y, w))
        start.keep(np.arange(4) == k).maximise(rows, in_memory(resp[:, [k]]))
        alone.append(rows.n_passes)
    assert together.n_passes == max(alone) < sum(alone)


@pytest.mark.parametrize("task", ["numbers", "codes"])
def test_passes_of_a_start_and_of_a_step(task):
    rng, Z, codes, y, w, resp = problem(1, task, n=200)
    rows = Elsewhere((MixtureInputs(Z, codes), y, w))
    gates = GateTree(
        (BernoulliGate(1, 2, False, 0.7, 5),) * 3, full_tree_paths(2), n_known=np.full(4, 5)
    )
    first = first_gaussian if task == "numbers" else partial(first_softmax, n_classes=3)
    model, share = start_from_resp(rows, in_memory(resp), gates, Terms.lines(5), first=first)
    if task == "numbers":
        assert rows.n_passes == 5  # mean, deviations, squares; gates and moments; residuals
        rows.n_passes = 0
        model.maximise(rows, share)
        assert rows.n_passes == 2  # gates and moments together, then residuals
        return
    searches = Elsewhere((Z, y, w))
    Softmax(np.zeros((4, 5, 3)), Terms.lines(5)).maximise(searches, share)
    assert rows.n_passes == searches.n_passes  # gates cost no pass


@examples(12)
@given(seeds, st.integers(2, 7), st.sampled_from(["numbers", "codes"]))
def test_mixture_projection_and_hardening_in_blocks(seed, n_blocks, task):
    rng, Z, codes, y, w, resp = problem(seed + (seed % 3 == 0), task)
    whole = in_memory((MixtureInputs(Z, codes), y, w))
    experts = partial(first_softmax, n_classes=3) if task == "codes" else first_gaussian
    tree = GateTree(
        (
            BernoulliGate(0, 1, False, 1.0, 5),
            BernoulliGate(1, 2, True, 1.0, 5),
            BernoulliGate(2, 3, False, 1.0, 5),
        ),
        full_tree_paths(2),
    )
    model, first = start_from_tree(whole, tree, np.full(4, 5), first=experts)
    parts = cut((Z, codes, y, w, resp, first.single_block), rng, n_blocks).parts
    rows = InMemory((MixtureInputs(a, b), u, v) for a, b, u, v, _, _ in parts)
    share = InMemory(p[4] for p in parts)
    again, spread_out = start_from_tree(rows, tree, np.full(4, 5), first=experts)
    close(model.gates, again.gates)
    close(model.expert, again.expert, 1e-6 if task == "codes" else 1e-9)
    np.testing.assert_array_equal(np.concatenate(spread_out.parts), first.single_block)
    one = model.maximise(whole, in_memory(resp))
    two = model.maximise(rows, share)
    close(one.gates, two.gates)
    close(one.expert, two.expert, 1e-6 if task == "codes" else 1e-9)
    close(one.gates, model.update(MixtureInputs(Z, codes), y, resp, w).gates, 0)
    close(one.expert, model.update(MixtureInputs(Z, codes), y, resp, w).expert, 0)
    got = project(model, rows, share, InMemory(p[5] for p in parts))
    expected = project(model, whole, in_memory(resp), first).single_block
    np.testing.assert_allclose(np.concatenate(got.parts), expected, atol=1e-9)
    hard, said = harden(model, in_memory((MixtureInputs(Z, codes), y, w)), 0.05)
    hard_two, said_two = harden(model, rows, min_weight_fraction=0.05)
    assert np.array_equal(said.single_block, np.concatenate(said_two.parts))
    close(hard.gates, hard_two.gates)


@examples(12)
@given(seeds, st.integers(2, 7), st.booleans())
def test_oblique_gates_and_curves_in_blocks(seed, n_blocks, factors):
    rng, Z, codes, y, w, resp = problem(seed + (seed % 3 == 0), "numbers")
    y = (y - y.mean()) / y.std()
    U = np.tanh(Z[:, 1:])
    paths = full_tree_paths(2)
    gates = GateTree((LogisticGate(fisher_factors=factors),) * 3, paths)
    whole = in_memory((MixtureInputs(Z, U), y, w))
    model, _ = start_from_resp(whole, in_memory(resp), gates, Terms.lines(5))
    parts = cut((Z, U, y, w, resp), rng, n_blocks).parts
    rows = InMemory((MixtureInputs(a, b), u, v) for a, b, u, v, _ in parts)
    share = InMemory(p[4] for p in parts)
    one = model.maximise(whole, in_memory(resp))
    for two in (model.maximise(rows, share), model.update(MixtureInputs(Z, U), y, resp, w)):
        assert np.array_equal(one.gates.paths, two.gates.paths)
        for a, b in zip(one.gates.gates, two.gates.gates, strict=True):
            assert a.features == b.features
            np.testing.assert_allclose((*a.coef, a.bias), (*b.coef, b.bias), rtol=1e-5, atol=1e-6)
        close(one.expert, two.expert, 1e-6)


def test_oblique_gates_in_step_share_their_passes():
    rng, Z, codes, y, w, resp = problem(1, "numbers", n=200)
    U = np.tanh(Z[:, 1:])
    gates = GateTree((LogisticGate(),) * 3, full_tree_paths(2))
    together = Elsewhere((U, None, w))
    in_step = gates.maximise(together, in_memory(resp))
    assert in_step.gates == gates.update(U, None, resp, w).gates
    alone = []
    for i in range(3):
        rows = Elsewhere((U, None, w))
        one = GateTree(gates.gates[:1], gates.paths[[i]])
        one.maximise(rows, in_memory(resp))
        alone.append(rows.n_passes)
    assert together.n_passes == max(alone) < sum(alone)


@pytest.mark.parametrize("concentration", [5.0, 0.1])
def test_random_shares_depend_neither_on_slices_nor_on_order(concentration):
    rng, Z, codes, y, w, _ = problem(2, "numbers", n=4000)
    order = rng.permutation(len(y))
    found = []
    for at, n_blocks in ((np.arange(4000), 5), (order, 3)):
        parts = cut((Z[at], codes[at], y[at], w[at]), rng, n_blocks).parts
        rows = InMemory((MixtureInputs(a, b), u, v) for a, b, u, v in parts)
        shares = random_shares(rows, np.random.default_rng(0), 4, concentration)
        found.append(np.concatenate(shares.parts)[np.argsort(at)])
    np.testing.assert_array_equal(*found)
    (shares, _) = found
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    drawn = np.random.default_rng(1).dirichlet(np.full(4, concentration), 4000)  # as they should be
    spread = 0.1 * drawn.var(axis=0).max()
    np.testing.assert_allclose(np.cov(shares.T), np.cov(drawn.T), atol=spread)
    assert abs(shares.mean(axis=0) - 0.25).max() < 0.1 * drawn.std(axis=0).max()
    other = random_shares(rows, np.random.default_rng(3), 4, concentration)
    assert not np.allclose(np.concatenate(other.parts)[np.argsort(order)], shares)


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


def target_of(task, y):
    """Numbers as they are, or two or three classes of them."""
    return y if task == "numbers" else np.digitize(y, [0.5] if task == "two" else [0.2, 0.8])


def estimator_of(task, **options):
    kind = PiecewiseLinearRegressor if task == "numbers" else PiecewiseLinearClassifier
    return kind(**nested(**{"search": "em", "max_depth": 3, "random_state": 0} | options))


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
    two._fit_rows(replace(chunked, rows=rows))
    same(one, two)
    np.testing.assert_allclose(two.trace_, one.trace_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:FIC still rises")
@pytest.mark.parametrize("task", ["numbers", case("three", quick=False)])
def test_small_tables_in_chunks_are_tables(task):
    X, y, w = table_of(3, task)
    one = estimator_of(task, max_iter=10).fit(X, y, w)
    two = estimator_of(task, max_iter=10).fit_chunks(
        lambda: ((X[i::7], y[i::7], w[i::7]) for i in range(7))
    )
    assert two.tree_ == one.tree_ and two.fic_ == one.fic_
    searched = estimator_of(task, search="structure", n_perturbations=1, max_depth=1)
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


@pytest.mark.slow
def test_a_tree_stands_once_on_the_path_where_all_rows_make_trees_of_the_sample_equal():
    X, y = large(20_000, 6, seed=1)  # the sample has two trees of the three lines
    with mock.patch.object(chunks, "N_SAMPLE", 2000):
        path = PiecewiseLinearRegressor(random_state=0).fit(X, y).path_
    assert path["size"].tolist() == [1, 2, 3]
    prices = path["price"][path["price"] > 0]  # 0 is a pruning, which no price chooses
    assert prices.is_monotonic_decreasing and path["chosen"].tolist() == [False, False, True]


def test_gaps_outside_the_sample_have_a_term_in_equations():
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
        model._fit_rows(replace(chunked, sample=sample))
    assert (
        2 in model.design_.leaf_features[model.design_.with_gaps]
        and model.design_.bins.missing[2]
        and np.isfinite(model.predict(X)).all()
    )
    assert sum(rule.support for rule in model.rules_.rules) == 6000


@pytest.mark.parametrize("task", ["numbers", "two", case("three", quick=False)])
@pytest.mark.parametrize("penalty", [case(None, quick=False), 2.0])
def test_structure_search_finds_questions_on_the_sample_and_numbers_on_all_rows(task, penalty):
    X, y = large(3000, 5)
    y = target_of(task, y)
    kind = PiecewiseLinearRegressor if task == "numbers" else PiecewiseLinearClassifier
    model = kind(search=Structure(0), max_depth=2, penalty=penalty, random_state=0)
    with mock.patch.object(chunks, "N_SAMPLE", 1500):
        one = deepcopy(model.fit(X, y))
        parts = [(X[i : i + 700], y[i : i + 700]) for i in range(0, 3000, 700)]
        model.fit_chunks(parts)
    assert str(one.rules_) == str(model.rules_)
    assert model.fic_ == pytest.approx(one.fic_, rel=1e-10)
    assert sum(rule.support for rule in model.rules_.rules) == 3000


@pytest.mark.parametrize("task", ["numbers", "two", "three"])
def test_refitted_in_blocks_equations_are_those_of_all_rows(task):
    X, y = large(2000, 5)
    y = target_of(task, y)
    estimator = estimator_of(task, min_weight_fraction=0.02)
    chunked = split_training_data(build_training_data(estimator, X, y))
    settings = estimator._settings()
    settings = replace(settings, likelihood=settings.likelihood.of(chunked.sample))
    design = settings.family.make_design(settings, chunked, 1.0)
    rows = chunked.rows.map(block_inputs, design, (0.0, 1.0))
    table, target, w = part = rows.single_block
    problem = settings.family.make_problem(settings, design, part, 1.0)
    tree = grow_greedily(problem, np.arange(2000, dtype=np.int32), 2)
    for _ in range(20):
        problem, tree = update_variance(problem, tree, drift=0.0)
    model = hme_from_tree(problem, tree)
    blocks = [
        (MixtureInputs(table.Z[b], table.codes[b]), target[b], w[b])
        for b in np.array_split(np.arange(2000), 3)
    ]
    far = replace(model, expert=replace(model.expert, coef=1.5 * model.expert.coef))
    again, found = refit_in_blocks(problem, tree, far, InMemory(blocks))
    wanted = model.expert.log_lik(table.Z, target)
    np.testing.assert_allclose(again.expert.log_lik(table.Z, target), wanted, rtol=1e-4, atol=1e-4)
    assert found.cost == pytest.approx(priced_tree(problem, tree).cost, rel=1e-12)
    assert found.value(1.0) == pytest.approx(tree.value, abs=1e-3)


def test_promised_signs_need_rows_in_memory():
    X, y = large(3000, 5)
    model = PiecewiseLinearRegressor(
        max_depth=1, penalty=1.0, monotonic_cst=[0, 0, 1, 0, 0], random_state=0
    )
    whole = model.fit(X, y).tree_
    with mock.patch.object(chunks, "N_SAMPLE", 500):
        assert model.fit(X, y).tree_ == whole
        with pytest.raises(
            ValueError, match="monotonic_cst must be None for rows that are not in memory, got 3000"
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
