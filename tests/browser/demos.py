"""A demo is a code cell whose id ends in `-live`; here it is cut out of its notebook with just the cells it needs."""

import ast
import builtins
import re
import symtable
from functools import cache

import nbformat
from frame import NBS, pages
from shared.notebooks import code_cells

# Sliders of whole numbers, of numbers and of a list, choices, a player
DERIVATIONS = ("engine-live", "em-live", "foba-live", "prunings-live")
EXPLORE = "exp-explore-live"


@cache
def demos():
    """Pairs (notebook below nbs, cell id) of all demos; a notebook that shows widgets without one is an error."""
    found = []
    for path in pages():
        cells = code_cells(path)
        live = [
            (path.relative_to(NBS), cell["id"]) for cell in cells if cell["id"].endswith("-live")
        ]
        shows = any(
            re.search(r"^import ipywidgets|^(explore|Panel)\(", cell["source"], re.M)
            for cell in cells
        )
        shows = shows and path.parent.name != "guide"  # a gallery shows what other pages derive
        assert live or not shows, (
            f"{path.name} shows widgets: let the id of the cell that does end in -live"
        )
        found += live
    return found


def demos_folder(parent):
    """Make a folder for demos, beside the stored results as the pages are."""
    folder = parent / "demos"
    folder.mkdir()
    (folder.parent / "results").symlink_to(NBS / "results")
    return folder


def names_of(source):
    """The names that a cell binds for later cells, and those that it takes from earlier ones."""
    bound = set()
    taken = set()

    def visit(table):
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if (
                symbol.is_referenced()
                and (top or symbol.is_global())
                and symbol.get_name() not in bound
            ):
                taken.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    for statement in ast.parse(source).body:
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")
        new = {
            s.get_name()
            for s in table.get_symbols()
            if s.is_assigned() or s.is_imported() or s.is_namespace()
        }
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.For | ast.With):
            bound |= new  # a function may call itself, a loop reads what it binds
        visit(table)
        bound |= new
    return bound, taken - set(dir(builtins))


def cut_out(path, demo):
    """A notebook of one demo: its cell, and those that bind what it needs, the module in place of exported ones."""
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    module = next(
        (cell.source.split()[-1] for cell in cells if cell.source.startswith("#| default_exp")),
        None,
    )
    last = next(k for k, cell in enumerate(cells) if cell.id == demo)
    kept = [cells[last]]
    wanted = names_of(cells[last].source)[1]
    exported = set()
    for cell in reversed(cells[:last]):
        bound, taken = names_of(cell.source)
        if re.match(r"#\| *export", cell.source) and not re.search(
            r"^(import|from) ", cell.source, re.M
        ):
            exported |= bound & wanted
            wanted -= bound
        elif bound & wanted:
            kept.insert(0, cell)
            wanted = wanted - bound | taken
    assert not wanted, f"{path.name}: no cell before {demo} binds {sorted(wanted)}"
    if exported:
        source = f"from fabinterp.{module} import {', '.join(sorted(exported))}"
        kept.insert(0, nbformat.v4.new_code_cell(source, id="exported"))
    for cell in kept:
        cell.outputs = []
        cell.execution_count = None
    metadata = {"kernelspec": {"name": "python3", "display_name": "python3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=kept, metadata=metadata)
