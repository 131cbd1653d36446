"""Readable models whose size is found by Bayesian model selection, not tuned by hand.

The names below load their module when they are first used, so that `import fabinterp` costs nothing.
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors and type checkers; tests/test_frame.py holds this list and _MODULES together
    from .explanation import Explanation, explain
    from .explorer import Panel, explore, nearest_change
    from .local import explain_local
    from .metatree import MetaTreeClassifier, MetaTreeRegressor
    from .oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
    from .pictures import plot_meta_tree, plot_trace, plot_tradeoff, plot_tree, plot_uncertainty
    from .piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
    from .projection import ProxyLinearClassifier, ProxyLinearRegressor
    from .proxy import ProxyTreeClassifier, ProxyTreeRegressor
    from .reference import Reference, as_reference
    from .reporting import report
    from .rules import Columns, Curve, Leaf, Rule, RuleSet, Split, Tree
    from .show import plot_regions, plot_rules, plot_terms
    from .simplify import RuleMixtureClassifier, RuleMixtureRegressor
    from .stability import difference_of_means, dissimilarity, instability

_MODULES = {
    "Explanation": "explanation",
    "explain": "explanation",
    "Panel": "explorer",
    "explore": "explorer",
    "nearest_change": "explorer",
    "explain_local": "local",
    "MetaTreeClassifier": "metatree",
    "MetaTreeRegressor": "metatree",
    "ObliqueAdditiveClassifier": "oblique",
    "ObliqueAdditiveRegressor": "oblique",
    "plot_meta_tree": "pictures",
    "plot_trace": "pictures",
    "plot_tradeoff": "pictures",
    "plot_tree": "pictures",
    "plot_uncertainty": "pictures",
    "PiecewiseLinearClassifier": "piecewise",
    "PiecewiseLinearRegressor": "piecewise",
    "ProxyLinearClassifier": "projection",
    "ProxyLinearRegressor": "projection",
    "ProxyTreeClassifier": "proxy",
    "ProxyTreeRegressor": "proxy",
    "Reference": "reference",
    "as_reference": "reference",
    "report": "reporting",
    "Columns": "rules",
    "Curve": "rules",
    "Leaf": "rules",
    "Rule": "rules",
    "RuleSet": "rules",
    "Split": "rules",
    "Tree": "rules",
    "plot_regions": "show",
    "plot_rules": "show",
    "plot_terms": "show",
    "RuleMixtureClassifier": "simplify",
    "RuleMixtureRegressor": "simplify",
    "difference_of_means": "stability",
    "dissimilarity": "stability",
    "instability": "stability",
}

__all__ = [
    "Columns",
    "Curve",
    "Explanation",
    "Leaf",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "ObliqueAdditiveClassifier",
    "ObliqueAdditiveRegressor",
    "Panel",
    "PiecewiseLinearClassifier",
    "PiecewiseLinearRegressor",
    "ProxyLinearClassifier",
    "ProxyLinearRegressor",
    "ProxyTreeClassifier",
    "ProxyTreeRegressor",
    "Reference",
    "Rule",
    "RuleMixtureClassifier",
    "RuleMixtureRegressor",
    "RuleSet",
    "Split",
    "Tree",
    "as_reference",
    "difference_of_means",
    "dissimilarity",
    "explain",
    "explain_local",
    "explore",
    "instability",
    "nearest_change",
    "plot_meta_tree",
    "plot_regions",
    "plot_rules",
    "plot_terms",
    "plot_trace",
    "plot_tradeoff",
    "plot_tree",
    "plot_uncertainty",
    "report",
]


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return [*__all__, "__version__"]
