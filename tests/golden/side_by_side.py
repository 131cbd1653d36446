"""Fit two commits side by side: `python tests/golden/side_by_side.py OLD [NEW] [--runs 5] [--only NAME…] [--md]`.

Without NEW the working tree is the new one. Each fit runs in a process of its own, old and new in
turn, by the `fits.py` of its own commit, so that both may call a parameter by another name. Texts
and all answers are compared bit for bit; seconds are those of the processor in the fit alone, the
least of the runs, and memory is the peak of the whole process. The exit status is 1 if anything
differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = Path("tests", "golden", "fits.py")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HEADS = ("fit", "equal", "record", "old s", "new s", "ratio", "old MB", "new MB", "ratio")
MEGABYTE = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss counts bytes there, kB elsewhere


# ------------------------------------------------------------------ the trees


@contextmanager
def tree_of(commit):
    """The folder of a commit, for as long as it is needed; without a commit the working tree."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def called(tree, *args, seed=0):
    """What the `fits.py` of a tree prints; a commit older than that file is fitted by the one here."""
    script = tree / SCRIPT if (tree / SCRIPT).exists() else ROOT / SCRIPT
    env = (
        os.environ
        | dict.fromkeys(THREADS, "1")
        | {"PYTHONPATH": str(tree), "PYTHONHASHSEED": str(seed)}
    )
    done = subprocess.run(
        [sys.executable, str(script), *args], env=env, cwd=tree, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)} in {tree}:\n{done.stderr}")
    return done.stdout


def fitted(tree, name, seed):
    """One fit in a process of its own: record, seconds and memory.

    Hashes are seeded anew in each run.
    """
    found = json.loads(called(tree, name, seed=seed))
    if not Path(found["package"]).resolve().is_relative_to(tree.resolve()):
        raise RuntimeError(f"the package comes from {found['package']}, not from {tree}")
    return found


# ------------------------------------------------------------------ the comparison


def first_place(old, new, place=""):
    """Where two records first differ and how; None if they are the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        missing = sorted(old.keys() ^ new.keys())
        if missing:
            return f"{place}{missing[0]}: told by one of them"
        parts = ((f"{place}{key}", old[key], new[key]) for key in sorted(old))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = ((f"{place}[{k}]", *pair) for k, pair in enumerate(zip(old, new, strict=True)))
    elif (
        isinstance(old, str)
        and isinstance(new, str)
        and len(old.splitlines()) == len(new.splitlines()) > 1
    ):
        return first_place(old.splitlines(), new.splitlines(), f"{place}, line ")
    else:
        return (
            None
            if type(old) is type(new) and old == new
            else f"{place}: {told(readable(old), readable(new))}"
        )
    return next((found for at, a, b in parts if (found := first_place(a, b, at))), None)


def readable(value):
    """A value for reading, numbers in decimals."""
    try:
        return repr(float.fromhex(value)) if value.lstrip("-").startswith("0x") else repr(value)
    except (AttributeError, ValueError):
        return repr(value)


def told(old, new):
    """Two values from a little before the place where they part."""
    start = max(0, len(os.path.commonprefix([old, new])) - 40)
    return " became ".join(
        f"{'…' if start else ''}{said[start : start + 100]}" for said in (old, new)
    )


def short_hash(record):
    """Eight digits that tell records apart."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:8]


def compared(trees, name, n_runs):
    """A row of the table, and where the records of any of the runs first differ."""
    runs = ([], [])
    for seed in range(n_runs):
        for side, tree in zip(runs, trees, strict=True):
            side.append(fitted(tree, name, seed))
    first = runs[0][0]["record"]
    places = (first_place(first, run["record"]) for side in runs for run in side)
    seconds = [min(run["seconds"] for run in side) for side in runs]
    memory = [min(run["memory"] for run in side) / MEGABYTE for side in runs]
    return (name, short_hash(first), *seconds, *memory), next(
        (place for place in places if place), None
    )


# ------------------------------------------------------------------ the table


def cells(row, equal):
    """A row as text."""
    name, code, old, new, small, large = row
    return (
        name,
        equal,
        code,
        f"{old:.3f}",
        f"{new:.3f}",
        f"{new / max(old, 1e-9):.2f}",
        f"{small:.0f}",
        f"{large:.0f}",
        f"{large / small:.2f}",
    )


def sum_of(rows):
    """The row of all seconds, and of the largest memory."""
    old, new, small, large = zip(*(row[2:] for row in rows), strict=True)
    return "all (memory: largest)", "", sum(old), sum(new), max(small), max(large)


def printed(row, width, markdown):
    """A line of the table."""
    if markdown:
        return f"| {' | '.join(row)} |"
    return f"{row[0]:<{width}}" + "".join(f"{cell:>10}" for cell in row[1:])


def report(trees, names, n_runs, markdown):
    """Print the table line by line; return what differs, in lines."""
    width = max(map(len, [*names, HEADS[0]])) + 1
    print(printed(HEADS, width, markdown))
    if markdown:
        print("|:--|" + "--:|" * (len(HEADS) - 1))
    rows = []
    differences = []
    for name in names:
        row, place = compared(trees, name, n_runs)
        rows.append(row)
        differences += [f"{name}: {place}"] if place else []
        print(printed(cells(row, "no" if place else "yes"), width, markdown), flush=True)
    print(printed(cells(sum_of(rows), "no" if differences else "yes"), width, markdown))
    return differences


def names_of(trees, only):
    """The fits that both know, and what differs in that."""
    known = [called(tree).split() for tree in trees]
    names = [name for name in known[0] if name in known[1] and (not only or name in only)]
    unknown = sorted(set(only) - set(known[0]) - set(known[1]))
    if unknown or not names:
        raise SystemExit(f"unknown fits: {', '.join(unknown) or 'no name is known to both'}")
    new = [name for name in known[1] if name not in known[0]]
    if new:
        print(f"only in the new one, not compared: {', '.join(new)}\n")
    gone = [name for name in known[0] if name not in known[1] and (not only or name in only)]
    return names, [f"{name}: not in the new one" for name in gone]


def main():
    """Compare; the exit status says whether all is equal."""
    parser = argparse.ArgumentParser(description="Fit two commits side by side.")
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", nargs="?", help="a commit; without it the working tree")
    parser.add_argument("--runs", type=int, default=5, help="processes for each fit and commit (5)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these fits only")
    parser.add_argument("--md", action="store_true", help="the table in Markdown")
    args = parser.parse_args()
    with ExitStack() as stack:
        trees = [stack.enter_context(tree_of(commit)) for commit in (args.old, args.new)]
        names, gone = names_of(trees, args.only)
        differences = gone + report(trees, names, args.runs, args.md)
    print(
        "\n"
        + (
            "\n".join(["These differ:", *differences])
            if differences
            else "All is equal, bit for bit."
        )
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
