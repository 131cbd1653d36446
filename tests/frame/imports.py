"""Imports of the package: chapters, floors, cycles and third-party packages; imports in functions count."""

import ast
import re
import sys
from functools import cache
from typing import NamedTuple

import fabinterp
from frame import PACKAGE, ROOT, Problem, nodes, problem

# Chapters that the modules of a chapter may import from, beside their own. None: all of them.
CHAPTERS = {
    "rules": "",
    "rows": "rules",
    "forests": "rules rows",
    "blackbox": "rules rows forests",
    "fab": "rules rows",
    "search": "rules rows fab",
    "models": "rules rows forests fab search",
    "metatree": "rules rows forests fab",
    "proxy": "rules rows forests blackbox fab",
    "show": "rules rows",
    "bench": None,
}
# Modules outside the chapters import from all chapters but bench, and from each other as listed.
FRONT = set(CHAPTERS) - {"bench"}
ON_TOP = {
    "explorer": {"change"},
    "files": {"terminal"},
    "commands": {"terminal", "files", "explanation", "reporting"},
    "cli": {"terminal", "commands"},
}
LIBRARY = set("rules rows forests fab search metatree models proxy blackbox".split())
MOST_ARROWS = 68

EAGER = set(
    "numpy scipy sklearn joblib threadpoolctl".split()
)  # scikit-learn requires the last two
# Imported inside functions only
LAZY = set(
    "jinja2 markupsafe matplotlib ipywidgets IPython pandas xgboost lightgbm catboost stochtree".split()
)
LAZY |= {"PIL"}  # matplotlib requires it
LAZY |= {"dask", "distributed", "pyarrow", "narwhals"}
LAZY |= {"tqdm", "lime", "interpret", "lineartree", "pygam", "imodels", "bayesml"}  # the peers

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("_"))


class Import(NamedTuple):
    """An import of a module: a module of the package (`fab.foba`) or a package of another project."""

    name: str
    is_ours: bool
    is_at_top: bool


def dotted(path):
    """Return the name of a module within the package: `fab.foba`, or `cli` on top."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def nodes_of(path):
    """Return all nodes of the syntax tree of a module, the module first."""
    return nodes(path.read_text(encoding="utf-8"))


def chapter_of(module):
    """Return the chapter of a module, or the module itself if it is in none."""
    return module.split(".")[0]


def floor_of(module):
    """Return the floor of a module: library, application or bench."""
    chapter = chapter_of(module)
    if chapter == "bench":
        return "bench"
    return "library" if chapter in LIBRARY else "application"


@cache
def imports_of(path):
    """Return the imports of a module."""
    functions = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]
    inside = {line for node in functions for line in range(node.lineno, node.end_lineno + 1)}
    package = ["fabinterp", *path.relative_to(PACKAGE).parent.parts]
    return [
        imported(name, node.lineno not in inside)
        for node in nodes_of(path)
        for name in imported_names(node, package)
        if name != "fabinterp"
    ]


def imported(name, is_at_top):
    """Return the import of an absolute name."""
    first, _, rest = name.partition(".")
    if first != "fabinterp":
        return Import(first, False, is_at_top)
    return Import(rest, True, is_at_top)


def imported_names(node, package):
    """Return the absolute names of the modules that a statement in a module of a package imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package[: len(package) + 1 - node.level] if node.level else []
    name = ".".join([*base, *([node.module] if node.module else [])])
    folder = ROOT / name.replace(".", "/")
    if name.split(".")[0] != "fabinterp" or not folder.is_dir():
        return [name]
    modules = [module_of(name, alias.name) for alias in node.names]
    return [module for module in modules if module]


def module_of(package, name):
    """Return the module that an import of a name from a package of ours loads, None if it is none."""
    path = ROOT / package.replace(".", "/") / name
    if path.is_dir() or path.with_suffix(".py").exists():
        return f"{package}.{name}"
    public = fabinterp._MODULES.get(name) if package == "fabinterp" else None
    return f"fabinterp.{public}" if public else None


def module_graph():
    """Return the modules of the package that each module imports."""
    return {
        dotted(path): {one.name for one in imports_of(path) if one.is_ours} - {dotted(path)}
        for path in MODULES
    }


def reachable(graph, start):
    """Return all modules that a module imports, directly or through others."""
    reached = set()
    new = set(graph.get(start, ()))
    while new:
        reached |= new
        new = {name for module in new for name in graph.get(module, ())} - reached
    return reached


def cyclic_imports(graph):
    """Return the imports that are part of a cycle, as `importer -> imported`."""
    paths = {module: reachable(graph, module) for module in graph}
    return {
        f"{module} -> {name}"
        for module, names in graph.items()
        for name in names
        if module in paths.get(name, ())
    }


def upward_imports(graph):
    """Return the imports of the application by the library, and of bench by anything outside it."""
    rank = {"library": 0, "application": 1, "bench": 2}
    return {
        f"{module} -> {name}"
        for module, names in graph.items()
        for name in names
        if rank[floor_of(module)] < rank[floor_of(name)]
        and (floor_of(name) == "bench" or floor_of(module) == "library")
    }


def compare_with_known(kind, imports, known):
    """Yield the imports of a kind that are not listed as known, and the listed ones that are gone."""
    file = "tests/frame/budgets.toml"
    for arrow in sorted(imports - set(known)):
        importer = f"fabinterp/{arrow.split()[0].replace('.', '/')}.py"
        yield Problem(importer, f"{kind} import {arrow}", "move the code that both modules need")
    for arrow in sorted(set(known) - imports):
        yield Problem(file, f"{kind} import {arrow} no longer exists", "remove it from the list")


def allowed_chapters(module):
    """Return the chapters, and the modules outside them, that a module may import from."""
    chapter = chapter_of(module)
    if chapter not in CHAPTERS:
        return FRONT | ON_TOP.get(chapter, set())
    if CHAPTERS[chapter] is None:
        return set(CHAPTERS)
    return {chapter, *CHAPTERS[chapter].split()}


def chapter_imports():
    """Yield imports against the arrows between chapters; those of bench are upward imports."""
    for path in MODULES:
        module = dotted(path)
        allowed = allowed_chapters(module) | {"bench"}
        for one in imports_of(path):
            if one.is_ours and chapter_of(one.name) not in allowed:
                remedy = "see CHAPTERS and ON_TOP in tests/frame/imports.py"
                yield problem(path, f"{module} must not import {one.name}", remedy)


def number_of_arrows():
    """Yield a problem if too many pairs of chapters import from each other."""
    pairs = {
        (chapter_of(module), chapter_of(name))
        for module, names in module_graph().items()
        for name in names
    }
    count = len([pair for pair in pairs if len(set(pair)) == 2])
    if count > MOST_ARROWS:
        message = f"{count} pairs of chapters import from each other, at most {MOST_ARROWS}"
        yield Problem("fabinterp", message, "import less")


def third_party_imports():
    """Yield imports of packages that are not required, or required only inside functions."""
    for path in MODULES:
        at_top = EAGER | ({"pandas"} if floor_of(dotted(path)) == "bench" else set())
        for one in imports_of(path):
            allowed = at_top if one.is_at_top else EAGER | LAZY
            if not one.is_ours and one.name not in allowed | sys.stdlib_module_names:
                place = "at the top" if one.is_at_top else "in a function"
                remedy = "import it inside the function that uses it" if one.is_at_top else ""
                yield problem(path, f"imports {one.name} {place}", remedy)


def arrows_in_contributing():
    """Yield a problem if the table of chapters in CONTRIBUTING.md has other arrows."""
    path = ROOT / "CONTRIBUTING.md"
    rows = re.findall(r"^\| `(\w+)/` \| .*? \| (.*?) \|$", path.read_text(encoding="utf-8"), re.M)
    listed = {name: None if "all" in to else set(re.findall(r"`(\w+)`", to)) for name, to in rows}
    for name in sorted(listed.keys() | CHAPTERS.keys()):
        allowed = CHAPTERS.get(name, "")
        expected = allowed if allowed is None else set(allowed.split())
        if name not in listed or name not in CHAPTERS or listed[name] != expected:
            remedy = "give it the arrows of CHAPTERS in tests/frame/imports.py"
            yield problem(path, f"the row of {name}/ in the table of chapters differs", remedy)


CHECKS = [chapter_imports, number_of_arrows, third_party_imports, arrows_in_contributing]
