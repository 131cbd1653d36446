"""Write nbs/guide/20_equation_map.ipynb and 21_errata.ipynb: the equations of the five papers, and the errata.

papers.csv has a line for each equation: its content, the cell that derives it and its place among that cell's
equations, the function, the cell that checks it, and the verdict. Tags and headings are looked up.
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import NBS, prose_notebook, read_cells  # noqa: E402
from frame.equations import TAG  # noqa: E402

TABLE = Path(__file__).with_suffix(".csv")
PAGES = {
    "map": NBS / "guide" / "20_equation_map.ipynb",
    "errata": NBS / "guide" / "21_errata.ipynb",
}
PAPERS = {  # authors, title, numbered equations
    "Hara": (
        "Hara & Hayashi",
        "Making tree ensembles interpretable: a Bayesian model selection approach",
        41,
    ),
    "Eto": (
        "Eto, Fujimaki, Morinaga & Tamano",
        "Fully-automatic Bayesian piecewise sparse linear models",
        23,
    ),
    "Wang": (
        "Wang, Fujimaki & Motohashi",
        "Trading interpretability for accuracy: oblique treed sparse additive models",
        32,
    ),
    "Afrabandpey": (
        "Afrabandpey, Peltola, Piironen, Vehtari & Kaski",
        "A decision-theoretic approach for model interpretability in Bayesian framework",
        12,
    ),
    "Nakahara": (
        "Nakahara & Matsushima",
        "Batch updating of a posterior tree distribution over a meta-tree",
        19,
    ),
}
VERDICTS = ("holds", "erratum", "stated")
MAP_TITLE = """\
# Equation map

> The {n} numbered equations of the five papers, with their derivation, code and check."""
MAP_TEXT = """\
The number in the paper is on the left. *Here* links to our number, on the page that derives the equation. *Checked
in* links to the cell whose `assert` checks it by another computation, such as enumeration, integration or finite
differences. Of {n} equations {derived} are derived and {checked} checked. {errata} have an error in a sign, an index
or a claim and hold after a correction; the [errata](21_errata.ipynb) list them. Stated only, because it is no
formula: {stated}."""
ERRATA_TITLE = """\
# Errata in the papers

> Wrong signs, indices and claims, each with the cell that checks the corrected form."""
ERRATA_TEXT = """\
These errors matter if you implement a paper from its text. None of them invalidates a paper's result. Each equation
here is checked against an independent computation, which found them. The last column links to the check of the
corrected equation. [The equation map](20_equation_map.ipynb) has all other equations."""


@dataclass(frozen=True)
class Equation:
    """A line of papers.csv."""

    paper: str
    number: str  # of the equation; "Lemma 1", "Algorithm 3" of what has none
    says: str
    where: str  # page#cell of the derivation
    nth: int  # which equation of that cell
    function: str  # below fabinterp
    check: str  # page#cell
    verdict: str
    note: str

    @property
    def is_numbered(self):
        """Whether the paper numbers it."""
        return self.number.isdigit()

    @property
    def name(self):
        """Its name on pages."""
        return f"({self.paper} {self.number})" if self.is_numbered else self.number

    @property
    def tag(self):
        """Our equation number."""
        return TAG.findall(source_of(self.where))[self.nth - 1]


def source_of(place):
    """The source of a cell, of page#cell."""
    page, name = place.split("#")
    sources = {cell.id: cell.source for cell in read_cells(NBS / f"{page}.ipynb")}
    return sources[name]


def equations():
    """All lines of papers.csv."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return [Equation(**line | {"nth": int(line["nth"])}) for line in lines]


def _link(text, place):
    return f"[{text}](../{place.split('#')[0]}.ipynb)"


def _row(equation):
    """The cells of a table's row."""
    check = equation.check
    name = equation.function.rsplit(".", 1)[-1]
    note = f": {equation.note}" if equation.note else ""
    return [
        equation.name,
        equation.says,
        _link(f"({equation.tag})", equation.where),
        f"`{name}`" if name else "",
        _link(f"`{check.split('#')[1]}`", check) if check else "",
        f"{equation.verdict}{note}",
    ]


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _heading(paper):
    authors, title, _ = PAPERS[paper]
    return f"## {authors}\n\n*{title}*\n\n"


def map_cells():
    """The cells of the map, as (id, source)."""
    numbered = [one for one in equations() if one.is_numbered]
    counts = {
        "n": len(numbered),
        "derived": len([one for one in numbered if one.verdict != "stated"]),
        "checked": len([one for one in numbered if one.check]),
        "errata": len([one for one in numbered if one.verdict == "erratum"]),
        "stated": ", ".join(one.name for one in numbered if one.verdict == "stated"),
    }
    head = ["paper", "content", "here", "code", "checked in", "verdict"]
    cells = [("map-title", MAP_TITLE.format(**counts)), ("map-text", MAP_TEXT.format(**counts))]
    for paper in PAPERS:
        rows = [_row(one) for one in numbered if one.paper == paper]
        cells.append((f"map-{paper.lower()}", _heading(paper) + _table(head, rows)))
    return cells


def errata_cells():
    """The cells of the errata, as (id, source)."""
    head = ["paper", "content", "error", "correction checked in"]
    cells = [("errata-title", ERRATA_TITLE), ("errata-text", ERRATA_TEXT)]
    for paper in PAPERS:
        rows = []
        for one in equations():
            if one.paper == paper and one.verdict == "erratum":
                name, says, here, _, check, _ = _row(one)
                rows.append([name, f"{says}, {here}", one.note, check])
        cells.append((f"errata-{paper.lower()}", _heading(paper) + _table(head, rows)))
    return cells


def texts():
    """The text of each page's file, by path."""
    return {
        PAGES["map"]: prose_notebook(map_cells()),
        PAGES["errata"]: prose_notebook(errata_cells()),
    }


def main():
    """Write both pages."""
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
