"""Local explanations: the same answer however they are asked for; the trees and prunings of brute force; bad input."""

import json
import pickle
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy
from shared.effort import examples
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.proxy.growing import greedy_tree
from fabinterp.proxy.local import fit_neighbourhood, pointwise_loss
from fabinterp.proxy.local_explanations import (
    LocalExplanation,
    LocalExplanations,
    explain_local,
)
from fabinterp.proxy.prune import pruning_path
from fabinterp.proxy.small_trees import fit_small_trees
from fabinterp.rows.array_tree import prune_at
from fabinterp.rules.core import read_columns
from fabinterp.rules.ruleset import RuleSet, Tree

X, Y = load_diabetes(return_X_y=True)
FOREST = RandomForestRegressor(20, min_samples_leaf=3, random_state=0).fit(X, Y)
IRIS, KIND = load_iris(return_X_y=True)
IRIS_FOREST = RandomForestClassifier(20, random_state=0).fit(IRIS, KIND)


def toy(seed, m=3, S=60, d=3, C=1, ties=False):
    """Tables (m, S, d), targets (m, S, C)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, S, d))
    Z = np.round(Z) if ties else Z
    score = np.stack([Z[..., 0] * (Z[..., 1] > 0), Z[..., 1], np.sin(Z[..., 2])][:C], axis=2)
    score = score + rng.normal(0, 0.3, (m, S, C))
    return Z, score if C == 1 else np.exp(score) / np.exp(score).sum(axis=2, keepdims=True)


def mixed(n=300, seed=0):
    """A frame with numbers, gaps, whole numbers, labels, truth values and a constant, and a target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(10, 3, n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "rooms": rng.integers(1, 9, n),
            "colour": pd.Categorical(rng.choice(list("rgby"), n)),
            "garden": rng.random(n) < 0.5,
            "same": np.ones(n),
        }
    )
    y = (
        frame["size"]
        + 5 * frame["colour"].isin(["r", "y"])
        + 4 * frame["gaps"].isna()
        + 2 * frame["garden"]
    )
    return frame, y.to_numpy()


def mixed_model(frame):
    """The function behind `mixed`, of a frame with its columns and kinds."""
    assert list(frame.columns) == ["size", "gaps", "rooms", "colour", "garden", "same"]
    y = (
        frame["size"]
        + 5 * frame["colour"].isin(["r", "y"])
        + 4 * frame["gaps"].isna()
        + 2 * frame["garden"]
    )
    return y.to_numpy(dtype=float)


# The same answer


def test_two_calls_with_a_seed_say_the_same():
    first, second = (explain_local(FOREST, X[3], X, random_state=5) for _ in range(2))
    assert str(first) == str(second) and first.tree == second.tree
    assert str(first) != str(explain_local(FOREST, X[3], X, random_state=6))


def test_a_point_alone_is_the_point_among_many():
    many = explain_local(FOREST, X[:30], X, random_state=0)
    assert isinstance(many, LocalExplanations) and len(many) == 30
    for i in (0, 7, 29):
        alone = explain_local(FOREST, X[i], X, random_state=0)
        assert isinstance(alone, LocalExplanation)
        assert str(alone) == str(many[i]) and alone.tree == many[i].tree
        assert np.array_equal(alone.neighbours, many[i].neighbours)
    turned = explain_local(FOREST, X[:30][::-1], X, random_state=0)
    assert [e.tree for e in turned[::-1]] == [e.tree for e in many]


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_change_nothing(n_jobs):
    many = explain_local(FOREST, X[:40], X, random_state=0, n_jobs=n_jobs)
    assert [str(e.tree) for e in many] == [
        str(e.tree) for e in explain_local(FOREST, X[:40], X, random_state=0)
    ]


def test_many_points_are_asked_in_blocks_that_change_nothing():
    model = LinearRegression().fit(X, Y)
    many = explain_local(model, X[:60], X, n_samples=2000, random_state=0)
    alone = explain_local(model, X[59], X, n_samples=2000, random_state=0)
    assert many[59].tree == alone.tree


def test_the_reference_is_asked_once():
    calls = []

    def model(Z):
        calls.append(len(Z))
        return Z[:, 2] ** 2

    explain_local(model, X[:10], X, random_state=0)
    assert [n for n in calls if n > 64] == [10 * 201]


def test_random_state_may_be_a_generator_or_nothing():
    state = [np.random.RandomState(3) for _ in range(2)]
    first, second = (explain_local(FOREST, X[0], X, random_state=s) for s in state)
    assert first.tree == second.tree
    explain_local(FOREST, X[0], X)


# What is said is what is so


@examples(25)
@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([0.0, 0.05, 0.3]))
def test_losses_are_those_of_the_tree_by_brute_force(seed, depth, alpha):
    e = explain_local(FOREST, X[seed % len(X)], X, max_depth=depth, alpha=alpha, random_state=seed)
    assert e.prediction == pytest.approx(FOREST.predict(e.x[None])[0])
    assert e.surrogate_prediction == pytest.approx(e.tree.predict(e.x[None])[0])
    assert e.loss == pytest.approx((e.surrogate_prediction - e.prediction) ** 2)
    said = FOREST.predict(e.neighbours)
    assert e.local_loss == pytest.approx(
        np.mean((said - e.tree.predict(e.neighbours)) ** 2), rel=1e-9, abs=1e-9
    )
    assert e.fidelity == pytest.approx(1 - e.local_loss / np.var(said), abs=1e-9)
    assert np.array_equal(e.rules.predict(e.neighbours), e.tree.predict(e.neighbours))
    assert isinstance(e.tree, Tree) and isinstance(e.rules, RuleSet) and e.tree.depth <= depth
    assert e.tree.n_leaves == e.n_leaves == len(e.rules.rules)
    assert sum(rule.support for rule in e.rules.rules) == 200
    asked = {e.columns.names[s.features[0]] for s in e.tree.splits if s is not None}
    assert asked == set(e.features)


@pytest.mark.parametrize("model", [IRIS_FOREST, LogisticRegression(max_iter=1000).fit(IRIS, KIND)])
def test_classes(model):
    for e in explain_local(model, IRIS[::15], IRIS, random_state=0):
        here = model.predict_proba(e.x[None])[0]
        near = model.predict_proba(e.neighbours)
        assert np.allclose(e.prediction, here) and np.allclose(
            e.surrogate_prediction, e.tree.predict_proba(e.x[None])[0]
        )
        q = e.tree.predict_proba(e.neighbours)
        assert e.local_loss == pytest.approx(
            np.mean((xlogy(near, near) - xlogy(near, q)).sum(axis=1)), abs=1e-9
        )
        assert e.loss == pytest.approx(
            (xlogy(here, here) - xlogy(here, e.surrogate_prediction)).sum(), abs=1e-9
        )
        assert e.classes == (0, 1, 2) and 0 <= e.fidelity <= 1
        same = e.tree.predict(e.neighbours) == model.classes_[near.argmax(axis=1)]
        assert e.fidelity == pytest.approx(same.mean())


def test_class_labels_are_those_of_the_model():
    words = np.array(["no", "yes"])[(KIND > 0).astype(int)]
    e = explain_local(
        RandomForestClassifier(10, random_state=0).fit(IRIS, words), IRIS[60], IRIS, random_state=0
    )
    assert (
        e.classes == ("no", "yes")
        and set(e.tree.predict(IRIS)) <= {"no", "yes"}
        and "yes" in str(e)
    )


def test_one_class():
    model = DecisionTreeClassifier().fit(IRIS[:50], KIND[:50])
    e = explain_local(model, IRIS[0], IRIS, random_state=0)
    assert e.n_leaves == 1 and e.loss == 0 and e.local_loss == 0


def test_scale_to_zero_is_the_constant_answer_at_x():
    e = explain_local(FOREST, X[7], X, scale=0.0, random_state=0)
    assert (
        e.n_leaves == 1
        and e.surrogate_prediction == pytest.approx(e.prediction)
        and e.loss == pytest.approx(0, abs=1e-18)
    )
    frame, _ = mixed()
    small = explain_local(mixed_model, frame.iloc[5], frame, scale=1e-6, random_state=0)
    assert small.surrogate_prediction == pytest.approx(mixed_model(frame.iloc[[5]])[0], abs=1e-4)


def test_the_tree_of_a_tree_is_the_tree():
    model = DecisionTreeRegressor(max_leaf_nodes=3).fit(X, Y)
    e = explain_local(
        model, X[0], X, scale=2.0, n_samples=3000, alpha=0.001, min_samples_leaf=1, random_state=0
    )
    rows = np.concatenate([e.neighbours, X])
    assert np.mean(np.abs(e.tree.predict(rows) - model.predict(rows)) > 1e-9) < 0.01


# Growing and pruning


@examples(30)
@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 8), st.sampled_from([1, 2, 3]))
def test_trees_are_scikit_learns(seed, depth, min_leaf, C):
    Z, target = toy(seed, C=C)
    Z = Z.astype(np.float32).astype(float)
    trees, losses = fit_small_trees(
        Z, target, np.zeros(3), max_depth=depth, max_leaves=None, min_leaf=min_leaf, alpha=0.0
    )
    for i in range(3):
        y = target[i, :, 0] if C == 1 else target[i]
        grown = greedy_tree(Z[i], y, max_depth=depth, min_leaf=min_leaf)
        leaves = grown.loss[grown.feature < 0].sum()
        assert losses[i] == pytest.approx(leaves, rel=1e-6, abs=1e-7)
        mine = trees.tree(i)
        assert mine.loss[mine.feature < 0].sum() == pytest.approx(losses[i], abs=1e-9)
        said = mine.leaf_values(Z[i])
        again = (target[i] - said[:, None]) ** 2 if C == 1 else -xlogy(target[i], said)
        assert again.sum() == pytest.approx(losses[i])


@examples(30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.01, 0.05, 0.2, 1.0]),
    st.sampled_from([1, 2]),
    st.floats(0, 20),
)
def test_prunings_are_the_best_under_the_price(seed, alpha, C, spread):
    Z, target = toy(seed, C=C)
    Z = Z.astype(np.float32).astype(float)
    spread = spread * (C == 1)
    trees, losses = fit_small_trees(
        Z, target, np.full(3, spread), max_depth=3, max_leaves=None, min_leaf=3, alpha=alpha
    )
    for i in range(3):
        grown = greedy_tree(Z[i], target[i, :, 0] if C == 1 else target[i], max_depth=3, min_leaf=3)
        every = pruning_path(grown, spread)
        best = prune_at(grown, every.leaf_mask(every.index_of(alpha)))
        loss = best.loss[best.feature < 0].sum()
        size = best.n_leaves

        def price(loss, size):
            return (np.log((loss + spread) / 60) if C == 1 else 2 * loss / 60) + alpha * size

        mine = trees.tree(i)
        assert price(losses[i], mine.n_leaves) == pytest.approx(
            price(loss, size), rel=1e-5, abs=1e-6
        )


def brute_force(tree, k, size):
    """The least loss of a pruning below node k of an `ArrayTree` with exactly `size` leaves."""
    if size == 1:
        return tree.loss[k]
    if tree.feature[k] < 0:
        return np.inf
    return min(
        brute_force(tree, tree.no[k], i) + brute_force(tree, tree.yes[k], size - i)
        for i in range(1, size)
    )


@pytest.mark.parametrize(("most", "C"), list(product([1, 2, 3, 5], [1, 3])))
def test_max_leaves(most, C):
    Z, target = toy(4, C=C, S=120)
    how = dict(max_depth=3, min_leaf=3)
    whole, _ = fit_small_trees(Z, target, np.zeros(3), max_leaves=None, alpha=0.0, **how)
    cut, losses = fit_small_trees(Z, target, np.zeros(3), max_leaves=most, alpha=0.0, **how)
    for i in range(3):
        tree = whole.tree(i)
        assert cut.tree(i).n_leaves <= most
        assert losses[i] == pytest.approx(min(brute_force(tree, 0, b) for b in range(1, most + 1)))


def test_ties_are_not_cut():
    Z, target = toy(1, ties=True)
    trees, losses = fit_small_trees(
        Z, target, np.zeros(3), max_depth=3, max_leaves=None, min_leaf=1, alpha=0.0
    )
    for i in range(3):
        mine = trees.tree(i)
        theirs = greedy_tree(Z[i], target[i, :, 0], max_depth=3)
        assert mine.loss[mine.feature < 0].sum() == pytest.approx(
            theirs.loss[theirs.feature < 0].sum()
        )


@pytest.mark.parametrize("low", [True, False])
def test_gaps_go_to_either_side(low):
    rng = np.random.default_rng(0)
    z = np.where(rng.random((1, 90, 1)) < 0.3, np.nan, rng.normal(size=(1, 90, 1)))
    target = (
        np.where(np.isnan(z) | (z < 0), 1.0, 5.0)
        if low
        else np.where(np.isnan(z) | (z > 0), 1.0, 5.0)
    )
    trees, losses = fit_small_trees(
        z, target, np.zeros(1), max_depth=1, max_leaves=None, min_leaf=1, alpha=0.0
    )
    tree = trees.tree(0)
    assert tree.missing[0] != low and losses[0] == pytest.approx(0, abs=1e-12)
    assert np.allclose(tree.leaf_values(z[0]), target[0, :, 0])
    assert tree.apply(np.array([[np.nan]]))[0] == (1 if low else 2)


def test_a_gap_may_be_the_question():
    z = np.array([1.0, 2.0, 3.0, np.nan] * 20).reshape(1, -1, 1)
    target = np.where(np.isnan(z), 1.0, 0.0)
    trees, losses = fit_small_trees(
        z, target, np.zeros(1), max_depth=2, max_leaves=None, min_leaf=1, alpha=0.0
    )
    tree = trees.tree(0)
    assert tree.n_leaves == 2 and tree.threshold[0] == np.inf and losses[0] == 0


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9, -1e-9])
def test_a_constant_reference_has_one_leaf(value):
    e = explain_local(lambda Z: np.full(len(Z), value), X[0], X, alpha=0.0, random_state=0)
    assert e.n_leaves == 1 and e.surrogate_prediction == value and e.loss == 0 and e.features == ()


def curved(Z):
    """A function of three columns."""
    return 1e3 * Z[:, 2] + 2e4 * Z[:, 8] * Z[:, 3] + 500 * np.abs(Z[:, 8])


@examples(20)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_units_do_not_matter(shift, factor):
    plain = explain_local(curved, X[2], X, random_state=0)
    moved = explain_local(lambda Z: shift + factor * curved(Z), X[2], X, random_state=0)
    assert moved.surrogate_prediction == pytest.approx(
        shift + factor * plain.surrogate_prediction, rel=1e-6
    )
    if abs(shift) < 1e3 * factor:
        assert moved.features == plain.features and moved.n_leaves == plain.n_leaves


# Neighbours


@examples(20)
@given(st.integers(0, 10**6), st.floats(0.05, 3))
def test_neighbours_are_where_they_should_be(seed, scale):
    columns = read_columns(X)
    draw = fit_neighbourhood(X, columns, scale)
    Z = draw(X[:4], 4000, seed)
    numbers = np.arange(X.shape[1]) != 1  # sex is drawn anew
    free = scale * X.std(axis=0) * np.random.default_rng(seed).standard_normal((4000, X.shape[1]))
    free = (X[:4, None] + free)[..., numbers]
    low, high = X.min(axis=0)[numbers], X.max(axis=0)[numbers]
    assert np.allclose(Z[..., numbers], free.clip(low, high))
    sex = Z[0, :, 1]
    assert set(sex) <= set(X[:, 1]) and (sex != X[0, 1]).mean() <= min(1, scale**2 / 2) + 0.05


def test_no_neighbour_lies_beyond_the_table_but_towards_a_point_that_does():
    Z = np.random.default_rng(0).gamma(0.5, 10, size=(300, 1))
    draw = fit_neighbourhood(Z, read_columns(Z), 1.0)
    at_end, outside = draw(np.array([[0.0], [300.0]]), 500, 0)[..., 0]
    assert at_end.min() >= 0 and at_end.max() <= Z.max() and 200 < (at_end == 0).sum() < 300
    assert (outside <= 300).all() and outside.min() > 200
    e = explain_local(lambda A: np.abs(A[:, 0] + 5), [0.0], Z, alpha=0.0, random_state=0)
    cuts = [float(cut) for cut in re.findall(r"x0 [≤>] (\S+?)[:\s]", str(e))]
    assert e.n_leaves > 2 and cuts and all(0 < cut < Z.max() for cut in cuts)


def test_labels_and_whole_numbers_and_gaps():
    frame, _ = mixed(2000)
    columns = read_columns(frame)
    e = explain_local(mixed_model, frame.iloc[0], frame, n_samples=4000, random_state=0)
    at = {name: e.neighbours[:, j] for j, name in enumerate(columns.names)}
    assert np.array_equal(at["rooms"], np.rint(at["rooms"])) and np.all(at["same"] == 1)
    assert set(at["garden"]) == {0.0, 1.0} and set(at["colour"]) == {0.0, 1.0, 2.0, 3.0}
    stays = columns.categories[3].index(frame["colour"][0])
    share = (frame["colour"] == frame["colour"][0]).mean()
    chance = 0.7**2 / 2
    assert np.mean(at["colour"] == stays) == pytest.approx(1 - chance + chance * share, abs=0.04)
    missing = chance * np.mean(frame["gaps"].isna()) + (1 - chance) * np.isnan(e.x[1])
    assert np.isnan(at["gaps"]).mean() == pytest.approx(missing, abs=0.04)


def test_frames_are_asked_as_they_were_given():
    frame, y = mixed()
    many = explain_local(
        mixed_model, frame.iloc[:40], frame, n_samples=400, random_state=0, target="price"
    )
    assert len(many) == 40
    for e in many[:10]:
        rows = e.settings.table(e.neighbours)
        assert list(rows.dtypes) == [*frame.dtypes[:2], frame.dtypes["rooms"], *frame.dtypes[3:]]
        assert np.allclose(mixed_model(rows), e.neighbour_predictions[:, 0])
        assert e.local_loss == pytest.approx(
            np.mean((e.tree.predict(rows) - e.neighbour_predictions[:, 0]) ** 2), abs=1e-9
        )
        assert e.tree.predict(frame.iloc[:3]).shape == (3,)
    assert any("colour" in e.features for e in many) and any(
        "{" in str(e) or "colour is" in str(e) for e in many
    )
    alone = explain_local(
        mixed_model, frame.iloc[7], frame, n_samples=400, random_state=0, target="price"
    )
    assert str(alone) == str(many[7]) and "price" in str(alone)


def test_one_cut_separates_labels_in_any_order():
    frame, _ = mixed()
    e = explain_local(
        lambda table: 5.0 * table["colour"].isin(["b", "r"]).to_numpy(),
        frame.iloc[0],
        frame,
        max_depth=1,
        random_state=0,
    )
    assert e.n_leaves == 2 and e.local_loss == pytest.approx(0, abs=1e-12)


def test_a_point_between_whole_numbers_is_not_rounded():
    frame = pd.DataFrame({"n": np.arange(50), "z": np.linspace(0, 1, 50)})
    point = pd.DataFrame({"n": [2.5], "z": [0.5]})
    assert (
        explain_local(lambda f: f["n"].to_numpy(float), point, frame, random_state=0)[0].prediction
        == 2.5
    )


def test_a_gap_at_the_point():
    frame, y = mixed()
    at = int(np.flatnonzero(frame["gaps"].isna())[0])
    e = explain_local(mixed_model, frame.iloc[at], frame, n_samples=800, random_state=0)
    assert "gaps is missing" in str(e) and e.surrogate_prediction == pytest.approx(
        e.tree.predict(frame.iloc[[at]])[0]
    )
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0).fit(
        frame, y
    )
    assert explain_local(model, frame.iloc[at], frame, random_state=0).loss < 30


def test_sampler():
    seen = []

    def sampler(x, n, rng):
        seen.append(x.copy())
        return x + 0.1 * rng.standard_normal((n, len(x)))

    many = explain_local(FOREST, X[:3], sampler=sampler, random_state=0)
    assert np.array_equal(seen, X[:3]) and np.allclose(
        many[0].neighbours - X[0], many[2].neighbours - X[2]
    )
    assert many[1].tree == explain_local(FOREST, X[1], sampler=sampler, random_state=0).tree
    frame, _ = mixed()
    e = explain_local(
        mixed_model, frame.iloc[0], frame, sampler=lambda x, n, rng: frame.sample(n, random_state=1)
    )
    assert np.allclose(
        e.neighbour_predictions[:, 0], mixed_model(frame.sample(200, random_state=1))
    )


# How sure


def test_draws():
    e = explain_local(FOREST, X[0], X, random_state=0)
    s = e.draw_explanations
    assert (
        len(s) == 20
        and s.inclusion.shape == (10,)
        and ((s.inclusion >= 0) & (s.inclusion <= 1)).all()
    )
    for k in (0, 11):
        member = FOREST.estimators_[k]
        alone = explain_local(member, X[0], X, random_state=0)
        assert alone.tree == s.tree(k) and alone.surrogate_prediction == pytest.approx(
            s.tree_predictions[k, 0]
        )
        assert s.predictions[k, 0] == pytest.approx(member.predict(X[:1])[0])
    ((low, high),) = s.interval(0.5)
    assert low <= np.median(s.tree_predictions) <= high
    assert "20 draws" in str(e)
    assert np.isclose(
        s.inclusion[2],
        np.mean(
            [any(q is not None and q.features == (2,) for q in s.tree(k).splits) for k in range(20)]
        ),
    )


def test_a_surer_reference_is_explained_more_surely():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    y = 3 * Z[:, 0] + rng.normal(0, 1, 400)
    wide = [
        np.ptp(
            explain_local(
                BayesianRidge().fit(Z[:n], y[:n]), Z[0], Z, random_state=0
            ).draw_explanations.interval()[0]
        )
        for n in (15, 400)
    ]
    assert wide[1] < wide[0] / 2


def test_doubt_makes_the_tree_smaller():
    def doubtful(Z, var):
        return Z[:, 2] * 100, np.full(len(Z), var)

    def size(var, counts):
        return explain_local(
            lambda Z: doubtful(Z, var), X[0], X, variance=counts, random_state=0
        ).n_leaves

    sizes = [size(var, True) for var in (0.0, 10.0, 1e4)]
    assert sizes[0] > sizes[1] > sizes[2] == 1
    assert size(10.0, False) == size(1e4, False) == sizes[0]


def test_draws_of_a_process_and_of_classes():
    process = GaussianProcessRegressor(alpha=1.0, optimizer=None).fit(10 * X[:60], Y[:60])
    e = explain_local(process, 10 * X[0], 10 * X, n_samples=50, n_draws=7, random_state=0)
    assert e.draw_explanations.tree_predictions.shape == (7, 1) and "7 draws" in str(e)
    s = explain_local(IRIS_FOREST, IRIS[70], IRIS, random_state=0).draw_explanations
    assert (
        s.tree_predictions.shape == (20, 3)
        and np.allclose(s.tree_predictions.sum(axis=1), 1)
        and s.interval().shape == (3, 2)
    )


def test_a_point_reference_claims_no_doubt():
    e = explain_local(LinearRegression().fit(X, Y), X[0], X, random_state=0)
    assert (
        "draws" not in str(e)
        and len(e.draw_explanations) == 1
        and e.draw_explanations.tree(0) == e.tree
    )
    assert e.draw_explanations.tree_predictions[0, 0] == pytest.approx(e.surrogate_prediction)


def test_bart():
    stochtree = pytest.importorskip("stochtree")
    bart = stochtree.BARTModel()
    bart.sample(
        X_train=X,
        y_train=Y,
        num_gfr=5,
        num_burnin=0,
        num_mcmc=10,
        general_params={"random_seed": 1},
    )
    e = explain_local(bart, X[0], X, random_state=0)
    assert len(e.draw_explanations) == 10 and e.prediction == pytest.approx(
        bart.predict(X[:1], type="mean", terms="y_hat")[0], rel=1e-6
    )


# Pictures in words


def test_text_and_html():
    frame, _ = mixed()
    frame = frame.rename(columns={"size": "<b>size</b>"})
    e = explain_local(
        lambda f: mixed_model(f.rename(columns={"<b>size</b>": "size"})), frame.iloc[0], frame
    )
    assert str(e).startswith("Near this point (") and repr(e) == str(e)
    said = e._repr_html_()
    assert (
        "Near this point" in said
        and "<b>size</b>" not in said
        and "&lt;b&gt;size&lt;/b&gt;" in said
    )
    many = explain_local(FOREST, X[:4], X, random_state=0)
    found = many.to_frame()
    assert list(found.columns) == [
        "answer",
        "prediction",
        "loss",
        "local_loss",
        "n_leaves",
        "features",
    ]
    assert repr(many) == "<4 local explanations>" and "<table" in many._repr_html_()
    (alone,) = one = explain_local(FOREST, X[:1], X, random_state=0)
    assert repr(one) == str(alone)


def test_the_four_columns_that_draws_use_most_are_named():
    text = str(explain_local(FOREST, X[0], X, alpha=0.0, random_state=0))
    shares = [
        int(share) for share in re.findall(r"(\d+)%", text[text.index("These trees split on") :])
    ]
    assert len(shares) == 4 and shares == sorted(shares, reverse=True)


def test_explanations_pickle():
    e = explain_local(FOREST, X[0], X, random_state=0)
    again = pickle.loads(pickle.dumps(e))
    assert str(again) == str(e)


# Shapes and bad input


def test_one_column():
    z = np.linspace(0, 6, 200)[:, None]
    e = explain_local(lambda Z: np.sin(Z[:, 0]), z[30], z, random_state=0)
    assert e.features == ("x0",) and e.loss < 0.1
    assert len(explain_local(lambda Z: np.sin(Z[:, 0]), z[:5], z, random_state=0)) == 5


@pytest.mark.parametrize("n_samples", [1, 2, 9])
def test_few_neighbours(n_samples):
    e = explain_local(FOREST, X[0], X, n_samples=n_samples, random_state=0)
    assert e.n_leaves == 1 and e.surrogate_prediction == pytest.approx(
        FOREST.predict(e.neighbours).mean()
    )
    assert np.isfinite([e.loss, e.local_loss]).all() and str(e)


def test_losses_of_a_sure_and_wrong_answer_are_infinite():
    assert pointwise_loss(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))[0] == np.inf
    assert pointwise_loss(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))[0] == 0


BAD = [
    (dict(n_samples=0), "n_samples must be an integer of at least 1"),
    (dict(n_samples=2.5), "n_samples must be an integer"),
    (dict(scale=-1.0), "scale must be a finite number of at least 0"),
    (dict(scale=np.nan), "scale must be a finite number"),
    (dict(max_depth=-1), "max_depth must be an integer of at least 0"),
    (dict(max_depth=9), "max_depth must be at most 8, got 9"),
    (dict(max_leaves=0), "max_leaves must be an integer of at least 1"),
    (dict(min_samples_leaf=0), "min_samples_leaf must be an integer of at least 1"),
    (dict(alpha=-0.1), "alpha must be a finite number of at least 0"),
    (dict(random_state="x"), "random_state must be"),
    (dict(n_draws=0), "n_draws must be"),
    (dict(n_jobs=0), "n_jobs == 0"),
    (
        dict(sampler=lambda x, n, rng: np.zeros((3, 10))),
        "sampler must return an array of n = 200 rows, got 3",
    ),
    (dict(X=None), "X must be a table"),
    (dict(x=X[0, :4]), r"^x must have shape \(n, 10\), got \(1, 4\)"),
    (dict(x=np.full(10, np.inf)), "infinity"),
    (dict(reference=lambda Z: np.full(len(Z), np.nan)), "nan"),
    (dict(reference=lambda Z: np.zeros((len(Z), 7))), "shape"),
    (dict(reference=RandomForestRegressor()), "fitted"),
    (dict(reference=np.zeros((5, 442))), "rows for which the draws were computed"),
]


@pytest.mark.parametrize(
    ("change", "message"), BAD, ids=lambda case: str(case)[:40] if isinstance(case, str) else ""
)
def test_bad_input(change, message):
    given_ = {"reference": FOREST, "x": X[0], "X": X} | change
    with pytest.raises((ValueError, TypeError), match=message):
        explain_local(given_.pop("reference"), given_.pop("x"), **given_)


def test_the_argument_that_lacks_a_column_is_named():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    row = frame.iloc[3]
    short = row.drop("c2")
    forms = ((row, short), (dict(row), dict(short)), (frame[3:4], frame[3:4].drop(columns="c2")))
    for form, less in forms:
        with pytest.raises(ValueError, match="^x has no columns 'c2'"):
            explain_local(FOREST, less, frame)
        with pytest.raises(ValueError, match="^x must have only columns of X, got 'c2'$"):
            explain_local(FOREST, form, frame.drop(columns="c2"))
    with pytest.raises(ValueError, match="^x has unknown columns 'd' and no columns 'c2'"):
        explain_local(FOREST, row.rename({"c2": "d"}), frame)


def test_one_nan_among_the_draws():
    def draws(Z):
        found = np.zeros((3, len(Z)))
        found[1, -1] = np.nan
        return found

    with pytest.raises(ValueError, match="nan"):
        explain_local(draws, X[0], X)


def test_answers_of_classes_have_labels_in_frames_and_json():
    y = np.where(X[:, 2] > 0, "high", "low")
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    many = explain_local(model, X[:3], X, random_state=0)
    found = many.to_frame()
    assert list(found["prediction"]) == list(model.predict(X[:3]))
    shares = found[["prediction_p_high", "prediction_p_low"]].to_numpy()
    np.testing.assert_allclose(shares, model.predict_proba(X[:3]), atol=1e-12)
    told = json.loads(many.to_json())
    assert told[0] == json.loads(many[0].to_json())
    assert set(told[0]["prediction"]) == {"high", "low"}
    assert list(told[0]["point"].values()) == X[0].tolist()


def test_y_is_called_what_the_models_rules_call_it():
    from fabinterp import ProxyTreeRegressor

    model = ProxyTreeRegressor(FOREST, random_state=0).fit(
        X, pd.Series(FOREST.predict(X), name="sugar")
    )
    assert "the tree predicts sugar =" in str(explain_local(model, X[0], X, random_state=0))
    assert "the tree predicts y =" in str(explain_local(FOREST, X[0], X, random_state=0))


def jagged_points(classes=2):
    """Return a jagged classifier, its rows, and those that it is least sure of."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int) + (classes > 2) * (X[:, 1] > 1)
    model = RandomForestClassifier(8, random_state=0).fit(X, y)
    return model, X, X[np.argsort(model.predict_proba(X[:300]).max(axis=1))[:60]]


@pytest.mark.parametrize("classes", [2, 3])
def test_the_first_line_reports_that_tree_and_model_differ(classes):
    model, X, points = jagged_points(classes)
    n_different = 0
    for e in explain_local(model, points, X, random_state=0):
        tree, reference = (np.argmax(p) for p in (e.surrogate_prediction, e.prediction))
        line = f"The tree predicts {tree} here; the model predicts {reference}."
        assert str(e).startswith(line if tree != reference else "Near this point")
        assert (line in e.to_html()) == (tree != reference)
        n_different += tree != reference
    assert 0 < n_different < len(points)


def test_one_row_in_whatever_form_has_the_same_text():
    model, X, points = jagged_points()
    table = pd.DataFrame(X, columns=list("abcdef"))
    row = table.iloc[0]
    texts = {
        explain_local(
            lambda Z: model.predict_proba(np.asarray(Z)), x, table, random_state=0
        ).to_text()
        for x in (row, row.to_dict(), row.to_numpy(), table.iloc[[0]])
    }
    assert len(texts) == 1
    one = explain_local(model, points[:1], X, random_state=0)
    assert one.tree_ is one[0].tree
    assert not hasattr(explain_local(model, points[:2], X, random_state=0), "tree_")


def test_the_smaller_price_that_is_named_does_tell_classes_apart():
    n_named = n_none = 0
    for model, table in (jagged_points()[:2], (IRIS_FOREST, IRIS)):
        for x in table[::6]:
            e = explain_local(model, x, table, random_state=0)
            said = str(e).splitlines()
            if e.n_leaves > 1:
                assert not any("alpha" in line for line in said)
                continue
            line = next(line for line in said if "alpha" in line)
            found = re.search(r"alpha = ([\d.]+) gives (\d+) leaves that separate", line)
            if not found:
                n_none += 1
                assert "no smaller one separates the classes" in line
                free = explain_local(model, x, table, random_state=0, alpha=0.0).array_tree
                assert len(set(free.value[free.feature < 0].argmax(axis=1))) == 1
                continue
            n_named += 1
            tree = explain_local(model, x, table, random_state=0, alpha=float(found[1])).array_tree
            assert tree.n_leaves == int(found[2])
            assert len(set(tree.value[tree.feature < 0].argmax(axis=1))) > 1
    assert n_named >= 5 and n_none >= 5


def test_a_leaf_claims_nothing_and_draws_speak_of_the_class_that_is_named():
    constant = explain_local(lambda Z: np.full(len(Z), 3.0), X[0], X, random_state=0)
    assert "explains" not in str(constant) and "no smaller one splits here" in str(constant)
    half = explain_local(FOREST, X[10], X, random_state=0, variance=True, alpha=5.0)
    assert half.n_leaves == 1 and "alpha = 5.\n" in f"{half}\n"
    tall = explain_local(FOREST, X[10], X, random_state=0, alpha=5.0)
    price, n_leaves = re.search(r"alpha = ([\d.]+) gives (\d+) leaves\.", str(tall)).groups()
    cheaper = explain_local(FOREST, X[10], X, random_state=0, alpha=float(price))
    assert cheaper.n_leaves == int(n_leaves) > 1
    texts = []
    for i in range(0, 150, 10):
        e = explain_local(IRIS_FOREST, IRIS[i], IRIS, random_state=0)
        label = int(np.argmax(e.surrogate_prediction))
        share = np.mean(e.draw_explanations.tree_predictions.argmax(axis=1) == label)
        text = str(e)
        assert (
            f"In {share:.0%} of {len(e.draw_explanations)} draws, the tree predicts {label} here"
            in text
        )
        low, high = e.draw_explanations.interval()[label]
        assert (f"≤ P({label}) ≤" in text) == (high - low < 0.9)
        if e.n_leaves == 1:
            assert (
                f"The model predicts {label} for {e.fidelity:.0%} of 200 drawn neighbours." in text
            )
        else:
            counts = np.bincount(e.neighbour_predictions.argmax(axis=1))
            one = counts.max() / 200
            better = round(200 * e.fidelity) > counts.max()
            assert ("no better than a constant prediction" in text) != better
            same = f"{one:.0%}" == f"{e.fidelity:.0%}"
            assert ("hardly better than a constant prediction." in text) == (better and same)
            assert (f", a constant prediction for {one:.0%}." in text) == (better and not same)
        texts.append(text)
    assert any("≤ P(" in text for text in texts) and not all("≤ P(" in text for text in texts)


def test_words_are_what_stands_before_the_tree():
    for model, table in ((FOREST, X), (IRIS_FOREST, IRIS)):
        e = explain_local(model, table[60], table, random_state=0)
        words = e.words()
        assert words.startswith("Near this point") and "neighbours" in words
        assert "draw_explanations" not in vars(e)  # they ask the model once more
        assert words == " ".join(str(e).splitlines()[:2])


def test_a_tree_that_names_no_more_than_one_class_would_is_told_of():
    """Shares of 0.7 to 0.95, always of the same class: the tree tells how sure, and nothing else."""

    def shares(Z):
        yes = np.where(np.asarray(Z)[:, 0] > 0, 0.95, 0.7)
        return np.column_stack([1 - yes, yes])

    Z = np.random.default_rng(0).normal(size=(300, 2))
    sure = explain_local(shares, Z[0], Z, random_state=0)
    assert sure.n_leaves > 1
    second = sure.words().split("; the model predicts")[1].split(". ", 1)[1]
    assert second == (
        "The tree predicts the model's class for 100% of 200 drawn neighbours, "
        "no better than a constant prediction."
    )
    assert "divergence" not in str(sure)
