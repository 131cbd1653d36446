"""The glossary is what the notebooks' word tables yield: nothing lost, nothing invented."""

import os
import re

import nbformat
import pytest
from frame import glossary, notebooks
from hypothesis import given
from hypothesis import strategies as st

FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.S)


def table():
    """The rows of the page's table, as cells."""
    source = nbformat.read(glossary.PAGE, 4).cells[-1].source
    return [glossary.cells_of(line) for line in source.splitlines()]


def test_the_page_is_what_the_tables_yield():
    assert glossary.PAGE.read_text(encoding="utf-8") == glossary.glossary(), "run `make export`"


def test_every_word_table_is_in_it():
    listed = {re.fullmatch(r"\[.+\]\((.+)\)", page)[1] for *_, page in table()[2:]}
    written = {
        os.path.relpath(path, glossary.PAGE.parent)
        for path in notebooks()
        if re.search(r"\| *symbol *\| *word", path.read_text("utf-8"), re.I)
    }
    assert written <= listed and glossary.PAGE.name not in listed
    assert all((glossary.PAGE.parent / name).exists() for name in listed)


def test_every_row_has_its_cells():
    head, _, *rows = table()
    assert head == ["word", "symbol", "shape", "page"] and all(
        len(row) == 4 and row[0] for row in rows
    )
    for path in notebooks():
        for cell in nbformat.read(path, 4).cells:
            for first, body in glossary.TABLE.findall(
                cell.source if cell.cell_type == "markdown" else ""
            ):
                n_cells = {
                    len(glossary.cells_of(line)) for line in [first, *body.strip().splitlines()]
                }
                assert len(n_cells) == 1, (
                    f"{path.name}: a table in {cell.id} has rows of {sorted(n_cells)} cells"
                )


def test_it_is_sorted_and_each_is_there_once():
    entries = glossary.entries()
    assert [entry.key for entry in entries] == sorted(entry.key for entry in entries)
    assert len({tuple(row) for row in table()}) == len(table()) == len(entries) + 2


def test_a_line_of_letters_leads_to_the_first_word_of_each():
    *_, text, words = nbformat.read(glossary.PAGE, 4).cells
    links = re.findall(r"\[([A-Z])\]\(#words-([a-z])\)", text.source)
    assert [letter.casefold() for letter, _ in links] == [place for _, place in links]
    assert re.findall(r'\| <a id="words-(\w)"></a>', words.source) == [place for _, place in links]
    letters = {entry.key[0][0] for entry in glossary.entries()}
    assert {place for _, place in links} == letters & set("abcdefghijklmnopqrstuvwxyz")


def test_a_letter_of_several_pages_has_a_line_each():
    found = [row[3] for row in table() if row[1] == "$w_n$"]
    assert len(found) > 3 and len(set(found)) >= len(found) - 1


@pytest.mark.parametrize("letter", glossary.letters(), ids=lambda letter: letter.symbols)
def test_a_letter_of_the_notation_means_one_thing(letter):
    found = glossary.uses(letter)
    assert found, "no word table has it"
    others = [entry for entry in found if not re.search(letter.word, entry.word)]
    assert not others, [(entry.file, entry.symbol, entry.word) for entry in others]


@pytest.mark.parametrize(
    "letter",
    [letter for letter in glossary.letters() if letter.retired],
    ids=lambda letter: letter.symbols,
)
def test_formulas_have_no_letter_that_made_way(letter):
    for path in notebooks():
        if path.parent.name not in glossary.ONE_NOTATION:
            continue
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown" and not cell.id.endswith("-glossed"):
                own = re.sub(r"the paper's \$[^$]+\$", "", cell.source)
                left = [
                    formula
                    for formula in FORMULA.findall(own)
                    if re.search(letter.retired, formula)
                ]
                assert not left, (path.name, cell.id, left)


def test_symbols_are_read_one_by_one():
    entry = glossary.Entry("w", r"$E, G$ and $q_{n,k} = 1$, `q`", "", "A page", "a.ipynb")
    assert glossary.symbols_of(entry) == {"$E$", "$G$", "$q_{n,k}$"}


cell = st.lists(st.sampled_from(["a", "`x|y`", "$|z|$", r"\|", "the", "é"]), max_size=4).map(
    " ".join
)


@given(st.lists(cell, min_size=1, max_size=5))
def test_bars_in_formulas_and_code_do_not_part_cells(cells):
    assert glossary.cells_of("| " + " | ".join(cells) + " |") == cells


def test_all_kinds_of_tables_are_read(tmp_path):
    text = """Words.

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
    cells = [
        nbformat.v4.new_markdown_cell("# A page\n\n> Claim."),
        nbformat.v4.new_markdown_cell(text),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "99_page.ipynb")
    first, second = glossary.entries_of(tmp_path / "99_page.ipynb")
    assert (first.word, first.symbol, first.shape) == ("`fab`: the loop", "", "")
    assert (second.word, second.symbol, second.shape) == ("the size of a", "$|a|$", "(n,)")
    assert first.page == "A page" and second.key[0] == "size of a"


@pytest.mark.slow
def test_check_notices(tmp_path, monkeypatch):
    monkeypatch.setattr(glossary, "PAGE", tmp_path / "01_glossary.ipynb")
    for text in (None, "{}"):
        if text is not None:
            glossary.PAGE.write_text(text)
        with pytest.raises(SystemExit, match="make export"):
            glossary.main(["--check"])
    glossary.main([])
    glossary.main(["--check"])
