"""Execute pages as a reader does, one at a time, and print the processor seconds of each.

`seconds.py [--cells] [PAGE…]` says of each page (of all, if none is named) whether it ran and what it took;
`--cells` adds its cells of half a second and more. `--nbs FOLDER` takes the pages from a copied folder,
which shows that they need nothing beside it.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import nbformat  # noqa: E402
import psutil  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError  # noqa: E402

from frame import NBS, pages  # noqa: E402

GOAL = 20  # seconds of processor time that a page may take
GOAL_OF_ALL = 400
LONG_CELL = 0.5


def processor_seconds(process):
    """What a process, those that it started and waited for, and those that still run, have used."""
    used = sum(process.cpu_times()[:4])
    return used + sum(sum(child.cpu_times()[:2]) for child in process.children(recursive=True))


def execute(path):
    """Execute a notebook from its own folder; return its error (empty if none) and each cell's id and seconds."""
    notebook = nbformat.read(path, 4)
    marks = []

    def mark(cell, **_):
        kernel = psutil.Process(client.km.provisioner.process.pid)
        marks.append((cell.id, processor_seconds(kernel)))

    client = NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_executed=mark,
    )
    error = ""
    try:
        client.execute()
    except CellExecutionError as failed:
        error = str(failed)
    ends = [end for _, end in marks]
    starts = [0.0, *ends][: len(ends)]
    cells = [(name, end - start) for (name, end), start in zip(marks, starts, strict=True)]
    return error, cells


def main(words):
    """Execute the pages that are asked for; the exit says whether all ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nbs", type=Path, default=NBS)
    parser.add_argument("--cells", action="store_true")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    asked = parser.parse_args(words)
    nbs = asked.nbs.resolve()
    taken = {}
    failed = []
    for path in pages(nbs):
        name = path.relative_to(nbs).with_suffix("").as_posix()
        if asked.pages and name not in asked.pages:
            continue
        error, cells = execute(path)
        taken[name] = sum(seconds for _, seconds in cells)
        print(f"{taken[name]:7.1f}  {name}", flush=True)
        if asked.cells:
            for cell, seconds in sorted(cells, key=lambda cell: -cell[1]):
                if seconds >= LONG_CELL:
                    print(f"{seconds:15.1f}  {cell}", flush=True)
        if error:
            failed.append(name)
            print(error, flush=True)
    long = [name for name, seconds in taken.items() if seconds > GOAL]
    print(f"{sum(taken.values()):7.1f}  all {len(taken)} (at most {GOAL_OF_ALL})")
    print(f"more than {GOAL} s: {' '.join(long) or 'none'}")
    print(f"failed: {' '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    sys.exit(main(sys.argv[1:]))
