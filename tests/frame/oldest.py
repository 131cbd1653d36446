"""Print constraints for pip: of everything that settings.ini requires the oldest version that it allows.

`numpy>=1.26` becomes `numpy==1.26.*`; what has no lower bound is left to pip.
"""

import re
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
BOUND = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\d.]+)")


def constraints(path=ROOT / "settings.ini"):
    """Return the lines, in the order of names."""
    parser = ConfigParser(delimiters=["="])
    parser.read(path, encoding="utf-8")
    settings = parser["DEFAULT"]
    asked = " ".join(settings[key] for key in settings if key.endswith("requirements"))
    found = {match["name"]: match["version"] for match in BOUND.finditer(asked)}
    return [f"{name}=={version}.*" for name, version in sorted(found.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints()) + "\n")
