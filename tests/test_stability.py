"""How differently two trees ask is a distance with the properties it should have; the t-test agrees with sampling."""

from math import inf

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import norm, t, ttest_ind, ttest_rel
from shared.effort import case, examples
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.bench.means import difference_of_means, group_mean, shortest_interval
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.models.piecewise import PiecewiseLinearRegressor
from fabinterp.proxy.stability import (
    Instability,
    as_tree,
    column_ranges,
    comparable_split,
    disagreement_of_trees,
    dissimilarity,
    instability,
)
from fabinterp.proxy.tree_estimators import ProxyTreeRegressor
from fabinterp.rules.core import Columns, Leaf, Split
from fabinterp.rules.ruleset import Tree

LABELS = ("black", "blue", "green", "red", "white")
COLUMNS = Columns(("age", "colour", "size"), (None, LABELS, None))
RANGES = np.array([[0.0, 10.0], [0.0, 4.0], [-1.0, 1.0]])


def build(nested, columns=COLUMNS):
    """A tree from nested (split, no, yes); anything else is a leaf."""
    splits = []
    yes = []
    no = []
    leaves = []

    def add(item):
        k = len(splits)
        inner = isinstance(item, tuple)
        splits.append(item[0] if inner else None)
        leaves.append(None if inner else Leaf(float(item)))
        yes.append(-1)
        no.append(-1)
        if inner:
            no[k] = add(item[1])
            yes[k] = add(item[2])
        return k

    add(nested)
    return Tree(tuple(splits), yes, no, tuple(leaves), columns)


age = st.builds(
    lambda cut, missing: Split((0,), cut, missing=missing), st.integers(-2, 12), st.booleans()
)
size = st.builds(lambda cut: Split((2,), cut / 7), st.integers(-8, 8))
colour = st.builds(lambda codes: Split((1,), categories=tuple(codes)), st.sets(st.integers(0, 4)))
gap = st.sampled_from([Split((0,), inf, missing=True), Split((2,), inf, missing=True)])
slope = st.sampled_from([-2.0, 0.5, 3.0])
plane = st.builds(lambda cut, a, b: Split((0, 2), cut, (a, b)), st.integers(-5, 5), slope, slope)
cuts = age | size | gap
questions = age | size | gap | colour | plane


def trees(asked):
    return st.recursive(
        st.integers(0, 3), lambda below: st.tuples(asked, below, below), max_leaves=8
    ).map(build)


weights = st.sampled_from([None, lambda depth: 0.5**depth, lambda depth: 1.0 + depth])


# ------------------------------------------------------------------ the distance of two trees


@given(trees(questions), trees(questions), weights)
@examples(150)
def test_dissimilarity_is_symmetric_bounded_and_zero_to_itself(a, b, q):
    d = dissimilarity(a, b, RANGES, q)
    assert 0 <= d <= 1 and np.isclose(d, dissimilarity(b, a, RANGES, q), rtol=0, atol=1e-12)
    assert dissimilarity(a, a, RANGES, q) == pytest.approx(0, abs=1e-12)
    printed = dissimilarity(a, b, RANGES, as_printed=True)
    assert 1 / max(a.n_leaves, b.n_leaves) - 1e-12 <= printed <= 1
    assert np.isclose(
        dissimilarity(a, a, RANGES, as_printed=True), 1 / a.n_leaves
    )  # the erratum of the paper


@given(trees(cuts), trees(cuts), trees(cuts), weights)
@examples(300)
def test_triangle_inequality_of_trees_that_cut(a, b, c, q):
    def d(one, two):
        return dissimilarity(one, two, RANGES, q)

    assert d(a, c) <= d(a, b) + d(b, c) + 1e-12


def places(tree, n_levels=12):
    """What a tree asks at each place, a place being the path of sides from the root, by recursion."""
    found = {}

    def visit(k, place):
        if tree.splits[k] is not None:
            found[place] = tree.splits[k]
            visit(tree.no[k], place + "n")
            visit(tree.yes[k], place + "y")

    visit(0, "")
    return found


@given(trees(cuts), trees(cuts), weights)
@examples(150)
def test_dissimilarity_is_that_of_the_dictionaries_of_places(a, b, q):
    one = places(a)
    two = places(b)
    total = 0.0
    every = one.keys() | two.keys()
    weight = {place: 1.0 if q is None else q(len(place)) for place in every}
    for place in one.keys() & two.keys():
        s = one[place]
        r = two[place]
        if s.features == r.features and np.isinf([s.threshold, r.threshold]).all():
            total += weight[place]
        elif s.features == r.features and np.isfinite([s.threshold, r.threshold]).all():
            low, high = RANGES[s.features[0]]
            apart = abs(np.clip(s.threshold, low, high) - np.clip(r.threshold, low, high))
            total += weight[place] * (1 - apart / (high - low))
    expected = 1 - total / sum(weight.values()) if every else 0.0
    assert np.isclose(dissimilarity(a, b, RANGES, q), expected)
    if q is None and every:
        printed = 1 - total / max(a.n_leaves, b.n_leaves)
        assert np.isclose(dissimilarity(a, b, RANGES, as_printed=True), printed)


def in_units(tree, scale, shift):
    """The same tree of a table whose columns are scale·x + shift."""
    splits = []
    for s in tree.splits:
        if s is not None and s.categories is None and np.isfinite(s.threshold):
            f = list(s.features)
            coef = np.array(s.coef) / scale[f]
            s = Split(s.features, s.threshold + coef @ shift[f], tuple(coef), missing=s.missing)
        splits.append(s)
    return Tree(tuple(splits), tree.yes, tree.no, tree.leaves, tree.columns)


@given(trees(questions), trees(questions), st.tuples(*[st.sampled_from([0.25, 1.0, 3.7])] * 2))
@examples(100)
def test_units_do_not_matter(a, b, scales):
    scale = np.array([scales[0], 1.0, scales[1]])
    shift = np.array([32.0, 0.0, -1.0])
    ranges = RANGES * scale[:, None] + shift[:, None]
    changed = dissimilarity(in_units(a, scale, shift), in_units(b, scale, shift), ranges)
    # A point of the box that lies on a plane may fall to either side; each is 2/1024 of a
    # similarity.
    assert np.isclose(changed, dissimilarity(a, b, RANGES), rtol=0, atol=0.01)


def test_no_shared_question_is_as_far_as_it_goes():
    a = build((Split((0,), 5), 0, (Split((0,), 7), 1, 2)))
    b = build((Split((2,), 0), 0, (Split((2,), 0.5), 1, 2)))
    assert dissimilarity(a, b, RANGES) == dissimilarity(a, b, RANGES, as_printed=True) == 1
    assert dissimilarity(a, build(1), RANGES) == 1


def test_a_tree_that_asks_nothing_is_like_another():
    assert dissimilarity(build(1), build(2), RANGES) == 0
    assert dissimilarity(build(1), build(2), RANGES, as_printed=True) == 1


def test_a_pruned_tree_differs_by_the_questions_it_lost():
    full = build(
        (Split((0,), 5), (Split((2,), 0), 0, 1), (Split((2,), 0.5), 2, (Split((0,), 8), 3, 4)))
    )
    pruned = build((Split((0,), 5), 0, (Split((2,), 0.5), 2, 3)))
    assert np.isclose(dissimilarity(full, pruned, RANGES), 1 - 2 / 4)
    assert np.isclose(dissimilarity(full, pruned, RANGES, lambda depth: 0.5**depth), 1 - 1.5 / 2.25)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (Split((0,), 2), Split((0,), 5), 0.3),
        (
            Split((0,), -4),
            Split((0,), 20),
            1.0,
        ),  # cuts outside the range part no values: as far as the range is long
        (Split((0,), 2), Split((2,), 0), 1.0),
        (Split((0,), inf, missing=True), Split((0,), 10), 1.0),
        (
            Split((0,), inf, missing=True),
            Split((0,), -inf, missing=False),
            0.0,
        ),  # “is missing”, “is known”
        (
            Split((1,), categories=(0, 1)),
            Split((1,), categories=(2, 3, 4)),
            0.0,
        ),  # said the other way round
        (Split((1,), categories=(0, 1)), Split((1,), categories=(0, 1, 2)), 2 * 1 / 5),
        (Split((1,), categories=(0, 1)), Split((1,), 2.5), 2 * 1 / 5),  # codes above 2.5 are {3, 4}
        (Split((0, 2), 1, (1.0, 2.0)), Split((2, 0), 1, (2.0, 1.0)), 0.0),
        (Split((0, 2), 1, (1.0, 2.0)), Split((0, 2), -1, (-1.0, -2.0)), 0.0),
        (Split((0, 2), 1, (1.0, 2.0)), Split((0, 2), 2, (2.0, 4.0)), 0.0),
    ],
)
def test_two_questions(one, two, expected):
    a = build((one, 0, 1))
    b = build((two, 0, 1))
    assert dissimilarity(a, b, RANGES) == pytest.approx(expected, abs=1e-3)


def test_sides_are_followed_through_questions_said_the_other_way_round():
    below = (Split((2,), 0.5), 0, 1)
    a = build((Split((1,), categories=(0, 1)), 0, below))
    b = build((Split((1,), categories=(2, 3, 4)), below, 0))
    assert dissimilarity(a, b, RANGES) == pytest.approx(0)
    a = build((Split((0,), 5, (1.0,)), 0, below))
    b = build((Split((0,), -5, (-1.0,)), below, 0))
    assert dissimilarity(a, b, RANGES) == pytest.approx(0)
    other = build(
        (Split((2,), 0.0), 0, below)
    )  # asks of another column, but its yes is for large values too
    assert dissimilarity(a, other, RANGES) == dissimilarity(b, other, RANGES) == 0.5


def test_two_planes_that_cross_in_the_middle_of_the_box_have_nothing_in_common():
    square = np.array([[-1.0, 1.0]] * 3)
    for angle in (0.0, 0.1, 0.7, np.pi / 4, np.pi / 2):
        a = build((Split((0, 2), 0.0, (1.0, 1.0)), 0, 1))
        b = build(
            (Split((0, 2), 0.0, (np.cos(np.pi / 4 + angle), np.sin(np.pi / 4 + angle))), 0, 1)
        )
        corners = np.random.default_rng(0).uniform(-1, 1, (200_000, 2))
        apart = np.mean((corners.sum(axis=1) > 0) != (corners @ b.splits[0].coef > 0))
        assert dissimilarity(a, b, square) == pytest.approx(1 - abs(1 - 2 * apart), abs=0.01)


def test_labels_are_compared_not_their_codes():
    fewer = Columns(("age", "colour", "size"), (None, ("blue", "green", "red"), None))
    a = build((Split((1,), categories=(1, 3)), 0, 1))  # blue, red
    b = build((Split((1,), categories=(0, 2)), 0, 1), fewer)  # blue, red
    assert dissimilarity(a, b, RANGES) == 0


def test_what_dissimilarity_refuses():
    a = build((Split((0,), 5), 0, 1))
    other = build((Split((0,), 5), 0, 1), Columns(("a", "b", "c"), (None, LABELS, None)))
    with pytest.raises(ValueError, match="tree_b must have the columns of tree_a"):
        dissimilarity(a, other, RANGES)
    with pytest.raises(ValueError, match=r"ranges must have shape \(3, 2\), got \(2, 2\)"):
        dissimilarity(a, a, RANGES[:2])
    with pytest.raises(ValueError, match="weights must be None with as_printed"):
        dissimilarity(a, a, RANGES, lambda depth: 1.0, as_printed=True)
    with pytest.raises(ValueError, match="LinearRegression"):
        as_tree(LinearRegression())


def test_ranges():
    X = pd.DataFrame({"a": [1.0, np.nan, 4.0], "b": ["x", None, "y"], "c": [np.nan] * 3})
    assert column_ranges(X).tolist() == [[1, 4], [0, 1], [0, 0]]
    assert column_ranges(np.array([[2.0, 5.0], [0.0, 5.0]])).tolist() == [[0, 2], [5, 5]]


# ------------------------------------------------------------------ bootstrap


def test_instability_is_that_of_every_pair_of_bootstrapped_trees():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    found = instability(DecisionTreeRegressor(max_leaf_nodes=6), X, y, 5, random_state=3)
    assert isinstance(found, Instability) and len(found.trees) == 5 and found.pairs.shape == (10,)
    pairs = [
        dissimilarity(found.trees[i], found.trees[j], column_ranges(X))
        for i in range(5)
        for j in range(i)
    ]
    assert np.isclose(found.mean, np.mean(pairs)) and np.isclose(found.std, np.std(pairs, ddof=1))
    assert np.array_equal(found.matrix, found.matrix.T) and np.all(np.diag(found.matrix) < 1e-12)
    assert (
        np.allclose(np.diag(found.as_printed.matrix), 1 / 6)
        and found.as_printed.trees is found.trees
    )
    assert found.as_printed.mean != found.mean
    left_out = [
        np.mean([d for d in np.delete(np.delete(found.matrix, k, 0), k, 1)[np.triu_indices(4, 1)]])
        for k in range(5)
    ]
    assert np.isclose(
        found.standard_error, np.sqrt(4 / 5 * np.sum((left_out - np.mean(left_out)) ** 2))
    )
    assert "over 10 pairs" in repr(found)


def test_instability_repeats_itself_whatever_the_threads_and_shows_every_fit_the_same_samples():
    X, y = load_breast_cancer(return_X_y=True)
    fit = DecisionTreeClassifier(
        max_depth=3, max_features=5
    )  # draws features: its own random_state is open
    runs = [instability(fit, X, y, 4, random_state=0, n_jobs=n_jobs) for n_jobs in (None, 2)]
    assert runs[0].trees == runs[1].trees and np.array_equal(runs[0].matrix, runs[1].matrix)
    assert fit.random_state is None
    assert not np.array_equal(instability(fit, X, y, 4, random_state=1).matrix, runs[0].matrix)
    seen = {"a": [], "b": []}

    def remember(name):
        def fitted(X, y):
            seen[name].append(X.sum())
            return DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)

        return fitted

    for name in seen:
        instability(remember(name), X, y, 3, random_state=0)
    assert seen["a"] == seen["b"] and len(set(seen["a"])) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "fit",
    [
        DecisionTreeRegressor(max_depth=3),
        MetaTreeRegressor(max_depth=3),
        MetaTreeRegressor(n_trees=3, max_depth=3),
        PiecewiseLinearRegressor(penalty=1.0),
    ],
    ids=["sklearn", "meta", "metas", "piecewise"],
)
def test_instability_of_the_trees_there_are(fit):
    X, y = load_diabetes(return_X_y=True)
    found = instability(fit, X[:200, :5], y[:200], 3, random_state=0)
    assert all(isinstance(tree, Tree) for tree in found.trees) and 0 <= found.mean <= 1
    assert 0 <= found.disagreement(X[200:, :5]) <= 1


@pytest.mark.slow
def test_a_fitted_reference_stays_what_it_is_and_an_unfitted_one_is_fitted_to_each_sample():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
    fitted = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X, y)
    each, one = [
        instability(ProxyTreeRegressor(reference, size=4, random_state=0), X, y, 4, random_state=0)
        for reference in (forest, fitted)
    ]
    by_hand = instability(
        lambda X, y: ProxyTreeRegressor(fitted, size=4, random_state=0).fit(X, y),
        X,
        y,
        4,
        random_state=0,
    )
    assert one.trees == by_hand.trees != each.trees
    assert not hasattr(forest, "estimators_")


def test_instability_of_a_frame_with_categories_and_gaps_whose_labels_may_not_be_drawn():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "green"], 60, p=[0.5, 0.47, 0.03]),
            "x": rng.random(60),
        }
    )
    X.loc[::9, "x"] = np.nan
    y = (X["colour"] == "red").to_numpy() ^ (rng.random(60) < 0.05)
    found = instability(MetaTreeClassifier(max_depth=2), X, y.astype(int), 6, random_state=0)
    assert {
        "sets" for tree in found.trees for s in tree.splits if s and s.categories is not None
    } == {"sets"}
    assert found.mean < 1


def test_a_rule_that_never_changes_is_stable_and_noise_is_not():
    rng = np.random.default_rng(0)
    X = rng.random((300, 5))
    sure = instability(DecisionTreeRegressor(max_depth=1), X, 1.0 * (X[:, 2] > 0.5), random_state=0)
    noise = instability(DecisionTreeRegressor(max_depth=1), X, rng.normal(size=300), random_state=0)
    assert sure.mean < 0.02 < 0.5 < noise.mean
    assert instability(lambda X, y: build(1, Columns(tuple("abcde"), (None,) * 5)), X).mean == 0


def test_what_instability_refuses():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="n_bootstrap must be an integer of at least 2, got 1"):
        instability(DecisionTreeRegressor(), X, y, 1)
    with pytest.raises(ValueError, match="fit must be"):
        instability("tree", X, y)
    with pytest.raises(
        ValueError, match="model must consist of one tree, got RandomForestRegressor of 3"
    ):
        instability(RandomForestRegressor(3), X, y, 2)
    with pytest.raises(ValueError, match="random_state must be"):
        instability(DecisionTreeRegressor(), X, y, 2, random_state="seed")


def test_disagreement_of_numbers_and_labels():
    X = np.array([[1.0, 0, 0], [9.0, 0, 0]])
    one = build((Split((0,), 5), 0, 4))
    two = build((Split((0,), 5), 2, 6))
    # Answers 0, 4 and 2, 6: the variance of 1 between the trees, in a total of 5.
    assert np.isclose(disagreement_of_trees([one, two], X), 1 / 5)
    assert (
        disagreement_of_trees([one, one], X) == disagreement_of_trees([build(1), build(1)], X) == 0
    )
    assert disagreement_of_trees([build(1), build(2)], X) == 1
    Z, c = load_iris(return_X_y=True)
    fits = [
        DecisionTreeClassifier(max_depth=2, random_state=k).fit(Z[k::3], c[k::3]) for k in range(3)
    ]
    said = [fit.predict(Z) for fit in fits]
    pairs = [np.mean(said[i] != said[j]) for i in range(3) for j in range(i)]
    assert np.isclose(disagreement_of_trees(fits, Z), np.mean(pairs)) and min(pairs) > 0


# ------------------------------------------------------------------ Kruschke's t-test


def log_posterior(theta, groups, centre, spread):
    """Log of prior times likelihood of (μ…, log σ…, log(ν − 1)), one row per state, straight from the model."""
    G = len(groups)
    mu = theta[:, :G]
    log_sigma = theta[:, G : 2 * G]
    nu = 1 + np.exp(theta[:, -1:])
    total = theta[:, -1] - (nu[:, 0] - 1) / 29  # the prior of ν and the Jacobian of log(ν − 1)
    total = total + (norm.logpdf(mu, centre, 1000 * spread) + log_sigma).sum(
        axis=1
    )  # uniform σ: Jacobian σ
    for g, y in enumerate(groups):
        total = total + t.logpdf(y, nu, mu[:, [g]], np.exp(log_sigma[:, [g]])).sum(axis=1)
    inside = (np.abs(log_sigma - np.log(spread)) < np.log(1000)).all(axis=1)
    return np.where(inside, total, -inf)


def metropolis(groups, n_chains=250, n_steps=2500, seed=0):
    """Draws of all parameters by a random walk in many chains at once."""
    rng = np.random.default_rng(seed)
    pooled = np.concatenate(groups)
    size = np.array([len(y) for y in groups])
    spread = np.array([y.std() for y in groups])
    step = np.concatenate([spread / np.sqrt(size), 1 / np.sqrt(2 * size), [1.0]])
    at = np.concatenate([[y.mean() for y in groups], np.log(spread), [3.0]])
    at = at + step * rng.normal(size=(n_chains, len(step)))
    now = log_posterior(at, groups, pooled.mean(), pooled.std(ddof=1))
    kept = []
    for k in range(n_steps):
        move = at + 0.9 * step * rng.normal(size=at.shape)
        then = log_posterior(move, groups, pooled.mean(), pooled.std(ddof=1))
        taken = np.log(rng.random(n_chains)) < then - now
        at = np.where(taken[:, None], move, at)
        now = np.where(taken, then, now)
        if k > 500:
            kept.append(at)
    return np.concatenate(kept)


def draws_interval(draws, level):
    """The shortest interval that holds a share `level` of the draws."""
    draws = np.sort(draws)
    n = int(np.ceil(level * len(draws)))
    k = np.argmin(draws[n - 1 :] - draws[: len(draws) - n + 1])
    return draws[k], draws[k + n - 1]


@pytest.mark.parametrize("kind", [case("normal", quick=False), "outlier", "paired"])
def test_difference_of_means_agrees_with_a_random_walk(kind):
    rng = np.random.default_rng(5)
    a = rng.normal(1.0, 1.0, 12)
    b = rng.normal(0.2, 2.0, 15 if kind != "paired" else 12)
    if kind == "outlier":
        a[3] = 9.0
    found = difference_of_means(a, b, paired=kind == "paired", level=0.9)
    draws = metropolis([a - b] if kind == "paired" else [a, b])
    gap = draws[:, 0] - (0 if kind == "paired" else draws[:, 1])
    tolerance = 0.03 * gap.std()
    assert abs(found.mean - gap.mean()) < tolerance
    assert abs(found.probability - np.mean(gap > 0)) < 0.01
    assert np.allclose([found.low, found.high], draws_interval(gap, 0.9), atol=3 * tolerance)
    assert abs(found.normality - np.mean(1 + np.exp(draws[:, -1]))) < 0.06 * found.normality


@pytest.mark.slow
def test_evidence_of_a_group_on_a_plain_grid():
    y = np.array([0.1, 0.5, -0.4, 2.0, 0.3, 0.9])
    spread = 1.3
    mu = np.linspace(-40, 41, 4051)
    log_sigma = np.log(spread) + np.linspace(-4, 5, 361)
    for nu in (1.5, 60.0):
        z = (y[:, None, None] - mu[:, None]) / np.exp(log_sigma)
        log_lik = np.sum(t.logpdf(z, nu) - log_sigma, axis=0)
        prior = (
            norm.pdf(mu, 0.2, 1000 * spread)[:, None]
            * np.exp(log_sigma)
            / (spread * (1000 - 1 / 1000))
        )
        expected = np.sum(np.exp(log_lik) * prior) * (mu[1] - mu[0]) * (log_sigma[1] - log_sigma[0])
        found = np.exp(group_mean(y, np.array([nu]), 0.2, spread).log_mass).sum()
        assert np.isclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "y", [[1.0, 1.0, 1.0, 1.0], [0.2, 1.0, 1.4]], ids=["at the bound of σ", "three numbers"]
)
def test_every_node_holds_the_integral_over_sigma_between_its_bounds(y):
    y = np.array(y)
    nu = np.array([1.5, 30.0])
    spread = 0.5
    log_sigma = np.linspace(np.log(spread / 1000), np.log(spread * 1000), 8001)
    found = group_mean(y, nu, 0.7, spread)
    for k, i in [(0, 4), (0, 20), (0, 31), (1, 12), (1, 32), (1, 58)]:  # out to 1700 spreads
        mu = found.nodes[k, i]
        z = (y[:, None] - mu) / np.exp(log_sigma)
        density = (
            np.sum(t.logpdf(z, nu[k]) - log_sigma, axis=0)
            + log_sigma
            - np.log(spread * (1000 - 1 / 1000))
        )
        expected = np.log(trapezoid(np.exp(density - density.max()), log_sigma)) + density.max()
        expected += norm.logpdf(mu, 0.7, 1000 * spread)
        assert np.isclose(found.log_density[k, i], expected, rtol=0, atol=0.01)


def test_density_is_one_in_all_and_its_interval_holds_the_level_with_equal_density_at_both_ends():
    rng = np.random.default_rng(1)
    for a, b in [
        (rng.normal(size=30), rng.normal(0.4, 1, 20)),
        (rng.standard_t(2, 25), 5 + 0.01 * rng.normal(size=40)),
        (np.r_[np.zeros(15), 1.0], rng.normal(size=9)),
        (rng.normal(size=4), rng.normal(size=5)),
    ]:
        found = difference_of_means(a, b, level=0.8)
        fine = np.linspace(*found.points[[100, 300]], 400_001)
        density = np.interp(fine, found.points, found.density)
        inside = (fine >= found.low) & (fine <= found.high)
        assert np.isclose(trapezoid(density, fine), 1, atol=0.002)
        assert np.isclose(trapezoid(density[inside], fine[inside]), 0.8, atol=0.002)
        assert np.isclose(
            *np.interp([found.low, found.high], found.points, found.density), rtol=0.02
        )
        assert np.isclose(
            trapezoid(density[fine > 0], fine[fine > 0]), found.probability, atol=0.002
        )


def test_large_normal_samples_give_welchs_interval():
    order = np.random.default_rng(2).permutation(300)
    a = 3 + norm.ppf((np.arange(400) + 0.5) / 400)
    b = 2.8 + 2 * norm.ppf((order + 0.5) / 300)
    for paired, classical in (
        (False, ttest_ind(a, b, equal_var=False)),
        (True, ttest_rel(a[:300], b)),
    ):
        found = difference_of_means(a[:300] if paired else a, b, paired=paired)
        low, high = classical.confidence_interval(0.95)
        assert np.allclose([found.low, found.high], [low, high], atol=0.015 * (high - low))
        assert abs(found.probability - norm.cdf(classical.statistic)) < 0.01


def test_an_outlier_moves_it_less_than_the_mean():
    rng = np.random.default_rng(3)
    a = rng.normal(1, 1, 30)
    b = rng.normal(0, 1, 30)
    spoiled = np.r_[a[:-1], 40.0]
    found = difference_of_means(spoiled, b)
    clean = difference_of_means(a, b)
    assert abs(found.mean - clean.mean) < (spoiled.mean() - a.mean()) / 4
    assert found.normality < 6 < clean.normality


@given(
    st.integers(0, 10**6), st.floats(-50, 50), st.sampled_from([1e-6, 0.5, 3.0, 1e5]), st.booleans()
)
@examples(15)
def test_units_move_the_difference_and_nothing_else(seed, shift, scale, paired):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 8))
    found = difference_of_means(a, b, paired=paired)
    moved = difference_of_means(scale * (a + shift), scale * (b + shift), paired=paired)
    turned = difference_of_means(b, a, paired=paired)
    unit = found.high - found.low
    for one, two in zip((moved.mean, moved.low, moved.high), (found.mean, found.low, found.high)):
        assert np.isclose(one / scale, two, atol=1e-3 * unit)
    assert np.isclose(moved.probability, found.probability, atol=1e-4)
    assert np.allclose(
        [turned.mean, turned.low, turned.high],
        [-found.mean, -found.high, -found.low],
        atol=2e-3 * unit,
    )
    assert found.low < found.mean < found.high and found.credible == (
        not found.low <= 0 <= found.high
    )


def test_pairs_see_what_two_groups_do_not():
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 5, 40)  # how hard the split of each repetition was
    a = hard + rng.normal(0.5, 0.5, 40)
    b = hard + rng.normal(0, 0.5, 40)
    assert (
        difference_of_means(a, b, paired=True).credible and not difference_of_means(a, b).credible
    )


def test_shortest_interval_of_a_known_distribution():
    points = np.linspace(-12, 12, 4001)
    assert np.allclose(
        shortest_interval(points, norm.cdf(points), 0.9), norm.ppf([0.05, 0.95]), atol=1e-3
    )
    skew = np.linspace(0, 60, 20001)
    low, high = shortest_interval(skew, 1 - np.exp(-skew), 0.9)  # an exponential: from 0
    assert low < 0.01 and np.isclose(high, -np.log(0.1), atol=0.02)


def test_what_difference_of_means_refuses():
    good = np.arange(5.0)
    for bad in (good[:2], [1, 2, np.nan], [1.0, inf, 2.0], good[:, None]):
        with pytest.raises(ValueError, match="a must be 3 or more finite numbers"):
            difference_of_means(bad, good)
        with pytest.raises(ValueError, match="b must be 3 or more finite numbers"):
            difference_of_means(good, bad)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        difference_of_means(good, good, level=95)
    with pytest.raises(ValueError, match="equal lengths if paired, got 5 and 4"):
        difference_of_means(good, good[:4], paired=True)
    with pytest.raises(ValueError, match="differing amounts, got constants"):
        difference_of_means(good + 0.1, good, paired=True)
    with pytest.raises(ValueError, match="values that differ, got constants"):
        difference_of_means(np.ones(4), np.ones(3))


def test_question_of_names_what_is_asked():
    assert comparable_split(Split((0,), 4, (-2.0,)), COLUMNS).threshold == -2
    assert comparable_split(Split((0,), 4, (-2.0,)), COLUMNS).swapped
    assert comparable_split(Split((1,), categories=(0, 3)), COLUMNS).labels == {"black", "red"}
    assert comparable_split(Split((1,), 2.5), COLUMNS).labels == {"red", "white"}
