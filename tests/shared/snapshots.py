"""Texts that people read, compared with a stored copy: one file for each result.

`make test ARGS=--update-snapshots` writes the files; the diff shows what changed.
"""

import html
import re
from pathlib import Path

import pytest

from fabinterp.rules.html_format import render_html

FOLDER = Path(__file__).parents[1] / "snapshots"
# What differs between machines and versions, and what is stored in its place
VARIES = [
    (r"(?:/[\w.&-]+)+/(?=[\w.&-]+)", "FOLDER/"),
    (r"\b(fabinterp|numpy|scipy|scikit-learn|pandas|matplotlib|Python) \d+[\w.+]*", r"\1 VERSION"),
]
# An element that begins a line of a page, and one that begins a cell
BLOCKS = (
    r"<(?:p|h\d|tr|li|pre|div|section|details|summary|table|figure|label|title|ul|dl|dt)\b[^>]*>"
)
CELLS = r"<(?:td|th|dd)\b[^>]*>"


def steady_text(text):
    """Replace what varies between machines: folders and versions."""
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text


def page_text(page):
    """Return the words of a page, a line for each paragraph and row.

    Left out are styles, pictures, and folded code, which holds numbers with all digits.
    """
    page = re.sub(r"<(style|svg)\b.*?</\1>", "", page, flags=re.S)
    page = re.sub(
        r"(<details>(?:(?!</details>).)*<pre>).*?</pre>", r"\1CODE</pre>", page, flags=re.S
    )
    page = re.sub(CELLS, " | ", re.sub(BLOCKS, "\n", page))
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return steady_text("\n".join(filter(None, lines)))


def caption_alone(draw, caption, width=0):
    """Return a figure without its picture."""
    return render_html("<figure><figcaption>{{ caption }}</figcaption></figure>", caption=caption)


def leave_out_pictures(patch):
    """Let reports hold captions alone: drawing takes most of their time."""
    patch.setattr("fabinterp.reporting.figure_html", caption_alone)


class Snapshot:
    """The stored texts of one test file."""

    def __init__(self, folder, update):
        self.folder = folder
        self.update = update

    def __call__(self, name, text):
        """Compare a text with the stored one of that name; blanks at the ends of lines do not count."""
        path = self.folder / f"{name}.txt"
        lines = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(lines, encoding="utf-8")
            return
        assert path.exists(), f"no text is stored as {path.name}: run with --update-snapshots"
        stored = path.read_text(encoding="utf-8")
        assert lines == stored, (
            f"{path.name} differs; if that is meant, run with --update-snapshots"
        )


@pytest.fixture
def snapshot(request):
    """Compare texts with stored ones, `snapshot("name", text)`."""
    folder = FOLDER / request.path.stem.removeprefix("test_")
    return Snapshot(folder, request.config.getoption("--update-snapshots"))
