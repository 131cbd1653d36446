"""How much worse than its reference a proxy is, and the size that is small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import BayesianRidge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp import (
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    as_reference,
)
from fabinterp.proxy.adequacy import excess_losses

SMALL = {"size": "small", "max_leaves": 6, "random_state": 0}


@pytest.fixture
def table():
    """Return rows, a tree of four leaves that was fitted to them, and y with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = 2 * np.tanh(2 * X[:, 0]) + (X[:, 1] > 0) * X[:, 2]
    known = DecisionTreeRegressor(max_leaf_nodes=4, min_samples_leaf=15, random_state=0).fit(X, y)
    return X, known, known.predict(X) + 0.3 * rng.normal(size=300)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_mean_over_draws_is_the_distance_and_no_draw_is_no_doubt(seed, classes):
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 5, 20).astype(float)
    if classes:
        draws = rng.dirichlet([1.0, 2.0, 1.0], (6, 20))
        fitted = rng.dirichlet([2.0, 2.0, 2.0], 20)
        mean = draws.mean(axis=0)
        away = np.average((mean * np.log(mean / fitted)).sum(axis=1), weights=w)
    else:
        draws = rng.normal(size=(6, 20))
        fitted = rng.normal(size=20)
        mean = draws.mean(axis=0)
        away = np.average((mean - fitted) ** 2, weights=w)
    assert np.isclose(excess_losses(mean, draws, [fitted], w).mean(), away)
    assert np.ptp(excess_losses(mean, draws[:1], [fitted], w)) == 0
    assert np.allclose(excess_losses(mean, draws, [mean], w), 0)


@pytest.mark.parametrize("with_y", [False, True])
def test_a_reference_that_is_a_tree_is_known_by_its_size(table, with_y):
    X, known, y = table
    model = ProxyTreeRegressor(known, **SMALL).fit(X, y if with_y else None)
    assert model.n_leaves_ == 4
    path = model.path_
    assert path["size"].tolist() == sorted(path["size"])
    assert path["chosen"].sum() == 1 and path["size"][path["chosen"]].item() == 4
    assert path["cv_error"].notna().all()


def test_classes_that_a_tree_says_are_known_by_its_size(table):
    X, known, _ = table
    labels = known.predict(X).round(3).astype(str)
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, labels)
    model = ProxyTreeClassifier(tree, n_draws=2, **SMALL).fit(X)
    assert model.n_leaves_ == 4 and model.fidelity_ == 1
    assert set(model.path_) > {"difference", "difference_se"}


def test_noise_takes_one_leaf(table):
    X = table[0]
    noise = np.random.default_rng(1).normal(size=len(X))
    assert ProxyTreeRegressor(BayesianRidge().fit(X, noise), **SMALL).fit(X, noise).n_leaves_ == 1
    assert ProxyTreeRegressor(**SMALL).fit(X, noise).n_leaves_ == 1
    labels = np.where(noise > 0, "a", "b")
    forest = RandomForestClassifier(10, random_state=0)
    assert ProxyTreeClassifier(forest, **SMALL).fit(X, labels).n_leaves_ == 1


def test_sizes_on_the_path_and_copies_of_them(table):
    X, known, y = table
    reference = as_reference(BayesianRidge().fit(X, y))
    by_size = {
        size: ProxyTreeRegressor(
            reference, size=size, max_leaves=6, n_draws=20, random_state=0
        ).fit(X)
        for size in ("small", "balanced", "accurate", 3)
    }
    sizes = {size: model.n_leaves_ for size, model in by_size.items()}
    assert sizes["small"] <= sizes["balanced"] <= sizes["accurate"] == 6 and sizes[3] == 3
    path = by_size["accurate"].path_
    assert (np.diff(path["difference"]) < 0).all() and (path["difference_se"] > 0).all()
    for n in path["size"]:
        other = by_size["accurate"].at(n)
        assert other.n_leaves_ == n == other.tree_.n_leaves
        assert np.array_equal(other.predict(X), other.rules_.predict(X))
        away = np.mean((other.predict(X) - reference.mean_var(X)[0]) ** 2)
        assert np.isclose(away, path.set_index("size")["difference"][n], rtol=1e-3)
    again = clone(by_size["small"]).fit(X)
    assert np.array_equal(again.predict(X), by_size["small"].predict(X))


def test_draws_belong_to_the_size_that_was_chosen(table):
    X, _, y = table
    model = ProxyTreeRegressor(BayesianRidge(), n_draws=4, **SMALL).fit(X, y)
    assert len(model.trees_) == 4 and model.leaf_draws_.shape == (4, model.n_leaves_)
    other = model.at(1)
    assert other.trees_ is None and other.predict_dist(X[:2]).mean().shape == (2,)
    assert len(model.trees_) == 4


def test_a_number_of_leaves_ends_the_path(table):
    X, known, _ = table
    model = ProxyTreeRegressor(known, size=3, n_synthetic=0, random_state=0).fit(X)
    assert model.path_["size"].tolist() == [1, 2, 3] and "difference" not in model.path_
    with pytest.warns(UserWarning, match="no size 9: 3, the largest, is taken"):
        assert model.at(9).n_leaves_ == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": "tiny"}, "size must be"),
        ({"size": 0}, "size must be"),
        ({"size": None}, "size must be"),
    ],
)
def test_a_size_that_cannot_be(table, settings, message):
    X, known, _ = table
    with pytest.raises(ValueError, match=message) as found:
        ProxyTreeRegressor(known.predict, **settings).fit(X)
    assert "\n" not in str(found.value)
