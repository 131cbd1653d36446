"""The pages are built as HTML, checked, and opened in a browser; the check itself is checked."""

import nbformat
import pytest
from browser.serve import chromium
from frame import docs
from shared.needs import need


def the_pages(test):
    """Mark a test of the pages, which take a minute to build."""
    return pytest.mark.slow(pytest.mark.xdist_group("pages")(test))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Build the pages once; return their folder and the problems."""
    need("pandoc")
    out = tmp_path_factory.mktemp("pages")
    return out, docs.build(out)


@the_pages
def test_docs_check(pages):
    assert not pages[1], "\n".join(pages[1])


def write_page(path, text):
    """Write a notebook of one prose cell."""
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)]), path)


def test_docs_check_notices(tmp_path):
    """The check's own test: it sees a reference without a definition, and a dead link."""
    write_page(
        tmp_path / "page.ipynb", "See @eq-lost and `@fig-quoted`; $$ x $$ {#eq-here} @eq-here."
    )
    assert docs.reference_problems(tmp_path / "page.ipynb") == [
        "page.ipynb: @eq-lost is not defined"
    ]
    linked = docs.Page(
        '<p id="here"><a href="#here">a</a><a href="#gone">b</a><a href="other.html">c</a></p>'
    )
    assert len(docs.link_problems({"page.html": linked}, tmp_path)) == 2


@pytest.mark.slow
def test_docs_check_notices_a_broken_formula(tmp_path):
    need("pandoc")
    page = tmp_path / "page.ipynb"
    for formula, is_broken in ((r"$$ \frac{1}{2} \tag{3} $$", False), (r"$$ \frac{1}{2 $$", True)):
        write_page(page, formula)
        _, complaints = docs.render(page, tmp_path, {page.name: "page.html"}, page.name)
        assert bool(complaints) == is_broken


@the_pages
def test_a_page_opens_in_a_browser(pages):
    need("chromium", "playwright")
    out, _ = pages
    page_file = max(out.rglob("*.html"), key=lambda path: path.read_text().count("<math"))
    with chromium() as browser:
        page = browser.new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(page_file.as_uri())
        assert page.locator("h1").first.inner_text()
        assert page.locator("math").first.bounding_box()["height"] > 0
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert not complaints
