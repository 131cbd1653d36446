"""Which code is folded, on the site and in JupyterLab."""

import json

import nbformat
import pytest
from frame import NBS, notebooks
from frame.folding import code_of, flags, folds

EQUATION = nbformat.v4.new_markdown_cell(r"$$ x = 1 \tag{fab.1} $$")
PROSE = nbformat.v4.new_markdown_cell("Prose.")
MODULE = nbformat.v4.new_code_cell("#| default_exp fab.page")


def code(source, name="cell"):
    return nbformat.v4.new_code_cell(source, id=name)


def label(*cells):
    """Return the label of the last cell of a page."""
    title = nbformat.v4.new_markdown_cell("# Title\n\n> claim")
    return folds([title, MODULE, PROSE, *cells])[-1]


@pytest.mark.parametrize(
    "cells, expected",
    [
        ([EQUATION, code("#| export\ndef f():\n    return 1")], None),
        ([PROSE, code("#| export\ndef f():\n    return 1")], "<code>f</code>"),
        ([EQUATION, code("#| export\ndef f():\n" + "    x = 1\n" * 70)], "<code>f</code>"),
        ([code("x = 1\n" * 50, "page-plain")], None),
        ([code("print(1)")], None),
        ([code("x = 1\n" * 50)], "Code of the example"),
        ([code("x = 1\n" * 50 + "assert x")], "Check"),
        ([code("assert 1", "page-live-check")], "Check"),
        ([code("Panel()", "page-live")], "Code of the demo"),
        ([code("fig, ax = plt.subplots()")], "Code of the figure"),
        ([code("import numpy\nfrom math import pi")], "Imports"),
        ([code('#| code-fold: true\n#| code-summary: "Answer 1"\nassert 1')], "Answer 1"),
    ],
)
def test_what_is_folded(cells, expected):
    assert label(*cells) == expected


def test_code_above_the_first_prose_is_set_up():
    title = nbformat.v4.new_markdown_cell("# Title\n\n> claim")
    assert folds([title, code("x = 1"), PROSE, code("x = 1")]) == [None, "Setup", None, None]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_jupyterlab_folds_what_the_site_folds(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [cell | {"source": "".join(cell["source"])} for cell in cells]
    hidden = [cell["metadata"].get("jupyter", {}).get("source_hidden", False) for cell in cells]
    assert hidden == [label is not None for label in folds(cells)], "run `make export`"


@pytest.mark.parametrize("name, most", [("fab/02_engine", 300), ("models/03_piecewise", 150)])
def test_pages_show_few_lines_of_code(name, most):
    cells = nbformat.read(NBS / f"{name}.ipynb", 4).cells
    shown = [cell for cell, label in zip(cells, folds(cells), strict=True) if label is None]
    shown = [cell for cell in shown if cell.cell_type == "code" and "echo" not in flags(cell)]
    assert sum(len(code_of(cell).splitlines()) for cell in shown) <= most
