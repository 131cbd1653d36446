"""What the frame's own scripts and tests share: where things are, and how to copy the tree."""

import json
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
NBS = ROOT / "nbs"
UNTRACKED = shutil.ignore_patterns(
    ".git", ".venv", ".oldest", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".hypothesis",
    "*.egg-info", "_docs", "_proc", "build", "dist",
)  # fmt: skip


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


def sidebar(nbs=NBS):
    """Return the parts of the sidebar, in its order: pairs of a title and the pages listed under it."""
    contents = yaml.safe_load((nbs / "_quarto.yml").read_text())["website"]["sidebar"]["contents"]
    return [
        ("", [part]) if isinstance(part, str) else (part["section"], _listed(part))
        for part in contents
    ]


def _listed(part):
    """Return the pages below an entry of the sidebar."""
    if isinstance(part, str):
        return [part]
    return [page for inner in part["contents"] for page in _listed(inner)]


def notebooks():
    """Return the notebooks in reading order, which is the sidebar's; those it leaves out come last."""
    listed = [NBS / page for _, section in sidebar() for page in section if page.endswith(".ipynb")]
    return [path for path in listed if path.exists()] + sorted(set(pages()) - set(listed))


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
    found = []
    folders = [ROOT]
    while folders:
        names = list(folders.pop().iterdir())
        names = [path for path in names if path.name not in UNTRACKED("", [path.name])]
        found += [path for path in names if path.is_file()]
        folders += [path for path in names if path.is_dir() and not path.is_symlink()]
    return found


def prose_notebook(cells):
    """Return the text of a notebook of pairs (id, prose), as `nbdev_clean` leaves it."""
    found = {
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
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
