"""Every notebook runs from top to bottom, long cells too.

They run in a copy of `nbs` that has nothing beside it, as a reader may have it.
"""

import shutil

import pytest
from frame import NBS, notebooks
from shared.notebooks import run_notebook

LIMIT = 1500  # seconds after which a notebook is stopped


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the folder of pages, far from all that is beside it here."""
    ignored = shutil.ignore_patterns("_*", ".*", "__pycache__")
    return shutil.copytree(NBS, tmp_path_factory.mktemp("copied") / "nbs", ignore=ignored)


@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook_runs(path, copied):
    error = run_notebook(copied / path.relative_to(NBS), timeout=LIMIT)
    assert not error, error
