"""Work on notebooks: `export` writes modules, glossary and README; `run FILE…` executes and keeps the outputs."""

import base64
import io
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from PIL import Image, ImageChops, ImageStat  # noqa: E402

from frame import ROOT, glossary, notebooks, papers, readme, routes  # noqa: E402
from frame.modules import write_modules  # noqa: E402

UNSEEN = 2.0  # of 255 levels, root mean square
WIDGET = "application/vnd.jupyter.widget-view+json"


def export():
    """Clean the notebooks; write the pages made from others, the modules and the README."""
    strip_widgets(notebooks())
    store_small_pictures(notebooks())
    glossary.main()
    papers.main()
    routes.main()
    write_modules(ROOT)
    readme.main()


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


def store_small_pictures(paths):
    """Store pictures with the fewest colours that look the same."""
    import nbformat

    for path in paths:
        notebook = nbformat.read(path, 4)
        data = [
            out.data for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out
        ]
        pictures = [each for each in data if "image/png" in each]
        before = [each["image/png"] for each in pictures]
        for each in pictures:
            picture = base64.b64decode(each["image/png"])
            each["image/png"] = base64.b64encode(small_picture(picture)).decode() + "\n"
        if before != [each["image/png"] for each in pictures]:
            nbformat.write(notebook, path)


def small_picture(png):
    """Return a PNG with a palette, as small as its difference from the picture stays unseen."""
    picture = Image.open(io.BytesIO(png))
    if picture.mode == "P":
        return png
    picture = picture.convert("RGB")
    for n_colours in (16, 32, 64, 128, 256):
        small = picture.quantize(n_colours, kmeans=1, dither=Image.Dither.NONE)
        difference = ImageStat.Stat(ImageChops.difference(picture, small.convert("RGB")))
        if max(difference.rms) <= UNSEEN:
            break
    buffer = io.BytesIO()
    small.save(buffer, "png", optimize=True)
    return buffer.getvalue()


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
    store_small_pictures([path])
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
