"""Rare classes: inherited class weights, warnings of lost classes, and rules for one class."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fabinterp import (
    Budgeted,
    MetaTreeClassifier,
    ProxyLinearClassifier,
    ProxyTreeClassifier,
    RuleMixtureClassifier,
    RuleSet,
    explain,
)
from fabinterp.explanation import precision_bound
from fabinterp.forests.reading import read_ensemble

QUICK = dict(n_init=2, n_perturbations=10, random_state=0)
SMALL = dict(n_estimators=20, max_depth=4, random_state=0)


def table(seed, rate=0.45, n=1500):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    share = np.where((X.a > 1) & (X.b > 0), rate, rate / 22)
    return X, (rng.random(n) < share).astype(int)


def fit_silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def test_rules_inherit_the_class_weights_of_a_forest():
    X, y = table(0)
    X_new, y_new = table(1)
    forest = RandomForestClassifier(**SMALL, class_weight="balanced").fit(X, y)
    model = RuleMixtureClassifier(forest, **QUICK).fit(X, y)
    reached, wanted = (balanced_accuracy_score(y_new, m.predict(X_new)) for m in (model, forest))
    assert reached > wanted - 0.05
    named = RuleMixtureClassifier(forest, class_weight="balanced", **QUICK).fit(X, y)
    assert named.rules_.to_dict() == model.rules_.to_dict()


def test_weights_are_those_of_each_library():
    xgboost = pytest.importorskip("xgboost")
    lightgbm = pytest.importorskip("lightgbm")
    catboost = pytest.importorskip("catboost")
    X, y = table(0, n=300)
    few = dict(n_estimators=3, n_jobs=1)
    quiet = dict(iterations=3, verbose=0, allow_writing_files=False, thread_count=1)
    lgb = dict(few, verbose=-1)
    booster = {"objective": "binary:logistic", "scale_pos_weight": 7}
    unbalanced = {"objective": "binary", "is_unbalance": True, "verbose": -1, "num_threads": 1}
    ratio = (y == 0).sum() / (y == 1).sum()
    stump = DecisionTreeClassifier(max_depth=1, class_weight={1: 3.0})
    cases = [
        (RandomForestClassifier(3, class_weight={0: 0.5}), {0: 0.5}),
        (RandomForestClassifier(3, class_weight="balanced_subsample"), "balanced"),
        (HistGradientBoostingClassifier(max_iter=3, class_weight="balanced"), "balanced"),
        (BaggingClassifier(stump, 3), {1: 3.0}),
        (RandomForestClassifier(3), None),
        (make_pipeline(StandardScaler(), RandomForestClassifier(3, class_weight={1: 9})), {1: 9}),
        (GridSearchCV(RandomForestClassifier(3), {"class_weight": [{1: 5}]}, cv=2), {1: 5}),
        (xgboost.XGBClassifier(**few, scale_pos_weight=7), {0: 1.0, 1: 7.0}),
        (xgboost.XGBClassifier(**few), None),
        (lightgbm.LGBMClassifier(**lgb, is_unbalance=True), "balanced"),
        (lightgbm.LGBMClassifier(**lgb, scale_pos_weight=7), {0: 1.0, 1: 7.0}),
        (lightgbm.LGBMClassifier(**lgb, class_weight={1: 4}), {1: 4}),
        (lightgbm.LGBMClassifier(**lgb), None),
        (catboost.CatBoostClassifier(**quiet, class_weights={0: 2, 1: 7}), {0: 2.0, 1: 7.0}),
        (catboost.CatBoostClassifier(**quiet, scale_pos_weight=7), {0: 1.0, 1: 7.0}),
        (catboost.CatBoostClassifier(**quiet, auto_class_weights="Balanced"), {0: 1, 1: ratio}),
        (
            catboost.CatBoostClassifier(**quiet, auto_class_weights="SqrtBalanced"),
            {0: 1, 1: np.sqrt(ratio)},
        ),
        (catboost.CatBoostClassifier(**quiet), None),
    ]
    models = [(model.fit(X, y), weights) for model, weights in cases]
    models += [
        (xgboost.train(booster, xgboost.DMatrix(X, y), 3), {0: 1.0, 1: 7.0}),
        (lightgbm.train(unbalanced, lightgbm.Dataset(X, y), 3), "balanced"),
        (lightgbm.train(unbalanced, lightgbm.Dataset(X, y), 3).model_to_string(), "balanced"),
    ]
    for model, wanted in models:
        weights = read_ensemble(model).class_weight
        if isinstance(weights, tuple):
            weights = dict(enumerate(weights))
        if isinstance(wanted, dict):
            assert weights.keys() == wanted.keys(), model
            assert np.allclose([*weights.values()], [*wanted.values()]), model
        else:
            assert weights == wanted, model


def test_without_weights_inherit_is_none():
    X, y = table(0, n=400)
    forest = RandomForestClassifier(**SMALL).fit(X, y)
    for estimator, target in ((forest, "observed"), (None, "observed"), (forest, "ensemble")):
        settings = dict(estimator=estimator, target=target, **QUICK)
        inherits = fit_silently(RuleMixtureClassifier(**settings), X, y)
        without = fit_silently(RuleMixtureClassifier(**settings, class_weight=None), X, y)
        assert inherits.rules_ == without.rules_ and inherits.rules_.class_weights is None


def test_an_unfitted_forest_is_weighted_once():
    X, y = table(0)
    forest = RandomForestClassifier(**SMALL, class_weight="balanced")
    model = RuleMixtureClassifier(forest, **QUICK)
    scores = cross_val_score(model, X, y, cv=3, scoring="balanced_accuracy")
    assert scores.min() > 0.65


def test_the_scale_of_inherited_weights_does_not_matter():
    X, y = table(0, n=600)
    rules = []
    for scale in (1.0, 64.0):
        forest = RandomForestClassifier(**SMALL, class_weight={0: scale, 1: 8 * scale}).fit(X, y)
        rules.append(RuleMixtureClassifier(forest, **QUICK).fit(X, y).rules_)
    assert np.allclose(rules[0].predict_proba(X), rules[1].predict_proba(X))


@pytest.mark.parametrize("class_weight", ["inherit", "balanced", {0: 1, 1: 30}, {0: 0, 1: 1}])
def test_support_counts_rows_and_shares_are_weighted(class_weight):
    X, y = table(0)
    w = np.random.default_rng(0).integers(1, 4, len(y))
    forest = RandomForestClassifier(**SMALL, class_weight="balanced").fit(X, y)
    model = fit_silently(RuleMixtureClassifier(forest, class_weight=class_weight, **QUICK), X, y)
    rules = model.rules_
    at = rules.apply(X)
    factors = np.array(rules.class_weights)
    assert f"shares of rows weighted by class: 0 {factors[0]:.3g}, 1 {factors[1]:.3g}" in str(rules)
    frequency = factors * [1 - y.mean(), y.mean()]
    for r, rule in enumerate(rules):
        weights = factors * np.bincount(y[at == r], minlength=2) + frequency / frequency.sum()
        assert rule.support == (at == r).sum()
        assert np.allclose(rule.leaf.value, weights / weights.sum())
    again = RuleSet.from_json(rules.to_json())
    assert again == rules and again.class_weights == rules.class_weights
    fit_silently(model, X, y) if class_weight == {0: 0, 1: 1} else model.fit(X, y, w)
    if class_weight != {0: 0, 1: 1}:
        assert sum(rule.support for rule in model.rules_) == w.sum()
        assert min(rule.support for rule in model.rules_) >= 5


def test_intervals_do_not_take_weights_for_rows():
    X, y = table(0, n=600)
    forest = RandomForestClassifier(**SMALL, class_weight={0: 1, 1: 1000}).fit(X, y)
    rules = RuleMixtureClassifier(forest, **QUICK).fit(X, y).rules_
    at = rules.apply(X)
    mixed = [r for r in range(len(rules)) if len(set(y[at == r])) == 2]
    assert mixed
    for r in mixed:
        low, high = rules[r].interval
        hits = y[at == r].sum()
        # no more certain than `hits` rows alone can be
        assert high - low > 0.2 / np.sqrt(hits) * 0.5


def test_a_fit_that_loses_a_class_warns_once():
    X, y = table(0, rate=0.3, n=400)
    labels = np.array(["fine", "fraud"])[y]
    forest = RandomForestClassifier(**SMALL).fit(X, labels)
    logistic = LogisticRegression().fit(X, labels)
    for model in (
        RuleMixtureClassifier(forest, size=1, **QUICK),
        ProxyTreeClassifier(size=1),
        ProxyLinearClassifier(max_features=0),
        MetaTreeClassifier(max_depth=1, random_state=0),
        MetaTreeClassifier(max_depth=1, n_trees=3, random_state=0),
    ):
        with pytest.warns(
            UserWarning, match="does not predict 'fraud' for any training row"
        ) as caught:
            model.fit(X, labels)
        lost = [w for w in caught if "for any training row" in str(w.message)]
        assert len(lost) == 1, model
    with pytest.warns(UserWarning, match="ProxyTreeClassifier does not predict 'fraud'"):
        logistic.intercept_ += 1.0
        assert (logistic.predict(X) == "fraud").any()
        ProxyTreeClassifier(logistic, size=1, random_state=0).fit(X)


def test_a_fit_that_keeps_its_classes_does_not_warn():
    X, y = table(0)
    forest = RandomForestClassifier(**SMALL, class_weight="balanced").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RuleMixtureClassifier(forest, **QUICK).fit(X, y)


def test_the_bound_of_a_precision_is_that_of_clopper_and_pearson():
    for n in (1, 7, 60):
        for k in range(1, n + 1):
            assert np.isclose(binom.sf(k - 1, n, precision_bound(k, n)), 0.05)
    assert precision_bound(0, 9) == 0 and precision_bound(0, 0) == 0


ONE = dict(of="fraud", random_state=0, n_perturbations=10)


@pytest.mark.parametrize("kind", ["forest", "linear", "function"])
def test_the_shortest_list_for_one_class(kind):
    X, y = table(0)
    labels = pd.Series(np.array(["fine", "fraud"])[y], name="kind")
    forest = RandomForestClassifier(**SMALL, class_weight="balanced").fit(X, labels)
    other = LogisticRegression(class_weight="balanced").fit(X, labels)
    model = {"forest": forest, "linear": other, "function": forest.predict_proba}[kind]
    classes = forest.classes_ if kind == "function" else None
    predicted = (other if kind == "linear" else forest).predict(X)
    for y_given, truth, least in ((labels, labels, 0.05), (None, predicted, 0.7)):
        explanation = explain(model, X, y_given, min_precision=least, classes=classes, **ONE)
        out = np.setdiff1d(np.arange(len(X)), explanation.fit_rows)
        covered = explanation.predict(X.iloc[out]) == "fraud"
        hits = (np.asarray(truth)[out] == "fraud") & covered
        assert explanation.precision == hits.sum() / covered.sum()
        assert explanation.precision_bound == precision_bound(hits.sum(), covered.sum()) >= least
        assert explanation.recall == hits.sum() / (np.asarray(truth)[out] == "fraud").sum()
        assert f"recall {explanation.recall:.3f}" in str(explanation)
        assert explanation.fidelity_on(X) == np.mean(
            (explanation.predict(X) == "fraud") == (predicted == "fraud")
        )


def test_one_of_three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] > 0.5, 2, np.where(X[:, 1] > 0, 1, 0))
    forest = RandomForestClassifier(**SMALL).fit(X, y)
    explanation = explain(forest, X, y, min_precision=0.9, **(ONE | {"of": 2}))
    assert set(explanation.predict(X)) == {"2", "not 2"}
    assert explanation.precision_bound >= 0.9 and len(explanation.rules) == 2


def test_what_cannot_be_reached_or_asked_is_one_line():
    X, y = table(0, n=600)
    labels = np.array(["fine", "fraud"])[y]
    forest = RandomForestClassifier(**SMALL, class_weight="balanced").fit(X, labels)
    asked = dict(min_precision=0.95, **ONE)
    with pytest.raises(
        ValueError, match=r"min_precision must be at most \.\d+, as the best list has, got \.95$"
    ):
        explain(forest, X, labels, **asked)
    for wrong, message in (
        (asked | {"of": "frad"}, "of must be a class of the model, 'fine', 'fraud', got 'frad'"),
        (asked | {"min_precision": None}, "min_precision must be between 0 and 1 if of is given"),
        (asked | {"min_precision": 1.2}, "min_precision must be between 0 and 1 if of is given"),
        (asked | {"of": None}, "min_precision must be between 0 and 1 if of is given, else None"),
        (
            asked | {"held_out": 0},
            "of can only be given with method='auto', held_out > 0 and a model",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            explain(forest, X, labels, **wrong)
    with pytest.raises(
        ValueError, match="a model that is not in Budgeted, got 'auto', 0.2 and Budgeted"
    ):
        explain(Budgeted(forest, 50), X, labels, **asked)
