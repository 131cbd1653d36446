"""Every equation has a number of its own, and every citation leads to one."""

import re

import pytest
from frame import ROOT, committed_files, equations, notebooks

TAGS = equations.tags()
CHAPTERS = {equations.chapter_of(path) for path in notebooks()}


def test_no_tag_stands_twice():
    twice = {tag: [page.stem for page in pages] for tag, pages in TAGS.items() if len(pages) > 1}
    assert not twice


def test_a_tag_is_chapter_and_number():
    for tag, (page, *_) in TAGS.items():
        chapter = equations.chapter_of(page)
        assert re.fullmatch(rf"{chapter}\.\d+", tag), (
            f"{page.name}: {tag} is no number of {chapter}"
        )


def test_numbers_count_in_reading_order():
    moved = {old: new for old, new in equations.new_numbers().items() if old != new}
    assert not moved, "python tests/frame/equations.py number"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_citations_of_pages_lead_somewhere(path):
    prose, code = equations.sources(path)
    assert not equations.dead_citations([*prose, *code], TAGS, CHAPTERS)


def test_citations_of_tests_lead_somewhere():
    for path in committed_files():
        if (
            path.suffix == ".py"
            and ROOT / "tests" in path.parents
            and path.name != "test_equations.py"
        ):
            text = path.read_text(encoding="utf-8")
            assert not equations.dead_citations([text], TAGS, CHAPTERS), path.name


def test_the_check_notices():
    known = {"fab.1", "fab.2"}
    for text, found in {
        "by (fab.1), (fab.2)": [],
        "the engine (fab.12) and (rows.3)": ["fab.12", "rows.3"],
        "by (S3)": ["(S3)"],
        "module fab.foba, `fab.7`, 1.5": [],
    }.items():
        assert equations.dead_citations([text], known, {"fab", "rows"}) == found
