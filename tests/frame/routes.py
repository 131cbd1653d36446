"""Write nbs/guide/22_routes.ipynb: reading paths through the pages, with the minutes that each takes."""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import NBS, PATHS, code, prose, prose_notebook, reading_paths, short_title  # noqa: E402

PAGE = NBS / "guide" / "22_routes.ipynb"
WORDS_A_MINUTE = 180
MINUTES_AN_EQUATION = 0.75
MINUTES_A_CODE_CELL = 0.5
TITLE = f"""\
# {PATHS}

> Ordered lists of pages for users, students and developers, with reading times."""
TEXT = f"""\
Reading times are computed: {WORDS_A_MINUTE} words a minute, {MINUTES_AN_EQUATION * 60:.0f} seconds for each numbered
equation and {MINUTES_A_CODE_CELL * 60:.0f} for each cell of code. They do not include exercises and demos."""
READERS = {
    "For users": "From a table to a model in use, without derivations.",
    "For students": "One derivation of each method, and the pages that it needs.",
    "For developers": "The representation of models, the input of rows, and the foundations of the searches.",
}
# All pages that derive a method, by method: what it is called, what is derived, and the pages
METHODS = {
    "fab": (
        "Trees of linear equations",
        "One criterion, derived from EM; gates, experts and the search that use it.",
        """fab/00_criterion fab/01_em fab/02_engine fab/03_foba fab/14_foba_classes
        fab/05_bernoulli_gate fab/18_gate_selection fab/06_oblique_gate fab/07_gate_tree
        fab/19_constant_experts fab/08_experts fab/10_hme fab/16_hme_starts fab/11_tree_fic
        search/05_tree_value search/06_screening search/01_moves search/07_tree_search
        search/03_prices models/03_piecewise models/04_equation_trees
        models/10_equation_paths search/04_signs search/09_sign_repair""",
    ),
    "curves": (
        "Curves and oblique splits",
        "Leaves with sums of curves, and splits that combine several columns.",
        """fab/04_spline fab/17_spline_basis fab/09_additive fab/20_curve_classes
        fab/21_curve_strengths search/02_planes search/11_plane_search search/10_rising_curves
        models/06_oblique models/08_oblique_em""",
    ),
    "rules": (
        "Rules from a forest",
        "A trained ensemble as bits, as a mixture, and as an ordered list of rules.",
        """rows/01_bins models/00_soft_regions search/00_boxes search/08_box_lists
        models/01_rule_lists""",
    ),
    "prunings": (
        "All prunings of a tree",
        "An exact average over more trees than can be enumerated.",
        """metatree/00_conjugate metatree/01_prunings metatree/06_sequential
        metatree/05_infinite_trees metatree/02_representative metatree/03_posterior
        metatree/07_fitting metatree/04_estimators""",
    ),
    "proxies": (
        "Proxies of a black-box model",
        "A small tree or equation that approximates another model, and its accuracy.",
        """blackbox/00_reference blackbox/02_bayesian_models blackbox/03_wrapping
        proxy/16_growing proxy/01_prune proxy/02_proxy_trees
        proxy/03_projection proxy/04_local proxy/05_stability
        proxy/07_parting proxy/08_budget proxy/09_adequacy proxy/11_tree_sizes""",
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


def route_text(title, about, names):
    """The section of a route: its pages in order, with their minutes, and all of them together."""
    paths = [NBS / name for name in names]
    each = [5 * max(1, round(minutes(path) / 5)) for path in paths]
    titles = [short_title(prose(path)[0].source) for path in paths]
    lines = [
        f"{k}. [{title}]({os.path.relpath(path, PAGE.parent)}), {taken} minutes"
        for k, (title, path, taken) in enumerate(zip(titles, paths, each, strict=True), 1)
    ]
    whole = sum(each)
    long = f"{whole} minutes" if whole < 120 else f"{whole / 60:.1f} hours"
    return f"{title}\n\n{about} About {long}.\n\n" + "\n".join(lines)


def on_routes():
    """Return the pages that a reading path or the list of a method has."""
    of_methods = (f"{stem}.ipynb" for *_, stems in METHODS.values() for stem in stems.split())
    return {*of_methods, *(name for names in reading_paths().values() for name in names)}


def cells():
    """The cells of the page, as (id, source)."""
    found = [("routes-title", TITLE), ("routes-text", TEXT)]
    for title, names in reading_paths().items():
        name = title.split()[-1]
        found.append((f"routes-{name}", route_text(f"## {title}", READERS[title], names)))
    found.append(("routes-methods", "## By method"))
    for name, (title, about, stems) in METHODS.items():
        names = [f"{stem}.ipynb" for stem in stems.split()]
        found.append((f"routes-{name}", route_text(f"### {title}", about, names)))
    return found


def text():
    """The text of the notebook's file."""
    return prose_notebook(cells())


def main():
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
