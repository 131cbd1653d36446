"""Write the golden file: `python tests/golden/record.py [NAME ...]`.

With names only these fits are done, and the others are kept. A fit whose numbers changed is
recorded only if its number in `FIT_VERSION` (nbs/bench/00_runner.ipynb) was raised.
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fabinterp.bench.runner import FIT_VERSION  # noqa: E402
from golden import fits  # noqa: E402
from golden.compare import first_difference, is_text  # noqa: E402

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


def numbers_of(record):
    """Return the fields of a record that hold numbers, not texts."""
    return {field: value for field, value in record.items() if not is_text(field)}


def unversioned(old, new):
    """Return the fits whose numbers changed although their number in `FIT_VERSION` did not rise.

    old, new: what the golden file holds and is to hold.
    """
    versions = old.get("fit_versions", {})
    return [
        name
        for name in old["fits"].keys() & new["fits"].keys()
        if first_difference(numbers_of(old["fits"][name]), numbers_of(new["fits"][name]))
        and FIT_VERSION[new["fits"][name]["fit"]] <= versions.get(new["fits"][name]["fit"], 0)
    ]


def main(names):
    """Do the fits of these names, all without any, and write the file."""
    unknown = sorted(set(names) - set(fits.FITS))
    if unknown:
        sys.exit(
            f"record.py takes names of fits, got {', '.join(unknown)}; there are {', '.join(fits.FITS)}"
        )
    old = json.loads(FILE.read_text(encoding="utf-8"))
    kept = old["fits"] if names else {}
    done = {name: golden(fits.run(name)[0]) for name in names or fits.FITS}
    whole = {
        "made_on": platform.machine(),
        "made_with": versions(),
        "fit_versions": FIT_VERSION,
        "fits": kept | done,
    }
    if unraised := unversioned(old, whole):
        sys.exit(f"raise FIT_VERSION first: the numbers of {', '.join(sorted(unraised))} changed")
    FILE.write_text(
        json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"{len(done)} fits, {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
