"""Each control of each demo changes the text and the picture."""

import contextlib
import io
import os
import traceback

import nbformat
import pytest
from browser.demos import EXPLORE, cut_out, demos, demos_folder
from frame import NBS
from shared.needs import need
from shared.notebooks import run_in_process

# `explore` has controls that change the picture alone: it is tested in a browser
MOVED = [(page, demo) for page, demo in demos() if demo != EXPLORE]
LIMIT = 250  # seconds after which a demo is stopped


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return demos_folder(tmp_path_factory.mktemp("nbs"))


def other_values(control):
    """Return values that a control may take in place of the one it has."""
    if hasattr(control, "min"):
        values = [control.max, control.min, control.value + control.step]
    elif hasattr(control, "options"):
        values = [o[1] if isinstance(o, tuple) else o for o in control.options]
    else:
        values = [not control.value]
    return [value for value in values if value != control.value]


def unmoved_controls(panel):
    """Return the names of the controls of which no value changes both the text and the picture."""
    unmoved = []
    for name, control in panel.controls.items():
        before = panel.text.value, panel.picture.value
        for value in other_values(control):
            control.value = value
            if panel.text.value != before[0] and panel.picture.value != before[1]:
                break
        else:
            unmoved.append(name)
    return unmoved


def run_demo(path):
    """Run a demo, move its controls and return what went wrong, "" if nothing did."""
    from IPython.core.interactiveshell import InteractiveShell

    os.chdir(path.parent)
    shell = InteractiveShell.instance()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in nbformat.read(path, 4).cells:
                done = shell.run_cell(cell.source)
                done.raise_error()
        unmoved = unmoved_controls(done.result)
    except Exception:
        return traceback.format_exc()
    return f"these controls change nothing: {', '.join(unmoved)}" if unmoved else ""


@pytest.mark.parametrize("page, demo", MOVED, ids=[demo for _, demo in MOVED])
def test_each_control_changes_text_and_picture(page, demo, folder):
    need("ipywidgets")
    path = folder / f"{demo}.ipynb"
    nbformat.write(cut_out(NBS / page, demo), path)
    error = run_in_process(run_demo, path, LIMIT)
    assert not error, error
