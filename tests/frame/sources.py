"""What the pages of the site are made from: notebooks, and the API in Markdown, each as a `Source`."""

import base64
import html
import json
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from frame import page_stem
from frame.folding import DEFINITIONS, code_of, flags, folds, statements

TITLE = re.compile(r"\A# (.+)\n*((?:^>.*\n?)*)", re.M)
FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.S)
# A tag, and what the paper calls the equation: pandoc drops the one and leaves the other in the formula
IMAGE = re.compile(r'!\[[^\]]*\]\(([^)\s]+)|<(?:img|source)\b[^>]*?\bsrc(?:set)?="([^"]+)"')
TAG = re.compile(r"(?:,?\\q?quad\s*)?(?:\\text\{(\([^}]*\))\}\s*)?\\tag\{([^}]*)\}")


@dataclass
class Source:
    """A page before links, equations' numbers and the site's frame are put in.

    name: its file below `nbs`; title, claim: one line of Markdown each; text: the Markdown below;
    images: pictures and other files beside the page, bytes by the name that the text has for them;
    definitions: names that it exports; notebook: the file that it is read from, None for the API.
    """

    name: str
    title: str
    claim: str
    text: str
    images: dict = field(default_factory=dict)
    definitions: list = field(default_factory=list)
    notebook: Path | None = None

    @property
    def page(self):
        """The page's file on the site: the notebook's name without the digits that order it."""
        path = Path(self.name)
        return (path.parent / f"{page_stem(path)}.html").as_posix()

    def anchor(self, name):
        """The place of a definition on the page: two that differ in capitals alone have one each."""
        same = [other for other in dict.fromkeys(self.definitions) if other.lower() == name.lower()]
        position = same.index(name)
        return name.lower() + (f"-{position + 1}" if position else "")


def from_markdown(path, root):
    """Read a page of Markdown with a title and a description in its front matter, and its images."""
    text = path.read_text(encoding="utf-8")
    front = yaml.safe_load(FRONT.match(text)[1])
    name = path.relative_to(root).as_posix()
    images = images_beside(path, text)
    return Source(name, front["title"], front["description"], FRONT.sub("", text), images)


def images_beside(path, text):
    """Return the images that the Markdown of a page shows and that are files, by the name it has for them."""
    names = {name for names in IMAGE.findall(text) for name in names if name}
    return {
        name: (path.parent / name).read_bytes() for name in names if (path.parent / name).is_file()
    }


def from_notebook(path, root):
    """Read a notebook: prose, code with what stays folded, outputs; imports that stand first go last."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [cell | {"source": "".join(cell["source"])} for cell in cells]
    title, claim = TITLE.match(cells[0]["source"]).groups()
    rest = TITLE.sub("", cells[0]["source"])
    claim = re.sub("^> ?", "", claim, flags=re.M).strip()
    source = Source(path.relative_to(root).as_posix(), title, claim, rest, notebook=path)
    labelled = list(zip(cells, folds(cells), strict=True))[1:]
    shown = [(cell, label) for cell, label in labelled if not _is_left_out(cell)]
    n_first = _leading_code([cell for cell, _ in shown]) if not rest.strip() else 0
    parts = [_part(cell, label, source) for cell, label in shown]
    source.text = "\n\n".join([rest, *parts[n_first:], *parts[:n_first]])
    prose = [cell["source"] for cell, _ in shown if cell["cell_type"] == "markdown"]
    source.images |= images_beside(path, "\n".join([rest, *prose]))
    return source


def _leading_code(cells):
    """Return how many cells of code stand before the first prose; none where there is no prose."""
    kinds = [cell["cell_type"] for cell in cells]
    return kinds.index("markdown") if "markdown" in kinds else 0


def _is_left_out(cell):
    return flags(cell).keys() & {"default_exp", "hide"} or not cell["source"].strip()


def _part(cell, label, source):
    """Return a cell as Markdown; its images and definitions go to the source.

    label: what is written over its folded code, None if it stays open.
    """
    if cell["cell_type"] == "markdown":
        return TAG.sub(lambda match: rf"\text{{⟦{match[1] or ''}|{match[2]}⟧}}", cell["source"])
    return "\n\n".join(_code(cell, label, source) + _outputs(cell, source))


def _code(cell, label, source):
    """Return the code of a cell as Markdown, with places for the names that it exports."""
    code = code_of(cell)
    marks = flags(cell)
    if not code.strip() or marks.get("echo") == "false":
        return []
    block = fenced(code, "python")
    if label:
        kind = "code answer" if label.startswith("Answer") else "code"
        block = f'<details class="{kind}"><summary>{label}</summary>\n\n{block}\n\n</details>'
    names = [node.name for node in statements(code) if isinstance(node, DEFINITIONS)]
    if "export" not in marks or not names:
        return [block]
    source.definitions += names
    anchors = "".join(f'<a id="{source.anchor(name)}"></a>' for name in names)
    return [f'<div class="exported">{anchors}\n\n{block}\n\n</div>']


def fenced(text, kind):
    """Return text as a fenced block that nothing in it can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {kind if kind[0] == '{' else '{.' + kind + '}'}\n{text}\n{fence}"


def _outputs(cell, source):
    """Return the outputs of a cell as Markdown, texts that follow each other in one block."""
    blocks = []
    text = ""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if output["output_type"] == "stream" or not {"text/html", "image/png"} & set(data):
            text += "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n") + "\n"
            continue
        blocks += _text_output(text)
        text = ""
        blocks.append(_rich_output(cell, data, source))
    return blocks + _text_output(text)


def _text_output(text):
    return [fenced(text.strip("\n"), "output")] if text.strip() else []


WIDE = 560  # pixels, from where on a picture is not readable in the width of a telephone


def _rich_output(cell, data, source):
    if "text/html" in data:
        shown = "".join(data["text/html"])
        link = _page_alone(cell, shown, source)
        return fenced(f'<div class="output">{shown}{link}</div>', "{=html}")
    image = f"{Path(source.name).stem}_files/{cell['id']}-{len(source.images)}.png"
    picture = base64.b64decode("".join(data["image/png"]))
    source.images[image] = picture
    marks = flags(cell)
    classes = marks.get("classes", "").split()  # as Quarto reads them
    if int.from_bytes(picture[16:20], "big") > WIDE:
        classes.append("wide")
    named = f"{{{' '.join('.' + name for name in classes)}}}" if classes else ""
    words = marks.get("fig-alt", "picture drawn by the code above")
    return f"[![{words}]({image}){named}]({image})"


def _page_alone(cell, shown, source):
    """Keep the page that an output shows in a frame as a file too; return a link to it."""
    inside = re.search(r'<iframe\b[^>]*? srcdoc="([^"]*)"', shown)
    if not inside:
        return ""
    name = f"{Path(source.name).stem}_files/{cell['id']}.html"
    source.images[name] = html.unescape(inside[1]).encode()
    return f'<p><a href="{name}">The same as a page of its own</a></p>'


def new_target(link, source, pages):
    """Return where a link to a notebook or a page of Markdown leads on the site; others stay.

    pages: the site's page by the name of its source.
    """
    path, mark, place = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source.name), path))
    if target not in pages:
        return link
    return way(source.page, pages[target]) + mark + place


def way(here, there):
    """Return the relative link from one page of the site to another, which works from disk."""
    return posixpath.relpath(there, posixpath.dirname(here) or ".")
