r"""Equations: each has one number in its chapter; `number` counts them anew and follows every citation.

A tag is `chapter.number`, `\tag{fab.12}`; the pages of the front are chapters of their own. It is cited
as (fab.12), in prose, docstrings and comments alike. What a paper calls the equation stands beside it,
as (Hara 12).
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from frame import NBS, ROOT, notebooks, prose  # noqa: E402

TAG = re.compile(r"\\tag\{([^}]*)\}")
OLD_STYLE = re.compile(r"(?<![\w`$])\(([A-Z]\d{1,2}[a-z]?)\)(?![\w`$])")


def chapter_of(path):
    """Return the chapter of a page: its folder, or at the front the page itself."""
    folder = path.relative_to(NBS).parent.name
    return folder or path.stem


def tags():
    """Return the pages on which each tag stands, in reading order: a tag that stands once has one."""
    pages = defaultdict(list)
    for path in notebooks():
        for cell in prose(path):
            for tag in TAG.findall(cell.source):
                pages[tag].append(path)
    return dict(pages)


def citation(chapters):
    """Return the pattern of a citation of one of these chapters' equations."""
    names = "|".join(sorted(map(re.escape, chapters), key=len, reverse=True))
    return re.compile(rf"(?<![\w./{{`])((?:{names})\.\d+[a-z]?)(?![\w`]|\.\d)")


def dead_citations(texts, known, chapters):
    """Return the citations in texts that lead to no equation: unknown numbers, and letters such as (S3)."""
    cited = citation(chapters)
    dead = [number for text in texts for number in cited.findall(text) if number not in known]
    return dead + [f"({old})" for text in texts for old in OLD_STYLE.findall(text)]


def new_numbers():
    """Return the number of each tag if the equations of every chapter were counted in reading order."""
    count = defaultdict(int)
    numbers = {}
    for tag, (path, *_) in tags().items():
        chapter = chapter_of(path)
        count[chapter] += 1
        numbers[tag] = f"{chapter}.{count[chapter]}"
    return numbers


def number():
    """Count the equations anew, in notebooks and tests; return how many numbers changed.

    Export afterwards: modules cite what their notebooks cite.
    """
    import nbformat

    numbers = {old: new for old, new in new_numbers().items() if old != new}
    if not numbers:
        return 0
    names = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.])({names})(?![\w]|\.\d)")
    for path in notebooks():
        notebook = nbformat.read(path, 4)
        for cell in notebook.cells:
            cell.source = pattern.sub(lambda match: numbers[match[1]], cell.source)
        nbformat.write(notebook, path)
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(pattern.sub(lambda match: numbers[match[1]], text), encoding="utf-8")
    return len(numbers)


if __name__ == "__main__":
    if sys.argv[1:] == ["number"]:
        print(number(), "equations have another number")
    else:
        sys.exit(__doc__)
