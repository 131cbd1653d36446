"""What the page on seven tables says of proxies is what stands in its file of results."""

import numpy as np
import pytest
from frame import NBS

from fabinterp.bench.afrabandpey import DATA
from fabinterp.bench.runner import latest, read_lines

RESULTS = NBS / "results"
LINES = list(latest(read_lines(RESULTS / "proxy.jsonl")).values())
SIZES = [line for line in LINES if line["key"]["part"] == "sizes"]


def means(name, label, method):
    """The mean over the splits of the errors of trees of each size, or of the reference."""
    lines = [
        line for line in SIZES if (line["key"]["data"], line["key"]["reference"]) == (name, label)
    ]
    assert len(lines) == 50
    return np.mean([line[method] for line in lines], axis=0)


@pytest.mark.parametrize("name", DATA)
def test_from_six_leaves_up_the_proxy_beats_the_tree_fitted_to_the_data(name):
    large = np.array(SIZES[0]["sizes"]) >= 6
    assert (means(name, "bart", "proxy") < means(name, "bart", "data"))[large].all()


def test_no_tree_is_larger_than_asked_for():
    """No tree is larger than asked for; few are smaller, where no question is left that five rows would answer."""
    for line in SIZES:
        data, proxy = (np.array(line[f"{method}_leaves"]) for method in ("data", "proxy"))
        assert (data <= line["sizes"]).all() and (proxy <= line["sizes"]).all()


@pytest.mark.parametrize("name", DATA[:3])
def test_a_poor_reference_has_a_worse_proxy_than_a_good_one(name):
    large = np.array(SIZES[0]["sizes"]) >= 6
    assert means(name, "bart", "reference") < means(name, "bart3", "reference")
    assert (means(name, "bart", "proxy") < means(name, "bart3", "proxy"))[large].all()


def test_stability_is_measured_on_all_tables():
    keys = {
        (line["key"]["data"], line["key"]["method"])
        for line in LINES
        if line["key"]["part"] == "stability"
    }
    assert keys == {(name, method) for name in DATA for method in ("data", "utility", "fixed")}
