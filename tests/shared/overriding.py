"""Models whose `predict` differs from their trees, draws or probabilities, by kind."""

import warnings
from types import MethodType

import catboost as cb
import lightgbm as lgb
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

N_ROWS = 600
_RNG = np.random.default_rng(0)
X = pd.DataFrame(_RNG.normal(size=(N_ROWS, 4)), columns=list("abcd"))
RARE = (_RNG.random(N_ROWS) < 0.03 + 0.4 * (X.a > 1)).astype(int)
THREE = np.digitize(X.a + X.b, [-0.5, 1.5])
COUNT = np.exp(1 + X.a + (X.b > 0))


def _overridden(kind, predict):
    """A subclass of an estimator, with another `predict`, which is given the parent's."""

    def own(self, X):
        return predict(self, super(found, self).predict, X)

    found = type("Own" + kind.__name__, (kind,), {"predict": own})
    # scikit-learn reads the parameters of the parent's constructor
    found.__init__ = kind.__init__
    return found


def _cut(self, parent, X):
    return self.classes_[(self.predict_proba(X)[:, -1] > 0.2).astype(int)]


def _words(self, parent, X):
    return np.where(self.predict_proba(X)[:, -1] > 0.2, "high", "low")


def _exponential(self, parent, X):
    return np.exp(parent(X))


def _reversed_columns(self, parent, X):
    return parent(X[list(X.columns)[::-1]].set_axis(list(X.columns), axis=1))


def _rounded(self, parent, X):
    return np.round(parent(X), -1)


def _patched(model, predict):
    parent = model.predict
    model.predict = MethodType(lambda self, X: predict(self, parent, X), model)
    return model


def _log_loss_gradient(y, raw):
    p = 1 / (1 + np.exp(-raw))
    return p - y, p * (1 - p)


class OtherSearch(GridSearchCV):
    """A search that predicts with another estimator than its best one."""

    def predict(self, X):
        return (self.best_estimator_.predict_proba(X)[:, 1] > 0.25).astype(int)


_BOOSTED = {"n_estimators": 20, "n_jobs": 1}
_CAT = {"iterations": 30, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
_FOREST = {"n_estimators": 20, "max_depth": 4, "random_state": 0}
_LOG = {"func": np.log, "inverse_func": np.exp}


def _cat_threshold(share):
    model = cb.CatBoostClassifier(**_CAT).fit(X, RARE)
    model.set_probability_threshold(share)
    return model


def _forest():
    return RandomForestClassifier(**_FOREST)


def _fit(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# name: (kind, function that returns a fitted model)
MODELS = {
    "fixed threshold of a forest": (
        "fixed threshold",
        lambda: _fit(FixedThresholdClassifier(_forest(), threshold=0.15), RARE),
    ),
    "fixed threshold of boosting": (
        "fixed threshold",
        lambda: _fit(
            FixedThresholdClassifier(HistGradientBoostingClassifier(max_iter=20), threshold=0.1),
            RARE,
        ),
    ),
    "fixed threshold of a line": (
        "fixed threshold",
        lambda: _fit(FixedThresholdClassifier(LogisticRegression(), threshold=0.2), RARE),
    ),
    "tuned threshold of a forest": (
        "tuned threshold",
        lambda: _fit(TunedThresholdClassifierCV(_forest(), cv=3, random_state=0), RARE),
    ),
    "tuned threshold of boosting": (
        "tuned threshold",
        lambda: _fit(
            TunedThresholdClassifierCV(
                GradientBoostingClassifier(n_estimators=20, random_state=0), cv=3, random_state=0
            ),
            RARE,
        ),
    ),
    "CatBoost, threshold .1": ("CatBoost threshold", lambda: _cat_threshold(0.1)),
    "CatBoost, threshold .3": ("CatBoost threshold", lambda: _cat_threshold(0.3)),
    "forest subclass, exponential": (
        "regressor subclass",
        lambda: _fit(_overridden(RandomForestRegressor, _exponential)(**_FOREST), np.log(COUNT)),
    ),
    "boosting subclass, exponential": (
        "regressor subclass",
        lambda: _fit(
            _overridden(HistGradientBoostingRegressor, _exponential)(max_iter=30), np.log(COUNT)
        ),
    ),
    "tree subclass, rounded": (
        "regressor subclass",
        lambda: _fit(_overridden(DecisionTreeRegressor, _rounded)(max_depth=4), COUNT),
    ),
    "forest subclass, reversed columns": (
        "subclass with other columns",
        lambda: _fit(_overridden(RandomForestRegressor, _reversed_columns)(**_FOREST), COUNT),
    ),
    "classifier subclass, reversed columns": (
        "subclass with other columns",
        lambda: _fit(_overridden(ExtraTreesClassifier, _reversed_columns)(**_FOREST), THREE),
    ),
    "forest subclass with a cut": (
        "classifier subclass",
        lambda: _fit(_overridden(RandomForestClassifier, _cut)(**_FOREST), RARE),
    ),
    "LightGBM subclass with a cut": (
        "classifier subclass",
        lambda: _fit(
            _overridden(lgb.LGBMClassifier, _cut)(verbose=-1, min_child_samples=5, **_BOOSTED),
            RARE,
        ),
    ),
    "line subclass with a cut": (
        "classifier subclass",
        lambda: _fit(_overridden(LogisticRegression, _cut)(), RARE),
    ),
    "forest subclass with words": (
        "subclass with other labels",
        lambda: _fit(_overridden(RandomForestClassifier, _words)(**_FOREST), RARE),
    ),
    "line subclass with words": (
        "subclass with other labels",
        lambda: _fit(_overridden(LogisticRegression, _words)(), RARE),
    ),
    "plain CatBoost, Poisson": (
        "plain CatBoost",
        lambda: _fit(cb.CatBoost({"loss_function": "Poisson", **_CAT}), COUNT),
    ),
    "plain CatBoost, Logloss": (
        "plain CatBoost",
        lambda: _fit(cb.CatBoost({"loss_function": "Logloss", **_CAT}), RARE),
    ),
    "logarithm of the target, forest": (
        "transformed target",
        lambda: _fit(TransformedTargetRegressor(RandomForestRegressor(**_FOREST), **_LOG), COUNT),
    ),
    "logarithm of the target, boosting": (
        "transformed target",
        lambda: _fit(
            TransformedTargetRegressor(GradientBoostingRegressor(random_state=0), **_LOG), COUNT
        ),
    ),
    "logarithm of the target, Bayesian line": (
        "transformed target",
        lambda: _fit(TransformedTargetRegressor(BayesianRidge(), **_LOG), COUNT),
    ),
    "patched forest": ("patched", lambda: _patched(_fit(_forest(), RARE), _cut)),
    "patched boosting": (
        "patched",
        lambda: _patched(
            _fit(xgb.XGBRegressor(max_depth=3, **_BOOSTED), np.log(COUNT)), _exponential
        ),
    ),
    "patched GradientBoosting": (
        "patched",
        lambda: _patched(
            _fit(GradientBoostingClassifier(n_estimators=20, random_state=0), RARE), _cut
        ),
    ),
    "search with another cut": (
        "search",
        lambda: _fit(OtherSearch(_forest(), {"max_depth": [2, 4]}, cv=2), RARE),
    ),
    "search over thresholds": (
        "search",
        lambda: _fit(
            GridSearchCV(FixedThresholdClassifier(_forest()), {"threshold": [0.15]}, cv=2), RARE
        ),
    ),
    "pipeline with a threshold": (
        "pipeline",
        lambda: _fit(
            make_pipeline(StandardScaler(), FixedThresholdClassifier(_forest(), threshold=0.15)),
            RARE,
        ),
    ),
    "pipeline with a logarithm of what is negative": (
        "pipeline",
        lambda: make_pipeline(FunctionTransformer(np.log), _forest()).fit(X.abs() + 0.1, RARE),
    ),
    "LightGBM, own loss for classes": (
        "own loss",
        lambda: _fit(
            lgb.LGBMClassifier(objective=_log_loss_gradient, verbose=-1, **_BOOSTED), RARE
        ),
    ),
    "XGBoost, own loss for classes": (
        "own loss",
        lambda: _fit(xgb.XGBClassifier(objective=_log_loss_gradient, **_BOOSTED), RARE),
    ),
}


def agreement(prediction, theirs):
    """The share of equal labels, or 1 less the mean squared difference over the variance."""
    theirs = np.ravel(theirs)
    if theirs.dtype.kind != "f":
        return float(np.mean(np.asarray(prediction).astype(str) == theirs.astype(str)))
    return float(1 - np.mean((np.asarray(prediction, float) - theirs) ** 2) / np.var(theirs))


def as_function(model):
    """The `predict` of a model as a function for `explain`, and its classes or None."""
    known = np.unique(model.predict(X))
    if np.ravel(model.predict(X)).dtype.kind == "f":
        return lambda T: np.ravel(model.predict(T)), None
    return lambda T: (np.ravel(model.predict(T))[:, None] == known).astype(float), known
