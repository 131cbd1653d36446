"""Write nbs/guide/22_routes.ipynb: three ways through the pages, and the minutes that each takes."""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import NBS, code, prose, prose_notebook, short_title  # noqa: E402

PAGE = NBS / "guide" / "22_routes.ipynb"
WORDS_A_MINUTE = 180
MINUTES_AN_EQUATION = 0.75
MINUTES_A_CODE_CELL = 0.5
TITLE = """\
# Three ways through

> For a person with a table, for a student of the methods, and for whoever wants to build on them."""
TEXT = f"""\
Minutes are counted, not felt: {WORDS_A_MINUTE} words a minute, {MINUTES_AN_EQUATION * 60:.0f} seconds for a numbered
equation and {MINUTES_A_CODE_CELL * 60:.0f} for a cell of code. Exercises and widgets take what they take."""
ROUTES = {
    "user": (
        "With a table",
        "From a table to a model that can be handed on; no derivation.",
        """index guide/03_choose_method guide/04_choose_size guide/05_one_customer guide/06_regulator
        explanation reporting change guide/00_atlas models/04_bikes""",
    ),
    "fab": (
        "The method: equations behind few questions",
        "One criterion, derived from EM; then gates, experts and the search that use it.",
        """fab/00_engine fab/01_foba fab/03_gates fab/04_experts fab/06_hme fab/09_tree_fic search/01_moves
        search/03_prices models/01_piecewise search/04_signs""",
    ),
    "curves": (
        "The method: curves and tilted cuts",
        "What changes when a leaf holds a sum of curves and a split weighs several columns.",
        "fab/02_spline fab/05_additive search/02_planes models/03_oblique",
    ),
    "rules": (
        "The method: a forest as a few rules",
        "A trained ensemble as bits, as a mixture, and as a list that is searched for.",
        "rows/01_bins search/00_boxes models/00_rule_mixture",
    ),
    "prunings": (
        "The method: all prunings of a tree",
        "An exact average over more trees than could be listed.",
        """metatree/00_conjugate metatree/01_prunings metatree/02_representative metatree/03_posterior
        metatree/04_estimators""",
    ),
    "proxies": (
        "The method: proxies of a model that cannot be read",
        "A small tree or equation that says what another model says, and how far it can be trusted.",
        """proxy/00_reference proxy/01_prune proxy/02_proxy_trees proxy/03_projection proxy/04_local
        proxy/05_stability proxy/07_parting proxy/08_budget proxy/09_adequacy""",
    ),
    "engine": (
        "To build on it",
        "What is said of a model, how rows come in, how ensembles are read, and what the searches stand on.",
        """rules/00_core rules/05_ruleset rules/06_digits rules/08_size_path rows/00_tables rows/02_blocks
        rows/03_chunks rows/04_array_tree forests/00_arrays forests/05_reading fab/08_columns
        guide/20_equation_map""",
    ),
}  # fmt: skip


def minutes(path):
    """How long a page takes: its words, numbered equations and cells of code."""
    text = "\n".join(cell.source for cell in prose(path))
    n_code = sum(bool(cell.source) for cell in code(path))
    n_words = len(re.findall(r"[^\W\d_]+", re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)))
    n_equations = len(re.findall(r"\\tag\{", text))
    return (
        n_words / WORDS_A_MINUTE + MINUTES_AN_EQUATION * n_equations + MINUTES_A_CODE_CELL * n_code
    )


def route_text(title, about, stems):
    """The section of a route: its pages in order, with their minutes, and all of them together."""
    paths = [NBS / f"{stem}.ipynb" for stem in stems.split()]
    each = [5 * max(1, round(minutes(path) / 5)) for path in paths]
    titles = [short_title(prose(path)[0].source) for path in paths]
    lines = [
        f"{k}. [{title}]({os.path.relpath(path, PAGE.parent)}), {taken} minutes"
        for k, (title, path, taken) in enumerate(zip(titles, paths, each, strict=True), 1)
    ]
    whole = sum(each)
    long = f"{whole} minutes" if whole < 120 else f"{whole / 60:.1f} hours"
    return f"## {title}\n\n{about} About {long}.\n\n" + "\n".join(lines)


def text():
    """The text of the notebook's file."""
    cells = [("routes-title", TITLE), ("routes-text", TEXT)]
    cells += [(f"routes-{name}", route_text(*route)) for name, route in ROUTES.items()]
    return prose_notebook(cells)


def main():
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
