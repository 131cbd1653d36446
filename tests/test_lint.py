"""The checks of `make lint` find small faults, and accept what is right."""

import ast

import nbformat
import pytest
from frame import (
    NBS,
    Problem,
    budgets,
    check_book,
    check_package,
    check_pages,
    equations,
    glossary,
    imports,
    lint,
    routes,
    wording,
)
from hypothesis import given
from hypothesis import strategies as st

MARKDOWN = nbformat.v4.new_markdown_cell
CODE = nbformat.v4.new_code_cell
TITLE = MARKDOWN("# A page\n\n> Claim.", id="title")


def write_page(folder, *cells):
    """Write a notebook with these cells; return its path."""
    path = folder / "99_page.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def cells_with_problems(check, path):
    """Return the cells that a check of a page names."""
    return [problem.cell for problem in check(path)]


def test_a_problem_is_one_line_with_file_cell_and_remedy():
    problem = Problem("nbs/a.ipynb", "stores an error", "run it", "a-1")
    assert str(problem) == "nbs/a.ipynb, cell a-1: stores an error; run it"


def test_a_check_that_fails_is_a_problem():
    def broken():
        raise KeyError("a")

    (problem,) = lint.problems_of(broken)
    assert "broken failed with KeyError" in problem.message


ERROR = nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])
WIDGET = nbformat.v4.new_output(
    "display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
)


@pytest.mark.parametrize(
    "check, cell",
    [
        (check_pages.cell_ids, MARKDOWN("text", id="Bad_id")),
        (check_pages.stored_outputs, CODE("1 / 0", id="bad", outputs=[ERROR])),
        (check_pages.stored_outputs, CODE("slider", id="bad", outputs=[WIDGET])),
        (check_pages.forbidden_statements, CODE("from math import *", id="bad")),
        (check_pages.forbidden_statements, CODE("@patch\ndef f(self): pass", id="bad")),
        (check_pages.import_cells, CODE("#| export\nimport re\n\nx = 1", id="bad")),
        (check_pages.mentions_of_pages, MARKDOWN("See `fab/02_engine`.", id="bad")),
        (check_pages.mentions_of_subjects, MARKDOWN("See the page on signs.", id="bad")),
        (check_pages.dead_links, MARKDOWN("See [this](lost.ipynb).", id="bad")),
        (check_pages.dead_links, MARKDOWN("See [this](#lost).", id="bad")),
        (check_pages.page_imports, CODE("import lost_package", id="bad")),
        (check_pages.named_files, CODE("read('../lost.csv')", id="bad")),
        (check_book.cells_of_tables, MARKDOWN("| a | b |\n|---|---|\n| c |\n", id="bad")),
        (check_book.citations_of_papers, MARKDOWN("By (Hara 999).", id="bad")),
    ],
)
def test_faults_of_a_cell_are_named(check, cell, tmp_path):
    assert cells_with_problems(check, write_page(tmp_path, TITLE, cell)) == [cell.id]


PROSE = (
    "## A part of it\n\nSee [this](#a-part-of-it), [f](#solve), [file](99_page.ipynb) and $[a](b)$."
)


def test_a_page_without_faults(tmp_path):
    path = write_page(
        tmp_path,
        TITLE,
        MARKDOWN(PROSE, id="page-text"),
        CODE("#| export\nimport re", id="page-imports"),
        CODE("#| export\ndef solve():\n    pass", id="page-solve"),
        MARKDOWN("| a | b |\n|---|---|\n| `x|y` | $|z|$ |\n", id="page-table"),
    )
    checks = [check for check in check_pages.PAGE_CHECKS if check is not check_pages.page_name]
    problems = [one for check in checks + check_book.PAGE_CHECKS for one in check(path)]
    assert not problems


def test_a_page_begins_with_its_title_and_claim_alone(tmp_path):
    path = write_page(tmp_path, MARKDOWN("# A page\n\n> Claim.\n\nMore.", id="title"))
    assert cells_with_problems(check_pages.first_cell, path) == ["title"]


def test_exported_cells_need_prose(tmp_path):
    path = write_page(tmp_path, TITLE, CODE("#| export\na = 1"), CODE("#| exporti\nb = 1"))
    assert len(list(check_pages.share_of_prose(path))) == 1


def test_ids_are_unique(tmp_path):
    path = write_page(tmp_path, TITLE, MARKDOWN("text", id="a"), MARKDOWN("text", id="b"))
    path.write_text(path.read_text().replace('"id": "b"', '"id": "a"'))
    assert cells_with_problems(check_pages.cell_ids, path) == ["a"]


def test_references_need_a_definition(tmp_path):
    text = "See @eq-lost and `@fig-quoted`; $$ x $$ {#eq-here} @eq-here."
    problems = check_pages.undefined_references(write_page(tmp_path, TITLE, MARKDOWN(text)))
    assert [problem.message for problem in problems] == ["@eq-lost is not defined"]


def test_subjects_of_pages_without_a_link():
    text = "See the page on signs, or\nthe pages of\nbudgets and trees."
    assert check_pages.unlinked_subjects(text) == ["signs", "budgets and trees"]
    text = "The page on [signs](a.ipynb); the pages of the [part](b.ipynb)."
    assert not check_pages.unlinked_subjects(text)
    assert not check_pages.unlinked_subjects("the pages of this chapter, the page of a library")


# Equations, glossary, reading paths


@pytest.mark.parametrize(
    "text, dead",
    [
        ("by (fab.1), (fab.2)", []),
        ("the engine (fab.9) and (rows.3)", ["fab.9", "rows.3"]),
        ("by (S3)", ["(S3)"]),
        ("module fab.foba, `fab.4`, 1.5", []),
    ],
)
def test_citations_without_an_equation(text, dead):
    assert equations.dead_citations([text], {"fab.1", "fab.2"}, {"fab", "rows"}) == dead


def test_names_of_the_map_are_looked_up_in_modules():
    assert check_book.is_defined("fab.criterion.fic")
    assert not check_book.is_defined("fab.criterion.lost") and not check_book.is_defined("lost.fic")


def test_symbols_are_read_one_by_one():
    entry = glossary.Entry("w", r"$E, G$ and $q_{n,k} = 1$, `q`", "", "A page", "a.ipynb")
    assert glossary.symbols_of(entry) == {"$E$", "$G$", "$q_{n,k}$"}


table_cells = st.lists(st.sampled_from(["a", "`x|y`", "$|z|$", r"\|", "the", "é"]), max_size=4).map(
    " ".join
)


@given(st.lists(table_cells, min_size=1, max_size=5))
def test_bars_in_formulas_and_code_do_not_split_cells(cells):
    assert glossary.cells_of("| " + " | ".join(cells) + " |") == cells


WORD_TABLES = """Words.

| Word in the code | meaning |
|---|---|
| `fab` | the loop |

| symbol | word | shape, unit |
|:-:|---|---|
| $|a|$ | the size of a | (n,) |

| you want | use |
|---|---|
| word | nothing |
"""


def test_all_kinds_of_tables_are_read(tmp_path):
    first, second = glossary.entries_of(write_page(tmp_path, TITLE, MARKDOWN(WORD_TABLES)))
    assert (first.word, first.symbol, first.shape) == ("`fab`: the loop", "", "")
    assert (second.word, second.symbol, second.shape) == ("the size of a", "$|a|$", "(n,)")
    assert first.page == "A page" and second.key[0] == "size of a"


def test_longer_pages_take_longer():
    short = NBS / "guide" / "04_choose_size.ipynb"
    assert 1 < routes.minutes(short) < routes.minutes(NBS / "fab" / "02_engine.ipynb")


# Imports


def test_imports_in_a_cycle():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert imports.cyclic_imports(graph) == {"a -> b", "b -> c", "c -> a"}


def test_imports_of_a_higher_floor():
    graph = {
        "fab.engine": {"rows.bins", "report", "bench.cost"},
        "report": {"fab.engine", "bench.cost"},
        "bench.cost": {"fab.engine", "report"},
    }
    assert imports.upward_imports(graph) == {
        "fab.engine -> report",
        "fab.engine -> bench.cost",
        "report -> bench.cost",
    }


def test_new_imports_and_known_ones_that_are_gone():
    problems = list(
        imports.compare_with_known("cyclic", {"a.b -> c", "c -> a.b"}, ["a.b -> c", "x -> y"])
    )
    assert [problem.file for problem in problems] == [
        "fabinterp/c.py",
        "tests/frame/budgets.toml",
    ]
    assert "remove it from the list" in str(problems[1])


@pytest.mark.parametrize(
    "statement, names",
    [
        ("import numpy.linalg", ["numpy.linalg"]),
        ("from ..rules import core", ["fabinterp.rules.core"]),
        ("from ..rules.core import Rule", ["fabinterp.rules.core"]),
        ("from .bins import incidence", ["fabinterp.rows.bins"]),
        ("from .. import explain, __version__", ["fabinterp.explanation"]),
    ],
)
def test_names_of_imported_modules(statement, names):
    (node,) = ast.parse(statement).body
    assert imports.imported_names(node, ["fabinterp", "rows"]) == names


# Package and budgets


def area(width, height):
    """Return an area.

    Parameters
    ----------
    height, width : float
        Two sides.

    Returns
    -------
    float
        Their product.
    """
    return width * height


def test_parameters_in_another_order():
    (problem,) = check_package.parameters_of("area", area)
    assert problem.remedy == "describe width, height"


def test_tokens_without_docstrings_and_comments():
    source = '"""Text."""\n\n\ndef f(x):\n    """Text."""\n    return x + 1  # one\n'
    assert budgets.count_tokens(source) == len("def f ( x ) : return x + 1".split())


def test_lines_without_directives_docstrings_and_blanks():
    assert budgets.code_lines('#| export\ndef f():\n    """Text."""\n\n    return 1') == 2


def test_a_budget_that_is_exceeded():
    rows = [budgets.Budget("a", 3, 2), budgets.Budget("b", 2, 2), budgets.Budget("c", 9)]
    (problem,) = budgets.exceeded(rows)
    assert problem.message.startswith("a: 3, limit 2")


def test_wording_counts_words_and_hits():
    text = wording.plain("What is printed is a model. `told` and $x$, [told](told.ipynb).")
    assert len(wording.hits_in(text)) == 2
    assert wording.count_words("one two x 3 four") == 3
