"""The site is built as plain HTML, checked, and looked at in a browser; the check itself is checked."""

import base64
import colorsys
import io
import os
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
from browser.serve import chromium
from frame import NBS, api, copy_tree, docs, glossary, layout, sources
from frame import pages as frame_pages
from frame.names import PUBLIC
from shared.needs import need

WIDTHS = (400, 1200)
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
BEYOND_PAPER = """[...document.querySelectorAll("main :is(table, pre, math, img)")]
.map(element => [element.tagName, element.getBoundingClientRect().right])
.filter(([tag, right]) => right > document.documentElement.clientWidth + 1)"""
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 16).decode()
LINKS = """queries => queries.map(text => {
    query.value = text;
    query.dispatchEvent(new Event("input"));
    return [...hits.querySelectorAll("a")].map(link => link.href);
})"""
WORDS = """rows => rows.map(row => [
    row.id, [...row.cells].map(cell => cell.textContent.trim().replace(/\\s+/g, " ")).find(text => text)
])"""
FILTERS = "from nbdev.serve import proc_nbs; print(proc_nbs(force=True, n_workers=0))"


def the_pages(test):
    """Mark a test of the pages, which take a minute to build."""
    return pytest.mark.slow(pytest.mark.xdist_group("pages")(test))


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Build the pages once; return their folder and the problems."""
    need("pandoc")
    out = tmp_path_factory.mktemp("pages")
    return out, docs.build(out)


@the_pages
def test_docs_check(pages):
    assert not pages[1], "\n".join(pages[1])


def write_page(path, *cells, claim="claim"):
    """Write a notebook of a title and these cells."""
    title = nbformat.v4.new_markdown_cell(f"# Title\n\n> {claim}")
    nbformat.write(nbformat.v4.new_notebook(cells=[title, *cells]), path)


def test_docs_check_notices_dead_links(tmp_path):
    linked = docs.Page(
        '<p id="here"><a href="#here">a</a><a href="#gone">b</a><a href="other.html">c</a></p>'
    )
    assert len(docs.link_problems({"page.html": linked}, tmp_path)) == 2


def test_docs_check_notices_what_nothing_leads_to_and_what_is_loaded():
    built = {
        "index.html": docs.Page(
            '<a href="a/b.html#x">b</a><script src="https://far/x.js"></script>'
        ),
        "a/b.html": docs.Page('<a href="../index.html">index</a>'),
        "a/c.html": docs.Page('<a href="b.html">b</a>'),
    }
    assert docs.lost_pages(built) == ["a/c.html: no link leads to it"]
    assert docs.outside_problems(built) == ["index.html: loads https://far/x.js"]
    places = dict.fromkeys(list(PUBLIC)[1:], "a/b.html")
    assert len(docs.lost_names(built, places)) == len(PUBLIC)


def test_names_that_differ_in_capitals_have_places_of_their_own(tmp_path):
    both = nbformat.v4.new_code_cell(
        "#| export\nclass Change:\n    pass\n\ndef change():\n    pass"
    )
    write_page(tmp_path / "page.ipynb", both)
    source = sources.from_notebook(tmp_path / "page.ipynb", tmp_path)
    assert [source.anchor(name) for name in ("Change", "change")] == ["change", "change-2"]
    assert docs.double_places({"page.html": docs.Page(source.text)}) == []
    twice = {"page.html": docs.Page('<p id="here"></p><a id="here"></a><a id="there"></a>')}
    assert docs.double_places(twice) == ["page.html: 2 elements are #here"]


@pytest.mark.slow
def test_a_broken_formula_is_noticed():
    need("pandoc")
    for formula, is_broken in ((r"$$ \frac{1}{2} $$", False), (r"$$ \frac{1}{2 $$", True)):
        assert bool(layout.pandoc(formula)[2]) == is_broken


def test_a_notebook_begins_with_its_question(tmp_path):
    """Imports that stand first go last; what stands below a numbered equation is open."""
    code = nbformat.v4.new_code_cell
    write_page(
        tmp_path / "00_page.ipynb",
        code("#| default_exp page"),
        code("#| export\nimport numpy as np"),
        nbformat.v4.new_markdown_cell(
            r"## Question" + "\n\n" + r"$$ x \quad\text{(Hara 7)} \tag{page.1} $$"
        ),
        code("#| export\ndef shown():\n    return 2"),
        nbformat.v4.new_markdown_cell("## Plumbing"),
        code("#| export\ndef helper():\n    return 1"),
        code('#| code-fold: true\n#| code-summary: "Answer 1"\nassert shown() == 2'),
    )
    source = sources.from_notebook(tmp_path / "00_page.ipynb", tmp_path)
    text = source.text
    assert (source.page, source.title, source.claim) == ("page.html", "Title", "claim")
    assert text.index("## Question") < text.index("def helper") < text.index("import numpy")
    assert re.findall('<details class="(.*?)"><summary>(.*?)</summary>', text) == [
        ("code", "<code>helper</code>"),
        ("code answer", "Answer 1"),
        ("code", "Imports"),
    ]
    assert source.definitions == ["shown", "helper"]
    assert r"$$ x\text{⟦(Hara 7)|page.1⟧} $$".replace(" ", "") in text.replace(" ", "")


def test_code_without_echo_is_left_out(tmp_path):
    drawn = nbformat.v4.new_output("display_data", {"image/png": PIXEL})
    cell = nbformat.v4.new_code_cell(
        "#| echo: false\n#| fig-alt: A dot\nplt.plot()", id="dot", outputs=[drawn]
    )
    write_page(tmp_path / "page.ipynb", nbformat.v4.new_markdown_cell("## Dot"), cell)
    text = sources.from_notebook(tmp_path / "page.ipynb", tmp_path).text
    assert "plt.plot" not in text and "![A dot](page_files/dot-0.png)" in text


def test_signs_of_a_claim_stay(tmp_path):
    """A claim is one line of a quotation: its mark goes, an inequality in it does not."""
    write_page(tmp_path / "page.ipynb", claim="all become x > b\n> where 0 < b < 1")
    claim = sources.from_notebook(tmp_path / "page.ipynb", tmp_path).claim
    assert claim == "all become x > b\nwhere 0 < b < 1"


def test_pictures_of_prose_go_with_the_page(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(name.encode())
    prose = '![words](a.png) <picture><source srcset="b.png"><img alt="" src="c.png"></picture> ![](gone.png)'
    write_page(tmp_path / "page.ipynb", nbformat.v4.new_markdown_cell(prose))
    images = sources.from_notebook(tmp_path / "page.ipynb", tmp_path).images
    assert images == {name: name.encode() for name in ("a.png", "b.png", "c.png")}


def test_the_first_page_has_its_name_once():
    assert layout.window_title("fabinterp", "fabinterp") == "fabinterp"
    assert layout.window_title("Gates", "fabinterp") == "Gates · fabinterp"


def test_mentions_are_names_not_words():
    assert layout.mentioned("fabinterp.report") == "report"
    assert layout.mentioned("explain(model, X)") == "explain"
    assert layout.mentioned("RuleSet") == "RuleSet"
    assert layout.mentioned("plot.tree(model)") == "plot.tree"
    assert layout.mentioned("report") is None


def test_names_and_equations_are_linked_where_prose_mentions_them():
    derived = sources.Source("fab/00_a.ipynb", "A", "", r"\text{⟦|fab.1⟧}", definitions=["Model"])
    reader = sources.Source("b.ipynb", "B", "", "")
    both = {source.name: source for source in (derived, reader)}
    site = layout.Site(both, list(both), {"Rule": "api/rules.html"}, "site")
    links = {
        "by <code>Model</code> and (fab.1)": ["fab/a.html#model", "fab/a.html#eq-fab.1"],
        "<code>Rule</code>": ["api/rules.html#rule"],
        "<pre><code>Model</code> (fab.1)</pre> <h2>fab.1</h2> (fab.2)": [],
    }
    for body, expected in links.items():
        assert re.findall('href="(.*?)"', site.mentions(reader, body)) == expected


def test_numbers_of_equations_stand_beside_them():
    number = '<mtext mathvariant="normal">⟦(Hara 7)|fab.1⟧</mtext>'
    found = layout.equations(f'<math display="block"><mi>x</mi>{number}</math>')
    assert 'id="eq-fab.1"' in found
    assert found.index("</math>") < found.index("(Hara 7)") < found.index("(fab.1)")


def test_formulas_are_in_words_that_browsers_take():
    """Hats and tildes above their letters, names upright, brackets as tall as was asked."""
    found = layout.equations(layout.pandoc(r"$\tilde f - \hat f = \Big( \mathrm{FIC} \Big)$")[1])
    assert ">~</mo>" in found and ">^</mo>" in found and not re.search("[\u0302\u0303]", found)
    assert '<mi mathvariant="normal">FIC</mi>' in found
    assert found.count('minsize="1.8em" maxsize="1.8em" stretchy="true"') == 2


def test_groups_of_a_number_stay_on_one_line():
    """In prose and tables; where it is copied from, code, the number is as it was written."""
    site = layout.Site({}, [], {}, "site")
    body = "<td>66 300 of 2 columns</td><pre><code>66 300</code></pre>"
    kept = "<td>66\u00a0300 of 2 columns</td><pre><code>66 300</code></pre>"
    assert site.mentions(sources.Source("b.ipynb", "B", "", ""), body) == kept


def test_sentences_break_and_columns_do_not():
    """A long line of an output may break if it is prose; tables, drawings and code keep their lines."""
    sentence = "the rules answer as the forest does on 97 of 100 rows, and with six conditions"
    table = "forest           RandomForestClassifier                   its 100 trees were read"
    numbers = "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 1.1 1.2 1.3 1.4 1.5"
    assert list(map(layout.is_sentence, (sentence, table, numbers))) == [True, False, False]
    found = layout.wrapped(f'<pre class="output"><code>{table}\n{sentence}\nend</code></pre>')
    assert found == (
        f'<pre class="output"><code>{table}\n<span class="sentence">{sentence}</span>end</code></pre>'
    )


def test_columns_of_words_are_marked_and_tables_too_wide_for_paper():
    row = f"<td>(Hara 7)</td><td>{'some words ' * 4}</td>"
    found = layout.wrapped(f"<table><tr>{row}<td>1</td></tr></table>")
    assert re.findall("<td(.*?)>", found) == [' class="reference"', ' class="prose"', ""]
    assert '<div class="scroll" tabindex="0">' in found
    wide = layout.wrapped(f"<table><tr>{'<td>1</td>' * 20}</tr></table>")
    assert '<div class="scroll many" tabindex="0">' in wide


def test_a_report_in_a_frame_is_a_page_too(tmp_path):
    frame = '<iframe sandbox="" srcdoc="&lt;p&gt;hello&lt;/p&gt;"></iframe>'
    output = nbformat.v4.new_output("display_data", {"text/html": frame})
    write_page(
        tmp_path / "page.ipynb", nbformat.v4.new_code_cell("report", id="r", outputs=[output])
    )
    source = sources.from_notebook(tmp_path / "page.ipynb", tmp_path)
    assert source.images == {"page_files/r.html": b"<p>hello</p>"}
    assert 'href="page_files/r.html"' in source.text


def test_code_is_fenced_whatever_it_holds():
    assert sources.fenced("a ``` b", "python").startswith("```` {.python}")


def test_what_one_calls_stands_before_what_it_returns():
    assert api.names_of("front")[0] == "explain" and "Explanation" not in api.names_of("front")
    assert api.names_of("rules")[:2] == ["load_rules", "explain_row"]
    table = api.table_of(api.names_of("front"), "front").splitlines()
    assert table[2].startswith("| [`explain`](front.md#explain) | Approximate a fitted model")
    assert len(table) == 2 + len(api.names_of("front"))


def test_long_signatures_have_a_line_a_parameter():
    def long(first=(1, 2), *, second="a, b", third="-" * 60, **options):
        pass

    lines = [line.strip() for line in api.signature("long", long).splitlines()]
    assert lines[2:5] == ["first=(1, 2),", "*,", "second='a, b',"]


@the_pages
def test_the_api_says_all_of_each_name(pages):
    out, _ = pages
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (out / "api").glob("*.html")}
    for name in PUBLIC:
        entry = re.split("<h2 ", texts[api.chapter_of(name)])
        entry = next(part for part in entry if part.startswith(f'id="{name.lower()}"'))
        is_made = name in ("Explanation", "Reference")
        for said in (
            "Its fields\n</summary>" if is_made else ">Parameters</h3>",
            ">Example</h3>",
            '<pre class="output">',
            "Derived, with its code",
        ):
            assert said in entry, f"{name}: {said}"


@the_pages
def test_nbdev_filters_pass(tmp_path):
    """What the Quarto build does to all notebooks first."""
    tree = copy_tree(tmp_path / "tree")
    env = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
    env["PYTHONPATH"] = str(tree)
    command = [sys.executable, "-c", FILTERS]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(frame_pages(tree / "_proc")) == len(frame_pages(NBS))


@the_pages
def test_pages_fit_their_window(pages):
    """No page is wider than a phone or a desk; pictures load; nothing is asked for that is not there."""
    need("chromium", "playwright")
    out, _ = pages
    complaints = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        for path in sorted(out.rglob("*.html")):
            page.goto(path.as_uri())
            name = path.relative_to(out).as_posix()
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                found = page.evaluate("document.documentElement.scrollWidth")
                if found > width:
                    complaints.append(f"{name}: {found} wide in a window of {width}")
            if not page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"):
                complaints.append(f"{name}: a picture does not load")
    assert not complaints, "\n".join(complaints)


@the_pages
def test_one_moves_about_by_menu_and_steps(pages):
    need("chromium", "playwright")
    out, _ = pages
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.goto((out / "index.html").as_uri())
        menu = page.get_by_role("navigation", name="All pages")
        assert not menu.is_visible()
        page.locator("label[for=menu]").click()
        assert menu.is_visible()
        menu.get_by_text("API", exact=True).click()
        menu.get_by_text("All names").click()
        assert page.url.endswith("api/names.html")
        page.locator("a[rel=next]").click()
        assert page.url.endswith("api/front.html")
        page.set_viewport_size({"width": 1200, "height": 800})
        assert page.get_by_role("navigation", name="On this page").is_visible()
        page.goto((out / "fab" / "criterion.html").as_uri())
        light = page.evaluate(BACKGROUND)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(BACKGROUND) != light
        page.emulate_media(media="print")
        assert page.evaluate(BACKGROUND) == light
        assert not page.get_by_role("navigation", name="All pages").is_visible()
        assert page.locator("math").first.bounding_box()["height"] > 0


@the_pages
def test_brackets_are_as_high_as_they_were_set(pages):
    need("chromium", "playwright")
    assert not (problems := docs.bracket_problems(pages[0])), "\n".join(problems)


@pytest.mark.slow
def test_a_bracket_that_is_too_low_is_noticed(tmp_path):
    need("pandoc", "chromium", "playwright")
    _, formula, _ = layout.pandoc(r"$$ \prod_k \Big( x_k \Big)^{u_k} $$")
    raw = layout.TALL.sub(r'minsize="\1em" maxsize="\1em" stretchy="true"', formula)
    style = f'<link rel="stylesheet" href="{layout.STYLE.as_uri()}">'
    for name, body in [("fixed", layout.equations(formula)), ("raw", raw)]:
        (tmp_path / f"{name}.html").write_text(style + body, encoding="utf-8")
    (problem,) = docs.bracket_problems(tmp_path)
    assert problem.startswith("raw.html: a bracket is ")


@the_pages
def test_search_finds_names_pages_and_words(pages):
    need("chromium", "playwright")
    out, _ = pages
    wanted = [(name, f"{api.chapter_of(name)}.html#{name.lower()}") for name in PUBLIC]
    for path in frame_pages():
        source = sources.from_notebook(path, NBS)
        wanted.append((layout.plain(source.title), source.page))
    with chromium() as browser:
        page = browser.new_page()
        page.goto((out / "guide" / "glossary.html").as_uri())
        words = page.locator("tr[id^=word-]").evaluate_all(WORDS)
        assert len(words) == len(glossary.entries())
        wanted += [(text[:60].strip(), f"guide/glossary.html#{place}") for place, text in words]
        found = page.evaluate(LINKS, [text for text, _ in wanted])
    lost = [
        text
        for (text, link), links in zip(wanted, found, strict=True)
        if not any(hit.endswith(f"/{link}") for hit in links)
    ]
    assert not lost, lost


@the_pages
def test_search_works_from_the_keyboard(pages):
    need("chromium", "playwright")
    out, _ = pages
    with chromium() as browser:
        page = browser.new_page()
        page.goto((out / "fab" / "engine.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("rulemixture")
        options = page.get_by_role("option")
        assert options.first.get_attribute("aria-selected") == "true"
        page.keyboard.press("ArrowDown")
        second = options.nth(1)
        assert second.get_attribute("aria-selected") == "true"
        link = second.locator("a").get_attribute("href").removeprefix("../")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{link}")
        page.keyboard.press("/")
        page.keyboard.type("nothing has this name")
        assert page.get_by_text("No results").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator("#hits").is_visible()


@the_pages
def test_one_switch_shows_all_code_but_answers(pages):
    need("chromium", "playwright")
    out, _ = pages
    with chromium() as browser:
        page = browser.new_page()
        page.goto((out / "fab" / "engine.html").as_uri())
        shown = "parts => parts.filter(part => part.open).length"
        code = page.locator("details.code:not(.answer)")
        assert code.evaluate_all(shown) == 0
        page.get_by_role("button", name="Show all code").click()
        assert code.evaluate_all(shown) == code.count() > 0
        answers = page.locator("details.answer")
        assert answers.count() == 3 and answers.evaluate_all(shown) == 0
        page.get_by_role("button", name="Fold the code").click()
        assert code.evaluate_all(shown) == 0


@the_pages
def test_a_link_to_a_name_opens_its_code(pages):
    need("chromium", "playwright")
    out, _ = pages
    with chromium() as browser:
        page = browser.new_page()
        page.goto((out / "models" / "piecewise.html").as_uri() + "#piecewiselinearregressor")
        assert page.get_by_text("class PiecewiseLinearRegressor").is_visible()


@the_pages
def test_pages_link_to_their_notebook_and_source(pages):
    out, _ = pages
    for path in frame_pages():
        source = sources.from_notebook(path, NBS)
        text = (out / source.page).read_text(encoding="utf-8")
        assert f'<a href="{path.name}" download>' in text
        assert f'<a href="{docs.repository()}/nbs/{source.name}">' in text
        assert (out / source.page).with_name(path.name).read_bytes() == path.read_bytes()


@the_pages
def test_paper_cuts_nothing(pages):
    """In print nothing has a box to scroll in; tables, code and formulas end where a sheet of A4 does."""
    need("chromium", "playwright")
    out, _ = pages
    complaints = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 718, "height": 1000})  # 190 mm
        page.emulate_media(media="print")
        for path in sorted(out.rglob("*.html")):
            page.goto(path.as_uri())
            for tag, right in page.evaluate(BEYOND_PAPER):
                complaints.append(f"{path.relative_to(out).as_posix()}: {tag} ends at {right}")
    assert not complaints, "\n".join(complaints)


@the_pages
def test_pictures_are_drawn_on_white_or_say_that_they_are_not(pages):
    """What the style sheet turns dark in the dark was light."""
    need("PIL")
    from PIL import Image

    out, _ = pages
    grounds = {}
    for path in out.rglob("*.html"):
        for link, others in re.findall(
            r'<img\s+src="([^":]+\.png)"([^>]*)>', path.read_text("utf-8")
        ):
            with Image.open(path.parent / link) as picture:
                ground = picture.convert("RGB").getpixel((1, 1))
            grounds.setdefault("drawn-dark" in others, set()).add(ground)
    assert grounds == {False: {(255, 255, 255)}, True: {(0, 0, 0)}}


@pytest.mark.slow
def test_pictures_are_dark_in_the_dark_and_keep_their_hues():
    """White is the page's ground, black is light, each colour of the pictures has its hue."""
    need("chromium", "playwright", "matplotlib", "PIL")
    from matplotlib.colors import to_rgb
    from PIL import Image

    names = [*(f"C{k}" for k in range(10) if k != 7), "red", "blue", "green"]
    names += ["#0072b2", "#d55e00", "#e69f00", "#009e73"]
    drawn = np.array([to_rgb(name) for name in ("white", "black", *names)])
    patches = np.kron((255 * drawn).round().astype(np.uint8)[None], np.ones((9, 9, 1), np.uint8))
    data = io.BytesIO()
    Image.fromarray(patches).save(data, "png")
    link = "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
    style = layout.STYLE.read_text("utf-8")
    with chromium() as browser:
        page = browser.new_page(color_scheme="dark")
        page.set_content(f'<style>{style}</style><main><img src="{link}"></main>')
        ground = [int(level) for level in re.findall(r"\d+", page.evaluate(BACKGROUND))]
        seen = page.locator("img").screenshot()
    seen = np.asarray(Image.open(io.BytesIO(seen)).convert("RGB"))[4, 4::9]
    assert np.abs(seen[0] - np.array(ground)).max() <= 2 and seen[1].min() >= 250
    for name, before, after in zip(names, drawn[2:], seen[2:] / 255, strict=True):
        turn = colorsys.rgb_to_hls(*after)[0] - colorsys.rgb_to_hls(*before)[0]
        assert abs((turn + 0.5) % 1 - 0.5) * 360 <= 10, name
