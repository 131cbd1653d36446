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
