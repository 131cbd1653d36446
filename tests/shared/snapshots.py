"""Texts that people read, compared with a stored copy: one file for each result.

`make test ARGS=--update-snapshots` writes the files; the diff shows what changed.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "snapshots"


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
