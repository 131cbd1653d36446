"""One-line mutants of the core and the tests that kill them: `python tests/frame/mutants.py [--n 60] [--skip 0]`.

A mutant changes one operator, comparison or constant of a module. The tests that import the module
or its public names, and those of its chapter, run against it in a copy of the tree, its own first,
until one fails. A mutant that survives is printed with its file and line. `mutants.toml` lists
mutants that are equivalent to the original, each with the reason; they are drawn but not run.
"""

import argparse
import ast
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import ROOT, copy_tree  # noqa: E402
from frame.names import PUBLIC  # noqa: E402

MODULES = "fab search metatree proxy rules change"
EQUIVALENT = Path(__file__).with_suffix(".toml")
LIMIT = 900  # seconds of processor time after which a mutant counts as killed: it hangs

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
SWAPPED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "minimum": "maximum",
    "maximum": "minimum",
}


@dataclass(frozen=True)
class Mutant:
    """A replacement of the characters from `start` to `stop` of a module's text."""

    path: Path
    start: int
    stop: int
    new: str

    @property
    def place(self):
        """The file below the root, and the line."""
        line = self.path.read_text(encoding="utf-8").count("\n", 0, self.start) + 1
        return f"{self.path.relative_to(ROOT).as_posix()}:{line}"

    @property
    def change(self):
        """The line before and after, without blanks around it."""
        text = self.path.read_text(encoding="utf-8")
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.stop)
        after = text[first : self.start] + self.new + text[self.stop : last]
        return f"{text[first:last].strip()}  →  {after.strip()}"


def mutants_of(path):
    """Yield all mutants of a module, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line, column):
        """Return the place of a column, which ast counts in bytes, in the text."""
        row = text[starts[line - 1] : starts[line]].encode()
        return starts[line - 1] + len(row[:column].decode())

    def begin(node):
        return place(node.lineno, node.col_offset)

    def end(node):
        return place(node.end_lineno, node.end_col_offset)

    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    statements = [statement for function in functions for statement in function.body]
    for node in [node for statement in statements for node in ast.walk(statement)]:
        for before, after, old, new in replacements(node):
            start = end(before) if before else begin(node)
            stop = begin(after) if after else end(node)
            if match := re.search(old, text[start:stop]):
                yield Mutant(path, start + match.start(), start + match.end(), new)


def replacements(node):
    """Yield (node before, node after, pattern between them, text for it) of each mutation of a node."""
    if isinstance(node, ast.Compare):
        lefts = [node.left, *node.comparators]
        for left, operator, right in zip(lefts, node.ops, node.comparators, strict=False):
            yield left, right, r"[<>=!]=?|is not|is|not in|in", COMPARISONS[type(operator)]
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield node.left, node.right, r"[-+*/&|]", OPERATORS[type(node.op)]
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield node.target, node.value, r"[-+*/&|](?==)", OPERATORS[type(node.op)]
    elif isinstance(node, ast.BoolOp):
        other = "or" if isinstance(node.op, ast.And) else "and"
        yield node.values[0], node.values[1], r"\b(and|or)\b", other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield None, node.operand, r"\bnot\s+", ""
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield None, None, r"^[\d.e+-]+$", repr(node.value + 1)
    elif isinstance(node, ast.Attribute | ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if name in SWAPPED:
            yield None, None, rf"\b{name}$", SWAPPED[name]


def drawn(n, seed):
    """Draw mutants of the core; which of a line's mutants are drawn depends on that line alone."""
    package = ROOT / "fabinterp"
    paths = [path for name in MODULES.split() for path in modules_named(package, name)]
    every = dict.fromkeys(mutant for path in paths for mutant in mutants_of(path))

    def rank(mutant):
        return random.Random(f"{seed} {mutant.path.stem} {mutant.change}").random()

    return sorted(every, key=rank)[:n]


def modules_named(package, name):
    """Return the modules of a chapter, or the module of that name."""
    if (package / f"{name}.py").exists():
        return [package / f"{name}.py"]
    return sorted(path for path in (package / name).glob("*.py") if not path.name.startswith("_"))


def tests_of(path, tests):
    """Return the test files of a module, its own first, the golden file last."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    public = {f"fabinterp.{name}" for name, home in PUBLIC.items() if module.endswith(f".{home}")}
    found = [test for test in tests if imported_by(test) & {module, *public}]
    found += [test for test in tests if test.stem == f"test_{path.parent.name}"]
    own = [test for test in tests if test.stem == f"test_{path.stem}"]
    golden = [test for test in tests if test.stem == "test_golden"]
    return list(
        dict.fromkeys([*own, *sorted(found, key=lambda test: test.stat().st_size), *golden])
    )


def imported_by(test):
    """Return the modules that a test file imports from, and the names that it imports from them."""
    nodes = ast.walk(ast.parse(test.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    return names | {node.module for node in imports}


def killer(mutant):
    """Return the first test that fails with a mutant, None if it survives."""
    tests = sorted((ROOT / "tests").glob("test_*.py"))
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder) / "tree")
        text = mutant.path.read_text(encoding="utf-8")
        changed = text[: mutant.start] + mutant.new + text[mutant.stop :]
        (tree / mutant.path.relative_to(ROOT)).write_text(changed, encoding="utf-8")
        files = [str(tree / test.relative_to(ROOT)) for test in tests_of(mutant.path, tests)]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-o",
            "timeout=0",
            *files,
        ]
        env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        return "a test that hangs"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    if done.returncode and not failed:
        raise RuntimeError(f"pytest stopped with {done.returncode}: {done.stdout[-300:]}")
    return failed[1] if failed else None


def main():
    """Run the mutants side by side and print what became of each; exit with the number of survivors."""
    parser = argparse.ArgumentParser(description="Run one-line mutants of the core.")
    parser.add_argument("--n", type=int, default=60, help="how many mutants (60)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (0)")
    parser.add_argument("--skip", type=int, default=0, help="how many of them to leave out (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    args = parser.parse_args()
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    mutants = drawn(args.n, args.seed)[args.skip :]
    run = [mutant for mutant in mutants if mutant.change not in equivalent]
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, most))  # of this process, and of each it starts
    survivors = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for mutant, test in zip(run, pool.map(killer, run), strict=True):
            survivors += test is None
            print(
                f"{'survives' if test is None else 'killed  '} {mutant.place}  {mutant.change}  {test or ''}",
                flush=True,
            )
    killed = len(run) - survivors
    print(
        f"{killed} of {len(mutants)} mutants killed, {len(mutants) - len(run)} equivalent, {survivors} survive"
    )
    return survivors


if __name__ == "__main__":
    sys.exit(main())
