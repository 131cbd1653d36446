"""Bring the digests of settings in stored lines in step with parameters that got new names.

A stored line keeps eight digits that stand for the settings of its estimator (`settings_digest`). A
parameter that is only called otherwise changes these digits, though no figure would come out
differently. For each line the settings of today are written under the names before each step of
`RENAMES`; only if the stored digits are exactly those of such earlier settings are they replaced by
the digits of today. All other bytes of the files stay. A line whose digits are of no such settings
was measured with other *values*, or by a library that is not installed here: it stays as it is, is
counted, and must be measured again if it is ours.

    python tests/frame/redigest.py [--check]

With --check nothing is written; the exit status says whether there was anything to write.
To rename more, add a step at the end of `RENAMES` and run it once more.
"""

import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from fabinterp.bench import eto, wang  # noqa: E402
from fabinterp.bench.runner import UnavailableError  # noqa: E402
from frame import NBS  # noqa: E402


class Rename(NamedTuple):
    """Names of parameters before and after a step, for estimators whose class begins so."""

    estimators: str
    names: dict[str, str]


# In the order they were made. A step whose new names no estimator has yet changes nothing.
RENAMES = (
    Rename("Piecewise", {"n_shakes": "n_perturbations", "min_mass": "min_weight_fraction"}),
    Rename("ObliqueAdditive", {"n_shakes": "n_perturbations", "min_mass": "min_weight_fraction"}),
    Rename(
        "ObliqueAdditive",
        {"max_components": "max_leaves", "factors": "fisher_factors", "smooth": "smoothing"},
    ),
)
STUDIES = ("pieces", "load", "planes")


def earlier_settings(settings, renames=RENAMES):
    """Yield settings as they were called before the last step, then before the one ahead of it."""
    for rename in reversed(renames):
        if settings["estimator"].startswith(rename.estimators):
            before = {new: old for old, new in rename.names.items()}
            settings = {before.get(name, name): value for name, value in settings.items()}
            yield settings


def settings_today(study, key):
    """Settings of the estimator that would measure a line of this key now."""
    if study == "planes":
        method = wang.additive_method(key["data"], key["method"])
        return eto.settings_of(method.make(random_state=0))
    if study == "load" and key["part"] != "equations":
        methods = eto.LOADS
    else:
        methods = eto.CLASSIFIERS if key["part"] == "classification" else eto.REGRESSORS
    method = methods[key["method"]]
    return eto.settings_of(method.make(random_state=0), **{"asked by": method.predict})


def new_digest(stored, settings, renames=RENAMES):
    """Return the digits of today for stored ones; None where the names alone do not explain them."""
    today = eto.settings_digest(settings)
    known = {today, *map(eto.settings_digest, earlier_settings(settings, renames))}
    return today if stored in known else None


def redigest_row(row, settings_of_key, renames=RENAMES):
    """Return the bytes of one line with the digits of today, and what became of it."""
    try:
        line = json.loads(row)
    except ValueError:
        return row, "not a line"  # a run that was cut short leaves half of one
    stored = line.get("settings")
    if stored is None:
        return row, "without settings"
    try:
        today = new_digest(stored, settings_of_key(line["key"]), renames)
    except UnavailableError:
        return row, "library not installed"
    if today is None:
        return row, "not reproduced"
    if today == stored:
        return row, "as today"
    return row.replace(
        f'"settings": "{stored}"'.encode(), f'"settings": "{today}"'.encode()
    ), "renamed"


def redigest(data, settings_of_key, renames=RENAMES):
    """Return the bytes of a file with the digits of today, and a Counter of what became of lines."""
    rows = [redigest_row(row, settings_of_key, renames) for row in data.splitlines(keepends=True)]
    return b"".join(row for row, _ in rows), Counter(kind for _, kind in rows)


def main(arguments):
    """Rewrite the studies whose lines keep digests, or only say what there is to rewrite."""
    check = "--check" in arguments
    to_write = 0
    for study in STUDIES:
        file = NBS / "results" / f"{study}.jsonl"
        data, counts = redigest(file.read_bytes(), partial(settings_today, study))
        print(f"{file.name}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
        to_write += counts["renamed"]
        if counts["renamed"] and not check:
            file.write_bytes(data)
    if check and to_write:
        sys.exit(f"{to_write} digests are of parameters' earlier names: run {Path(__file__).name}")


if __name__ == "__main__":
    main(sys.argv[1:])
