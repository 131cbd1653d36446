"""Readable models whose size is found, not tuned by hand.

The names below load their module when they are first used, so that `import fabinterp` costs nothing.
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

# For editors and type checkers; `make lint` compares this list with _MODULES
if TYPE_CHECKING:
    from .blackbox.budgeted import Budgeted
    from .change import nearest_change
    from .explanation import Explanation, explain
    from .explorer import explore
    from .forests.reading import read_ensemble
    from .proxy.adequacy import predictive_check
    from .proxy.local import explain_local
    from .metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
    from .proxy.parting import disagreement
    from .models.oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
    from .show.tree_plots import (
        plot_meta_tree,
        plot_predictive_check,
        plot_trace,
        plot_tradeoff,
        plot_tree,
        plot_uncertainty,
    )
    from .models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
    from .proxy.projection import ProxyLinearClassifier, ProxyLinearRegressor
    from .proxy.proxy_trees import ProxyTreeClassifier, ProxyTreeRegressor
    from .blackbox.reference import Reference, as_reference
    from .reporting import plot_calibration, report
    from .rules.contributions import explain_row
    from .rules.core import Columns, Curve, Leaf, Rule, Split
    from .rules.schema import ColumnSchema, Schema
    from .rules.ruleset import RuleSet, Tree, load_rules
    from .show.panel import Panel
    from .show.row_plots import plot_change, plot_importances, plot_row
    from .show.rule_plots import plot_regions, plot_rules, plot_terms
    from .models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor
    from .proxy.stability import difference_of_means, dissimilarity, instability

_MODULES = {
    "Budgeted": "blackbox.budgeted",
    "nearest_change": "change",
    "Explanation": "explanation",
    "explain": "explanation",
    "Panel": "show.panel",
    "explore": "explorer",
    "explain_local": "proxy.local",
    "read_ensemble": "forests.reading",
    "MetaTreeClassifier": "metatree.estimators",
    "MetaTreeRegressor": "metatree.estimators",
    "disagreement": "proxy.parting",
    "ObliqueAdditiveClassifier": "models.oblique",
    "ObliqueAdditiveRegressor": "models.oblique",
    "plot_meta_tree": "show.tree_plots",
    "plot_predictive_check": "show.tree_plots",
    "plot_trace": "show.tree_plots",
    "plot_tradeoff": "show.tree_plots",
    "plot_tree": "show.tree_plots",
    "plot_uncertainty": "show.tree_plots",
    "PiecewiseLinearClassifier": "models.piecewise",
    "PiecewiseLinearRegressor": "models.piecewise",
    "ProxyLinearClassifier": "proxy.projection",
    "ProxyLinearRegressor": "proxy.projection",
    "ProxyTreeClassifier": "proxy.proxy_trees",
    "ProxyTreeRegressor": "proxy.proxy_trees",
    "Reference": "blackbox.reference",
    "as_reference": "blackbox.reference",
    "plot_calibration": "reporting",
    "predictive_check": "proxy.adequacy",
    "report": "reporting",
    "explain_row": "rules.contributions",
    "Columns": "rules.core",
    "ColumnSchema": "rules.schema",
    "Schema": "rules.schema",
    "Curve": "rules.core",
    "Leaf": "rules.core",
    "Rule": "rules.core",
    "RuleSet": "rules.ruleset",
    "Split": "rules.core",
    "Tree": "rules.ruleset",
    "load_rules": "rules.ruleset",
    "plot_change": "show.row_plots",
    "plot_importances": "show.row_plots",
    "plot_row": "show.row_plots",
    "plot_regions": "show.rule_plots",
    "plot_rules": "show.rule_plots",
    "plot_terms": "show.rule_plots",
    "RuleMixtureClassifier": "models.rule_mixture",
    "RuleMixtureRegressor": "models.rule_mixture",
    "difference_of_means": "proxy.stability",
    "dissimilarity": "proxy.stability",
    "instability": "proxy.stability",
}

__all__ = [
    "Budgeted",
    "Columns",
    "ColumnSchema",
    "Schema",
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
    "disagreement",
    "dissimilarity",
    "explain",
    "explain_local",
    "explain_row",
    "explore",
    "instability",
    "load_rules",
    "nearest_change",
    "plot_calibration",
    "plot_change",
    "plot_importances",
    "plot_meta_tree",
    "plot_predictive_check",
    "plot_regions",
    "plot_row",
    "plot_rules",
    "plot_terms",
    "plot_trace",
    "plot_tradeoff",
    "plot_tree",
    "plot_uncertainty",
    "predictive_check",
    "read_ensemble",
    "report",
]


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return [*__all__, "__version__"]
