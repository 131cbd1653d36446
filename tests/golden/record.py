"""Write the golden file: `python tests/golden/record.py [NAME ...]`.

With names only these fits are done, and the others kept: so a new fit is added. Do so only where
answers are meant to change.
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import fits  # noqa: E402
from golden.compare import is_text  # noqa: E402

FILE = Path(__file__).with_name("golden.json")
N_SHOWN = 20
LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
)  # of whose random numbers, solvers and forests answers depend


def spread(values):
    """At most `N_SHOWN` of the values, from the first to the last."""
    places = [k * (len(values) - 1) // (N_SHOWN - 1) for k in range(N_SHOWN)]
    return values if len(values) <= N_SHOWN else [values[k] for k in places]


def golden(record):
    """What the file keeps of a record: texts in lines, a few of the answers, and no JSON, whose numbers SQL tells."""
    kept = {}
    for field, value in record.items():
        if is_text(field):
            value = value.splitlines()
        elif isinstance(value, list):
            value = spread(value)
        if not field.endswith("json"):
            kept[field] = value
    return kept


def versions():
    """The libraries that are installed here, to the second digit."""
    return {name: ".".join(version(name).split(".")[:2]) for name in LIBRARIES}


def main(names):
    """Do the fits of these names, all without any, and write the file."""
    unknown = sorted(set(names) - set(fits.FITS))
    if unknown:
        sys.exit(
            f"record.py takes names of fits, got {', '.join(unknown)}; there are {', '.join(fits.FITS)}"
        )
    kept = json.loads(FILE.read_text(encoding="utf-8"))["fits"] if names else {}
    found = {name: golden(fits.run(name)[0]) for name in names or fits.FITS}
    whole = {"made_on": platform.machine(), "made_with": versions(), "fits": kept | found}
    FILE.write_text(
        json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"{len(found)} fits, {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
