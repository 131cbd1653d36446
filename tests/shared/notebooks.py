"""Read notebooks without checking their format, and run them as nbdev does, in processes that start fast."""

import contextlib
import io
import json
import multiprocessing
import os
import resource
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FLAG = "slow"  # nbdev leaves cells out that begin with `#| slow`, unless it is given this flag
# The parent of all the processes imports these once; none of this package, which notebooks import
# themselves
PRELOAD = [
    "nbdev.test",
    "matplotlib.pyplot",
    "pandas",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.datasets",
]


@cache
def code_cells(path):
    """Return the code cells of a notebook, sources joined; nbformat's check of the format takes seconds for all."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"
    ]


# A page in little, to measure pages by: it holds nothing of the package, whose own slowness must show
YARDSTICK = [
    """
import io

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
""",
    """
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(100, random_state=0).fit(X, y)
for column in X.columns[:5]:
    grid = X.assign(**{column: np.linspace(X[column].min(), X[column].max(), len(X))})
    plt.plot(grid[column], forest.predict_proba(grid)[:, 1], label=column)
plt.legend()
""",
    """
for _ in range(5):
    plt.savefig(io.BytesIO())
sum(k % 7 for k in range(5_000_000))
""",
]


class Ran(NamedTuple):
    """What came of a notebook: the error as text, empty if there was none, and its seconds of processor time."""

    error: str
    seconds: float


def run_notebook(path, slow, timeout):
    """Run a notebook in a process of its own, with the cells flagged `#| slow` or without; return a `Ran`.

    It is stopped after `timeout` seconds of the wall's clock, which says that it hangs, not that it
    is slow.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(send, path, slow))
    child.start()
    send.close()
    try:
        if not receive.poll(timeout):
            return Ran(f"{path.name} hangs: not at its end after {timeout} s", float("nan"))
        return receive.recv()
    except EOFError:
        child.join()
        return Ran(f"{path.name} ended its process with code {child.exitcode}", float("nan"))
    finally:
        child.kill()
        child.join()
        receive.close()


def yardstick_seconds(folder):
    """Return the processor time in seconds of the page in little, written into `folder`."""
    path = folder / "yardstick.ipynb"
    path.write_text(json.dumps(_notebook_of(YARDSTICK)), encoding="utf-8")
    error, seconds = run_notebook(path, slow=False, timeout=600)
    assert not error, error
    return seconds


def _notebook_of(sources):
    """Return the notebook of these cells of code, as the parts of its JSON."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{k}",
            "metadata": {},
            "source": source.strip(),
            "execution_count": None,
            "outputs": [],
        }
        for k, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _run(send, path, slow):
    """Run a notebook in the process that was made for it."""
    from nbdev.test import test_nb

    os.chdir(ROOT)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        passed, _ = test_nb(
            path, skip_flags=[FLAG], force_flags=[FLAG] if slow else [], basepath=ROOT
        )
    send.send(Ran("" if passed else said.getvalue() or "failed", _processor_seconds()))


def _processor_seconds():
    """Return what this process and those it started have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
