"""Write the modules and the kernels from the notebooks."""

import re
from hashlib import sha256

from frame import code, pages

HEADER = """# Written from the notebooks' cells `#| cython`; see nbs/rows/06_kernels.ipynb.
# cython: language_level=3, infer_types=True, cdivision=True
# cython: boundscheck=False, wraparound=False, initializedcheck=False
import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log, sqrt

"""


def write_modules(root):
    """Write the modules of the tree at the working folder from its notebooks; clean these."""
    from nbdev.clean import nbdev_clean
    from nbdev.doclinks import nbdev_export

    nbdev_export()
    make_imports_relative(root / "fabinterp")
    nbdev_clean()
    write_kernels(root)


def write_kernels(root):
    """Write the source of the compiled kernels and, in its last line, the hash of what is above."""
    first = root / "nbs/rows/06_kernels.ipynb"  # declares the types
    order = [first, *(path for path in pages(root / "nbs") if path != first)]
    cells = [cell.source for path in order for cell in code(path)]
    kernels = [cell.partition("\n")[2] for cell in cells if cell.startswith("#| cython\n")]
    source = "\n\n\n".join([HEADER + kernels[0], *kernels[1:]])
    digest = sha256(source.encode()).hexdigest()
    text = f'{source}\n\n\nDIGEST = "{digest}"\n'
    (root / "fabinterp/_kernels.pyx").write_text(text, encoding="utf-8", newline="\n")


def make_imports_relative(package):
    """Write `from ..fab.foba import (` where nbdev left `from fabinterp.fab.foba import (`.

    nbdev makes imports of the package relative, but not those that go over several lines.
    """
    absolute = re.compile(r"^( *)from fabinterp\.([\w.]+) import \($", re.M)
    for path in package.rglob("*.py"):
        chapter = path.parent.relative_to(package).parts

        def relative(match, chapter=chapter):
            parts = match[2].split(".")
            if chapter and parts[0] == chapter[0]:
                name = "." + ".".join(parts[1:])
            else:
                name = "." * (1 + len(chapter)) + match[2]
            return f"{match[1]}from {name} import ("

        text = path.read_text(encoding="utf-8")
        changed = absolute.sub(relative, text)
        if changed != text:
            path.write_text(changed, encoding="utf-8", newline="\n")
