"""What the frame's own scripts and tests share: where things are, and how to copy the tree."""

import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
NBS = ROOT / "nbs"
UNTRACKED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".hypothesis", "*.egg-info",
    "_docs", "_proc", "build", "dist",
)  # fmt: skip


def settings():
    """Return the metadata of settings.ini."""
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def notebooks():
    """Return the notebooks in reading order: index first, then by number."""
    return sorted(NBS.glob("*.ipynb"), key=lambda path: (path.stem != "index", path.name))


def copy_tree(target):
    """Copy the tree without what is built, and return the copy."""
    return Path(shutil.copytree(ROOT, target, ignore=UNTRACKED, symlinks=True))


def committed_files():
    """Return the files that git holds or would hold; without git, all but what is built."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(git, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode == 0 and listing.stdout:
        return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]
    found, folders = [], [ROOT]
    while folders:
        names = list(folders.pop().iterdir())
        names = [path for path in names if path.name not in UNTRACKED("", [path.name])]
        found += [path for path in names if path.is_file()]
        folders += [path for path in names if path.is_dir() and not path.is_symlink()]
    return found
