"""Write nbs/guide/01_glossary.ipynb from the word tables of all notebooks.

A word table has a column headed `word`, and one headed `symbol`, `shape`, `what it is` or `meaning`.
notation.csv lists the letters with one meaning in the chapters on factorized Bayes, the words that a word table
may give them, and the letters that they replace.
"""

import csv
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import NBS, notebooks, prose, prose_notebook, short_title  # noqa: E402

PAGE = NBS / "guide" / "01_glossary.ipynb"
LETTERS = Path(__file__).with_name("notation.csv")
ONE_NOTATION = ("fab", "search", "models", "rows")  # chapters
TITLE = "# Glossary\n\n> The terms and symbols of all pages, each with a link to its page."
TEXT = """\
The table collects the tables of terms of all pages, sorted by term. A letter with several meanings has a line for
each. Shapes are those of arrays. Unless a page defines them otherwise, $n$ is the number of rows, $d$ of columns and
$K$ of components."""
NOTATION = """\
## Notation

The five papers use the same letters for different things, and different letters for the same. In the chapters on
factorized Bayes, searches, models and rows, the letters of this table have one meaning, which a test checks. The
papers' own letters appear only in quotations, at the end of a page. Other letters are defined on each page. The
chapters on [prunings](../metatree/01_prunings.ipynb) and [proxies](../proxy/02_proxy_trees.ipynb) follow
their papers."""
TABLE = re.compile(r"^(\|.+\|)[ \t]*\n\|[-| :]+\|[ \t]*\n((?:\|.+\|[ \t]*(?:\n|\Z))+)", re.M)
BAR = re.compile(r"(?:\$[^$]*\$|`[^`]*`|\\.|[^|$`\\])*")  # a cell: formulas and code may hold bars


@dataclass(frozen=True)
class Letter:
    """A line of notation.csv."""

    symbols: str
    stands_for: str
    code: str
    word: str  # the words that a word table may give it, as a pattern
    retired: str  # the letters that it replaces, as a pattern; or nothing

    @property
    def each(self):
        """Its symbols, one by one."""
        return re.findall(r"\$[^$]+\$", self.symbols)


def letters():
    """All lines of notation.csv."""
    with LETTERS.open(encoding="utf-8", newline="") as file:
        return [Letter(**line) for line in csv.DictReader(file)]


@dataclass(frozen=True)
class Entry:
    """A word of a page."""

    word: str
    symbol: str
    shape: str
    page: str
    file: str

    @property
    def key(self):
        """What the table is sorted by: the letters of the word without marks and articles, then symbol and file."""
        text = re.sub(r"\\[a-zA-Z]+|[^\w\s]|_", " ", self.word or self.symbol).casefold()
        return re.sub(r"^(the|a|an) ", "", " ".join(text.split())), self.symbol, self.file


def cells_of(line):
    """The cells of a line of a table."""
    parts = []
    rest = line.strip().removeprefix("|")
    while rest:
        cell = BAR.match(rest)[0]
        parts.append(cell.strip())
        rest = rest[len(cell) + 1 :]
    return parts


def place(head, *names):
    """The place of the first column whose heading begins with one of the names, or None."""
    found = [
        k
        for name in names
        for k, cell in enumerate(head)
        if re.match(rf"{name}\b", cell.casefold())
    ]
    return found[0] if found else None


def from_glossary(text, path):
    """Return a text of a page with its links relative to the glossary."""

    def moved(match):
        return f"]({os.path.relpath(path.parent / match[1], PAGE.parent)}"

    return re.sub(r"\]\((?!\w+:|#)([\w./-]+)", moved, text)


def entries_of(path):
    """The entries of a notebook, in its order."""
    sources = [cell.source for cell in prose(path)]
    title = short_title(sources[0])
    for source in sources:
        for head, body in TABLE.findall(source):
            head = cells_of(head)
            word = place(head, "word")
            symbol = place(head, "symbol")
            shape = place(head, "shape")
            told = place(head, "what it is", "meaning")
            if word is None or symbol is shape is told is None:
                continue
            for line in body.strip().splitlines():
                cells = cells_of(line)
                texts = [
                    "" if k is None or k >= len(cells) else cells[k]
                    for k in (word, symbol, shape, told)
                ]
                texts = [from_glossary(text, path) for text in texts]
                word_and_meaning = ": ".join(filter(None, (texts[0], texts[3])))
                file = os.path.relpath(path, PAGE.parent)
                yield Entry(word_and_meaning, texts[1], texts[2], title, file)


def entries():
    """The entries of all notebooks but the glossary itself, each once, sorted."""
    unique = {entry for path in notebooks() if path != PAGE for entry in entries_of(path)}
    return sorted(unique, key=lambda entry: entry.key)


def symbols_of(entry):
    """The symbols of an entry, one by one: `$E, G$` are two."""
    formulas = re.findall(r"\$([^$]+)\$", entry.symbol)
    parts = [part for formula in formulas for part in re.split(r",\s*(?![^{]*\})", formula)]
    return {f"${part.split(' = ')[0].strip()}$" for part in parts}


def uses(letter, listed):
    """Of the listed entries those, in the chapters of one notation, that have a symbol of this line."""
    folders = tuple(f"../{chapter}/" for chapter in ONE_NOTATION)
    return [
        entry
        for entry in listed
        if entry.file.startswith(folders) and symbols_of(entry) & set(letter.each)
    ]


def notation(listed):
    """The table of letters that mean one thing, with the pages whose tables have them."""
    lines = ["| symbol | stands for | in code | in the tables of |", "|---|---|---|---|"]
    for letter in letters():
        pages = sorted({(entry.file, entry.page) for entry in uses(letter, listed)})
        links = ", ".join(f"[{page}]({file})" for file, page in pages)
        lines.append(f"| {letter.symbols} | {letter.stands_for} | {letter.code} | {links} |")
    return f"{NOTATION}\n\n" + "\n".join(lines) + "\n\n## Terms"


def first_of_letters(some):
    """The first of the sorted entries with each letter of the alphabet, and that letter."""
    found = {}
    for entry in some:
        letter = entry.key[0][:1].upper()
        if letter.isascii() and letter.isalpha() and letter not in found.values():
            found[entry] = letter
    return found


def anchor(letter):
    """What a link to a letter leads to; nothing where there is no letter."""
    return f'<a id="words-{letter.casefold()}"></a>' if letter else ""


def glossary():
    """The text of the notebook's file, four cells of prose."""
    listed = entries()
    first = first_of_letters(listed)
    lines = [
        f"| {anchor(first.get(e))}{e.word} | {e.symbol} | {e.shape} | [{e.page}]({e.file}) |"
        for e in listed
    ]
    links = " ".join(f"[{letter}](#words-{letter.casefold()})" for letter in first.values())
    table = "\n".join(["| term | symbol | shape | page |", "|---|---|---|---|", *lines])
    return prose_notebook(
        (f"glossary-{name}", text)
        for name, text in (
            ("title", TITLE),
            ("notation", notation(listed)),
            ("text", f"## Terms\n\n{TEXT}\n\nFirst letters: {links}."),
            ("table", table),
        )
    )


def main():
    """Write the page."""
    PAGE.write_text(glossary(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
