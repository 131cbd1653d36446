"""The public names of the package: those at the top, and the plots, such as `plot.tree`."""

from importlib import import_module
from operator import attrgetter

import fabinterp
from fabinterp import plot

# The module of each name
PUBLIC = fabinterp._MODULES | {f"plot.{name}": home for name, home in plot._MODULES.items()}
# What users import from its module
ELSEWHERE = (
    "rules.core.Columns",
    "rules.core.Curve",
    "rules.core.Leaf",
    "rules.core.Split",
    "rules.schema.ColumnSchema",
    "show.panel.Panel",
    "proxy.stability.dissimilarity",
)


def public(name):
    """Return what a public name refers to."""
    return attrgetter(name)(fabinterp)


def elsewhere(name):
    """Return what a name of `ELSEWHERE` refers to."""
    module, _, name = name.rpartition(".")
    return getattr(import_module(f"fabinterp.{module}"), name)
