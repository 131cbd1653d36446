"""The guide leaves nothing out: each picture is in the gallery, and how-tos are what a user would type."""

import ast
import re

import nbformat
import pytest
from frame import NBS, ROOT, sidebar
from shared.notebooks import code_cells

import fabinterp

GUIDE = NBS / "guide"
GALLERY = GUIDE / "02_gallery.ipynb"
HOW_TOS = [
    NBS / page
    for title, section in sidebar()
    for page in section
    if re.match(r"guide/(?!00|01|02|2\d)\d\d_", page)
]


def called(source):
    """Return the names of the functions that a cell calls."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def anchors(notebook):
    """Return what a link to each heading of a page ends in."""
    titles = re.findall(r"^## (.+)$", "\n".join(c.source for c in notebook.cells), re.M)
    return {re.sub(r"[^\w]+", "-", title.lower()).strip("-") for title in titles}


@pytest.mark.parametrize("name", [name for name in fabinterp.__all__ if name.startswith("plot_")])
def test_every_picture_is_in_the_gallery(name):
    """Drawn there, by ten lines at most."""
    (cell,) = (cell for cell in code_cells(GALLERY) if name in called(cell["source"]))
    assert len(cell["source"].splitlines()) <= 10
    assert any("image/png" in out.get("data", {}) for out in cell["outputs"])


@pytest.mark.parametrize(
    "kind", "explain explain_local explain_row nearest_change disagreement explore report".split()
)
def test_every_view_is_in_the_gallery(kind):
    """What is shown as HTML."""
    cells = [cell for cell in code_cells(GALLERY) if kind in called(cell["source"])]
    shown = [out for cell in cells for out in cell["outputs"] if "text/html" in out["data"]]
    assert shown and all(len(cell["source"].splitlines()) <= 10 for cell in cells)


def test_the_gallery_lists_its_headings():
    page = nbformat.read(GALLERY, 4)
    listed = re.findall(r"\]\(#([\w-]+)\)", "\n".join(cell.source for cell in page.cells))
    assert set(listed) == anchors(page) and len(listed) == len(set(listed))


@pytest.mark.parametrize("path", HOW_TOS, ids=lambda path: path.stem)
def test_a_how_to_is_short_and_plain(path):
    """Two minutes to read; nothing but public names, and nothing that needs the network."""
    cells = nbformat.read(path, 4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert len(cells) <= 15 and "assert " in code
    inner = re.findall(r"^ *(?:from|import) (fabinterp\.\S+|urllib|requests)", code, re.M)
    assert not inner, f"a user imports from the top: {inner}"


def test_the_readme_leads_to_every_how_to():
    text = (ROOT / "README.md").read_text()
    assert HOW_TOS
    missing = [path.name for path in [GALLERY, *HOW_TOS] if f"(nbs/guide/{path.name})" not in text]
    assert not missing
