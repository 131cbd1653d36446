"""The map of the papers' equations: every number once, and what it points at is there."""

import importlib
import re

import pytest
from frame import NBS, pages, papers
from shared.notebooks import code_cells

EVERY = papers.equations()


def test_the_pages_are_what_the_table_yields():
    for path, text in papers.texts().items():
        assert path.read_text(encoding="utf-8") == text, "run `make export`"


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_numbered_equation_of_a_paper_is_there_once(paper):
    found = [int(one.number) for one in EVERY if one.paper == paper and one.is_numbered]
    assert found == list(range(1, papers.PAPERS[paper][2] + 1))


def test_what_is_not_numbered_is_a_slip():
    assert all(one.is_numbered or one.verdict == "slip" for one in EVERY)
    assert {one.verdict for one in EVERY} <= set(papers.VERDICTS)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.paper} {one.number}")
def test_it_is_derived_computed_and_checked_where_the_map_says(one):
    assert re.fullmatch(r"[a-z]+\.\d+", one.tag)
    if one.function:
        module, name = one.function.rsplit(".", 1)
        assert hasattr(importlib.import_module(f"fabinterp.{module}"), name)
    if one.check:
        page, name = one.check.split("#")
        (cell,) = (c for c in code_cells(NBS / f"{page}.ipynb") if c["id"] == name)
        assert re.search(r"^ *assert ", cell["source"], re.M)
    else:
        assert one.verdict == "stated"
    assert one.note or one.verdict == "holds"


def test_the_pages_cite_no_equation_that_the_map_lacks():
    known = {(one.paper, one.number) for one in EVERY}
    pattern = re.compile(rf"\(({'|'.join(papers.PAPERS)}) (\d+)\)")
    for path in pages():
        cited = set(pattern.findall(path.read_text(encoding="utf-8")))
        assert cited <= known, path.name
