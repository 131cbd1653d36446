"""Budgets: what is counted of the package and its pages, and the limits in budgets.toml."""

import ast
import io
import json
import re
import statistics
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from frame import (
    METHOD_CHAPTERS,
    PACKAGE,
    ROOT,
    Problem,
    code,
    nodes,
    notebooks,
    pages,
    prose,
    read_cells,
    wording,
)
from frame.check_package import exported_names
from frame.imports import (
    MODULES,
    compare_with_known,
    cyclic_imports,
    floor_of,
    module_graph,
    nodes_of,
    upward_imports,
)

LIMITS = Path(__file__).with_suffix(".toml")
ASSETS = {".pyx", ".pxd", ".js", ".css", ".j2", ".html"}  # kernels, scripts, templates
NO_TOKENS = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
HAS_DOCSTRING = ast.FunctionDef | ast.ClassDef | ast.Module


class Budget(NamedTuple):
    """A row of the table of budgets; limit: None if there is none; file, cell: the place to change."""

    name: str
    now: float
    limit: float | None = None
    remedy: str = "remove code"
    file: str = "fabinterp"
    cell: str = ""


def limits():
    """Return budgets.toml."""
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))


def docstrings(source):
    """Return the nodes of the docstrings of a source."""
    bodies = [node.body for node in nodes(source) if isinstance(node, HAS_DOCSTRING)]
    firsts = [body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)]
    constants = [node for node in firsts if isinstance(node, ast.Constant)]
    return [node for node in constants if isinstance(node.value, str)]


def docstring_lines(source):
    """Return the numbers of the lines that docstrings take."""
    return {line for node in docstrings(source) for line in range(node.lineno, node.end_lineno + 1)}


def count_tokens(source):
    """Return the tokens of a module, without comments, docstrings and layout."""
    lines = docstring_lines(source)
    return sum(
        token.type not in NO_TOKENS
        and not (token.type == tokenize.STRING and token.start[0] in lines)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


def tokens_by_floor():
    """Return the tokens of library, application and bench; kernels, scripts and templates count."""
    count = Counter()
    for path in sorted(PACKAGE.rglob("*")):
        floor = floor_of(path.relative_to(PACKAGE).parts[0])
        if path.suffix == ".py" and path.name != "_modidx.py":
            count[floor] += count_tokens(path.read_text(encoding="utf-8"))
        elif path.suffix in ASSETS:
            count[floor] += len(re.findall(r"\w+|[^\w\s]", path.read_text(encoding="utf-8")))
    return count


def token_budgets():
    """Return the tokens of the floors; allowances in force raise the limit of the core."""
    count = tokens_by_floor()
    allowances = limits()["allowances"]
    allowed = sum(allowances[name] for name in allowances["in_force"])
    tokens = limits()["tokens"]
    core = count["library"] + count["application"]
    return [
        Budget("tokens, core", core, tokens["core"] + allowed),
        Budget("tokens, library", count["library"]),
        Budget("tokens, application", count["application"]),
        Budget("tokens, bench", count["bench"], tokens["bench"]),
    ]


def code_budgets():
    """Return the numbers of classes and names, the longest exported cell, the most complex function."""
    classes = [
        node for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef)
    ]
    limit = limits()["code"]
    return [
        Budget("classes", len(classes)),
        Budget("names in __all__", sum(len(exported_names(path)) for path in MODULES)),
        longest_cell(limit["lines_per_export_cell"]),
        most_complex_function(limit["complexity"]),
    ]


def longest_cell(limit):
    """Return the budget of the longest exported cell."""
    exported = [(path, cell) for path in notebooks() for cell in code(path) if cell.is_exported]
    lines = [code_lines(cell.source) for _, cell in exported]
    path, cell = exported[lines.index(max(lines))]
    file = path.relative_to(ROOT).as_posix()
    return Budget("lines of an exported cell", max(lines), limit, "split it", file, cell.id)


def code_lines(source):
    """Return the lines of a cell that are neither blank nor part of a docstring or a directive."""
    left_out = docstring_lines(source)
    lines = enumerate(source.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.startswith("#|") and number not in left_out
        for number, line in lines
    )


def most_complex_function(limit):
    """Return the budget of the function of the largest cyclomatic complexity, as ruff computes it."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901"]
    command += ["--config", "lint.mccabe.max-complexity=0", "--output-format", "json", "fabinterp"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    functions = json.loads(done.stdout)
    values = [int(re.search(r"\((\d+) > 0\)", one["message"])[1]) for one in functions]
    file = Path(functions[values.index(max(values))]["filename"]).relative_to(ROOT).as_posix()
    return Budget("cyclomatic complexity", max(values), limit, "split the function", file)


def is_visible(cell):
    """Return whether a page shows the code of a cell without a click."""
    hidden = re.search(
        r"^#\| *(hide\b|default_exp|echo: *false|code-fold: *true)", cell.source, re.M
    )
    return not hidden and not cell.metadata.get("jupyter", {}).get("source_hidden")


def page_budgets():
    """Return cells, words and visible lines of code of the method pages: median and maximum."""
    chosen = [path for path in pages() if path.parent.name in METHOD_CHAPTERS]
    counts = {
        "cells": [len(read_cells(path)) for path in chosen],
        "words": [sum(wording.count_words(cell.source) for cell in prose(path)) for path in chosen],
        "visible lines": [
            sum(code_lines(cell.source) for cell in code(path) if is_visible(cell))
            for path in chosen
        ],
    }
    return [
        Budget(f"{name} of a method page, {kind}", round(compute(values)))
        for name, values in counts.items()
        for kind, compute in {"median": statistics.median, "maximum": max}.items()
    ]


def wording_budgets():
    """Return the hits per 1000 words of each group of texts."""
    limit = limits()["wording"]
    hits = wording.hits_per_thousand()
    remedy = "see `python tests/frame/wording.py`"
    return [
        Budget(f"hits per 1000 words, {name}", hits[name], limit[name], remedy) for name in hits
    ]


def budgets():
    """Return all budgets in the order of the table."""
    return [*token_budgets(), *code_budgets(), *page_budgets(), *wording_budgets()]


def exceeded(rows):
    """Yield the budgets that are above their limit."""
    for row in rows:
        if row.limit is not None and row.now > row.limit:
            message = f"{row.name}: {row.now}, limit {row.limit} in tests/frame/budgets.toml"
            yield Problem(row.file, message, row.remedy, row.cell)


def table(rows):
    """Return the table of budgets as text."""
    width = max(len(row.name) for row in rows)
    lines = [("budget", "now", "limit"), *(row[:3] for row in rows)]
    return "\n".join(
        f"{name:{width}}  {now!s:>7}  {'' if limit is None else limit!s:>7}".rstrip()
        for name, now, limit in lines
    )


def cycles():
    """Yield new imports in cycles, and known ones that are gone."""
    known = limits()["known_imports"]["cyclic"]
    yield from compare_with_known("cyclic", cyclic_imports(module_graph()), known)


def floors():
    """Yield new imports of a higher floor, and known ones that are gone."""
    known = limits()["known_imports"]["upward"]
    yield from compare_with_known("upward", upward_imports(module_graph()), known)


CHECKS = [cycles, floors]
