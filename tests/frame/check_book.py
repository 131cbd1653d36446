"""Checks across pages: equations and their citations, the glossary, the map of the papers, the reading paths."""

import ast
import os
import re
from collections import Counter
from functools import cache

from frame import (
    METHOD_CHAPTERS,
    NBS,
    PACKAGE,
    ROOT,
    Problem,
    equations,
    glossary,
    notebooks,
    pages,
    papers,
    parse,
    problem,
    prose,
    read_cells,
    reading_paths,
    routes,
    sidebar,
)

EXPORT = "run `make export`"
MAP = "tests/frame/papers.csv"
LETTERS = "tests/frame/notation.csv"
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.S)


# Equations


def tags():
    """Yield tags of several equations, and those that are not chapter and number."""
    for tag, with_tag in equations.tags().items():
        path = with_tag[0]
        if len(with_tag) > 1:
            yield problem(path, f"{len(with_tag)} equations are {tag}", "give each its own number")
        if not re.fullmatch(rf"{equations.chapter_of(path)}\.\d+", tag):
            message = f"{tag} is not a number of the chapter {equations.chapter_of(path)}"
            yield problem(path, message, "correct the tag")


def order_of_tags():
    """Yield, for each chapter, the first tag that does not count up in reading order."""
    first = {}
    for tag, number in equations.new_numbers().items():
        if tag != number:
            first.setdefault(number.split(".")[0], (tag, number))
    for tag, number in first.values():
        path = equations.tags()[tag][0]
        remedy = "run `python tests/frame/equations.py number`"
        yield problem(path, f"equation {tag} is {number} in reading order", remedy)


def citations_of_pages():
    """Yield citations on pages that lead to no equation."""
    known = equations.tags()
    chapters = {equations.chapter_of(path) for path in notebooks()}
    for path in notebooks():
        for cell in read_cells(path):
            for name in equations.dead_citations([cell.source], known, chapters):
                yield problem(path, f"cites {name}, which is no equation", "correct it", cell.id)


def citations_of_tests():
    """Yield citations in tests that lead to no equation."""
    known = equations.tags()
    chapters = {equations.chapter_of(path) for path in notebooks()}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name not in ("test_lint.py", "equations.py"):  # their citations are examples
            text = path.read_text(encoding="utf-8")
            for name in equations.dead_citations([text], known, chapters):
                yield problem(path, f"cites {name}, which is no equation", "correct it")


# Glossary


def glossary_page():
    """Yield a problem if the glossary is not what the word tables yield."""
    if glossary.PAGE.read_text(encoding="utf-8") != glossary.glossary():
        yield problem(glossary.PAGE, "differs from the word tables", EXPORT)


def words_in_the_glossary():
    """Yield pages with a word table of which the glossary has no word."""
    listed = {entry.file for entry in glossary.entries()}
    for path in notebooks():
        has_table = re.search(r"\| *symbol *\| *word", path.read_text(encoding="utf-8"), re.I)
        if has_table and os.path.relpath(path, glossary.PAGE.parent) not in listed:
            yield problem(path, "no word of its table is in the glossary", "correct its heading")


def cells_of_tables(path):
    """Yield tables of a page whose rows differ in their number of cells."""
    for cell in prose(path):
        for head, body in glossary.TABLE.findall(cell.source):
            rows = [head, *body.strip().splitlines()]
            counts = sorted({len(glossary.cells_of(row)) for row in rows})
            if len(counts) > 1:
                message = f"a table has rows of {counts} cells"
                yield problem(path, message, "escape bars or add cells", cell.id)


def page_of(entry):
    """Return the path of the page of an entry."""
    return (glossary.PAGE.parent / entry.file).resolve()


def empty_words():
    """Yield rows of the glossary without a word."""
    for entry in glossary.entries():
        if not entry.word:
            message = f"a word table has no word for {entry.symbol}"
            yield problem(page_of(entry), message, "name it")


def letters_of_the_notation():
    """Yield letters of the notation that no table has, or that a table gives another meaning."""
    entries = glossary.entries()
    for letter in glossary.letters():
        uses = glossary.uses(letter, entries)
        if not uses:
            yield Problem(LETTERS, f"no word table has {letter.symbols}", "remove the row")
        for entry in uses:
            if not re.search(letter.word, entry.word):
                message = f"{entry.symbol} is {entry.word!r}, in the notation {letter.stands_for!r}"
                yield problem(page_of(entry), message, "choose another letter")


def retired_letters(path):
    """Yield formulas of a page with letters that the notation has replaced."""
    if path.parent.name not in glossary.ONE_NOTATION:
        return
    patterns = {letter.retired: letter.symbols for letter in glossary.letters() if letter.retired}
    for cell in prose(path):
        if cell.id.endswith("-glossed"):
            continue
        own = re.sub(r"the paper's \$[^$]+\$", "", cell.source)
        for formula in FORMULA.findall(own):
            for pattern, symbols in patterns.items():
                if re.search(pattern, formula):
                    message = f"{formula[:60]!r} has a retired letter"
                    yield problem(path, message, f"write {symbols}", cell.id)


# The map of the papers and the reading paths


def pages_of_the_map():
    """Yield the pages of the map that differ from papers.csv."""
    for path, text in papers.texts().items():
        if path.read_text(encoding="utf-8") != text:
            yield problem(path, f"differs from {MAP}", EXPORT)


def numbered_equations():
    """Yield papers whose numbered equations are not in the map, each once and in order."""
    for paper, (_, _, count) in papers.PAPERS.items():
        numbers = [
            int(one.number) for one in papers.equations() if one.paper == paper and one.is_numbered
        ]
        if numbers != list(range(1, count + 1)):
            message = f"{paper} needs rows 1 to {count}, each once and in order"
            yield Problem(MAP, message, "correct the rows")


def verdicts():
    """Yield rows of the map with an unknown verdict, or whose verdict does not fit the row."""
    for one in papers.equations():
        row = f"{one.paper} {one.number}"
        if one.verdict not in papers.VERDICTS:
            yield Problem(MAP, f"{row}: unknown verdict {one.verdict!r}", "see VERDICTS")
        if not one.is_numbered and one.verdict != "erratum":
            yield Problem(MAP, f"{row} has no number and is no erratum", "remove the row")
        if not one.note and one.verdict != "holds":
            yield Problem(MAP, f"{row} does not hold and has no note", "add a note")


def places_of_the_map():
    """Yield rows of the map whose tag, function or check does not exist."""
    for one in papers.equations():
        row = f"{one.paper} {one.number}"
        if not re.fullmatch(r"[a-z]+\.\d+", one.tag):
            yield Problem(MAP, f"{row}: {one.where} has no tag number {one.nth}", "correct it")
        if one.function and not is_defined(one.function):
            yield Problem(MAP, f"{row}: {one.function} does not exist", "correct the name")
        if one.check and not re.search(r"^ *assert ", papers.source_of(one.check), re.M):
            yield Problem(
                MAP, f"{row}: {one.check} asserts nothing", "name the cell that checks it"
            )
        if not one.check and one.verdict != "stated":
            yield Problem(MAP, f"{row} has no check", "name the cell that checks it")


def is_defined(name):
    """Return whether a module of the package defines a function, class or method of this name."""
    module, name = name.rsplit(".", 1)
    return name in names_defined_in(PACKAGE / f"{module.replace('.', '/')}.py")


@cache
def names_defined_in(path):
    """Return the functions, classes and constants at the top of a module."""
    body = parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return names | {target.id for target in targets if isinstance(target, ast.Name)}


def citations_of_papers(path):
    """Yield citations of equations of the papers that the map lacks."""
    known = {(one.paper, one.number) for one in papers.equations()}
    pattern = re.compile(rf"\(({'|'.join(papers.PAPERS)}) (\d+)\)")
    for cell in read_cells(path):
        for paper, number in sorted(set(pattern.findall(cell.source)) - known):
            yield problem(path, f"cites ({paper} {number})", f"add it to {MAP}", cell.id)


def page_of_routes():
    """Yield a problem if the page of the reading paths is not what the pages yield."""
    if routes.PAGE.read_text(encoding="utf-8") != routes.text():
        yield problem(routes.PAGE, "differs from its pages", EXPORT)


def method_pages_on_routes():
    """Yield method pages with four equations or more that no reading path has."""
    listed = routes.on_routes()
    count = Counter(path for with_tag in equations.tags().values() for path in with_tag)
    for path in pages():
        name = path.relative_to(NBS).as_posix()
        if path.parent.name in METHOD_CHAPTERS and count[path] >= 4 and name not in listed:
            yield problem(path, "no reading path has it", "add it in tests/frame/routes.py")


def reading_paths_of_the_sidebar():
    """Yield reading paths that are too short, too long, or hold a page that no chapter lists."""
    chapters = {name for _, section in sidebar() for name in section}
    for title, names in reading_paths().items():
        if not 8 <= len(names) <= 12:
            yield Problem("_quarto.yml", f"{title} has {len(names)} pages", "list eight to twelve")
        for name in sorted(set(names) - chapters):
            yield Problem("_quarto.yml", f"no chapter lists {name}", "list it in the sidebar")


PAGE_CHECKS = [cells_of_tables, retired_letters, citations_of_papers]
CHECKS = [
    tags,
    order_of_tags,
    citations_of_pages,
    citations_of_tests,
    glossary_page,
    words_in_the_glossary,
    empty_words,
    letters_of_the_notation,
    pages_of_the_map,
    numbered_equations,
    verdicts,
    places_of_the_map,
    page_of_routes,
    method_pages_on_routes,
    reading_paths_of_the_sidebar,
]
