"""Decide which cells of code are folded: one rule for the site and for JupyterLab.

A page shows what a reader needs to follow it: definitions that stand below their numbered equations, plain
versions, and short examples. Drawing code, demos, checks, imports, plumbing and answers are folded.
"""

import ast
import re

LONGEST = 60  # lines: a longer definition is folded
LONGEST_EXAMPLE = {True: 12, False: 30}  # lines, on a page that derives a method and on others
DRAWS = re.compile(r"\bplt\.|\bax(es)?\.|\bfigure\.")
DEFINITIONS = ast.ClassDef | ast.FunctionDef
HIDDEN = {"source_hidden": True}


def flags(cell):
    """Return the flags of a cell, the values by name: `#| code-fold: true`."""
    return dict(re.findall(r"^#\| *([\w-]+):? *(.*)$", cell["source"], re.M))


def code_of(cell):
    """Return the code of a cell without its flags."""
    return re.sub(r"^#\|.*\n?", "", cell["source"], flags=re.M).strip("\n")


def statements(code):
    """Return the statements of code; none if only a notebook can read it (`%time`)."""
    try:
        return ast.parse(code).body
    except SyntaxError:
        return []


def folds(cells):
    """Return for each cell the words above its folded code, None where nothing is folded."""
    is_method = any("default_exp" in flags(cell) for cell in cells)
    kinds = [cell["cell_type"] for cell in cells[1:]]
    n_first = 1 + kinds.index("markdown") if "markdown" in kinds else 0
    found = []
    prose = ""
    for i, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            label = _label(cell, r"\tag" in prose, is_method)
            found.append(label or ("Setup" if i < n_first else None))
        else:
            prose = cell["source"]
            found.append(None)
    return found


def _label(cell, has_equation, is_method):
    """Return the words above the folded code of a cell, None if the code is shown.

    has_equation: whether the prose above it holds a numbered equation; is_method: whether its page exports code.
    """
    marks = flags(cell)
    code = code_of(cell)
    tree = statements(code)
    if marks.get("code-fold") == "true":
        return marks.get("code-summary", "Answer").strip('"')
    if tree and all(isinstance(node, ast.Import | ast.ImportFrom) for node in tree):
        return "Imports"
    if marks.keys() & {"export", "exporti", "exports"}:
        is_shown = has_equation and len(code.splitlines()) <= LONGEST
        return None if is_shown else _names(tree)
    return _label_of_example(cell["id"], code, LONGEST_EXAMPLE[is_method])


def _label_of_example(name, code, longest):
    """Return the words above folded code that no module holds, None if it is shown."""
    if name.endswith("-live"):
        return "Code of the demo"
    if name.endswith("check"):
        return "Check"
    if name.endswith("plain"):
        return None
    if "draw" in name or DRAWS.search(code):
        return "Code of the figure"
    if len(code.splitlines()) <= longest:
        return None
    steps = [node for node in statements(code) if not isinstance(node, DEFINITIONS)]
    if not steps:
        return _names(statements(code))
    is_check = any(isinstance(node, ast.Assert) for step in steps for node in ast.walk(step))
    return "Check" if is_check else "Code of the example"


def _names(tree):
    """Return the names that statements define, as HTML."""
    names = [node.name for node in tree if isinstance(node, DEFINITIONS)]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(f"<code>{name}</code>" for name in names[:4]) + more or "Constants"


def hide_folded(notebook):
    """Collapse in JupyterLab the cells of a notebook that the site folds; return whether anything changed."""
    before = [dict(cell["metadata"]) for cell in notebook["cells"]]
    for cell, label in zip(notebook["cells"], folds(notebook["cells"]), strict=True):
        cell["metadata"].pop("jupyter", None)
        if label:
            cell["metadata"]["jupyter"] = dict(HIDDEN)
    return before != [cell["metadata"] for cell in notebook["cells"]]
