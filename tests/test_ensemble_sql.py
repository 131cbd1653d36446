"""SQL of whole forests and boosters predicts what their libraries predict."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from shared.databases import Sqlite
from shared.homes import n_that_differ
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from fabinterp import read_ensemble
from fabinterp.forests.arrays import example_cars
from fabinterp.forests.ensemble_sql import MOST_NESTED
from fabinterp.rules.core import read_columns

pytestmark = pytest.mark.xdist_group("databases")


def library(name, model):
    """A class of a library that is imported when it is used."""
    return getattr(pytest.importorskip(name), model)


def makers(n):
    """Models of n trees by name: a function that makes one, and its number of classes (0: numbers)."""
    quiet = {"n_estimators": n, "verbose": 0}
    return {
        "forest": (lambda: RandomForestRegressor(n, random_state=0), 0),
        "forest of classes": (lambda: RandomForestClassifier(n, random_state=0), 3),
        "extra trees": (lambda: ExtraTreesRegressor(n, max_depth=8, random_state=0), 0),
        "boosting": (lambda: GradientBoostingClassifier(n_estimators=n), 2),
        "histograms": (lambda: HistGradientBoostingRegressor(max_iter=n), 0),
        "histograms of counts": (lambda: HistGradientBoostingRegressor("poisson", max_iter=n), 0),
        "histograms of classes": (lambda: HistGradientBoostingClassifier(max_iter=n), 2),
        "votes": (lambda: AdaBoostClassifier(n_estimators=n, random_state=0), 3),
        "xgboost": (lambda: library("xgboost", "XGBRegressor")(n_estimators=n), 0),
        "xgboost of classes": (lambda: library("xgboost", "XGBClassifier")(n_estimators=n), 3),
        "lightgbm": (lambda: library("lightgbm", "LGBMRegressor")(n_estimators=n, verbose=-1), 0),
        "lightgbm of classes": (
            lambda: library("lightgbm", "LGBMClassifier")(n_estimators=n, verbose=-1), 3),
        "catboost": (lambda: library("catboost", "CatBoostRegressor")(**quiet), 0),
        "catboost of classes": (lambda: library("catboost", "CatBoostClassifier")(**quiet), 2),
    }  # fmt: skip


def rows(n, seed):
    """A frame of numbers with gaps that all libraries take."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(1), columns=["a", "b's", "C"])
    X["k"] = rng.integers(0, 50, n).astype(float)
    return X.mask(rng.random(X.shape) < 0.1)


def target(X, n_classes):
    """A number, or a class that fits how each library numbers them."""
    y = X.a.fillna(2) + X["b's"].fillna(-1) ** 2 + (X.k.fillna(0) > 20) * X.C.fillna(1)
    if n_classes == 0:
        return y - y.min()
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def predictions(database, ensemble, X, proba=False):
    """What a database returns for the rows of a frame: predictions, and probabilities (n, C)."""
    types = {"id": "INTEGER"} | dict.fromkeys(X.columns, "DOUBLE PRECISION")
    columns = {"id": range(len(X))} | {name: X[name].tolist() for name in X}
    database.load("t", types, columns)
    query = ensemble.to_sql("t", keep="id", proba=proba)
    found = sorted(database.rows(query), key=lambda row: int(row[0]))
    return [row[1] for row in found], np.array([row[2:] for row in found], float)


def check(database, name, n_trees, n_rows, n_train=300):
    """Compare SQL, the trees as read, and the library."""
    make, n_classes = makers(n_trees)[name]
    X = rows(n_train, 0)
    if name in ("boosting", "votes"):  # these take no missing values
        X = X.fillna(0.0)
    model = make().fit(X, target(X, n_classes))
    ensemble = read_ensemble(model)
    X = rows(n_rows, 1).fillna(0.0) if name in ("boosting", "votes") else rows(n_rows, 1)
    found, shares = predictions(database, ensemble, X, proba=n_classes > 0)
    # XGBoost adds numbers of 32 bits, which SQLite does not have
    ours = replace(ensemble, dtype=np.float64) if database.name == "sqlite" else ensemble
    theirs = np.ravel(model.predict(X))
    if n_classes:
        assert n_that_differ(found, ours.predict(X).tolist()) == 0
        assert n_that_differ(found, theirs.tolist()) == 0
        np.testing.assert_allclose(shares, ours.predict_proba(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-6)
    else:
        size = max(1.0, np.abs(theirs).max())
        values = np.array(found, float)
        np.testing.assert_allclose(values, ours.predict(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(values / size, theirs / size, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["forest", "votes", "histograms of classes", "xgboost", "lightgbm"]
)
def test_a_database_adds_five_trees(name):
    check(Sqlite(), name, 5, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", makers(20))
def test_each_database_adds_twenty_trees(database, name):
    check(database, name, 20, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", makers(100))
def test_a_database_adds_a_hundred_trees(name):
    check(Sqlite(), name, 100, 2000, n_train=1000)


def test_trees_deeper_than_the_parser_of_sqlite(monkeypatch):
    """Subtrees become columns of subqueries, and trees are added in groups."""
    monkeypatch.setattr("fabinterp.forests.ensemble_sql.MOST_PARTS", 50)
    monkeypatch.setattr("fabinterp.forests.ensemble_sql.MOST_TERMS", 2)
    X = pd.DataFrame({"a": np.arange(2000.0)})
    y = np.random.default_rng(0).normal(size=2000)
    model = ExtraTreesRegressor(5, random_state=0).fit(X, y)
    assert max(tree.get_depth() for tree in model.estimators_) > 2 * MOST_NESTED
    found, _ = predictions(Sqlite(), read_ensemble(model), X)
    np.testing.assert_allclose(np.array(found, float), model.predict(X), rtol=1e-12)


@pytest.mark.slow
def test_labels_missing_values_and_truth_values(database):
    """The columns of the caller's table, which the library saw as codes."""
    pytest.importorskip("lightgbm")
    X, price = example_cars()
    model = library("lightgbm", "LGBMRegressor")(n_estimators=20, verbose=-1).fit(X, price)
    ensemble = read_ensemble(model, read_columns(X))
    types = {"size": "REAL", "colour": "TEXT", "door": "INTEGER", "old": "BOOLEAN"}
    types = {"id": "INTEGER"} | types | {"weight": "DOUBLE PRECISION"}
    columns = {"id": range(len(X))}
    X["size"] = X["size"].astype(np.float32)
    for name in X:
        columns[name] = [None if pd.isna(v) else v for v in X[name].tolist()]
    database.load("cars", types, columns)
    found = sorted(database.rows(ensemble.to_sql("cars", keep="id")), key=lambda row: int(row[0]))
    values = np.array([row[1] for row in found], float)
    np.testing.assert_allclose(values, ensemble.predict(X), rtol=1e-9, atol=1e-9)


def test_a_median_of_trees_is_rejected():
    X = rows(200, 0).fillna(0.0)
    model = AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, target(X, 0))
    with pytest.raises(ValueError, match="ensemble must predict by a sum of trees, got .*median"):
        read_ensemble(model).to_sql("t")
