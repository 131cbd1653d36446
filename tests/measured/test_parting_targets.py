"""Where rules and ensemble part, at size: small ensembles end, full forests are bounded, on ten tables.

Run with `--measure -s`, which prints the figures; the data are those of the folder FABINTERP_DATA.
"""

import pytest
from shared.needs import need_data

from fabinterp.bench.partings import CLASSES, ENSEMBLES, NUMBERS, measure_parting

pytestmark = pytest.mark.measure

SECONDS = 10.0


@pytest.mark.parametrize("name", NUMBERS + CLASSES)
def test_small_ensembles_end_and_large_ones_are_bounded(name):
    need_data(name)
    for ensemble in ENSEMBLES:
        found = measure_parting({"data": name, "ensemble": ensemble})
        print(name, ensemble, found)
        if ensemble.startswith("small") and found["columns"] <= 10:
            assert found["proven"] and found["seconds"] < SECONDS
        assert found["at rows"] <= found["lower"] <= found["upper"] < float("inf")
