"""Every public estimator, with a setting that fits in a moment and its other ways of fitting.

The contract (`tests/contract`) is asked of all of them: a new estimator is a line here.
"""

from typing import Any, NamedTuple

import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.fab.engine import EM, Structure
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.models.oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
from fabinterp.models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor
from fabinterp.proxy.equation_estimators import ProxyLinearClassifier, ProxyLinearRegressor
from fabinterp.proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor


class Setting(NamedTuple):
    """An estimator that is not fitted, and its name in tests.

    One setting of each family is quick: rule mixtures, equation trees, oblique trees, proxies and
    meta-trees. The reference of some takes numbers only.
    """

    name: str
    estimator: Any
    quick: bool = False
    numbers_only: bool = False

    def fresh(self, **changed):
        """Return a copy that is not fitted, some parameters changed where the estimator has them."""
        known = self.estimator.get_params()
        return clone(self.estimator).set_params(
            **{name: value for name, value in changed.items() if name in known}
        )

    @property
    def is_classifier(self):
        """Whether it answers with classes."""
        return is_classifier(self.estimator)


# Settings with which a rule mixture is fitted quickly
QUICK_RULES = {
    "max_rules": 4,
    "search": EM(max_iter=30),
    "n_init": 2,
    "n_perturbations": 4,
    "random_state": 0,
}
_LINES = {"max_depth": 2, "random_state": 0}
_LINES_BY_EM = _LINES | {"search": EM(max_iter=10)}
_CURVES = {"max_depth": 1, "random_state": 0}
_CURVES_BY_EM = _CURVES | {"search": EM(max_iter=4)}
_SMALL = {"max_leaves": 5, "min_samples_leaf": 1, "n_synthetic": 50, "random_state": 0}

SETTINGS = [
    Setting("rules of classes", RuleMixtureClassifier(RandomForestClassifier(6, random_state=0), **QUICK_RULES), True),
    Setting("rules of numbers", RuleMixtureRegressor(RandomForestRegressor(6, random_state=0), **QUICK_RULES)),
    Setting("lines", PiecewiseLinearRegressor(search=Structure(2), penalty=1.0, **_LINES), True),
    Setting("lines of all sizes", PiecewiseLinearRegressor(search=Structure(2), **_LINES)),
    Setting("lines by EM", PiecewiseLinearRegressor(**_LINES_BY_EM)),
    Setting("log-odds", PiecewiseLinearClassifier(search=Structure(2), penalty=1.0, **_LINES)),
    Setting("log-odds by EM", PiecewiseLinearClassifier(**_LINES_BY_EM)),
    Setting("curves", ObliqueAdditiveRegressor(search=Structure(0), **_CURVES)),
    Setting("curves by EM", ObliqueAdditiveRegressor(**_CURVES_BY_EM), True),
    Setting("curves of classes", ObliqueAdditiveClassifier(search=Structure(0), penalty=1.0, **_CURVES)),
    Setting("curves of classes by EM", ObliqueAdditiveClassifier(**_CURVES_BY_EM)),
    Setting("tree", ProxyTreeRegressor(random_state=0)),
    Setting("tree of classes", ProxyTreeClassifier(random_state=0), True),
    Setting("tree that looks ahead", ProxyTreeRegressor(size=4, min_samples_leaf=1, lookahead=True, random_state=0)),
    Setting("proxy tree", ProxyTreeRegressor(BayesianRidge(), n_draws=3, **_SMALL), numbers_only=True),
    Setting("proxy tree of classes", ProxyTreeClassifier(LogisticRegression(), **_SMALL), numbers_only=True),
    Setting("equation", ProxyLinearRegressor()),
    Setting("equation of classes", ProxyLinearClassifier()),
    Setting("proxy equation", ProxyLinearRegressor(DecisionTreeRegressor(max_depth=3, random_state=0)),
            numbers_only=True),
    Setting("proxy equation of classes",
            ProxyLinearClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), max_features=2),
            numbers_only=True),
    Setting("meta-tree", MetaTreeRegressor(), True),
    Setting("meta-tree of classes", MetaTreeClassifier()),
    Setting("meta-trees of classes", MetaTreeClassifier(n_trees=4, random_state=0)),
    Setting("meta-trees by evidence", MetaTreeRegressor(n_trees=4, tree_weights="evidence", random_state=0)),
    Setting("meta-tree of lines", MetaTreeRegressor(leaf="linear")),
]  # fmt: skip


def one_of_each_class():
    """Return a setting of each class, a quick one where there is one."""
    chosen = {}
    for setting in sorted(SETTINGS, key=lambda setting: not setting.quick):
        chosen.setdefault(type(setting.estimator), setting)
    return list(chosen.values())


ONE_OF_EACH = one_of_each_class()


def each(settings=SETTINGS):
    """Ask a test of each setting, of those that are not quick in the slow tier."""
    cases = [pytest.param(setting, id=setting.name, marks=[] if setting.quick else pytest.mark.slow)
             for setting in settings]  # fmt: skip
    return pytest.mark.parametrize("setting", cases)
