"""Settings of estimators whose options are grouped in objects, written flat."""

from dataclasses import fields

from fabinterp.fab.engine import EM, Structure
from fabinterp.models.curve_trees import CurveOptions


def _options(flat, kind):
    """The fields of a class of options among flat settings."""
    return {field.name: flat[field.name] for field in fields(kind) if field.name in flat}


def nested(search="structure", **flat):
    """Return keywords of a tree of equations: flat options become `search` and `curves`.

    Options of the other search are left out.
    """
    by_name = {"structure": _options(flat, Structure), "em": _options(flat, EM)}
    curves = _options(flat, CurveOptions)
    grouped = by_name["structure"] | by_name["em"] | curves
    plain = {name: value for name, value in flat.items() if name not in grouped}
    if by_name.get(search):
        search = {"structure": Structure, "em": EM}[search](**by_name[search])
    return plain | {"search": search} | ({"curves": CurveOptions(**curves)} if curves else {})
