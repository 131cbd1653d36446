"""Demos with every kind of control move in a browser: text and picture change, nothing complains.

The controls of all demos are moved in `test_demos.py`, without a browser.
"""

import os
import re
import time
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path

import nbformat
import pytest
from browser.demos import DERIVATIONS, EXPLORE, cut_out, demos, demos_folder
from browser.serve import chromium, server
from frame import NBS, pages
from shared.needs import PATIENCE, need
from shared.notebooks import code_cells

from fabinterp.show.panel import Panel

# One browser, and one server for all: the tests stay together
pytestmark = pytest.mark.xdist_group("browser")

WORDS = "panel => panel.querySelector('.fabinterp-text').innerText"
PICTURE = """panel => {
    const image = panel.querySelector('img'), canvas = document.createElement('canvas')
    if (!image || !image.complete || !image.naturalWidth) return ''
    canvas.width = image.naturalWidth
    canvas.height = image.naturalHeight
    canvas.getContext('2d').drawImage(image, 0, 0)
    return canvas.toDataURL()
}"""
IN_LAB = "exp-refit-live"
# Controls have their names: a picture is complete a little before its script, which names them, runs
NAMED = "panel => panel.querySelector('.fabinterp-text[aria-live]') !== null"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A folder of demos, a browser, and servers that start when they are asked for."""
    need("chromium", "playwright", "voila", "jupyterlab", "ipywidgets")
    folder = demos_folder(tmp_path_factory.mktemp("nbs"))
    for page, demo in demos():
        if demo in (*DERIVATIONS, EXPLORE, IN_LAB):
            nbformat.write(cut_out(NBS / page, demo), folder / f"{demo}.ipynb")
    with ExitStack() as stack:
        yield Stage(folder, stack.enter_context(chromium()), stack)


class Stage:
    """What the tests of this file share."""

    def __init__(self, folder, browser, stack):
        self.folder = folder
        self.browser = browser
        self.stack = stack
        self.servers = {}
        self.tabs = {}

    def address(self, module, *options):
        """Where a server listens."""
        if module not in self.servers:
            self.servers[module] = self.stack.enter_context(server(module, self.folder, *options))
        return self.servers[module]

    def open(self, address):
        """A page that begins to load, and the list of its complaints."""
        page = self.browser.new_page(viewport={"width": 900, "height": 900})
        complaints = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # Voila's page asks other hosts for fonts and MathJax; what the demos need must be here
        page.route(re.compile(r"^https?://(?!localhost)"), lambda route: route.fulfill(body=""))
        page.goto(address, wait_until="commit")
        return page, complaints

    def voila(self, demo):
        """The page of a demo and its complaints; the next demo begins to load meanwhile."""
        shown = (*DERIVATIONS, EXPLORE)
        for each in shown[shown.index(demo) :][:2]:
            if each not in self.tabs:
                address = self.address("voila", "--show_tracebacks=True")
                self.tabs[each] = self.open(f"{address}voila/render/{each}.ipynb")
        return self.tabs.pop(demo)


def label_of(box):
    """The text of the label of a form's control."""
    return box.evaluate("box => box.labels[0].innerText")


class Demo:
    """The panel of a demo on a page."""

    def __init__(self, page):
        self.page = page
        self.panel = page.locator(".widget-vbox").first
        self.panel.wait_for()
        self.page.wait_for_function(
            f"panel => ({PICTURE})(panel) !== ''", arg=self.panel.element_handle()
        )
        self.page.wait_for_function(NAMED, arg=self.panel.element_handle())

    @property
    def words(self):
        """What the panel says."""
        return self.panel.evaluate(WORDS)

    @property
    def picture(self):
        """The picture as text."""
        return self.panel.evaluate(PICTURE)

    def changes(self, move, words=True):
        """Make a move; wait until words (where asked for) and picture are others than before."""
        before = self.picture
        said = self.words
        move()
        if words:
            self.page.wait_for_function(f"([panel, said]) => ({WORDS})(panel) !== said",
                                        arg=[self.panel.element_handle(), said])  # fmt: skip
        self.wait_for_another_picture(before)

    def push(self, k=0, key="ArrowRight"):
        """Push the handle of slider number k by a key."""
        self.panel.locator(".noUi-handle").nth(k).focus()
        self.page.keyboard.press(key)

    def moves(self):
        """For each control, by its name as a screen reader says it, a list of moves to try."""
        found = {}
        for k, handle in enumerate(self.panel.get_by_role("slider").all()):
            found[handle.get_attribute("aria-label")] = [
                partial(self.push, k, key) for key in ("PageUp", "End", "Home")
            ]
        for box in self.panel.get_by_role("combobox").all():
            others = box.evaluate(
                "box => [...box.options].filter(o => !o.selected).map(o => o.text)"
            )
            found[label_of(box)] = [partial(box.select_option, other) for other in others]
        for box in self.panel.get_by_role("checkbox").all():
            found[label_of(box)] = [partial(box.press, "Space")]
        return found

    def change_text(self, moves):
        """Make moves, in turn, until one changes the text; a slider at its end changes nothing."""
        until = time.monotonic() + PATIENCE
        for move in cycle(moves):
            self.wait_until_still()
            words = self.words
            move()
            if self.text_changes(words):
                return
            assert time.monotonic() < until, f"nothing changes the text {words!r}"

    def text_changes(self, words, seconds=6):
        """Return whether the text becomes another one; if the kernel is slower, the move is made again."""
        for _ in range(4 * seconds):
            self.page.wait_for_timeout(250)
            if self.words != words:
                return True
        return False

    def wait_for_another_picture(self, picture):
        """Wait until the picture is another one."""
        self.page.wait_for_function(f"([panel, before]) => !['', before].includes(({PICTURE})(panel))",
                                    arg=[self.panel.element_handle(), picture])  # fmt: skip

    def wait_until_still(self):
        """Wait until a picture has loaded and stood for a second."""
        before = None
        while before != (before := self.picture) or not before:
            self.page.wait_for_timeout(1000)

    def shoot(self, name):
        """Keep a screenshot where FABINTERP_SHOTS names a folder."""
        if folder := os.environ.get("FABINTERP_SHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("demo", DERIVATIONS)
def test_each_control_of_a_demo_moves_text_and_picture(stage, demo):
    """By the keyboard alone, every control found by the name that a screen reader says."""
    page, complaints = stage.voila(demo)
    shown = Demo(page)
    shown.shoot(f"{demo}-0")
    moves = shown.moves()
    labels = shown.panel.locator(".widget-label").all_inner_texts()
    assert {label for label in labels if label.strip()} == set(moves)
    shown.wait_until_still()
    for tries in moves.values():
        before = shown.picture
        shown.change_text(tries)
        shown.wait_for_another_picture(before)
    player = shown.panel.get_by_role("button", name="play or pause")
    if player.count():
        for k in range(shown.panel.get_by_role("slider").count()):
            shown.push(k, "Home")  # one of them is the player's
        shown.wait_until_still()
        shown.changes(lambda: player.press("Enter"))
        player.press("Enter")
    shown.shoot(f"{demo}-1")
    assert not complaints
    page.close()


# Milliseconds from a key to the new picture, for some steps of the first slider to and fro
TIMES_TO_PICTURE = """async ([panel, count]) => {
    const times = [], handle = panel.querySelector('[role=slider]')
    const atEnd = handle.getAttribute('aria-valuenow') === handle.getAttribute('aria-valuemax')
    const keys = atEnd ? ['ArrowLeft', 'ArrowRight'] : ['ArrowRight', 'ArrowLeft']
    for (let k = 0; k < count; k++) {
        const begun = performance.now()
        const shown = new Promise(done => {
            const watch = new MutationObserver(() => {
                const image = panel.querySelector('img')
                if (!image) return
                watch.disconnect()
                image.decode().then(() => done(performance.now() - begun))
            })
            watch.observe(panel.querySelector('.fabinterp-picture'), {childList: true, subtree: true})
        })
        handle.dispatchEvent(new KeyboardEvent('keydown', {key: keys[k % 2], bubbles: true}))
        times.push(await shown)
    }
    return times
}"""


def median_answer(stage, demo):
    """Milliseconds from a key to the new picture, the median of nine, with nothing prepared."""
    page, _ = stage.voila(demo)
    shown = Demo(page)
    shown.wait_until_still()
    times = page.evaluate(TIMES_TO_PICTURE, [shown.panel.element_handle(), 9])
    page.close()
    median = sorted(times)[4]
    print(f"{demo}: {median:.0f} ms")
    return median


@pytest.mark.measure
@pytest.mark.parametrize("demo", DERIVATIONS)
def test_a_derivation_answers_within_200_ms(stage, demo):
    """On a machine that does nothing else."""
    assert median_answer(stage, demo) < 200


def test_explore_in_a_browser(stage):
    """A point is moved, its account and picture follow; then another row is picked, and the point is that row."""
    page, complaints = stage.voila(EXPLORE)
    shown = Demo(page)
    assert re.match(
        r"row\s+7\n", shown.words
    )  # what the page shows of the sliders is not taken for a move
    names = [handle.get_attribute("aria-label") for handle in page.get_by_role("slider").all()]
    across = page.get_by_label("across").evaluate("box => box.selectedOptions[0].text")
    across = " ".join(across.split())  # its spaces do not break
    shown.changes(lambda: shown.push(names.index(across), "PageUp"))
    assert re.match(rf"row\s+7, with {across} moved\n", shown.words)
    shown.shoot("explore-moved")
    shown.changes(shown.push)
    assert re.match(r"row\s+8\n", shown.words)
    assert not complaints
    page.close()


# Show a picture, take it away before it has loaded, wait until it has
REPLACE_EARLY = """async picture => {
    document.body.innerHTML = picture
    const image = document.querySelector('img')
    const loaded = new Promise(done => image.addEventListener('load', done))
    document.body.replaceChildren()
    await loaded
}"""


def test_a_picture_replaced_before_it_has_loaded_does_nothing(stage):
    """Its script runs all the same where a slider moves faster than the browser shows pictures."""
    page, complaints = stage.open("about:blank")
    panel = Panel(lambda figure, k: f"k is {k}", {"k": (1, 9, 1)})
    page.evaluate(REPLACE_EARLY, panel.picture.value)
    assert not complaints
    page.close()


def stored_films():
    """HTML of every stored output that has a slider."""
    found = []
    for path in pages():
        for cell in code_cells(path):
            for out in cell["outputs"]:
                if 'type="range"' in (page := "".join(out.get("data", {}).get("text/html", ""))):
                    found.append(pytest.param(page, id=f"{path.stem}-{cell['id']}"))
    return found


@pytest.mark.parametrize("film", stored_films())
def test_a_stored_film_moves_without_a_kernel(stage, film):
    page, complaints = stage.open("about:blank")
    page.set_content(f"<!doctype html><title>film</title>{film}")
    images = page.locator("img:visible")
    first = images.get_attribute("src")
    page.locator("input[type=range]").focus()
    page.keyboard.press("End")
    assert images.count() == 1 and images.get_attribute("src") != first
    assert page.evaluate(
        "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
    )
    assert not complaints
    page.close()


def test_a_panel_in_jupyterlab(stage):
    address = stage.address("jupyterlab", "--ServerApp.token=", "--ServerApp.password=", "--allow-root",
                            "--LabApp.expose_app_in_browser=True")  # fmt: skip
    page, complaints = stage.open(f"{address}lab/tree/{IN_LAB}.ipynb")
    page.wait_for_function(
        "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    shown = Demo(page)
    shown.changes(shown.push)
    assert "rules, error" in shown.words
    shown.shoot("lab")
    assert not complaints
    page.close()
