"""Readable models whose size is found, not tuned by hand.

The names below load their module when they are first used, so that `import fabinterp` costs nothing.
"""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING

# For editors and type checkers; `make lint` compares this list with _MODULES
if TYPE_CHECKING:
    from . import plot
    from .blackbox.budgeted import Budgeted
    from .change import nearest_change
    from .explanation import explain
    from .explorer import explore
    from .fab.engine import EM, Structure
    from .forests.reading import read_ensemble
    from .proxy.local_explanations import explain_local
    from .metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
    from .proxy.disagreements import disagreement
    from .rows.kernels import show_versions
    from .models.curve_trees import CurveOptions
    from .models.oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor
    from .models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
    from .proxy.equation_estimators import ProxyLinearClassifier, ProxyLinearRegressor
    from .proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor
    from .blackbox.reference import Reference
    from .blackbox.wrapping import as_reference
    from .reporting import report
    from .rules.contributions import explain_row
    from .rules.core import Rule
    from .rules.schema import Schema
    from .rules.ruleset import RuleSet, Tree, load_rules
    from .models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor
    from .proxy.stability import instability

_MODULES = {
    "Budgeted": "blackbox.budgeted",
    "nearest_change": "change",
    "explain": "explanation",
    "explore": "explorer",
    "explain_local": "proxy.local_explanations",
    "EM": "fab.engine",
    "Structure": "fab.engine",
    "read_ensemble": "forests.reading",
    "MetaTreeClassifier": "metatree.estimators",
    "MetaTreeRegressor": "metatree.estimators",
    "disagreement": "proxy.disagreements",
    "CurveOptions": "models.curve_trees",
    "ObliqueAdditiveClassifier": "models.oblique",
    "ObliqueAdditiveRegressor": "models.oblique",
    "PiecewiseLinearClassifier": "models.piecewise",
    "PiecewiseLinearRegressor": "models.piecewise",
    "ProxyLinearClassifier": "proxy.equation_estimators",
    "ProxyLinearRegressor": "proxy.equation_estimators",
    "ProxyTreeClassifier": "proxy.tree_estimators",
    "ProxyTreeRegressor": "proxy.tree_estimators",
    "Reference": "blackbox.reference",
    "as_reference": "blackbox.wrapping",
    "report": "reporting",
    "explain_row": "rules.contributions",
    "Schema": "rules.schema",
    "Rule": "rules.core",
    "RuleSet": "rules.ruleset",
    "Tree": "rules.ruleset",
    "load_rules": "rules.ruleset",
    "show_versions": "rows.kernels",
    "RuleMixtureClassifier": "models.rule_mixture",
    "RuleMixtureRegressor": "models.rule_mixture",
    "instability": "proxy.stability",
}

__all__ = [
    "Budgeted",
    "CurveOptions",
    "EM",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "ObliqueAdditiveClassifier",
    "ObliqueAdditiveRegressor",
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
    "Schema",
    "Structure",
    "Tree",
    "as_reference",
    "disagreement",
    "explain",
    "explain_local",
    "explain_row",
    "explore",
    "instability",
    "load_rules",
    "nearest_change",
    "plot",
    "read_ensemble",
    "report",
    "show_versions",
]


def __getattr__(name):
    if name == "plot":
        return import_module(".plot", __name__)
    if name.startswith("plot_"):  # plot_tree for plot.tree, until 0.1.0
        return getattr(import_module(".plot", __name__), name.removeprefix("plot_"))
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__():
    return [*__all__, "__version__"]
