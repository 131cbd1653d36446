"""Meta-trees of rows in blocks: however the rows are cut, the same sums at the leaves, the same posterior."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.blocks import LABELS, cut, mixed, rows_at
from shared.effort import examples
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fabinterp.metatree.conjugate import DirichletCategorical, NormalGamma
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.metatree.fitting import state_from_blocks
from fabinterp.metatree.posterior import (
    choose_regressors,
    empty_state,
    leaf_statistics,
    reset_state,
    update_state,
)
from fabinterp.metatree.representative import LevelTree, perfect
from fabinterp.rows import chunks
from fabinterp.rows.blocks import in_memory
from fabinterp.rows.chunks import ChunkedData, split_training_data
from fabinterp.rows.tables import TrainingData
from fabinterp.rules.core import read_columns


def table(seed, n=300):
    """Rows with gaps and ties, class codes, numbers and weights; some weights are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    t = np.where(X[:, 0] > 0.3, 2.0, 0.0) + X[:, 1] + 0.3 * rng.normal(size=n)
    X[rng.random(n) < 0.2, 2] = np.nan
    return X, np.digitize(t, [0.2, 1.5]), t, rng.integers(0, 3, n).astype(float), rng


def fit_cut(model, X, y, w, size, rng=None, sample=120):
    """The model fitted to rows in memory, or in chunks, with blocks of `size` rows and a small sample."""
    with (
        mock.patch.object(chunks, "N_SAMPLE", sample),
        mock.patch.object(chunks, "block_rows", lambda d: size),
    ):
        if rng is None:
            return model.fit(X, y, w)
        order = cut(rng, len(y))
        return model.fit_chunks(lambda: ((rows_at(X, at), y[at], w[at]) for at in order))


def same_fit(a, b, X, exact=False):
    """Assert that two fits say the same."""
    rtol = 0 if exact else 1e-10
    np.testing.assert_allclose(a.tree_log_evidence_, b.tree_log_evidence_, rtol=rtol)
    np.testing.assert_allclose(
        a.posterior_.split_prob, b.posterior_.split_prob, rtol=max(rtol, 0), atol=rtol
    )
    np.testing.assert_allclose(
        a.state_.stats, b.state_.stats, rtol=rtol, atol=rtol * np.abs(a.state_.stats).max()
    )
    np.testing.assert_allclose(a.feature_importances_, b.feature_importances_, rtol=rtol, atol=rtol)
    assert str(a.map_tree_) == str(b.map_tree_) and a.columns_ == b.columns_
    said = [m.predict_proba(X) if hasattr(m, "predict_proba") else m.predict(X) for m in (a, b)]
    np.testing.assert_allclose(*said, rtol=rtol, atol=rtol)
    if getattr(a, "pit_", None) is not None:
        np.testing.assert_allclose(a.pit_, b.pit_, rtol=0, atol=0 if exact else 1e-9)
    if a.state_.trees.topology.n_trees == 1:
        assert str(a.rules_) == str(b.rules_)
        assert [rule.conditions for rule in a.rules_.rules] == [
            rule.conditions for rule in b.rules_.rules
        ]


CASES = [
    ("classes", {}),
    ("classes", {"n_trees": 3}),
    ("classes", {"n_trees": 3, "tree_weights": "evidence"}),
    ("classes", {"n_trees": 2, "bootstrap": False}),
    ("numbers", {}),
    ("numbers", {"n_trees": 3}),
    ("numbers", {"leaf": "linear", "max_depth": 3}),
    ("numbers", {"leaf": "poisson"}),
    ("numbers", {"leaf": "exponential", "n_trees": 2}),
]


def case(kind, changed, seed):
    """A model and its rows."""
    X, y, t, w, rng = table(seed)
    if kind == "classes":
        return MetaTreeClassifier, X, LABELS[y], w, rng
    target = {"poisson": np.floor(np.exp(t / 2)), "exponential": np.exp(t)}.get(
        changed.get("leaf"), t
    )
    return MetaTreeRegressor, X, target, w, rng


@pytest.mark.parametrize(("kind", "changed"), CASES)
@examples(2)
@given(seed=st.integers(0, 10**6), size=st.integers(20, 250))
def test_blocks_of_any_size_give_the_posterior_of_one_block(kind, changed, seed, size):
    cls, X, y, w, rng = case(kind, changed, seed)
    changed = {"random_state": 0, "max_depth": 5} | changed
    once = fit_cut(cls(**changed), X, y, w, 10**9)
    same_fit(once, fit_cut(cls(**changed), X, y, w, size), X)
    same_fit(once, fit_cut(cls(**changed), X, y, w, size, rng), X)
    roots = slice(once.state_.trees.topology.n_trees)
    np.testing.assert_allclose(
        once.state_.total_weight[roots], w.sum(), rtol=1e-12
    )  # every row in every tree


@pytest.mark.parametrize(("kind", "changed"), CASES)
def test_a_table_within_the_sample_is_one_block_however_it_comes(kind, changed):
    cls, X, y, w, rng = case(kind, changed, 1)
    changed = {"random_state": 0, "max_depth": 5} | changed
    same_fit(
        cls(**changed).fit(X, y, w),
        fit_cut(cls(**changed), X, y, w, 50, rng, sample=1000),
        X,
        exact=True,
    )


@pytest.mark.parametrize("given_as", ["forest", "tree", "levels", "endless"])
def test_given_trees_ask_nothing_of_the_sample(given_as):
    X, y, t, w, rng = table(3)
    forest = RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, LABELS[y])
    tree = MetaTreeClassifier(random_state=0).fit(X, LABELS[y]).map_tree_
    model = {"forest": forest, "tree": tree}.get(given_as, [0, 1])
    depth = None if given_as == "endless" else 10
    if isinstance(model, list):
        X = np.clip(np.round(np.nan_to_num(X) + 2), 0, 4)
        beyond = np.argsort(chunks.row_hashes(X, y))[-1]  # the sample holds the smallest
        X[beyond, 0] = 7.0
        w[beyond] = 1.0
        while (chunks.row_hashes(X, y) < chunks.row_hashes(X, y)[beyond]).sum() < 200:
            X[beyond, 0] += 1
    whole = MetaTreeClassifier(model, max_depth=depth).fit(X, LABELS[y], w)
    for size in (10**9, 33):
        same_fit(
            whole,
            fit_cut(MetaTreeClassifier(model, max_depth=depth), X, LABELS[y], w, size, sample=60),
            X,
        )
    streamed = fit_cut(
        MetaTreeClassifier(model, max_depth=depth), X, LABELS[y], w, 33, rng, sample=60
    )
    same_fit(whole, streamed, X)
    if given_as == "endless":
        assert np.array_equal(whole.state_.trees.points, streamed.state_.trees.points)
    later = table(4)[0]
    at = slice(0, 50)
    later = np.clip(np.round(np.nan_to_num(later) + 2), 0, 4) if isinstance(model, list) else later
    same_fit(
        whole.partial_fit(later[at], LABELS[y[at]]),
        streamed.partial_fit(later[at], LABELS[y[at]]),
        X,
    )


@examples(20)
@given(st.integers(0, 10**6))
def test_sums_at_the_leaves_add_up_over_blocks(seed):
    X, y, t, w, rng = table(seed, n=60)
    columns = read_columns(X)
    levels = LevelTree(perfect(2, 2), (0, 1), np.zeros(2), columns)
    for family, target in (
        (DirichletCategorical((1.0, 2.0, 1.0)), y),
        (NormalGamma(0.3, 1.0, 1.0, 0.1), t),
    ):
        empty = empty_state(levels, family, 0.4)
        once = update_state(empty, leaf_statistics(family, 7, levels.leaves(X), target, w))
        rows = in_memory(*((X[at], target[at], w[at]) for at in cut(rng, 60)))
        found = state_from_blocks(once, rows, LABELS if target is y else None)
        np.testing.assert_allclose(found.stats, once.stats, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.log_evidence, once.log_evidence, rtol=1e-10)
        assert not reset_state(once).stats.any() and reset_state(once).posterior is once.prior


def test_frames_with_labels_in_blocks():
    rng = np.random.default_rng(0)
    frame, t = mixed(rng, 400)
    frame.loc[rng.random(400) < 0.1, "colour"] = None
    y = LABELS[np.digitize(t, [0.5, 1.5])]
    w = rng.integers(0, 3, 400).astype(float)
    boosted = HistGradientBoostingClassifier(max_iter=3, random_state=0).fit(frame, y)
    shown = np.random.default_rng(1).permutation(y)  # labels come in another order then
    tree = MetaTreeClassifier(max_depth=4, random_state=0).fit(frame, shown).to_tree()
    assert tree.columns != MetaTreeClassifier(max_depth=1, random_state=0).fit(frame, y).columns_
    for model in (None, boosted, tree):
        once = fit_cut(MetaTreeClassifier(model, random_state=0), frame, y, w, 10**9)
        same_fit(once, fit_cut(MetaTreeClassifier(model, random_state=0), frame, y, w, 77), frame)
        same_fit(
            once, fit_cut(MetaTreeClassifier(model, random_state=0), frame, y, w, 77, rng), frame
        )
    assert once.columns_ == tree.columns
    same_fit(
        MetaTreeClassifier(tree).fit(frame, y, w), once, frame
    )  # what is given asks nothing of the sample
    with pytest.raises(
        ValueError, match="estimator must have the labels of column 'colour', got numbers"
    ):
        numbers = frame.assign(colour=frame["colour"].cat.codes.astype(float))
        few = MetaTreeClassifier(max_depth=2, random_state=0).fit(numbers, y).map_tree_
        fit_cut(MetaTreeClassifier(few), frame, y, w, 77)


def test_a_column_with_a_gap_beyond_the_sample_is_in_no_equation():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 3))
    columns = read_columns(Z)
    sample = TrainingData(
        Z[:20], Z[:20, 0], np.ones(20), columns, None, np.arange(20), False, columns
    )
    gaps = np.where(np.arange(3) == 1, np.nan, Z[20:])
    rows = in_memory((Z[:20], Z[:20, 0], np.ones(20)), (gaps, Z[20:, 0], np.ones(30)))
    assert choose_regressors(split_training_data(sample), None).used == (0, 1, 2)
    assert choose_regressors(ChunkedData(sample, rows, 50, 50.0), None).used == (0, 2)


def test_intervals_of_a_sample_hold_for_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    t = X[:, 0] + np.where(X[:, 1] > 0, 2.0, 0.0) + 0.5 * rng.normal(size=3000)
    for n_trees in (1, 5):
        model = MetaTreeRegressor(n_trees=n_trees, max_depth=6, random_state=0)
        fit_cut(model, X[:2000], t[:2000], np.ones(2000), 300, rng, sample=800)
        low, high = model.predict_interval(X[2000:], 0.9).T
        assert 0.85 < np.mean((low <= t[2000:]) & (t[2000:] <= high)) < 0.97
        assert len(model.pit_) <= 1000


@pytest.mark.slow
def test_200_000_rows_in_memory_and_streamed():
    rng = np.random.default_rng(0)
    n = 200_000
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(float)
    X[rng.random(n) < 0.05, 3] = np.nan
    codes = (X[:, 0] > 0.2).astype(int) + (X[:, 1] > 1)
    w = rng.integers(0, 3, n).astype(float)
    parts = [(X[at], codes[at], w[at]) for at in np.array_split(np.arange(n), [7, 90_000, 130_001])]
    model = MetaTreeClassifier(max_depth=6, random_state=0).fit(X, LABELS[codes], w)
    streamed = MetaTreeClassifier(max_depth=6, random_state=0)
    streamed.fit_chunks((A, LABELS[a], b) for A, a, b in parts)
    same_fit(model, streamed, X[:1000])
    assert (
        sum(rule.support for rule in model.rules_.rules) == w.sum()
        and model.rules_ == streamed.rules_
    )
    assert model.estimator_.tree_.n_node_samples[0] == chunks.N_SAMPLE
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(
        np.nan_to_num(X[:2000]), codes[:2000]
    )
    t = codes + 0.1 * X[:, 0]
    model = MetaTreeRegressor(tree).fit(X, t, w)
    same_fit(
        model,
        MetaTreeRegressor(tree).fit_chunks((A, a + 0.1 * A[:, 0], b) for A, a, b in parts),
        X[:1000],
    )


def test_what_cannot_be_is_refused_before_and_while_rows_are_read():
    X, y, t, w, _ = table(0)

    def never():
        raise AssertionError("read although a parameter is wrong")

    with pytest.raises(ValueError, match="n_trees must be an integer of at least 1, got 0"):
        MetaTreeClassifier(n_trees=0).fit_chunks(never)
    with pytest.raises(ValueError, match="prior must be None or positive, got 0"):
        MetaTreeClassifier(prior=0).fit_chunks(never)
    with pytest.raises(ValueError, match="leaf must be 'normal'"):
        MetaTreeRegressor(leaf="categorical").fit_chunks(never)
    with pytest.raises(ValueError, match="estimator must match X"):
        forest = RandomForestRegressor(2, random_state=0).fit(X, t)
        MetaTreeRegressor(forest).fit_chunks([(X[:, :2], t)])
    with pytest.raises(ValueError, match="codes 0, 1, 2, …, got 'x0' with -1"):
        X_bad = np.abs(np.nan_to_num(X)).round()
        X_bad[-1, 0] = -1
        fit_cut(MetaTreeClassifier([0]), X_bad, y, w + 1, 50, sample=60)
    for leaf, bad, said in (
        ("poisson", 0.5, "y must contain only counts"),
        ("exponential", -1.0, "y must contain only numbers of at least 0"),
    ):
        for position in range(0, 300, 60):  # in the sample or beyond it
            target = np.ones(300)
            target[position] = bad
            with pytest.raises(ValueError, match=said):
                fit_cut(MetaTreeRegressor(leaf=leaf, max_depth=2), X, target, w + 1, 50, sample=60)
