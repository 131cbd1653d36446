"""Check what is read and not run: pages, links, equations, glossary, imports, export, README, budgets.

Prints a line for each problem (file, cell, what is wrong, remedy) and a table of budgets; exits with 1 if
there is a problem. Called by `make lint`.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from frame import (  # noqa: E402
    Problem,
    budgets,
    check_book,
    check_package,
    check_pages,
    check_repository,
    imports,
    notebooks,
)

MODULES = [check_pages, check_book, check_package, imports, check_repository, budgets]


def problems_of(check, *arguments):
    """Return the problems that a check yields; a check that fails is a problem, too."""
    try:
        return list(check(*arguments))
    except Exception as error:
        place = arguments[0].name if arguments else "tests/frame"
        message = f"{check.__name__} failed with {type(error).__name__}: {error}"
        return [Problem(place, message, "correct the file or the check")]


def all_problems():
    """Return the problems of all checks."""
    problems = []
    for module in MODULES:
        for check in getattr(module, "PAGE_CHECKS", []):
            for path in notebooks():
                problems += problems_of(check, path)
        for check in module.CHECKS:
            problems += problems_of(check)
    return problems


def main():
    """Print the problems and the budgets; return the problems."""
    rows = budgets.budgets()
    problems = [*all_problems(), *budgets.exceeded(rows)]
    print(*problems, sep="\n", end="\n\n" if problems else "")
    print(budgets.table(rows))
    return problems


if __name__ == "__main__":
    sys.exit(bool(main()))
