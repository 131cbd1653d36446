"""The routes through the pages: in step with them, and every method page is on one."""

import re

from frame import NBS, pages, routes


def test_the_page_is_what_the_pages_yield():
    assert routes.PAGE.read_text(encoding="utf-8") == routes.text(), "run `make export`"


def test_every_method_page_is_on_a_route():
    listed = {stem for *_, stems in routes.ROUTES.values() for stem in stems.split()}
    for path in pages():
        chapter = path.relative_to(NBS).parent.name
        n_equations = len(re.findall(r"\\\\tag\{", path.read_text(encoding="utf-8")))
        if chapter in ("fab", "search", "models", "metatree", "proxy") and n_equations >= 4:
            assert f"{chapter}/{path.stem}" in listed


def test_more_to_read_takes_longer():
    short = NBS / "guide" / "04_choose_size.ipynb"
    assert 1 < routes.minutes(short) < routes.minutes(NBS / "fab" / "00_engine.ipynb")
