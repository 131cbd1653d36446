"""Read notebooks without checking their format, and run them as nbdev does, in processes that start fast."""

import contextlib
import io
import json
import multiprocessing
import os
from functools import cache
from pathlib import Path

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


def run_notebook(path, timeout):
    """Run a notebook in a process of its own, flagged cells too; return the error as text, "" without one."""
    return run_in_process(_run, path, timeout)


def run_in_process(function, path, timeout):
    """Return the text that `function(path)` returns in a process of its own, or how that process failed.

    After `timeout` seconds it is taken to hang, and stopped.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_send_result, args=(send, function, path))
    child.start()
    send.close()
    try:
        if not receive.poll(timeout):
            return f"{path.name} hangs: not at its end after {timeout} s"
        return receive.recv()
    except EOFError:
        child.join()
        return f"{path.name} ended its process with code {child.exitcode}"
    finally:
        child.kill()
        child.join()
        receive.close()


def _send_result(send, function, path):
    """Send what `function` returns to the process that waits for it."""
    send.send(function(path))


def _run(path):
    """Run a notebook in the process that was made for it."""
    from nbdev.test import test_nb

    os.chdir(ROOT)
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        passed, _ = test_nb(path, skip_flags=[FLAG], force_flags=[FLAG], basepath=ROOT)
    return "" if passed else errors.getvalue() or "failed"
