"""Print constraints for pip: of all that the package works with, the oldest version that settings.ini allows.

`numpy>=1.26` becomes `numpy==1.26.*`. What has no lower bound is left to pip, and so are the tools
that build and test, and the peers of the papers' tables.
"""

import re
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = {"dev_requirements", "bench_requirements", "pages_requirements"}
BESIDE = ["ipython<9"]  # matplotlib before 3.9 asks IPython for what 9 no longer has
BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\d.]+)")


def constraints(path=ROOT / "settings.ini"):
    """Return the lines, in the order of names."""
    parser = ConfigParser(delimiters=["="])
    parser.read(path, encoding="utf-8")
    settings = parser["DEFAULT"]
    keys = [key for key in settings if key.endswith("requirements") and key not in TOOLS]
    asked = " ".join(settings[key] for key in keys)
    found = {match["name"]: match["version"] for match in BOUND.finditer(asked)}
    return [f"{name}=={version}.*" for name, version in sorted(found.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints() + BESIDE) + "\n")
