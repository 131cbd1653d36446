"""What is read back from an ensemble predicts what its library predicts; what cannot be read is refused by name."""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.datasets import load_diabetes, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from threadpoolctl import threadpool_limits

from fabinterp.forests.arrays import (
    Ensemble,
    flatten_tree,
    float64_threshold,
    sum_of_trees,
)
from fabinterp.forests.reading import (
    READERS,
    category_sets,
    code_values,
    compare_ensemble,
    ensemble_thresholds,
    read_ensemble,
    recode_column,
)
from fabinterp.rows.array_tree import ArrayTree, concatenate_trees
from fabinterp.rules.core import Columns, encode, read_columns

cb = pytest.importorskip("catboost")
lgb = pytest.importorskip("lightgbm")
pd = pytest.importorskip("pandas")
xgb = pytest.importorskip("xgboost")
threadpool_limits(1)  # small data: threads would only wait for each other

SILENT = {"verbose": 0, "allow_writing_files": False, "iterations": 40, "thread_count": 1}
XGB = {"n_jobs": 1, "n_estimators": 40}
LGB = {"n_jobs": 1, "n_estimators": 40, "verbose": -1}
WINE, CULTIVAR = load_wine(return_X_y=True)
NAMES = np.array(["cava", "asti", "brut"])[CULTIVAR]
BODY, BLOOD = load_diabetes(return_X_y=True)


def holes(X, share=0.15, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def same(ensemble, model, X, tol=1e-6):
    """Predictions agree: labels exactly, probabilities and numbers to `tol` of their size."""
    if ensemble.classes is None:
        theirs = np.ravel(model.predict(X))
        assert np.abs(ensemble.predict(X) - theirs).max() <= tol * max(1.0, np.abs(theirs).max())
        return
    theirs = model.predict_proba(X)
    assert np.abs(ensemble.predict_proba(X) - theirs).max() <= tol
    ours = ensemble.predict(X)
    assert (ours == np.ravel(model.predict(X))).all()


# Equation (forests.4): one threshold on float64 instead of a rounding and a comparison.

doubles = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.one_of(doubles, singles), st.lists(doubles, max_size=8), st.booleans())
@examples(600)
def test_plain_threshold_answers_as_the_rounded_comparison(b, others, strict):
    star = float(float64_threshold(b, strict=strict))
    with np.errstate(over="ignore"):
        near = [
            star,
            np.nextafter(star, np.inf),
            np.nextafter(star, -np.inf),
            b,
            np.nextafter(b, np.inf),
            -b,
        ]
        x = np.array(
            [*near, np.nextafter(b, -np.inf), *others, 0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324]
        )
        rounded = x.astype(np.float32).astype(float)
    assert np.array_equal(x > star, rounded >= b if strict else rounded > b)


def test_plain_threshold_at_the_ends():
    top = float(np.finfo(np.float32).max)
    assert float64_threshold(top) == np.nextafter(
        2.0**128 - 2.0**103, 0
    )  # the middle rounds to infinity
    assert float64_threshold(np.inf) == np.inf and float64_threshold(-np.inf) == -np.inf
    assert (
        float64_threshold(0.0) == 2.0**-150 and float64_threshold(-0.0) == 2.0**-150
    )  # a tie to the even zero
    assert float64_threshold(-(2.0**-149)) == np.nextafter(-(2.0**-150), -1)
    assert float64_threshold([1.0, 2.0]).shape == (2,)


MODELS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "tree-r": DecisionTreeRegressor(random_state=0),
    "xtree": ExtraTreeClassifier(random_state=0),
    "xtree-r": ExtraTreeRegressor(random_state=0),
    "forest": RandomForestClassifier(30, random_state=0),
    "forest-shallow": RandomForestClassifier(
        7, max_depth=2, class_weight="balanced", random_state=0
    ),
    "forest-r": RandomForestRegressor(30, random_state=0),
    "extra": ExtraTreesClassifier(30, random_state=0),
    "extra-r": ExtraTreesRegressor(30, random_state=0),
    "bag": BaggingClassifier(
        n_estimators=20, max_features=0.5, max_samples=6, bootstrap_features=True, random_state=0
    ),
    "bag-r": BaggingRegressor(n_estimators=20, max_features=0.5, random_state=0),
    "ada": AdaBoostClassifier(n_estimators=20, random_state=0),
    "ada-deep": AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=10, random_state=0
    ),
    "ada-r": AdaBoostRegressor(n_estimators=20, random_state=0),
    "gb": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "gb-zero": GradientBoostingClassifier(n_estimators=5, init="zero", random_state=0),
    "gb-r": GradientBoostingRegressor(n_estimators=20, loss="huber", random_state=0),
    "hist": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "hist-r": HistGradientBoostingRegressor(max_iter=20, random_state=0),
    "hist-poisson": HistGradientBoostingRegressor(max_iter=20, loss="poisson", random_state=0),
    "xgb": xgb.XGBClassifier(**XGB),
    "xgb-r": xgb.XGBRegressor(**XGB),
    "xgb-dart": xgb.XGBRegressor(booster="dart", rate_drop=0.5, **XGB),
    "xgb-forest": xgb.XGBRFClassifier(**XGB),
    "xgb-pruned": xgb.XGBRegressor(gamma=5000.0, tree_method="exact", **XGB),
    "xgb-tweedie": xgb.XGBRegressor(objective="reg:tweedie", **XGB),
    "lgb": lgb.LGBMClassifier(**LGB),
    "lgb-r": lgb.LGBMRegressor(**LGB),
    "lgb-ova": lgb.LGBMClassifier(objective="multiclassova", sigmoid=1.7, **LGB),
    "lgb-forest": lgb.LGBMRegressor(
        boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, **LGB
    ),
    "lgb-dart": lgb.LGBMRegressor(boosting_type="dart", **LGB),
    "lgb-gamma": lgb.LGBMRegressor(objective="gamma", **LGB),
    "cat": cb.CatBoostClassifier(**SILENT),
    "cat-ova": cb.CatBoostClassifier(loss_function="MultiClassOneVsAll", **SILENT),
    "cat-depth": cb.CatBoostClassifier(grow_policy="Depthwise", **SILENT),
    "cat-r": cb.CatBoostRegressor(**SILENT),
    "cat-max": cb.CatBoostRegressor(nan_mode="Max", depth=3, **SILENT),
    "cat-loss": cb.CatBoostRegressor(grow_policy="Lossguide", loss_function="MAE", **SILENT),
    "cat-poisson": cb.CatBoostRegressor(loss_function="Poisson", **SILENT),
}
NO_HOLES = ("ada", "gb")


def data_for(name):
    if hasattr(MODELS[name], "predict_proba"):
        return WINE, CULTIVAR if name.startswith("xgb") else NAMES
    return BODY, BLOOD


def fitted(name, X, y, **more):
    model = MODELS[name]
    return type(model)(**model.get_params(deep=False)).fit(
        X, y, **more
    )  # a new one: fitting changes some of them


@pytest.mark.parametrize("name", MODELS)
def test_read_back_predicts_as_the_library(name):
    X, y = data_for(name)
    model = fitted(name, X, y)
    same(read_ensemble(model), model, X)


@pytest.mark.parametrize("name", MODELS)
def test_with_weights_missing_values_and_few_rows(name):
    X, y = data_for(name)
    weight = np.random.default_rng(1).integers(1, 5, len(X)).astype(float)
    gaps = X if name.startswith(NO_HOLES) else holes(X)
    model = fitted(name, gaps, y, sample_weight=weight)
    same(read_ensemble(model), model, gaps)
    few = np.r_[0:4, 60:64, 130:134]
    model = fitted(name, X[few], y[few])
    same(read_ensemble(model), model, X)


@pytest.mark.parametrize("name", [n for n in MODELS if not n.startswith(NO_HOLES)])
def test_missing_values_never_seen_in_training(name):
    X, y = data_for(name)
    model = fitted(name, X, y)
    same(read_ensemble(model), model, holes(X))


@pytest.mark.parametrize(
    "name",
    [
        "tree",
        "forest-r",
        "extra",
        "gb",
        "hist",
        "hist-r",
        "xgb",
        "xgb-r",
        "lgb",
        "lgb-r",
        "cat",
        "cat-r",
    ],
)
def test_rows_at_the_thresholds_and_beside_them(name):
    X, y = data_for(name)
    model = fitted(name, X, y)
    ensemble = read_ensemble(model)
    rng = np.random.default_rng(0)
    rows = []
    for j, cuts in enumerate(ensemble_thresholds(ensemble)):
        for cut in rng.permutation(cuts)[:12]:
            for value in (
                cut,
                np.nextafter(cut, np.inf),
                np.nextafter(cut, -np.inf),
                float(np.float32(cut)),
            ):
                rows.append(X[rng.integers(len(X))].copy())
                rows[-1][j] = value
    same(ensemble, model, np.array(rows))


def test_every_reader_is_tested():
    read = {
        key
        for model in MODELS.values()
        for kind in type(model).__mro__
        if (key := f"{kind.__module__.partition('.')[0]}.{kind.__name__}") in READERS
    }
    assert read == set(READERS) - {"xgboost.Booster", "lightgbm.Booster"}  # those are below


@pytest.mark.parametrize("name", ["gb", "hist", "xgb", "lgb", "cat", "forest"])
def test_two_classes(name):
    X = WINE[:130]
    y = CULTIVAR[:130]
    labels = y if name == "xgb" else np.array(["yes", "no"])[y]
    model = fitted(name, X, labels)
    ensemble = read_ensemble(model)
    same(ensemble, model, X)
    assert ensemble.raw(X).shape == (130, 2 if name == "forest" else 1)


def test_log_odds_are_the_decision_function():
    X = WINE[:130]
    y = NAMES[:130]
    for model, scale in [
        (GradientBoostingClassifier(n_estimators=9), 1),
        (GradientBoostingClassifier(loss="exponential"), 2),
        (HistGradientBoostingClassifier(max_iter=9), 1),
    ]:
        model.fit(X, y)
        assert np.allclose(
            read_ensemble(model).raw(X)[:, 0], scale * model.decision_function(X), atol=1e-12
        )
        same(read_ensemble(model), model, X)


def test_even_odds_go_where_the_library_sends_them():
    X = np.zeros((4, 1))
    y = np.array(["a", "a", "b", "b"])
    for model in (
        GradientBoostingClassifier(),
        HistGradientBoostingClassifier(),
        RandomForestClassifier(bootstrap=False),
    ):
        model.fit(X, y)
        assert (read_ensemble(model).predict(X) == model.predict(X)).all()


@pytest.mark.parametrize(
    "name", ["forest", "ada-r", "gb", "hist-r", "xgb", "lgb-forest", "cat", "cat-max"]
)
def test_the_trees_say_the_same(name):
    X, y = data_for(name)
    X = X if name.startswith(NO_HOLES) else holes(X)
    ensemble = read_ensemble(fitted(name, X, y))
    leaves = ensemble.nodes.apply_all(X)
    Z = X[:40]
    assert len(ensemble.trees) == leaves.shape[1] == len(ensemble.weights) == len(ensemble.output)
    for t, tree in enumerate(ensemble.trees):
        value = ensemble.nodes.value[leaves[:40, t]]
        if ensemble.output[t] < 0:
            assert np.array_equal(tree.predict_proba(Z), value)
        else:
            assert np.array_equal(tree.predict(Z), value.ravel())


@pytest.mark.parametrize("name", ["forest", "extra-r", "gb", "hist", "xgb", "lgb", "cat"])
def test_thresholds_are_those_of_the_trees(name):
    X, y = data_for(name)
    ensemble = read_ensemble(fitted(name, X, y))
    cuts = ensemble_thresholds(ensemble)
    asked = [set() for _ in cuts]
    for tree in ensemble.trees:
        for split in tree.splits:
            if split is not None and np.isfinite(split.threshold):
                asked[split.features[0]].add(split.threshold)
    assert len(cuts) == X.shape[1] and all(c.dtype == np.float64 for c in cuts)
    assert [c.tolist() for c in cuts] == [sorted(a) for a in asked]


def test_sets_of_whole_numbers_count_as_the_cuts_beside_them():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 6, 300), rng.normal(size=300)], axis=1)
    y = np.isin(X[:, 0], [1, 4]) + 0.0
    model = HistGradientBoostingRegressor(max_iter=3, categorical_features=[0]).fit(X, y)
    cuts, others = ensemble_thresholds(model)
    asked = {code for codes in category_sets(model)[0] for code in codes}
    assert asked and len(others) < len(cuts)
    assert set(cuts) == {code + step for code in asked for step in (-0.5, 0.5)}


def test_leaf_only_trees_and_constant_targets():
    X = np.arange(12.0)[:, None]
    ones = np.full(12, 3.5)
    for model in (
        RandomForestRegressor(3),
        GradientBoostingRegressor(n_estimators=3),
        HistGradientBoostingRegressor(),
        xgb.XGBRegressor(n_estimators=3),
        xgb.XGBRegressor(n_estimators=2, max_depth=0),
        lgb.LGBMRegressor(**LGB),
    ):
        model.fit(X, ones)
        ensemble = read_ensemble(model)
        same(ensemble, model, X)
        assert [len(c) for c in ensemble_thresholds(ensemble)] == [0]
        assert all(tree.n_leaves == 1 for tree in ensemble.trees)
    one_class = RandomForestClassifier(3).fit(X, ["only"] * 12)
    same(read_ensemble(one_class), one_class, X)


# XGBoost


@pytest.mark.parametrize(
    "objective",
    [
        "binary:logistic",
        "binary:logitraw",
        "reg:logistic",
        "reg:squaredlogerror",
        "reg:gamma",
        "count:poisson",
        "reg:tweedie",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:quantileerror",
        "rank:pairwise",
        "survival:cox",
    ],
)
def test_xgboost_objectives(objective):
    target = (BLOOD > 150) * (1.0 if objective.startswith(("binary", "rank")) else 0.8)
    data = xgb.DMatrix(BODY, target + 0.1 * objective.startswith(("reg", "surv")))
    params = {"objective": objective, "nthread": 1} | (
        {"quantile_alpha": 0.3} if "quantile" in objective else {}
    )
    booster = xgb.train(params, data, 15)
    ensemble = read_ensemble(booster)
    margin = booster.predict(data, output_margin=True)
    assert np.abs(ensemble.raw(BODY)[:, 0] - margin).max() <= 1e-6 * max(1, np.abs(margin).max())
    ours = (
        ensemble.predict(BODY) if ensemble.classes is None else ensemble.predict_proba(BODY)[:, 1]
    )
    theirs = booster.predict(data)
    assert np.abs(ours - theirs).max() <= 1e-6 * max(1, np.abs(theirs).max())


def test_xgboost_last_round_early_stopping_and_regressor_of_probabilities():
    model = xgb.XGBClassifier(**XGB).fit(WINE, CULTIVAR)
    ensemble = read_ensemble(model)
    assert len(ensemble.trees) == 40 * 3
    margin = model.predict(WINE, output_margin=True)
    short = replace(ensemble, weights=ensemble.weights * (np.arange(120) < 117))
    assert (
        np.abs(ensemble.raw(WINE) - margin).max()
        < 1e-5
        < np.abs(sum_of_trees(short, WINE) - margin).max()
    )
    stopped = xgb.XGBClassifier(
        early_stopping_rounds=2, n_estimators=300, n_jobs=1, num_parallel_tree=2, subsample=0.7
    )
    stopped.fit(WINE[::2], CULTIVAR[::2], eval_set=[(WINE[1::2], CULTIVAR[1::2])], verbose=False)
    assert stopped.best_iteration + 1 < stopped.get_booster().num_boosted_rounds()
    same(read_ensemble(stopped), stopped, WINE)
    assert len(read_ensemble(stopped).trees) == (stopped.best_iteration + 1) * 3 * 2
    assert (
        len(read_ensemble(stopped.get_booster()).trees)
        == stopped.get_booster().num_boosted_rounds() * 3 * 2
    )
    number = xgb.XGBRegressor(objective="binary:logistic", **XGB).fit(WINE, CULTIVAR == 0)
    same(read_ensemble(number), number, WINE)


def test_xgboost_pruned_nodes_are_not_questions():
    model = fitted("xgb-pruned", BODY, BLOOD)
    asked = sum(
        "split" in node
        for tree in model.get_booster().get_dump(dump_format="json")
        for node in flatten_tree(json.loads(tree), lambda n: n.get("children"))[0]
    )
    ensemble = read_ensemble(model)
    saved = json.loads(model.get_booster().save_raw("json"))["learner"]["gradient_booster"][
        "model"
    ]["trees"]
    assert any(tree["tree_param"]["num_deleted"] != "0" for tree in saved)
    assert (ensemble.nodes.feature >= 0).sum() == asked > 0
    assert len(ensemble.nodes.feature) == 2 * asked + 40


# LightGBM


@pytest.mark.parametrize(
    "objective",
    [
        "regression",
        "regression_l1",
        "huber",
        "fair",
        "quantile",
        "mape",
        "poisson",
        "gamma",
        "tweedie",
        "cross_entropy",
        "binary",
        "multiclass",
        "multiclassova",
    ],
)
def test_lightgbm_objectives_and_formats(objective):
    y = (
        CULTIVAR
        if objective.startswith("multi")
        else CULTIVAR == 1
        if objective == "binary"
        else CULTIVAR / 3 + 0.1
    )
    params = {
        "objective": objective,
        "num_class": 3 if objective.startswith("multi") else 1,
        "verbose": -1,
        "num_threads": 1,
    }
    X = holes(WINE)
    booster = lgb.train(params, lgb.Dataset(X, y), 8)
    theirs = booster.predict(X)
    for form in (booster, booster.model_to_string()):
        ensemble = read_ensemble(form)
        ours = ensemble.predict(X) if ensemble.classes is None else ensemble.predict_proba(X)
        ours = ours[:, 1] if objective == "binary" else ours
        assert np.abs(ours - theirs).max() < 1e-12
        assert np.allclose(
            np.ravel(ensemble.raw(X)), np.ravel(booster.predict(X, raw_score=True)), atol=1e-12
        )


def test_lightgbm_ways_of_missing_and_best_iteration():
    X = np.round(holes(WINE - WINE.mean(axis=0)), 1)
    for option in ({}, {"use_missing": False}):
        model = lgb.LGBMClassifier(**LGB, **option).fit(X, NAMES)
        same(read_ensemble(model), model, X)
    with pytest.raises(ValueError, match="zero_as_missing"):
        read_ensemble(lgb.LGBMClassifier(zero_as_missing=True, **LGB).fit(X, NAMES))
    sparse = np.where(
        X > 0, X, 0.0
    )  # nothing below zero: it goes with the small values, as missing ones do
    model = lgb.LGBMRegressor(zero_as_missing=True, **LGB).fit(sparse[:, [0]], sparse[:, 0] > 0)
    same(read_ensemble(model), model, X[:, [0]])
    model = lgb.LGBMClassifier(n_estimators=300, verbose=-1, n_jobs=1)
    model.fit(
        WINE[::2],
        NAMES[::2],
        eval_set=[(WINE[1::2], NAMES[1::2])],
        callbacks=[lgb.early_stopping(3, verbose=False)],
    )
    assert model.best_iteration_ < 300
    same(read_ensemble(model), model, WINE)
    same(read_ensemble(pickle.loads(pickle.dumps(read_ensemble(model)))), model, WINE)


# Categories and the caller's columns


def table(n, seed, labels=("red", "green", "blue", "grey")):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": pd.Categorical(rng.choice(labels, n)),
            "door": pd.Categorical(rng.choice([3, 7, 10], n), categories=[10, 3, 7]),
            "old": rng.random(n) < 0.5,
            "count": rng.integers(0, 6, n),
        }
    )
    X.loc[rng.random(n) < 0.1, "size"] = np.nan
    X.loc[rng.random(n) < 0.1, "colour"] = np.nan
    y = (
        X["size"].fillna(1.5)
        + 2 * X["colour"].isin(labels[::3])
        + (X["door"] == 3) * X["count"]
        + X["old"]
    )
    return X, y.to_numpy() + rng.normal(size=n) * 0.1


MADE = {
    "hist": (
        HistGradientBoostingClassifier(max_iter=15),
        HistGradientBoostingRegressor(max_iter=15),
    ),
    "xgb": (
        xgb.XGBClassifier(enable_categorical=True, max_cat_to_onehot=1, **XGB),
        xgb.XGBRegressor(enable_categorical=True, max_cat_to_onehot=9, **XGB),
    ),
    "lgb": (
        lgb.LGBMClassifier(**LGB),
        lgb.LGBMRegressor(max_cat_to_onehot=1, min_data_per_group=5, **LGB),
    ),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("classify", [True, False])
def test_pandas_categories_whatever_the_callers_order(name, classify):
    X, y = table(500, 0)
    target = np.digitize(y, [1.0, 3.0]) if classify else y
    model = MADE[name][0 if classify else 1].fit(X, target)
    same(read_ensemble(model), model, X)
    columns = read_columns(X)
    ensemble = read_ensemble(model, columns)
    same(ensemble, model, X)
    assert (
        category_sets(ensemble)[1] and category_sets(ensemble)[2] and not category_sets(ensemble)[0]
    )
    assert ensemble_thresholds(ensemble)[3].tolist() == [0.5]
    turned = X.copy()
    turned["colour"] = X["colour"].cat.set_categories(["teal", "grey", "red", "blue", "green"])
    turned["door"] = X["door"].cat.set_categories([3, 7, 10])
    other = read_ensemble(model, read_columns(turned))
    assert np.array_equal(other.raw(turned), ensemble.raw(X))
    assert np.array_equal(
        read_ensemble(ensemble, read_columns(turned)).raw(turned), ensemble.raw(X)
    )
    for tree, leaf in zip(
        other.trees, other.nodes.apply_all(encode(turned, other.columns)).T, strict=True
    ):
        assert np.array_equal(tree.predict(turned), other.nodes.value.ravel()[leaf])


def test_a_label_the_model_never_saw_answers_as_missing():
    X, y = table(500, 1)
    model = HistGradientBoostingRegressor(max_iter=15).fit(X, y)
    columns = read_columns(X.assign(colour=X["colour"].cat.add_categories(["teal"])))
    unseen = X.assign(colour=pd.Categorical(["teal"] * 500, categories=columns.categories[1]))
    assert np.array_equal(read_ensemble(model, columns).predict(unseen), model.predict(unseen))


def test_ordered_pandas_categories_in_lightgbm_need_the_columns():
    X, y = table(500, 2)
    X["door"] = X["door"].cat.as_ordered()
    model = lgb.LGBMRegressor(**LGB).fit(X, y)
    with pytest.raises(ValueError, match="columns=read_columns"):
        read_ensemble(model)
    ensemble = read_ensemble(model, read_columns(X))
    same(ensemble, model, X)
    assert ensemble_thresholds(ensemble)[2].size and not category_sets(ensemble)[2]


def test_a_forest_on_label_numbers_and_booleans():
    X, y = table(300, 3)
    X = X[["door", "old", "count"]]
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    same(
        read_ensemble(model, read_columns(X)), model, X
    )  # the forest saw 10, 3, 7; the codes are 0, 1, 2
    same(read_ensemble(model), model, X)
    for tree in read_ensemble(model, read_columns(X)).trees:
        assert all(s is None or s.categories is not None or s.features == (2,) for s in tree.splits)


@pytest.mark.parametrize("name", ["hist", "xgb", "lgb"])
def test_categories_of_arrays_with_values_never_seen(name):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=400), 2.0 * rng.integers(0, 9, 400), rng.normal(size=400)]
    X[::9, 0] = np.nan
    X[::13, 1] = np.nan
    y = np.nan_to_num(X[:, 0]) + 2 * np.isin(X[:, 1], [2, 6, 16]) + 0.1 * rng.normal(size=400)
    model = {
        "hist": lambda: HistGradientBoostingRegressor(categorical_features=[1], max_iter=20).fit(
            X, y
        ),
        "xgb": lambda: xgb.XGBRegressor(
            enable_categorical=True, feature_types=["q", "c", "q"], max_cat_to_onehot=1, **XGB
        ).fit(X, y),
        "lgb": lambda: lgb.LGBMRegressor(max_cat_to_onehot=1, min_data_per_group=5, **LGB).fit(
            X, y, categorical_feature=[1]
        ),
    }[name]()
    new = X.copy()
    new[::5, 1] = 3
    new[1::5, 1] = 40
    new[2::5, 1] = 4
    ensemble = read_ensemble(model)
    same(ensemble, model, X)
    same(ensemble, model, new)
    said = sum(tree.predict(new) for tree in ensemble.trees) + ensemble.base[0]
    assert np.allclose(said, ensemble.raw(new)[:, 0], rtol=0, atol=1e-5)


def test_codes_of_an_encoded_table():
    X, y = table(300, 4)
    columns = read_columns(X)
    model = RandomForestRegressor(10, random_state=0).fit(encode(X, columns), y)
    ensemble = read_ensemble(model, columns)
    assert np.array_equal(ensemble.predict(X), model.predict(encode(X, columns)))
    assert set(ensemble_thresholds(ensemble)[1]) <= {0.5, 1.5, 2.5}
    about = [s for t in ensemble.trees for s in t.splits if s is not None and s.features == (1,)]
    assert about and all(
        s.categories or s.threshold == np.inf for s in about
    )  # a set, or “is it missing?”


@given(
    st.lists(st.floats(-3, 3).map(lambda v: round(v, 1)), min_size=1, max_size=6),
    st.floats(-4, 4),
    st.booleans(),
    st.data(),
)
@examples(200)
def test_recoded_questions_answer_for_the_codes_as_for_the_values(values, cut, missing, data):
    values = np.array(values)
    values[data.draw(st.lists(st.integers(0, len(values) - 1), max_size=2))] = np.nan
    number = ArrayTree([0, -1, -1], [cut, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2], missing)
    members = tuple(sorted({int(abs(v)) for v in values[~np.isnan(values)]}))
    group = ArrayTree(
        [0, -1, -1],
        [np.nan, 0, 0],
        [1, -1, -1],
        [2, -1, -1],
        [0, 1, 2],
        missing,
        [0, -1, -1],
        [members],
    )
    asked = np.r_[values, np.nan][:, None]
    codes = np.r_[np.arange(len(values)), np.nan][:, None]
    for nodes in (number, group, concatenate_trees([number, group])):
        assert np.array_equal(
            recode_column(nodes, 0, values).apply_all(codes), nodes.apply_all(asked)
        )


def test_code_values_by_kind():
    assert code_values(("b", "a", "z"), ("a", "b"), True, "c").tolist()[:2] == [1.0, 0.0]
    assert np.isnan(code_values(("b", "a", "z"), ("a", "b"), True, "c")[2])
    assert code_values((5, 3), None, True, "c").tolist() == [5.0, 3.0]
    assert code_values(("b", "a"), None, False, "c").tolist() == [0.0, 1.0]
    for own, named in [(("x", "y"), True), (None, True)]:
        with pytest.raises(ValueError, match="columns: 'c'"):
            code_values(("b", "a"), own, named, "c")


# Texts, files, and no library


READ = """
import sys
for name in ("xgboost", "lightgbm", "catboost", "pandas"):
    sys.modules[name] = None
import json
import numpy as np
from fabinterp.forests.reading import read_ensemble
folder = sys.argv[1]
X = np.load(folder + "/X.npy")
said = {}
for kind in ("xgb.json", "lgb.txt", "cat.json"):
    said[kind] = read_ensemble(folder + "/" + kind).predict_proba(X).tolist()
print(json.dumps(said))
"""


def test_files_are_read_without_the_libraries(tmp_path):
    X = holes(WINE)
    np.save(tmp_path / "X.npy", X)
    models = {
        "xgb": xgb.XGBClassifier(**XGB),
        "lgb": lgb.LGBMClassifier(**LGB),
        "cat": cb.CatBoostClassifier(**SILENT),
    }
    for model in models.values():
        model.fit(X, CULTIVAR)
    models["xgb"].save_model(tmp_path / "xgb.json")
    models["lgb"].booster_.save_model(tmp_path / "lgb.txt")
    models["cat"].save_model(str(tmp_path / "cat.json"), format="json")
    ran = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, cwd=os.getcwd()
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    for kind, ours in said.items():
        model = models["lgb" if kind.startswith("lgb") else kind[:3]]
        assert np.abs(np.array(ours) - model.predict_proba(X)).max() < 1e-6
    named = read_ensemble(models["xgb"]).columns.names
    assert read_ensemble(tmp_path / "xgb.json").columns.names == named  # a Path too


def test_importing_the_module_imports_no_library():
    program = (
        "import sys, fabinterp.forests.reading;"
        "print([m for m in ('xgboost', 'lightgbm', 'catboost') if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_labels_stored_in_files(tmp_path):
    named = cb.CatBoostClassifier(**SILENT).fit(WINE, NAMES)
    named.save_model(str(tmp_path / "named.json"), format="json")
    same(read_ensemble(tmp_path / "named.json"), named, WINE)
    X, y = table(300, 5)
    model = lgb.LGBMRegressor(**LGB).fit(X, y)
    from_text = read_ensemble(model.booster_.model_to_string(), read_columns(X))
    assert np.array_equal(from_text.predict(X), model.predict(X))
    model = xgb.XGBRegressor(enable_categorical=True, **XGB).fit(X, y)
    saved = json.loads(model.get_booster().save_raw("json"))
    same(read_ensemble(saved), model, X)
    saved["version"] = [3, 0, 0]
    saved["learner"]["gradient_booster"]["model"]["cats"]["enc"] = []
    with pytest.raises(ValueError, match="before 3.1"):
        read_ensemble(saved, read_columns(X))


# Refusals


def refused():
    X, y = table(200, 6)
    frame = pd.DataFrame(WINE, columns=[f"c{j}" for j in range(13)])
    fit = RandomForestClassifier(3).fit(frame, NAMES)
    two = np.c_[BLOOD, BLOOD]
    door = X[["size"]].assign(door=X["door"].astype(str))
    return {
        "IsolationForest: supported are": lambda: read_ensemble(
            IsolationForest(n_estimators=3).fit(WINE)
        ),
        "StandardScaler: it is not fitted": lambda: read_ensemble(
            make_pipeline(StandardScaler(), fit)
        ),
        "VotingClassifier: supported are": lambda: read_ensemble(VotingClassifier([("a", fit)])),
        "LogisticRegression: supported are": lambda: read_ensemble(LogisticRegression()),
        "int: supported are": lambda: read_ensemble(3),
        "RandomForestRegressor: it is not fitted": lambda: read_ensemble(RandomForestRegressor()),
        "XGBRegressor: it is not fitted": lambda: read_ensemble(xgb.XGBRegressor()),
        "LGBMRegressor: it is not fitted": lambda: read_ensemble(lgb.LGBMRegressor()),
        "CatBoostRegressor: it is not fitted": lambda: read_ensemble(cb.CatBoostRegressor()),
        "RandomForestRegressor: one output": lambda: read_ensemble(
            RandomForestRegressor(3).fit(BODY, two)
        ),
        "XGBRegressor: one output": lambda: read_ensemble(xgb.XGBRegressor(**XGB).fit(BODY, two)),
        "AdaBoostClassifier: its members": lambda: read_ensemble(
            AdaBoostClassifier(DummyClassifier()).fit(WINE, NAMES)
        ),
        "BaggingRegressor: its members": lambda: read_ensemble(
            BaggingRegressor(RandomForestRegressor(2), 2).fit(BODY, BLOOD)
        ),
        "GradientBoostingRegressor: init": lambda: read_ensemble(
            GradientBoostingRegressor(init=RandomForestRegressor(2)).fit(BODY, BLOOD)
        ),
        "gblinear": lambda: read_ensemble(
            xgb.XGBRegressor(booster="gblinear", **XGB).fit(BODY, BLOOD)
        ),
        "binary:hinge": lambda: read_ensemble(
            xgb.train({"objective": "binary:hinge"}, xgb.DMatrix(WINE, CULTIVAR == 1), 2)
        ),
        "missing must be nan": lambda: read_ensemble(
            xgb.XGBRegressor(missing=0.0, **XGB).fit(BODY, BLOOD)
        ),
        "not ASCII": lambda: read_ensemble(
            xgb.XGBRegressor(enable_categorical=True, **XGB).fit(
                *table(99, 7, ("rouge", "grisé", "blanc", "noir"))
            )
        ),
        "linear_tree": lambda: read_ensemble(
            lgb.LGBMRegressor(linear_tree=True, **LGB).fit(BODY, BLOOD)
        ),
        "sqrt": lambda: read_ensemble(lgb.LGBMRegressor(reg_sqrt=True, **LGB).fit(BODY, BLOOD)),
        "cross_entropy_lambda": lambda: read_ensemble(
            lgb.train(
                {"objective": "cross_entropy_lambda", "verbose": -1},
                lgb.Dataset(WINE, CULTIVAR / 2),
                2,
            )
        ),
        "fitted on 1 class": lambda: read_ensemble(
            lgb.LGBMClassifier(**LGB).fit(WINE, np.ones(len(WINE)))
        ),
        "no trees": lambda: read_ensemble(xgb.train({}, xgb.DMatrix(BODY, BLOOD), 0)),
        "OneHotFeature|OnlineCtr": lambda: read_ensemble(
            cb.CatBoostRegressor(cat_features=["door"], **SILENT).fit(door, y)
        ),
        "RMSEWithUncertainty": lambda: read_ensemble(
            cb.CatBoostRegressor(loss_function="RMSEWithUncertainty", **SILENT).fit(BODY, BLOOD)
        ),
        "MultiRMSE": lambda: read_ensemble(
            cb.CatBoostRegressor(loss_function="MultiRMSE", **SILENT).fit(BODY, two)
        ),
        "expects column 'c0' where 'c12'": lambda: read_ensemble(
            fit, read_columns(frame[frame.columns[::-1]])
        ),
        "fitted on 13 columns, got 2": lambda: read_ensemble(fit, read_columns(frame.iloc[:, :2])),
        "categories in the model, numbers in the table": lambda: read_ensemble(
            HistGradientBoostingRegressor(max_iter=3).fit(X, y),
            replace(read_columns(X), categories=(None,) * 5),
        ),
        "has categories": lambda: read_ensemble(
            HistGradientBoostingRegressor(max_iter=9).fit(X, y),
            replace(
                read_columns(X),
                categories=(None, ("rouge", "vert"), *read_columns(X).categories[2:]),
            ),
        ),
        "'nowhere.json': no such file": lambda: read_ensemble("nowhere.json"),
        "damaged JSON": lambda: read_ensemble("{ not json"),
        "save_model": lambda: read_ensemble("booster[0]:\n0:leaf=1\n"),
        "it holds no model that can be read": lambda: read_ensemble({"a": 1}),
        "'list': it holds no model": lambda: read_ensemble(
            xgb.XGBRegressor(**XGB).fit(BODY, BLOOD).get_booster().get_dump(dump_format="json")
        ),
        "a regression model has no class": lambda: read_ensemble(
            RandomForestRegressor(2).fit(BODY, BLOOD)
        ).predict_proba(BODY),
    }


@pytest.mark.parametrize("why", refused())
def test_refusals_are_one_line_and_name_the_reason(why):
    with pytest.raises(ValueError, match=why) as caught:
        refused()[why]()
    message = str(caught.value)
    assert "\n" not in message and message.startswith(("estimator=", "columns: "))


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "model.ubj"
    xgb.XGBRegressor(**XGB).fit(BODY, BLOOD).save_model(path)
    with pytest.raises(ValueError, match="estimator='model.ubj'"):
        read_ensemble(str(path))


# The arrays themselves


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
@examples(60)
def test_reach_is_the_walk_of_each_row(n_splits, seed):
    rng = np.random.default_rng(seed)
    root = {}
    ends = []
    ends.append(root)
    for _ in range(n_splits):
        node = ends.pop(rng.integers(len(ends)))
        node.update(
            f=int(rng.integers(3)),
            b=rng.normal(),
            miss=bool(rng.random() < 0.5),
            kids=({}, {}),
            codes=tuple(np.flatnonzero(rng.random(5) < 0.5).tolist())
            if rng.random() < 0.3
            else None,
        )
        ends.extend(node["kids"])
    found, yes, no = flatten_tree(root, lambda node: node.get("kids"))
    sets = [node["codes"] for node in found if node.get("codes") is not None]
    group = np.full(len(found), -1)
    group[[i for i, node in enumerate(found) if node.get("codes") is not None]] = np.arange(
        len(sets)
    )
    tree = ArrayTree(
        [n.get("f", -1) for n in found],
        [n.get("b", 0.0) for n in found],
        yes,
        no,
        np.arange(len(found)),
        [n.get("miss", False) for n in found],
        group,
        sets,
    )
    X = np.where(rng.random((30, 3)) < 0.3, rng.integers(-1, 7, (30, 3)), rng.normal(size=(30, 3)))
    X[rng.random(X.shape) < 0.2] = np.nan
    both = concatenate_trees([tree, tree])
    for row, (first, second) in zip(X, both.apply_all(X), strict=True):
        node = root
        while "kids" in node:
            x = row[node["f"]]
            told = x > node["b"] if node["codes"] is None else x in node["codes"]
            node = node["kids"][0 if (node["miss"] if np.isnan(x) else told) else 1]
        assert found[first] is node and second == first + len(found)


def test_an_ensemble_is_read_as_itself_and_is_frozen():
    ensemble = read_ensemble(RandomForestClassifier(4, random_state=0).fit(WINE, NAMES))
    assert read_ensemble(ensemble) is ensemble and isinstance(ensemble, Ensemble)
    assert (
        read_ensemble(ensemble, Columns(tuple("abcdefghijklm"), (None,) * 13)).columns.names[0]
        == "a"
    )
    assert ensemble.raw(WINE[:0]).shape == (0, 3)
    with pytest.raises(AttributeError):
        ensemble.link = "softmax"


def test_an_infinite_number_names_its_column():
    X = np.random.default_rng(0).random((20, 2))
    forest = RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    X[3, 1] = np.inf
    said = "X must be finite for RandomForestRegressor, got infinity in column 'x1'"
    with pytest.raises(ValueError, match=said):
        compare_ensemble(read_ensemble(forest), forest, X)
