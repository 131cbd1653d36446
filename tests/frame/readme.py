"""Write README.md from nbs/index.ipynb.

A README shows words: HTML and pictures of the notebook are left to the pages, each output appears
as plain text. Only a cell whose code is not shown (`#| echo: false`) leaves its picture, as a file in
nbs/images.
"""

import base64
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import nbformat  # noqa: E402
from nbconvert import MarkdownExporter  # noqa: E402
from traitlets.config import Config  # noqa: E402

from frame import NBS, ROOT  # noqa: E402

NOTE = "<!-- Written from nbs/index.ipynb by `make export`; edit that. -->\n\n"
TEXT = ("text/markdown", "text/plain")
INDEX = NBS / "index.ipynb"
IMAGES = NBS / "images"


def pictures(path=INDEX):
    """Return the pictures of the cells that show no code: the bytes of each by the name of its file."""
    found = {}
    for cell in nbformat.read(path, 4).cells:
        for out in cell.get("outputs", []):
            if is_picture(cell) and "image/png" in out.get("data", {}):
                found[f"{cell.id}.png"] = base64.b64decode(out.data["image/png"])
    return found


def is_picture(cell):
    """Say whether a cell is shown by its picture alone."""
    return bool(re.search(r"^#\| *echo: *false", cell.source, re.M))


def picture_link(cell):
    """Return the Markdown cell that shows the picture of a cell, described as its `fig-alt` says."""
    (words,) = re.findall(r"^#\| *fig-alt: *(.+)", cell.source, re.M)
    return nbformat.v4.new_markdown_cell(
        f"![{words}]({IMAGES.relative_to(ROOT).as_posix()}/{cell.id}.png)"
    )


def readme(path=INDEX):
    """Return the README's text."""
    notebook = nbformat.read(path, 4)
    cells = []
    for cell in notebook.cells:
        flags = re.findall(r"^#\| *(\w+)", cell.source, re.M)
        if {"hide", "default_exp"} & set(flags):
            continue
        if is_picture(cell):
            cell = picture_link(cell)
        elif cell.cell_type == "code":
            cell.source = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M).strip()
            cell.outputs = [
                out
                for out in cell.outputs
                if out.output_type == "stream" or set(TEXT) & set(out.data)
            ]
            cell.outputs = [out for out in cell.outputs if "image/png" not in out.get("data", {})]
        cells.append(cell)
    notebook.cells = cells
    notebook.metadata["language_info"] = {
        "name": "python"
    }  # the stored notebooks leave it out; fences need it
    config = Config({"NbConvertBase": {"display_data_priority": list(TEXT)}})
    text, _ = MarkdownExporter(config=config).from_notebook_node(notebook)
    text = re.sub(r"\]\((?!\w+:|#|nbs/)([\w./-]+\.ipynb)", r"](nbs/\1", text)
    text = "\n".join(line.rstrip() for line in text.splitlines())
    return NOTE + re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def main():
    """Write the files."""
    IMAGES.mkdir(exist_ok=True)
    for path, content in files().items():
        path.write_bytes(content)


def files():
    """Return the bytes of README.md and of its pictures by path."""
    images = {IMAGES / name: content for name, content in pictures().items()}
    return {ROOT / "README.md": readme().encode(), **images}


if __name__ == "__main__":
    main()
