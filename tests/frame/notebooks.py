"""Work on notebooks: `export` writes modules, glossary and README; `run FILE…` executes and keeps the outputs."""

import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import ROOT, glossary, notebooks, papers, readme, routes  # noqa: E402

WIDGET = "application/vnd.jupyter.widget-view+json"


def export():
    """Write the modules, the glossary, the map of equations and the routes, clean the notebooks, write the README."""
    from nbdev.clean import nbdev_clean
    from nbdev.doclinks import nbdev_export

    strip_widgets(notebooks())
    glossary.main([])
    papers.main()
    routes.main()
    nbdev_export()
    make_imports_relative()
    nbdev_clean()
    readme.main([])


def make_imports_relative():
    """Write `from ..fab.foba import (` where nbdev left `from fabinterp.fab.foba import (`.

    nbdev makes imports of the package relative, but not those that go over several lines.
    """
    absolute = re.compile(r"^( *)from fabinterp\.([\w.]+) import \($", re.M)
    for path in (ROOT / "fabinterp").rglob("*.py"):
        chapter = path.parent.relative_to(ROOT / "fabinterp").parts

        def relative(match, chapter=chapter):
            parts = match[2].split(".")
            if chapter and parts[0] == chapter[0]:
                name = "." + ".".join(parts[1:])
            else:
                name = "." * (1 + len(chapter)) + match[2]
            return f"{match[1]}from {name} import ("

        text = path.read_text(encoding="utf-8")
        found = absolute.sub(relative, text)
        if found != text:
            path.write_text(found, encoding="utf-8", newline="\n")


def strip_widgets(paths):
    """Remove what a live widget leaves behind: random ids and its state, useless without its kernel."""
    import nbformat

    for path in paths:
        notebook = nbformat.read(path, 4)
        states = notebook.metadata.pop("widgets", None)
        outputs = [
            out for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out
        ]
        views = [out.data.pop(WIDGET, None) for out in outputs]
        if states or any(views):
            nbformat.write(notebook, path)


def run(path):
    """Execute one notebook and store its outputs, clean."""
    import nbformat
    from nbclient import NotebookClient
    from nbdev.clean import nbdev_clean

    start = time.perf_counter()
    notebook = nbformat.read(path, 4)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for out in cell.get("outputs", []):
            out.pop("metadata", None) if out.output_type == "stream" else out.update(metadata={})
    nbformat.write(notebook, path)
    strip_widgets([path])
    nbdev_clean(str(path))
    print(f"{path.name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    import os

    os.chdir(ROOT)
    command, *files = sys.argv[1:] or ["help"]
    if command == "export":
        export()
    elif command == "run":
        for file in files:
            run(Path(file))
    else:
        sys.exit(__doc__)
