"""Plots of fitted models, such as `fabinterp.plot.tree(model)`; each loads its module when first used."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..reporting import plot_calibration as calibration
    from ..show.row_plots import plot_change as change
    from ..show.row_plots import plot_importances as importances
    from ..show.row_plots import plot_row as row
    from ..show.rule_plots import plot_regions as regions
    from ..show.rule_plots import plot_rules as rules
    from ..show.rule_plots import plot_terms as terms
    from ..show.tree_plots import plot_meta_tree as meta_tree
    from ..show.tree_plots import plot_tradeoff as tradeoff
    from ..show.tree_plots import plot_tree as tree
    from ..show.tree_plots import plot_uncertainty as uncertainty

_MODULES = {
    "calibration": "reporting",
    "change": "show.row_plots",
    "importances": "show.row_plots",
    "meta_tree": "show.tree_plots",
    "regions": "show.rule_plots",
    "row": "show.row_plots",
    "rules": "show.rule_plots",
    "terms": "show.rule_plots",
    "tradeoff": "show.tree_plots",
    "tree": "show.tree_plots",
    "uncertainty": "show.tree_plots",
}

__all__ = [
    "calibration",
    "change",
    "importances",
    "meta_tree",
    "regions",
    "row",
    "rules",
    "terms",
    "tradeoff",
    "tree",
    "uncertainty",
]


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"fabinterp.{_MODULES[name]}")
    value = globals()[name] = getattr(module, f"plot_{name}")
    return value


def __dir__():
    return __all__
