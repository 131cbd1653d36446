"""The frame holds: notebooks, modules, README, pages in step; imports along the arrows; a quick `import fabinterp`."""

import ast
import os
import re
import subprocess
import sys

import nbformat
import pytest
from frame import ROOT, committed_files, copy_tree, notebooks, readme, settings

PACKAGE = ROOT / "fabinterp"
MODULES = sorted(path for path in PACKAGE.glob("*.py") if not path.name.startswith("_"))

# What a module of this package may import from it; DESIGN's arrows, and no others. None: anything.
ARROWS = {
    "rules": "",
    "blocks": "",
    "chunks": "rules tables blocks",
    "fab": "blocks",
    "foba": "blocks",
    "spline": "",
    "bins": "rules",
    "tables": "rules",
    "ensembles": "rules bins",
    "boxes": "rules bins",
    "gates": "rules blocks foba",
    "experts": "blocks foba spline",
    "additive": "foba spline experts",
    "simplify": "rules bins tables blocks chunks fab experts ensembles boxes",
    "moves": "rules bins gates experts foba fab",
    "hme": "rules bins blocks fab gates experts",
    "piecewise": "rules bins tables blocks chunks fab gates experts moves hme",
    "planes": "foba gates moves",
    "oblique": "rules tables blocks fab foba spline gates experts additive hme moves piecewise planes",
    "conjugate": "",
    "prunings": "",
    "representative": "rules tables blocks chunks ensembles prunings",
    "belief": "rules tables blocks conjugate prunings representative",
    "metatree": "rules tables blocks chunks conjugate prunings representative belief",
    "reference": "rules tables",
    "prune": "rules ensembles",
    "proxy": "rules tables conjugate reference prune",
    "projection": "rules tables conjugate foba reference",
    "local": "rules tables reference prune",
    "stability": "rules tables ensembles",
    "explanation": "rules tables ensembles simplify reference proxy",
    "show": "rules",
    "pictures": "rules fab show",
    "explorer": "rules tables show",
    "reporting": "rules tables ensembles simplify reference show pictures",
    "cli": None,
    "datasets": None,
    "bench": None,
    "bench_rules": None,
    "bench_pieces": None,
    "bench_oblique": None,
    "bench_proxies": None,
    "bench_metatrees": None,
    "bench_cost": None,
    "bench_beyond": None,
}
EAGER = {
    "numpy",
    "scipy",
    "sklearn",
    "joblib",
    "threadpoolctl",
}  # the last two come with scikit-learn
# Imported inside functions only
LAZY = {
    "matplotlib",
    "ipywidgets",
    "IPython",
    "pandas",
    "xgboost",
    "lightgbm",
    "catboost",
    "stochtree",
}
LAZY |= {"dask", "distributed", "pyarrow"}
LAZY |= {"lime", "interpret", "lineartree", "pygam", "imodels", "bayesml"}  # the peers

named = pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)


def python(code, *arguments, timeout=240, **env):
    """Run Python code in a process of its own; return what it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    env.pop("IN_TEST", None)  # it would silence nbdev_export
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


def is_exported(cell):
    """Say whether a cell goes into a module."""
    return (
        cell.cell_type == "code" and re.search(r"^#\| *exporti?s?\b", cell.source, re.M) is not None
    )


def holds_imports_only(cell):
    """Say whether a cell has no statement but imports."""
    return all(
        isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(cell.source).body
    )


# Notebooks, modules and README


def contents(folder):
    """Return the bytes of a folder's modules and notebooks by name."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.suffix in {".py", ".ipynb"}
    }


def test_export_and_clean_change_nothing(tmp_path):
    tree = copy_tree(tmp_path / "tree")
    script = str(tree / "tests" / "frame" / "notebooks.py")
    code = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    python(code, script, "export", PYTHONPATH=str(tree))
    for folder in ("fabinterp", "nbs"):
        before = contents(ROOT / folder)
        after = contents(tree / folder)
        changed = sorted(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        )
        assert not changed, f"run `make export`: it changes {folder}/ {', '.join(changed)}"


def test_every_module_has_its_notebook():
    exported = {
        match[1]
        for path in notebooks()
        for cell in nbformat.read(path, 4).cells
        if (match := re.match(r"#\| *default_exp +(\w+)", cell.source))
    }
    assert {path.stem for path in MODULES} == exported


def test_readme_is_the_index():
    assert (ROOT / "README.md").read_bytes() == readme.readme().encode(), "run `make export`"


def test_readme_opens_with_the_two_commands():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:20])
    assert "make demo" in first_screen and "make test" in first_screen


@named
def test_notebook_is_clean_and_told_in_prose(path):
    notebook = nbformat.read(path, 4)
    cells = notebook.cells
    assert "widgets" not in notebook.metadata
    assert len({cell.id for cell in cells}) == len(cells)
    for cell in cells:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", cell.id), (
            f"{cell.id}: ids are lower case, digits and hyphens"
        )
        assert not re.search(r"^\s*(from \S+ import \*|@patch\b)", cell.source, re.M), (
            f"{cell.id}: import * or @patch"
        )
        for out in cell.get("outputs", []):
            assert out.output_type != "error", f"{cell.id} stores an error"
            assert not any("widget" in kind for kind in out.get("data", {})), (
                f"{cell.id} stores a widget's state"
            )
    claim = re.fullmatch(r"# .+\n+> .+(\n+- .+)*\n*", cells[0].source)
    assert claim, (
        "the first cell is `# Title` and `> claim`, nothing else: nbdev drops the rest of it from the pages"
    )
    exported = [cell for cell in cells if is_exported(cell)]
    assert len(exported) <= sum(cell.cell_type == "markdown" for cell in cells), (
        "fewer prose cells than export cells"
    )
    for cell in exported:
        lines = [line for line in cell.source.splitlines() if not line.startswith("#|")]
        assert len(lines) <= 60, f"{cell.id} exports {len(lines)} lines: at most 60"
        imports = [
            node
            for node in ast.parse(cell.source).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert not imports or holds_imports_only(cell), (
            f"{cell.id}: imports have an export cell of their own"
        )


# Arrows


def imports_of(path):
    """Yield (module or package, is it ours, is it at the top) for every import of a file."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        top = id(node) not in inside
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level or name == "fabinterp":
                own = [name] if node.level and name else [alias.name for alias in node.names]
                yield from ((part.split(".")[0], True, top) for part in own)
            elif name.startswith("fabinterp."):
                yield name.split(".")[1], True, top
            else:
                yield name.split(".")[0], False, top
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                yield (
                    (rest[0], True, top)
                    if first == "fabinterp" and rest
                    else (first, first == "fabinterp", top)
                )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_arrows(path):
    assert path.stem in ARROWS, (
        f"{path.stem} is a new room: give it its arrows, here and in CONTRIBUTING.md"
    )
    allowed = None if ARROWS[path.stem] is None else set(ARROWS[path.stem].split())
    for name, ours, top in imports_of(path):
        if ours:
            assert allowed is None or name in allowed, (
                f"{path.stem} → {name} is no arrow of this house"
            )
        elif name not in sys.stdlib_module_names:
            where = "at the top" if top else "in a function"
            assert name in (EAGER if top else EAGER | LAZY), f"{path.stem} imports {name} {where}"


def test_contributing_tells_the_same_arrows():
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    words = re.compile(r"`(\w+)`").findall
    told = {
        name: None if "anything" in to else set(words(to))
        for names, to in rows
        for name in words(names)
    }
    assert told == {name: None if to is None else set(to.split()) for name, to in ARROWS.items()}


# The package


def test_import_is_light():
    before = "import sys, sklearn.base; before = set(sys.modules); import fabinterp"
    assert not LAZY & set(python(f"{before}; print(*set(sys.modules) - before)").split())


@pytest.mark.slow
def test_import_is_quick():
    """The package imports in no more than a tenth of the time scikit-learn's base takes."""
    code = (
        "import time; start = time.perf_counter(); import sklearn.base; middle = time.perf_counter()\n"
        "import fabinterp; print(middle - start, time.perf_counter() - middle)"
    )
    runs = [[float(seconds) for seconds in python(code).split()] for _ in range(3)]
    assert min(ours / theirs for theirs, ours in runs) < 0.1


# Imports modules, each in a fork of a process that holds what every one of them may load
IMPORTS = """
import importlib, os, sys
import numpy, scipy, sklearn.base
for name in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        importlib.import_module(name)
        print(name, *sys.modules)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.fixture(scope="module")
def loaded_by():
    """The modules that are loaded after each module of the package was imported, by its name."""
    names = [f"fabinterp.{path.stem}" for path in MODULES]
    lines = [line.split() for line in python(IMPORTS, *names).splitlines()]
    return {name: set(loaded) for name, *loaded in lines}


@pytest.mark.xdist_group("imports")
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_module_loads_what_only_pictures_and_frames_need(path, loaded_by):
    loaded = loaded_by[f"fabinterp.{path.stem}"]
    assert f"fabinterp.{path.stem}" in loaded
    assert (
        not LAZY - {"pandas", "pyarrow"} & loaded
    )  # scikit-learn itself loads pandas where it is installed


def test_public_names_load_when_asked_for():
    import fabinterp

    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    checked = {alias.name: node.module for node in imports for alias in node.names}
    assert checked == fabinterp._MODULES, (
        "editors read the imports under TYPE_CHECKING, Python reads _MODULES"
    )
    assert sorted(fabinterp._MODULES) == sorted(fabinterp.__all__)
    assert set(fabinterp.__all__) <= set(dir(fabinterp))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fabinterp.nonsense


@pytest.mark.parametrize("name", sorted(__import__("fabinterp").__all__))
def test_public_name(name):
    import fabinterp

    assert getattr(fabinterp, name).__module__ == f"fabinterp.{fabinterp._MODULES[name]}"
    assert getattr(fabinterp, name).__doc__


def test_version_is_that_of_settings():
    import fabinterp

    assert fabinterp.__version__ == settings()["version"]
    assert f"version: {fabinterp.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {fabinterp.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_no_machine_path_is_committed():
    folders = "work|tmp|home|root|Users|opt|mnt|srv|private|usr/lib|usr/local"
    pattern = re.compile(rf"(?<![\w./~+=-])/({folders})\b|site-packages/")
    for path in committed_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.name == "test_frame.py":
            text = text.replace("|site-packages/", "")
        found = pattern.search(text)
        assert not found, (
            f"{path.relative_to(ROOT)}: {text[max(0, found.start() - 40) : found.end() + 40]!r}"
        )
