"""Stored lines follow parameters that got new names, and nothing else of a line changes."""

import json
from functools import partial

import pytest
from frame import NBS
from frame.redigest import STUDIES, Rename, redigest, settings_today
from sklearn.base import BaseEstimator

from fabinterp.bench.eto import settings_digest, settings_of
from fabinterp.bench.runner import UnavailableError

RENAMES = (
    Rename("Sieve", {"holes": "n_holes"}),
    Rename("Sieve", {"n_holes": "n_gaps", "mesh": "grid"}),
)


class Sieve(BaseEstimator):
    """An estimator of today's names."""

    def __init__(self, n_gaps=3, grid="fine", random_state=0):
        self.n_gaps = n_gaps
        self.grid = grid
        self.random_state = random_state


TODAY = settings_of(Sieve())
BEFORE = (
    {"estimator": "Sieve", "holes": 3, "mesh": "fine"},
    {"estimator": "Sieve", "n_holes": 3, "mesh": "fine"},
    TODAY,
)


def stored(settings, fold=0):
    """A stored line as the runner writes it."""
    line = {"key": {"method": "sieve", "fold": fold}, "settings": settings_digest(settings)}
    return json.dumps(line | {"error": 0.1234560}).encode() + b"\n"


def settings_of_sieve(key):
    """Settings of today for any key."""
    return TODAY


def test_digests_under_each_earlier_set_of_names_become_those_of_today():
    data = b"".join(stored(settings, fold) for fold, settings in enumerate(BEFORE))
    new, counts = redigest(data, settings_of_sieve, RENAMES)
    assert new == b"".join(stored(TODAY, fold) for fold in range(3))
    assert counts == {"renamed": 2, "as today": 1}


def test_a_line_of_other_values_stays_and_is_counted():
    data = stored(BEFORE[0] | {"holes": 4}) + stored(BEFORE[0] | {"estimator": "Filter"})
    assert redigest(data, settings_of_sieve, RENAMES) == (data, {"not reproduced": 2})


def test_names_of_one_estimator_are_not_those_of_another():
    renames = tuple(rename._replace(estimators="Filter") for rename in RENAMES)
    data = stored(BEFORE[0])
    assert redigest(data, settings_of_sieve, renames) == (data, {"not reproduced": 1})


def test_half_a_line_a_line_without_settings_and_an_empty_one_stay():
    data = stored(TODAY) + b'{"key": {}}\n\n' + stored(BEFORE[0])[:30]
    new, counts = redigest(data, settings_of_sieve, RENAMES)
    assert new == data
    assert counts == {"as today": 1, "without settings": 1, "not a line": 2}


def test_lines_of_a_library_that_is_not_installed_stay():
    def unavailable(key):
        raise UnavailableError("no sieve")

    data = stored(BEFORE[0])
    assert redigest(data, unavailable, RENAMES) == (data, {"library not installed": 1})


@pytest.mark.parametrize("study", STUDIES)
def test_the_stored_lines_are_of_the_names_of_today(study):
    why = "the lines have the settings of scikit-learn's estimators of 1.8"
    pytest.importorskip("sklearn", minversion="1.8", reason=why)
    data = (NBS / "results" / f"{study}.jsonl").read_bytes()
    new, counts = redigest(data, partial(settings_today, study))
    assert new == data, "run tests/frame/redigest.py"
    assert counts["as today"] and not counts["not reproduced"]
