"""Settings of estimators whose options are grouped in objects, written flat."""

from dataclasses import fields

from fabinterp.fab.engine import EM, Structure
from fabinterp.models.curve_trees import CurveOptions


def _taken(flat, kind):
    """The fields of a class of options among flat settings; they are removed from these."""
    return {field.name: flat.pop(field.name) for field in fields(kind) if field.name in flat}


def nested(search="structure", **flat):
    """Return keywords of a tree of equations: flat options become `search` and `curves`.

    Options of the other search are left out.
    """
    by_name = {"structure": _taken(flat, Structure), "em": _taken(flat, EM)}
    curves = _taken(flat, CurveOptions)
    if by_name.get(search):
        search = {"structure": Structure, "em": EM}[search](**by_name[search])
    return flat | {"search": search} | ({"curves": CurveOptions(**curves)} if curves else {})
