"""Stored texts: a difference fails, an update writes, and every stored text is compared by a test."""

import ast
import re
from pathlib import Path

import pytest
from shared.snapshots import FOLDER, Snapshot, page_text, steady_text

STORED = sorted(FOLDER.glob("*/*.txt"))


def test_a_text_is_stored_and_compared(tmp_path):
    folder = tmp_path / "texts"
    with pytest.raises(AssertionError, match="--update-snapshots"):
        Snapshot(folder, update=False)("greeting", "hello")
    Snapshot(folder, update=True)("greeting", "hello  \nworld")
    Snapshot(folder, update=False)("greeting", "hello\nworld\n")
    with pytest.raises(AssertionError, match="greeting.txt differs"):
        Snapshot(folder, update=False)("greeting", "hello\nWorld")


def test_what_varies_is_replaced():
    text = "wrote /var/folder/x-1/model.json\nwith numpy 2.1.0, 3 rules"
    assert steady_text(text) == "wrote FOLDER/model.json\nwith numpy VERSION, 3 rules"


def test_a_page_is_reduced_to_its_words():
    page = (
        "<style>p {}</style><p>One &lt; <b>two</b></p><table><tr><td>3</td><td>4</td></tr></table>"
    )
    assert page_text(page) == "One < two\n| 3 | 4"
    assert page_text("<details><summary>SQL</summary><pre>SELECT\n1</pre></details>") == "SQL\nCODE"


def names_compared(path):
    """Return patterns of the names that a test file gives to `snapshot`."""
    calls = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    names = [call.args[0] for call in calls if getattr(call.func, "id", "") == "snapshot"]
    return ["".join(map(pattern_of, getattr(name, "values", [name]))) for name in names]


def pattern_of(part):
    """Return the pattern of one part of a name: of a literal that text, of a value any word."""
    return re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+"


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in STORED}), ids=lambda path: path.name
)
def test_every_stored_text_is_compared(folder):
    test_file = Path(__file__).with_name(f"test_{folder.name}.py")
    pattern = "|".join(names_compared(test_file))
    unused = [path.name for path in folder.iterdir() if not re.fullmatch(pattern, path.stem)]
    assert not unused, f"no test compares {unused}: delete them"
