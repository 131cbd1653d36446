"""Explanations follow the `predict` of a model, whatever its trees or probabilities are."""

import pickle
import warnings

import catboost as cb
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb
from shared.overriding import COUNT, MODELS, RARE, X, agreement, as_function
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fabinterp
from fabinterp import (
    Budgeted,
    MetaTreeClassifier,
    ProxyLinearClassifier,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    RuleMixtureClassifier,
    RuleMixtureRegressor,
    as_reference,
    disagreement,
    explain,
    explain_local,
    nearest_change,
    report,
)
from fabinterp.blackbox.wrapping import compare_reference
from fabinterp.forests.arrays import prediction_gap
from fabinterp.forests.reading import read_ensemble
from fabinterp.reporting import reference_beside
from fabinterp.rules.core import read_columns

FEW = {"n_init": 1, "n_perturbations": 2, "random_state": 0}
CAT = {"iterations": 20, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
SMALL = RandomForestClassifier(10, max_depth=3, random_state=0)
CUT = FixedThresholdClassifier(SMALL, threshold=0.15).fit(X, RARE)
DIFFERS = r"predict differs from .* in \d+ of \d+ rows; predict is used"
QUICK = [
    "fixed threshold of a forest",
    "tuned threshold of a forest",
    "CatBoost, threshold .1",
    "tree subclass, rounded",
    "forest subclass, reversed columns",
    "forest subclass with a cut",
    "line subclass with words",
    "logarithm of the target, forest",
    "patched GradientBoosting",
    "search with another cut",
    "pipeline with a threshold",
    "LightGBM, own loss for classes",
]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.filterwarnings("ignore:Cannot compute class probabilities")
def test_an_explanation_follows_predict_as_closely_as_if_it_were_queried(name):
    model = MODELS[name][1]()
    theirs = model.predict(X)
    function, classes = as_function(model)
    found = explain(model, X, max_rules=6, random_state=0)
    queried = explain(function, X, classes=classes, max_rules=6, random_state=0)
    followed = agreement(found.predict(X), theirs)
    assert followed >= agreement(queried.predict(X), theirs) - 1e-9
    assert np.isclose(found.fidelity_on(X), followed)


def test_the_difference_is_reported_in_one_line():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = str(explain(CUT, X, max_rules=3, random_state=0))
    assert text.count("note: predict differs from the trees in") == 1


@pytest.mark.parametrize("kind", [ProxyTreeClassifier, ProxyLinearClassifier])
def test_proxies_follow_predict_and_warn(kind):
    with pytest.warns(UserWarning, match=DIFFERS):
        proxy = kind(CUT, random_state=0).fit(X, RARE)
    assert agreement(proxy.predict(X), CUT.predict(X)) > 0.93


def test_a_rule_list_keeps_the_cuts_of_the_trees_and_follows_predict():
    tuned = TunedThresholdClassifierCV(SMALL, cv=3, random_state=0).fit(X, RARE)
    with pytest.warns(UserWarning, match=DIFFERS):
        rules = RuleMixtureClassifier(tuned, target="ensemble", **FEW).fit(X, RARE)
    theirs = tuned.predict(X)
    assert agreement(rules.predict(X), theirs) > 0.95
    assert np.isclose(rules.fidelity_, agreement(rules.predict(X), theirs))
    again = pickle.loads(pickle.dumps(rules))
    assert np.array_equal(reference_beside(again, again.rules_).predictions(X), theirs)


def test_a_rule_list_of_numbers_follows_predict():
    model = MODELS["forest subclass, exponential"][1]()
    with pytest.warns(UserWarning, match=DIFFERS):
        rules = RuleMixtureRegressor(model, target="ensemble", **FEW).fit(X, COUNT)
    assert agreement(rules.predict(X), model.predict(X)) > 0.5
    found = explain(model, X, method="mixture", **FEW)
    assert found.method == "rule mixture" and "predict differs" in str(found)
    assert np.isclose(found.fidelity_on(X), agreement(found.predict(X), model.predict(X)))


def test_a_list_of_trees_that_agree_is_compared_once(monkeypatch):
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, RARE)
    asked = []
    predict = forest.predict
    monkeypatch.setattr(forest, "predict", lambda T: asked.append(len(T)) or predict(T), raising=0)
    explain(forest, X, max_rules=3, **FEW)
    assert asked == [len(X)]


def test_near_a_row_predict_is_followed():
    positive = X[CUT.predict(X) == 1].iloc[:3]
    with pytest.warns(UserWarning, match=DIFFERS):
        found = explain_local(CUT, positive, X, random_state=0)
    assert [int(one.surrogate_prediction[1] > 0.5) for one in found] == [1, 1, 1]


def test_on_a_budget_only_rows_that_are_asked_are_compared():
    seen = set()

    class Counted(FixedThresholdClassifier):
        def predict(self, T):
            seen.update(map(tuple, np.asarray(T).tolist()))
            return super().predict(T)

        def predict_proba(self, T):
            seen.update(map(tuple, np.asarray(T).tolist()))
            return super().predict_proba(T)

    model = Counted(SMALL, threshold=0.15).fit(X, RARE)
    with pytest.warns(UserWarning, match=DIFFERS):
        found = explain(Budgeted(model, 150), X, random_state=0)
    assert len(seen) <= 150
    assert agreement(found.predict(X), CUT.predict(X)) > 0.9
    assert "predict differs" in str(found)


def test_the_gap_of_trees_that_predict_otherwise_is_refused():
    found = explain(CUT, X, max_rules=3, random_state=0)
    with pytest.raises(ValueError, match=r"ensemble must predict what its trees predict.*report"):
        disagreement(found, CUT, X)


def test_a_change_follows_predict():
    found = explain(CUT, X, max_rules=4, random_state=0)
    row = X[CUT.predict(X) == 0].iloc[0]
    changes = nearest_change(found, row, X, target=1, model=CUT)
    assert changes.changes and set(CUT.predict(changes.after_frame())) == {1}


def test_a_reference_is_compared_once():
    reference = compare_reference(as_reference(CUT), X)
    assert reference.difference and compare_reference(reference, X) is reference
    assert np.array_equal(reference.mean_var(X)[0].argmax(axis=1), CUT.predict(X))
    same = compare_reference(as_reference(SMALL.fit(X, RARE)), X)
    assert same.difference == "" and same.kind == "pseudo-draws"


# ------------------------------------------------------------------ what must be explained


def _unreadable():
    rng = np.random.default_rng(1)
    numbers = X.a + 2 * (X.b > 0)
    shop = X.assign(shop=rng.integers(-1, 5, len(X)))
    words = X.assign(shop=pd.Categorical(rng.choice(["Köln", "Łódź", "Bonn"], len(X))))
    hist = HistGradientBoostingRegressor(categorical_features=["shop"], max_iter=10)
    few = {"n_estimators": 10, "n_jobs": 1}
    yield hist.fit(shop, numbers + shop.shop), shop, "'shop' holds categories in the model"
    halves = shop.assign(shop=shop.shop / 2)
    hist = HistGradientBoostingRegressor(categorical_features=["shop"], max_iter=10)
    yield hist.fit(halves, numbers), halves, "'shop' holds categories in the model"
    model = xgb.XGBRegressor(missing=0, **few)
    yield model.fit(X, numbers), X, "missing must be nan, got 0"
    model = xgb.XGBRegressor(enable_categorical=True, **few)
    yield model.fit(words, numbers), words, "labels that are not ASCII"
    model = lgb.LGBMRegressor(linear_tree=True, verbose=-1, **few)
    yield model.fit(X, numbers), X, "linear leaves"
    model = lgb.LGBMRegressor(zero_as_missing=True, verbose=-1, **few)
    yield model.fit(X.round(), numbers), X.round(), "zero_as_missing"
    model = cb.CatBoostRegressor(loss_function="LogLinQuantile", **CAT)
    yield model.fit(X, numbers.abs() + 1), X, "'LogLinQuantile' is not supported"
    model = cb.CatBoostClassifier(cat_features=["shop"], one_hot_max_size=1, **CAT)
    yield model.fit(words, (RARE + words.shop.isin(["Köln"])) > 0), words, "one-hot"


@pytest.mark.parametrize("k", range(8))
def test_a_model_whose_trees_are_not_read_is_queried_and_the_first_line_reports_why(k):
    model, table, why = list(_unreadable())[k]
    found = explain(model, table, random_state=0)
    first = str(found).splitlines()[0]
    assert found.method == "proxy tree"
    assert "its trees were not read: " in first and why in first
    assert agreement(found.predict(table), model.predict(table)) > 0.6


def test_a_loss_of_ones_own_is_read_as_the_sum_of_the_trees():
    def squares(y, raw):
        return raw - y, np.ones_like(raw)

    for model in (
        lgb.LGBMRegressor(objective=squares, n_estimators=10, n_jobs=1, verbose=-1),
        xgb.XGBRegressor(objective=squares, n_estimators=10, n_jobs=1),
    ):
        ensemble = read_ensemble(model.fit(X, X.a), read_columns(X))
        assert prediction_gap(ensemble, model, X) < 1e-6


def test_a_classifier_that_predicts_raw_scores_is_explained_as_numbers():
    model = MODELS["LightGBM, own loss for classes"][1]()
    scores = model.predict(X)
    found = explain(model, X, random_state=0)
    assert found.method == "rule mixture" and not found.reference.difference
    for proxy in (
        explain(Budgeted(model, 150), X, random_state=0),
        explain(
            Budgeted(make_pipeline(StandardScaler(), model).fit(X, RARE), 150), X, random_state=0
        ),
        ProxyTreeRegressor(model, random_state=0).fit(X),
        RuleMixtureRegressor(model, target="ensemble", **FEW).fit(X, scores),
    ):
        assert agreement(proxy.predict(X), scores) > 0.8
    with pytest.raises(ValueError, match="got LGBMClassifier, which predicts numbers"):
        RuleMixtureClassifier(model).fit(X, RARE)


@pytest.mark.parametrize("labels", [["Ulm", "Kiel", "Köln"], [True, False]])
def test_one_hot_splits_of_catboost_are_sets(labels):
    rng = np.random.default_rng(0)
    table = X.assign(place=rng.choice(labels, len(X)))
    y = table.a + 2 * (table.place == labels[0])
    model = cb.CatBoostRegressor(cat_features=["place"], one_hot_max_size=9, **CAT).fit(table, y)
    ensemble = read_ensemble(model, read_columns(table))
    assert prediction_gap(ensemble, model, table) < 1e-12
    unseen = table.assign(place="other")
    assert np.allclose(ensemble.predict(unseen), model.predict(unseen))


@pytest.mark.parametrize("loss", ["Poisson", "Logloss", "RMSE"])
def test_a_plain_catboost_predicts_the_sum_of_its_trees(loss):
    model = cb.CatBoost({"loss_function": loss, **CAT}).fit(X, RARE)
    assert prediction_gap(read_ensemble(model, read_columns(X)), model, X) < 1e-9


def test_several_outputs_are_refused():
    model = cb.CatBoost({"loss_function": "MultiClass", **CAT}).fit(X, np.arange(len(X)) % 3)
    for door in (
        lambda: explain(model, X),
        lambda: ProxyTreeClassifier(model).fit(X),
        lambda: explain_local(model, X.iloc[0], X),
    ):
        with pytest.raises(ValueError, match="one output, got CatBoost with 3 outputs"):
            door()


@pytest.mark.parametrize("framed", [True, False])
def test_infinite_numbers_are_explained_if_the_model_takes_them(framed):
    table = X.copy()
    table.loc[:90, "a"] = np.inf
    table.loc[91:150, "a"] = -np.inf
    y = np.where(table.a > 1e9, 3.0, np.where(table.a < -1e9, -2.0, 0.0)) + (table.b > 0)
    table = table if framed else table.to_numpy()
    for model in (
        lgb.LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1),
        HistGradientBoostingRegressor(max_iter=30),
    ):
        model.fit(table, y)
        theirs = model.predict(table)
        for method in ("mixture", "tree"):
            options = FEW if method == "mixture" else {"random_state": 0}
            found = explain(model, table, method=method, **options)
            assert agreement(found.predict(table), theirs) > 0.9
            assert found.fidelity_on(table) > 0.9
        for estimator in (model, clone(model)):
            rules = RuleMixtureRegressor(estimator, refit=True, **FEW).fit(table, y)
            assert agreement(rules.predict(table), y) > 0.9
            assert np.array_equal(rules.predict(table), rules.rules_.predict(table))
            assert agreement(rules.read_trees().predict(table), theirs) > 0.9
        rows = table.iloc[[0, 100, 300]] if framed else table[[0, 100, 300]]
        local = explain_local(model, rows, table, random_state=0)
        ours = [[one.prediction, one.surrogate_prediction] for one in local]
        assert np.allclose(ours, model.predict(rows)[:, None], atol=0.2)
    forest = RandomForestClassifier(5).fit(X, RARE)
    table = table if framed else X.assign(a=np.inf)
    for door in (
        lambda: explain(forest, table),
        lambda: RuleMixtureClassifier(forest).fit(table, RARE),
        lambda: RuleMixtureClassifier(clone(forest)).fit(table, RARE),
        lambda: RuleMixtureClassifier().fit(table, RARE),
        lambda: RuleMixtureClassifier(forest, **FEW).fit(X, RARE).predict(table),
        lambda: explain_local(forest, table.iloc[0] if framed else X.iloc[0], table),
    ):
        with pytest.raises(ValueError, match="infinity"):
            door()


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "boolean", "int64[pyarrow]", "bool[pyarrow]"])
@pytest.mark.parametrize("estimator", [MetaTreeClassifier, RuleMixtureClassifier])
def test_classifiers_learn_nullable_and_arrow_labels_as_integers_or_truth_values(kind, estimator):
    y = pd.Series(RARE, name="rare").astype("bool" if "bool" in kind else "int").astype(kind)
    settings = FEW if estimator is RuleMixtureClassifier else {}
    model = estimator(**settings).fit(X[["a"]], y)
    assert model.classes_.dtype.kind == ("b" if "bool" in kind else "i")
    assert model.rules_.target == "rare" if estimator is RuleMixtureClassifier else True
    missing = y.copy()
    missing.iloc[0] = pd.NA
    with pytest.raises(ValueError, match="y must have no missing values, got NA in row 0"):
        estimator(**settings).fit(X[["a"]], missing)


def test_scores_are_computed_with_nullable_labels():
    y = pd.Series(RARE).astype("boolean")
    found = explain(RandomForestClassifier(5, random_state=0), X, y, max_rules=3, **FEW)
    assert found.rules_score > 0.8


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_tables_are_refused_with_the_line_that_makes_them_dense(kind):
    forest = RandomForestClassifier(5, random_state=0).fit(X.to_numpy(), RARE)
    found = explain(forest, X.to_numpy(), max_rules=3, **FEW)
    table = kind(X.to_numpy())
    for door in (
        lambda: explain(forest, table),
        lambda: explain(Budgeted(forest, 20), table),
        lambda: explain_local(forest, X.to_numpy()[0], table),
        lambda: disagreement(found, forest, table),
        lambda: nearest_change(found, X.to_numpy()[0], table),
        lambda: report(found, table),
        lambda: as_reference(forest).mean_var(table),
        lambda: found.fidelity_on(table),
        lambda: found.predict(table),
        lambda: RuleMixtureClassifier(forest).fit(table, RARE),
        lambda: ProxyTreeClassifier(forest).fit(table),
        lambda: fabinterp.PiecewiseLinearClassifier().fit(table, RARE),
    ):
        with pytest.raises(TypeError, match=r"X must be dense.*X\.toarray\(\)"):
            door()
