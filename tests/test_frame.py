"""The frame holds: notebooks, modules, README, pages in step; imports along the arrows; a quick `import fabinterp`."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter

import nbformat
import pytest
from frame import (
    NBS,
    ROOT,
    committed_files,
    copy_tree,
    notebooks,
    page_stem,
    pages,
    readme,
    settings,
)
from shared.notebooks import code_cells

PACKAGE = ROOT / "fabinterp"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("_"))

# Which chapters the modules of a chapter may import from, beside their own. None: all of them.
CHAPTERS = {
    "rules": "",
    "rows": "rules",
    "forests": "rules rows",
    "fab": "rules rows",
    "search": "rules rows fab",
    "models": "rules rows forests fab search",
    "metatree": "rules rows forests fab",
    "proxy": "rules rows forests fab",
    "show": "rules rows",
    "bench": None,
}
FRONT = set(CHAPTERS) - {"bench"}  # what the modules on top, which are no chapter, may import
# And which of them may import which others of them.
ON_TOP = {
    "explorer": {"change"},
    "files": {"terminal"},
    "commands": {"terminal", "files", "explanation", "reporting"},
    "cli": {"terminal", "commands"},
}
EAGER = set("numpy scipy sklearn joblib threadpoolctl".split())  # scikit-learn brings the last two
# Imported inside functions only
LAZY = set("matplotlib ipywidgets IPython pandas xgboost lightgbm catboost stochtree".split())
LAZY |= {"PIL"}  # matplotlib requires it
LAZY |= {"dask", "distributed", "pyarrow", "narwhals"}
LAZY |= {"tqdm", "lime", "interpret", "lineartree", "pygam", "imodels", "bayesml"}  # the peers

named = pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)


def dotted(path):
    """Return the name of a module within the package: `fab.foba`, or `cli` on top."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


each_module = pytest.mark.parametrize("path", MODULES, ids=dotted)


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
        cell["cell_type"] == "code"
        and re.search(r"^#\| *exporti?s?\b", cell["source"], re.M) is not None
    )


def holds_imports_only(cell):
    """Say whether a cell has no statement but imports."""
    return all(
        isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(cell.source).body
    )


# Notebooks, modules and README


def contents(folder):
    """Return the bytes of the modules and notebooks below a folder by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in {".py", ".ipynb"} and ".ipynb_checkpoints" not in path.parts
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


def exports_to(path):
    """Return the module that a notebook is the source of, or None."""
    found = [re.match(r"#\| *default_exp +([\w.]+)", cell["source"]) for cell in code_cells(path)]
    return next((match[1] for match in found if match), None)


def test_every_module_has_its_notebook():
    exported = [module for path in notebooks() if (module := exports_to(path))]
    assert sorted(exported) == sorted(map(dotted, MODULES))


@named
def test_a_page_bears_the_name_of_its_module(path):
    module = exports_to(path)
    chapter = path.relative_to(NBS).parent
    if chapter.name:
        assert re.match(r"\d\d_", path.stem), "two digits order the pages of a chapter"
    if module:
        assert module == ".".join([*chapter.parts, page_stem(path)])


def test_every_mention_of_a_page_is_a_link():
    stems = [re.escape(path.stem) for path in pages() if re.match(r"\d\d_", path.stem)]
    mention = re.compile(rf"(?<!\[)`(?:[a-z]+/)?(?:{'|'.join(stems)})`(?!\]\()")
    for path in pages():
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                found = [name for name in mention.findall(cell.source) if path.stem not in name]
                assert not found, f"{path.name}, {cell.id}"


def unlinked_mentions(text):
    """What a text says of *the page on* or *of* something without a link, up to the next mark."""
    named = re.compile(r"\b[Tt]he pages?\s+(?:on|of)\s+([^.,;:()\[\]]*)([\[\]]?)")
    general = re.compile(r"(this|all|a|an|the paper)\b")  # of this chapter, of a library
    return [
        " ".join(what.split())
        for what, link in named.findall(text)
        if not link and not general.match(what)
    ]


def test_every_page_that_is_named_by_its_subject_is_a_link():
    assert unlinked_mentions("See the page on signs, or\nthe pages of\nbudgets and trees.") == [
        "signs",
        "budgets and trees",
    ]
    assert not unlinked_mentions("The page on [signs](a.ipynb); the pages of the [part](b.ipynb).")
    assert not unlinked_mentions("the pages of this chapter, the page of a library")
    for path in pages():
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                assert not (found := unlinked_mentions(cell.source)), (path.name, cell.id, found)


def test_names_of_pages_are_unique():
    stems = [page_stem(path) for path in notebooks()]
    assert sorted(set(stems)) == sorted(stems)


def test_no_module_bears_the_name_of_a_public_one():
    import fabinterp

    names = {path.stem for path in MODULES} | set(CHAPTERS)
    assert not names & set(fabinterp.__all__)


def test_readme_is_the_index():
    assert (ROOT / "README.md").read_bytes() == readme.readme().encode(), "run `make export`"


def test_pictures_of_the_readme_are_those_of_the_index():
    stored = {path.name: path.read_bytes() for path in readme.IMAGES.iterdir()}
    assert stored == readme.pictures() and len(stored) == 2, "run `make export`"
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:20])
    assert all(f"(nbs/images/{name})" in first_screen for name in stored)


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
    """Yield (module or package, is it ours, is it at the top) for every import of a file.

    A module of ours is named from the package on, `fab.foba`.
    """
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    package = ["fabinterp", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree):
        top = id(node) not in inside
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            names = [".".join([*base, *([node.module] if node.module else [])])]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            yield (rest, True, top) if first == "fabinterp" else (first, False, top)


def chapter_of(module):
    """Return the chapter of a module, or the module itself where it stands on top."""
    return module.split(".")[0]


def chapters_of(path):
    """Return the chapters, and the modules on top, that a module may import from."""
    chapter = chapter_of(dotted(path))
    if chapter not in CHAPTERS:
        return FRONT | ON_TOP.get(chapter, set())
    if CHAPTERS[chapter] is None:
        return set(CHAPTERS)
    return {chapter, *CHAPTERS[chapter].split()}


@each_module
def test_arrows(path):
    allowed = chapters_of(path)
    for name, ours, top in imports_of(path):
        if ours and name:
            measures = dotted(path) == "commands" and not top  # `reproduce` loads what it runs
            allowed_here = allowed | ({"bench"} if measures else set())
            chapter = chapter_of(name)
            assert chapter in allowed_here, f"{dotted(path)} → {name} is no arrow of this house"
        elif not ours and name not in sys.stdlib_module_names:
            where = "at the top" if top else "in a function"
            on_frames = {"pandas"} if chapter_of(dotted(path)) == "bench" else set()
            assert name in (EAGER | on_frames if top else EAGER | LAZY), (
                f"{dotted(path)} imports {name} {where}"
            )


def test_no_circle():
    graph = {
        dotted(path): {name for name, ours, top in imports_of(path) if ours and name and top}
        for path in MODULES
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_arrows_between_chapters_are_few():
    arrows = {
        (chapter_of(dotted(path)), chapter_of(name))
        for path in MODULES
        for name, ours, _ in imports_of(path)
        if ours and name
    }
    assert len({(one, other) for one, other in arrows if one != other}) <= 60


def test_contributing_tells_the_same_arrows():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \| .*? \| (.*?) \|$", text, re.M)
    told = {name: None if "all" in to else set(re.findall(r"`(\w+)`", to)) for name, to in rows}
    assert told == {name: None if to is None else set(to.split()) for name, to in CHAPTERS.items()}


def words_in(text):
    """Return the words of a source."""
    return set(re.findall(r"\w+", text))


def page_code(path):
    """Return what a page runs beside the code that it exports."""
    return "\n".join(cell["source"] for cell in code_cells(path) if not is_exported(cell))


def exported_names(path):
    """Return `__all__` of a module."""
    statements = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    lists = [node.value.elts for node in statements if ast.unparse(node.targets[0]) == "__all__"]
    return [element.value for elements in lists for element in elements]


def test_every_exported_name_is_used_elsewhere():
    """By a module, a page or a test that is not its own; a helper is private."""
    modules = {dotted(path): words_in(path.read_text()) for path in MODULES}
    pages = {path: words_in(page_code(path)) for path in notebooks()}
    tests = [words_in(path.read_text()) for path in (ROOT / "tests").rglob("*.py")]
    top = words_in((PACKAGE / "__init__.py").read_text())
    for path in MODULES:
        own = dotted(path)
        others = [words for name, words in modules.items() if name != own]
        others += [words for page, words in pages.items() if exports_to(page) != own]
        used = top.union(*others, *tests)
        assert not set(exported_names(path)) - used, own


def defined_in(path):
    """Return the names of the functions and classes at the top of a module."""
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def test_a_name_means_one_thing():
    """A public function or class stands in one module only; some twenty private names may repeat."""
    count = Counter(name for path in MODULES for name in defined_in(path))
    twice = {name for name, times in count.items() if times > 1}
    assert not {name for name in twice if not name.startswith("_")}
    assert len(twice) <= 20


def packs(path):
    """Return how many assignments of a module pack several values into one line, and its lines."""
    text = path.read_text()
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    ]
    return len(found), len(text.splitlines())


def test_one_statement_a_line():
    found, lines = map(sum, zip(*map(packs, MODULES)))
    assert found <= 6 * lines / 1000, "`a, b = x, y` is for values that belong together"


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


def test_no_module_loads_what_only_pictures_and_frames_need():
    names = [f"fabinterp.{dotted(path)}" for path in MODULES]
    lines = [line.split() for line in python(IMPORTS, *names).splitlines()]
    loaded = {name: set(modules) for name, *modules in lines}
    heavy = LAZY - {
        "pandas",
        "pyarrow",
        "narwhals",
    }  # scikit-learn itself loads these where they are installed
    for name in names:
        assert name in loaded[name]
        assert not heavy & loaded[name], f"{name} loads {heavy & loaded[name]}"


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


def test_the_top_level_holds_what_is_meant_to_stand_there():
    meant = "settings.ini nbs fabinterp tests _quarto.yml README.md LICENSE CHANGELOG.md "
    meant += "CONTRIBUTING.md CITATION.cff MANIFEST.in Makefile pyproject.toml setup.py"
    found = {path.relative_to(ROOT).parts[0] for path in committed_files()}
    assert {name for name in found if not name.startswith(".")} == set(meant.split())


def test_no_large_file_is_committed():
    large = [path for path in committed_files() if path.stat().st_size > 2_000_000]
    assert not large
