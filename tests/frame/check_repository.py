"""Checks of the tree: the export, the README, versions, extras, paths and files."""

import contextlib
import io
import os
import re
import runpy
import tempfile
from pathlib import Path
from unittest import mock

import setuptools

from frame import (
    PACKAGE,
    ROOT,
    Problem,
    committed_files,
    copy_tree,
    pages,
    problem,
    prose,
    read_cells,
    readme,
    settings,
)
from frame.modules import write_modules

README = ROOT / "README.md"
LARGE = 2_000_000  # bytes
TOP_LEVEL = """settings.ini nbs fabinterp tests _quarto.yml README.md LICENSE CHANGELOG.md CONTRIBUTING.md
CITATION.cff MANIFEST.in Makefile pyproject.toml setup.py""".split()
MACHINE_FOLDERS = "work|tmp|home|root|Users|opt|mnt|srv|private|usr/lib|usr/local"
MACHINE_PATH = re.compile(rf"(?<![\w./~+=-])/({MACHINE_FOLDERS})\b|site[-]packages/")


def export():
    """Yield modules that differ from their notebooks, and notebooks that cleaning changes."""
    os.environ.pop("IN_TEST", None)  # nbdev exports nothing where it is set
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder) / "tree")
        with contextlib.chdir(tree), contextlib.redirect_stdout(io.StringIO()):
            write_modules(tree)
        for name in sorted(sources(ROOT) | sources(tree)):
            if content(ROOT / name) != content(tree / name):
                yield Problem(name, "is not what `make export` writes", "run `make export`")


def sources(root):
    """Return the names of the modules and notebooks of a tree."""
    files = [
        *(root / "fabinterp").rglob("*.py"),
        root / "fabinterp/_kernels.pyx",
        *pages(root / "nbs"),
    ]
    return {path.relative_to(root).as_posix() for path in files}


def content(path):
    """Return the bytes of a file, None if it does not exist."""
    return path.read_bytes() if path.exists() else None


def readme_and_pictures():
    """Yield files that differ from the index, and pictures that the index does not have."""
    files = readme.files()
    for path, expected in files.items():
        if content(path) != expected:
            yield problem(path, "is not what nbs/index.ipynb yields", "run `make export`")
    for path in sorted(set(readme.IMAGES.iterdir()) - files.keys()):
        yield problem(path, "nbs/index.ipynb does not have it", "remove it")


def first_screen():
    """Yield a problem if the first lines of the README lack its two commands or two pictures."""
    text = "\n".join(README.read_text(encoding="utf-8").splitlines()[:20])
    images = [f"(nbs/images/{path.name})" for path in sorted(readme.IMAGES.iterdir())]
    for words in ["make demo", "make test", *images]:
        if words not in text:
            yield problem(README, f"the first 20 lines lack {words}", "move it up")
    if len(images) != 2:
        yield problem(readme.IMAGES, f"{len(images)} pictures", "show two")


def blocks_of_the_readme():
    """Yield Python blocks of the README that no cell of its page runs."""
    sources = [cell.source for cell in read_cells(readme.INDEX) if cell.is_code]
    cells = {re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip() for source in sources}
    text = README.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        if block.strip() not in cells:
            message = f"no cell runs the block {block.strip().splitlines()[0]!r}"
            yield problem(README, message, "make it a cell of nbs/index.ipynb")


def links_of_the_long_description():
    """Yield links of the package's description that lead nowhere outside the repository."""
    own = settings()
    source = own["git_url"] + "/"
    for link in re.findall(r"\]\(([^)]+)\)", long_description()):
        kind, branch, path = ([*link.removeprefix(source).split("/", 2), "", ""])[:3]
        expected = "raw" if link.endswith(".png") else "blob"
        is_ours = link.startswith(source)
        exists = (ROOT / path).exists() and branch == own["branch"] and kind == expected
        if not re.match(r"https?://|#", link) or (is_ours and not exists):
            yield Problem("setup.py", f"the description has the link {link}", "correct it")


def long_description():
    """Return the README as setup.py gives it to setuptools."""
    with mock.patch.object(setuptools, "setup") as setup, contextlib.chdir(ROOT):
        runpy.run_path("setup.py")
    return setup.call_args.kwargs["long_description"]


def extras():
    """Yield extras of settings.ini that no page describes, and described ones that do not exist."""
    keys = [key for key in settings() if key.endswith("_requirements")]
    expected = {key.removesuffix("_requirements") for key in keys} - {"dev"}
    text = "\n".join(cell.source for path in pages() for cell in prose(path))
    listed = set(re.findall(r"^\| `\[(\w+)\]` \| .+ \|$", text, re.M))
    for name in sorted(expected - listed):
        yield Problem("settings.ini", f"no page has the extra {name}", "add it to the table")
    for name in sorted(listed - expected):
        yield Problem("nbs", f"the table of extras has {name}", "remove the row")


def version():
    """Yield files whose version differs from that of settings.ini."""
    number = settings()["version"]
    expected = {
        PACKAGE / "__init__.py": f'__version__ = "{number}"\n',
        ROOT / "CITATION.cff": f"version: {number}\n",
        ROOT / "CHANGELOG.md": f"## {number}",
    }
    for path, words in expected.items():
        if words not in path.read_text(encoding="utf-8"):
            yield problem(path, f"lacks {words.strip()!r}", "write the version of settings.ini")


def machine_paths():
    """Yield files that hold a path of one machine."""
    for path in committed_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        match = MACHINE_PATH.search(text)
        if match:
            around = text[max(0, match.start() - 40) : match.end() + 40]
            yield problem(path, f"holds the path of a machine: {around!r}", "remove it")


def top_level():
    """Yield files and folders at the top that are not meant to be there, or are missing."""
    names = {path.relative_to(ROOT).parts[0] for path in committed_files()}
    names = {name for name in names if not name.startswith(".")}
    for name in sorted(names - set(TOP_LEVEL)):
        yield Problem(name, "is not meant for the top level", "move it")
    for name in sorted(set(TOP_LEVEL) - names):
        yield Problem(name, "is missing", "restore it")


def large_files():
    """Yield files of more than two megabytes."""
    for path in committed_files():
        if path.stat().st_size > LARGE:
            yield problem(path, f"has {path.stat().st_size} bytes, at most {LARGE}", "shrink it")


CHECKS = [
    export,
    readme_and_pictures,
    first_screen,
    blocks_of_the_readme,
    links_of_the_long_description,
    extras,
    version,
    machine_paths,
    top_level,
    large_files,
]
