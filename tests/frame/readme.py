"""Write README.md from nbs/index.ipynb; with --check only say whether it is in step.

A README shows words: pictures and HTML of the notebook are left to the pages, each output appears
as plain text.
"""

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


def readme(path=NBS / "index.ipynb"):
    """Return the README's text."""
    notebook = nbformat.read(path, 4)
    cells = []
    for cell in notebook.cells:
        flags = re.findall(r"^#\| *(\w+)", cell.source, re.M)
        if {"hide", "default_exp"} & set(flags):
            continue
        if cell.cell_type == "code":
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


def main(arguments):
    """Write the file, or compare."""
    target = ROOT / "README.md"
    text = readme()
    if "--check" not in arguments:
        target.write_text(text, encoding="utf-8", newline="\n")
    elif not target.exists() or target.read_bytes() != text.encode():
        sys.exit("README.md is not what nbs/index.ipynb yields: run `make export`")


if __name__ == "__main__":
    main(sys.argv[1:])
