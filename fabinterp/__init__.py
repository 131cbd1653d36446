"""Readable models whose size is found by Bayesian model selection, not tuned by hand.

The names below load their module when they are first used, so that `import fabinterp` costs nothing.
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors and type checkers; tests/test_frame.py holds this list and _MODULES together
    from .metatree import MetaTreeClassifier, MetaTreeRegressor
    from .oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
    from .piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
    from .rules import Columns, Curve, Leaf, Rule, RuleSet, Split, Tree
    from .show import plot_regions, plot_rules, plot_terms
    from .simplify import RuleMixtureClassifier, RuleMixtureRegressor

_MODULES = {
    "MetaTreeClassifier": "metatree",
    "MetaTreeRegressor": "metatree",
    "ObliqueAdditiveClassifier": "oblique",
    "ObliqueAdditiveRegressor": "oblique",
    "Columns": "rules",
    "Curve": "rules",
    "Leaf": "rules",
    "Rule": "rules",
    "RuleSet": "rules",
    "Split": "rules",
    "Tree": "rules",
    "PiecewiseLinearClassifier": "piecewise",
    "PiecewiseLinearRegressor": "piecewise",
    "RuleMixtureClassifier": "simplify",
    "RuleMixtureRegressor": "simplify",
    "plot_regions": "show",
    "plot_rules": "show",
    "plot_terms": "show",
}

__all__ = [
    "Columns",
    "Curve",
    "Leaf",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "ObliqueAdditiveClassifier",
    "ObliqueAdditiveRegressor",
    "PiecewiseLinearClassifier",
    "PiecewiseLinearRegressor",
    "Rule",
    "RuleMixtureClassifier",
    "RuleMixtureRegressor",
    "RuleSet",
    "Split",
    "Tree",
    "plot_regions",
    "plot_rules",
    "plot_terms",
]


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return [*__all__, "__version__"]
