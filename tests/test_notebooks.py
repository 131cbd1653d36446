"""Every notebook runs: the short ones at the keyboard, the long ones and every long cell in the slow tier."""

import re
import time

import pytest
from frame import notebooks
from shared.machine import slowness
from shared.notebooks import FLAG, code_cells, run_notebook

# s of processor time for a notebook of the quick tier, on the machine the limits were set on
BUDGET = 15

# Measured: more than eight seconds of processor time that no flag on a few cells would save
LONG = set(
    """
    00_engine 01_moves 03_gates 06_hme 05_additive 00_rule_mixture 01_piecewise 03_oblique
    02_proxy_trees 05_stability 03_chunks explanation explorer 00_atlas 00_runner 02_hara 03_eto
    05_afrabandpey
    """.split()
)


def has_long_cells(path):
    """Say whether nbdev leaves a cell of this notebook out unless it is told not to."""
    flagged = re.compile(rf"#\| *{FLAG}\b")
    return any(flagged.match(cell["source"]) for cell in code_cells(path))


def of(paths):
    """Ask a question of each of these notebooks."""
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@of([path for path in notebooks() if path.stem not in LONG])
def test_notebook_runs(path):
    error, seconds = run_notebook(path, slow=False, timeout=600)
    assert not error, error
    most = BUDGET * slowness(time.process_time)
    said = f"{path.name} took {seconds:.0f} s of processor time"
    assert seconds < most, f"{said}: flag long cells `#| slow`, or name it in LONG"


@pytest.mark.slow
@of([path for path in notebooks() if path.stem in LONG or has_long_cells(path)])
def test_notebook_runs_whole(path):
    error, _ = run_notebook(path, slow=True, timeout=3600)
    assert not error, error
