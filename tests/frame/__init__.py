"""Paths, notebooks and problems: what the scripts of this folder and the tests share."""

import ast
import json
import re
import shutil
import subprocess
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
NBS = ROOT / "nbs"
PACKAGE = ROOT / "fabinterp"
METHOD_CHAPTERS = ("fab", "search", "models", "metatree", "blackbox", "proxy")
UNTRACKED = shutil.ignore_patterns(
    ".git", ".venv", ".oldest", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".hypothesis",
    "*.egg-info", "_docs", "_proc", "build", "dist", "*.so", "_kernels.c",
)  # fmt: skip


class Problem(NamedTuple):
    """A line of output of the lint script; file: below the root."""

    file: str
    message: str
    remedy: str = ""
    cell: str = ""

    def __str__(self):
        place = f"{self.file}, cell {self.cell}" if self.cell else self.file
        return f"{place}: {self.message}" + (f"; {self.remedy}" if self.remedy else "")


def problem(path, message, remedy="", cell=""):
    """Return the problem of a file, named by its path below the root."""
    file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return Problem(file, message, remedy, cell)


class Cell(NamedTuple):
    """A cell of a notebook, its source in one piece."""

    id: str
    cell_type: str
    source: str
    outputs: list
    metadata: dict

    @property
    def is_code(self):
        """Whether it is a cell of code."""
        return self.cell_type == "code"

    @property
    def is_prose(self):
        """Whether it is a cell of Markdown."""
        return self.cell_type == "markdown"

    @property
    def is_exported(self):
        """Whether it goes into a module."""
        return self.is_code and bool(re.search(r"^#\| *exporti?s?\b", self.source, re.M))


def read_cells(path):
    """Return the cells of a notebook; a file that has not changed is parsed once."""
    return _read_notebook(path, path.stat().st_mtime_ns)[0]


def read_metadata(path):
    """Return the metadata of a notebook."""
    return _read_notebook(path, path.stat().st_mtime_ns)[1]


@cache
def _read_notebook(path, _modified):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [
        Cell(
            cell.get("id", ""),
            cell["cell_type"],
            "".join(cell["source"]),
            cell.get("outputs", []),
            cell.get("metadata", {}),
        )
        for cell in notebook["cells"]
    ]
    return cells, notebook["metadata"]


def prose(path):
    """Return the cells of Markdown of a notebook."""
    return [cell for cell in read_cells(path) if cell.is_prose]


def code(path):
    """Return the cells of code of a notebook."""
    return [cell for cell in read_cells(path) if cell.is_code]


@cache
def parse(source):
    """Return the syntax tree of a source, parsed once."""
    return ast.parse(source)


@cache
def nodes(source):
    """Return all nodes of the syntax tree of a source."""
    return list(ast.walk(parse(source)))


def exports_to(path):
    """Return the module that a notebook is the source of, None if there is none."""
    matches = [re.match(r"#\| *default_exp +([\w.]+)", cell.source) for cell in code(path)]
    return next((match[1] for match in matches if match), None)


def settings():
    """Return the metadata of settings.ini."""
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def pages(nbs=NBS):
    """Return the notebooks below a folder; what tools leave there (`_proc`, `.ipynb_checkpoints`) is none."""
    return sorted(
        path
        for path in nbs.rglob("*.ipynb")
        if not any(part.startswith((".", "_")) for part in path.relative_to(nbs).parts)
    )


PATHS = "Reading paths"


def contents(nbs=NBS):
    """Return the sidebar as _quarto.yml has it."""
    return yaml.safe_load((nbs / "_quarto.yml").read_text())["website"]["sidebar"]["contents"]


def sidebar(nbs=NBS):
    """Return the parts of the sidebar, in its order: pairs of a title and the pages listed under it."""
    return [
        ("", [part]) if isinstance(part, str) else (part["section"], listed(part["contents"]))
        for part in chapters(contents(nbs))
    ]


def chapters(parts):
    """Return the parts of the sidebar that list each page once: all but the reading paths."""
    return [part for part in parts if isinstance(part, str) or part["section"] != PATHS]


def reading_paths(nbs=NBS):
    """Return the reading paths of the sidebar: the pages of each by its title."""
    (part,) = (part for part in contents(nbs) if part not in chapters([part]))
    return {path["section"]: path["contents"] for path in part["contents"]}


def listed(parts):
    """Return the pages below entries of the sidebar, in its order."""
    return [
        page
        for part in parts
        for page in ([part] if isinstance(part, str) else listed(part["contents"]))
    ]


def notebooks():
    """Return the notebooks in reading order, which is the sidebar's; those it leaves out come last."""
    ordered = [
        NBS / page for _, section in sidebar() for page in section if page.endswith(".ipynb")
    ]
    return [path for path in ordered if path.exists()] + sorted(set(pages()) - set(ordered))


def page_stem(path):
    """Return the name of a page: that of its notebook without the digits that order it in its chapter."""
    return re.sub(r"^\d\d_", "", path.stem)


def short_title(source):
    """Return the title that a page's first cell begins with, up to a colon: short enough for tables and lists."""
    return re.match(r"# ([^:\n]+)", source)[1].strip()


def copy_tree(target):
    """Copy the tree without what is built, and return the copy."""
    return Path(shutil.copytree(ROOT, target, ignore=UNTRACKED, symlinks=True))


def committed_files():
    """Return the files that git holds or would hold; without git, all but what is built."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(git, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode == 0 and listing.stdout:
        return [
            ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()
        ]
    files = []
    folders = [ROOT]
    while folders:
        names = list(folders.pop().iterdir())
        names = [path for path in names if path.name not in UNTRACKED("", [path.name])]
        files += [path for path in names if path.is_file()]
        folders += [path for path in names if path.is_dir() and not path.is_symlink()]
    return files


def prose_notebook(cells):
    """Return the text of a notebook of pairs (id, prose), as `nbdev_clean` leaves it."""
    notebook = {
        "cells": [
            {
                "cell_type": "markdown",
                "id": name,
                "metadata": {},
                "source": text.splitlines(keepends=True),
            }
            for name, text in cells
        ],
        "metadata": {
            "kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
