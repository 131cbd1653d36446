"""Every notebook runs: the short ones at the keyboard, the long ones and every long cell in the slow tier.

They run in a copy of `nbs` that has nothing beside it, as a reader may have it.
"""

import ast
import re
import shutil
import sys

import pytest
from frame import NBS, notebooks, settings
from shared.notebooks import FLAG, code_cells, run_notebook, yardstick_seconds

# What a notebook of the quick tier may take, in seconds of processor time on the machine the
# limits were set on; elsewhere as much more as a page in little takes: a machine that is slow at
# imports and pictures may be fast at arithmetic
BUDGET = 15
YARDSTICK_SECONDS = 0.8

# Measured: more than eight seconds of processor time that no flag on a few cells would save
LONG = set(
    """
    00_engine 01_moves 03_gates 06_hme 09_tree_fic 05_additive 00_rule_mixture 01_piecewise 03_oblique
    03_prices 04_signs 02_proxy_trees 05_stability 03_chunks explanation explorer 00_atlas 00_runner
    02_hara 03_eto 05_afrabandpey 02_gallery 03_choose_method 08_budget 09_adequacy 13_big_tables
    01_foba 04_experts 02_planes 06_regulator cli
    00_conjugate 01_prune 00_reference 04_choose_size 07_contributions
    """.split()
)


def has_long_cells(path):
    """Say whether nbdev leaves a cell of this notebook out unless it is told not to."""
    flagged = re.compile(rf"#\| *{FLAG}\b")
    return any(flagged.match(cell["source"]) for cell in code_cells(path))


def of(paths):
    """Ask a question of each of these notebooks."""
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the folder of pages, far from all that is beside it here."""
    ignored = shutil.ignore_patterns("_*", ".*", "__pycache__")
    return shutil.copytree(NBS, tmp_path_factory.mktemp("copied") / "nbs", ignore=ignored)


@of([path for path in notebooks() if path.stem not in LONG])
def test_notebook_runs(path, copied, tmp_path):
    error, seconds = run_notebook(copied / path.relative_to(NBS), slow=False, timeout=900)
    assert not error, error
    most = BUDGET
    if seconds > most:
        most *= max(1.0, yardstick_seconds(tmp_path) / YARDSTICK_SECONDS)
    said = f"{path.name} took {seconds:.0f} of {most:.0f} s of processor time"
    assert seconds <= most, f"{said}: flag long cells `#| slow`, or name it in LONG"


@pytest.mark.slow
@of([path for path in notebooks() if path.stem in LONG or has_long_cells(path)])
def test_notebook_runs_whole(path, copied):
    error, _ = run_notebook(copied / path.relative_to(NBS), slow=True, timeout=3600)
    assert not error, error


# Which module comes with which requirement of settings.ini, where the names differ
MODULES_OF = {
    "scikit-learn": {"sklearn", "joblib", "threadpoolctl"},
    "ipywidgets": {"ipywidgets", "IPython"},
    "xgboost-cpu": {"xgboost"},
}


def brought(*extras):
    """Return the modules that the package and some of its extras bring."""
    keys = ["requirements", *(f"{extra}_requirements" for extra in extras)]
    names = [re.match(r"[\w-]+", word)[0] for key in keys for word in settings()[key].split()]
    return {"fabinterp"}.union(*(MODULES_OF.get(name, {name}) for name in names))


@of(notebooks())
def test_pages_import_what_their_extra_brings(path):
    """Cells that are no part of a module; what modules need, they say when it is missing."""
    own = [cell["source"] for cell in code_cells(path) if "#| export" not in cell["source"]]
    tree = ast.parse("\n".join(own))
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    named += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]
    found = {name.split(".")[0] for name in named}
    assert found <= brought("pages") | sys.stdlib_module_names


@of(notebooks())
def test_files_that_pages_name_lie_below_nbs(path):
    """In cells of code; links of the prose are checked where the site is made."""
    tree = ast.parse("\n".join(cell["source"] for cell in code_cells(path)))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    named = [word for word in words if isinstance(word, str) and re.fullmatch(r"\.\.?/\S*", word)]
    places = [(path.parent / word).resolve() for word in named]
    assert all(place.exists() and place.is_relative_to(NBS) for place in places), named
