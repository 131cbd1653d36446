"""Checks of the modules: names, public names, one statement a line, parameters in docstrings."""

import ast
import inspect
import re
from collections import Counter
from pathlib import Path

import fabinterp
from fabinterp import plot
from frame import PACKAGE, ROOT, Problem, code, exports_to, notebooks, problem
from frame.imports import CHAPTERS, MODULES, dotted, nodes_of
from frame.names import PUBLIC, public

MOST_REPEATED_NAMES = 20
MOST_PACKED_LINES = 6  # of 1000
INIT = PACKAGE / "__init__.py"


def modules_and_notebooks():
    """Yield modules without a notebook, and notebooks without their module."""
    exported = Counter(exports_to(path) for path in notebooks())
    exported.pop(None, None)
    modules = {dotted(path) for path in MODULES}
    for name in sorted(modules - exported.keys()):
        yield Problem(f"fabinterp/{name.replace('.', '/')}.py", "has no notebook", "remove it")
    for name in sorted(exported.keys() - modules):
        yield Problem("nbs", f"the module {name} does not exist", "run `make export`")
    for name in sorted(name for name, count in exported.items() if count > 1):
        yield Problem("nbs", f"{exported[name]} notebooks write {name}", "keep one")


def names_of_modules():
    """Yield modules and chapters that have the name of a public function or class."""
    names = {path.stem for path in MODULES} | set(CHAPTERS)
    for name in sorted(names & PUBLIC.keys()):
        yield Problem("fabinterp", f"the module {name} has the name of a public one", "rename it")


def words_in(text):
    """Return the words of a source."""
    return set(re.findall(r"\w+", text))


def exported_names(path):
    """Return `__all__` of a module."""
    statements = [node for node in nodes_of(path)[0].body if isinstance(node, ast.Assign)]
    lists = [node.value.elts for node in statements if ast.unparse(node.targets[0]) == "__all__"]
    return [element.value for elements in lists for element in elements]


def unused_names():
    """Yield exported names that no other module, page or test uses."""
    modules = {dotted(path): words_in(path.read_text(encoding="utf-8")) for path in MODULES}
    texts = {
        path: "\n".join(cell.source for cell in code(path) if not cell.is_exported)
        for path in notebooks()
    }
    on_pages = [(exports_to(path), words_in(text)) for path, text in texts.items()]
    tests = words_in("\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py")))
    everywhere = tests | words_in(INIT.read_text(encoding="utf-8"))
    for path in MODULES:
        own = dotted(path)
        others = [words for name, words in [*modules.items(), *on_pages] if name != own]
        for name in sorted(set(exported_names(path)) - everywhere.union(*others)):
            message = f"exports {name}, which nothing else uses"
            yield problem(path, message, "mark its cell `#| exporti` or remove it")


def repeated_names():
    """Yield public functions and classes that two modules define, and too many private ones."""
    kinds = ast.FunctionDef | ast.ClassDef
    count = Counter(
        node.name for path in MODULES for node in nodes_of(path)[0].body if isinstance(node, kinds)
    )
    repeated = [name for name, n in count.items() if n > 1]
    for name in sorted(name for name in repeated if not name.startswith("_")):
        yield Problem("fabinterp", f"{count[name]} modules define {name}", "rename one")
    if len(repeated) > MOST_REPEATED_NAMES:
        message = f"{len(repeated)} names have several definitions, at most {MOST_REPEATED_NAMES}"
        yield Problem("fabinterp", message, "rename or merge some")


def packed_lines():
    """Yield a problem if too many lines assign several values at once."""
    n_packed = sum(is_packed(node) for path in MODULES for node in nodes_of(path))
    n_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    if n_packed > MOST_PACKED_LINES * n_lines / 1000:
        message = f"{n_packed} lines assign several values, {MOST_PACKED_LINES} of 1000 may"
        yield Problem("fabinterp", message, "write one statement a line")


def is_packed(node):
    """Return whether a statement assigns several values to several names."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def public_names():
    """Yield public names on which the lists of a package differ, and plots that `plot` lacks."""
    for package in (fabinterp, plot):
        path = Path(package.__file__)
        listed = package._MODULES
        differing = {name for name, _ in listed.items() ^ typed_names(path)}
        for name in sorted(differing | (listed.keys() ^ set(package.__all__) - {"plot"})):
            message = f"TYPE_CHECKING, _MODULES and __all__ differ on {name}"
            yield problem(path, message, "list it in all three, with one module")
    plots = {name for path in MODULES for name in exported_names(path) if name.startswith("plot_")}
    for name in sorted(plots ^ {f"plot_{name}" for name in plot._MODULES}):
        yield Problem("fabinterp/plot/__init__.py", f"does not agree on {name}", "list each plot")


def typed_names(path):
    """Return the names that a module imports for type checkers, each with its module."""
    imports = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
    return {
        (alias.asname or alias.name, node.module)
        for node in imports
        for alias in node.names
        if node.level and node.module
    }


def chapters_of_the_api():
    """Yield chapters with public names that have no page in the API, and pages without names."""
    from frame import api

    chapters = {api.chapter_of(name) for name in PUBLIC}
    for name in sorted(chapters ^ api.CHAPTERS.keys()):
        message = f"the chapter {name} has public names or a page, not both"
        yield Problem("tests/frame/api.py", message, "correct CHAPTERS")


def sections(thing):
    """Return the numpydoc sections of a docstring: lines by heading."""
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.M)
    return dict(zip(parts[1::2], map(str.splitlines, parts[2::2]), strict=True))


def described(lines):
    """Return the names that begin the lines of a section."""
    heads = [line.split(" : ") for line in lines if line and not line.startswith(" ")]
    return [name.strip(" *") for names, _ in heads for name in names.split(",")]


def parameters_in_docstrings():
    """Yield public names whose docstring describes other parameters, or in another order."""
    for name in PUBLIC:
        yield from parameters_of(name, public(name))


def parameters_of(name, thing):
    """Yield the problems of one docstring."""
    file = f"fabinterp/{thing.__module__.removeprefix('fabinterp.').replace('.', '/')}.py"
    parts = sections(thing)
    parameters = list(inspect.signature(thing).parameters)
    if described(parts.get("Parameters", [])) != parameters:
        message = f"the docstring of {name} describes other parameters or in another order"
        yield Problem(file, message, f"describe {', '.join(parameters)}")
    if not inspect.isclass(thing) and not parts.get("Returns"):
        yield Problem(file, f"the docstring of {name} has no section Returns", "add it")


CHECKS = [
    modules_and_notebooks,
    names_of_modules,
    unused_names,
    repeated_names,
    packed_lines,
    public_names,
    chapters_of_the_api,
    parameters_in_docstrings,
]
