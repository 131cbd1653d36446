"""Write the modules from the notebooks."""

import re


def write_modules(root):
    """Write the modules of the tree at the working folder from its notebooks; clean these."""
    from nbdev.clean import nbdev_clean
    from nbdev.doclinks import nbdev_export

    nbdev_export()
    make_imports_relative(root / "fabinterp")
    nbdev_clean()


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
