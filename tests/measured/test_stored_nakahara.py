"""What the page on meta-trees says of speed and accuracy is what stands in its file of results."""

import numpy as np
import pytest
from frame import NBS

from fabinterp.bench.runner import latest, read_lines

RESULTS = NBS / "results"
LINES = latest(read_lines(RESULTS / "metatree.jsonl")).values()


def lines(part, **wanted):
    """The lines of one part."""
    return [
        line
        for line in LINES
        if line["key"]["part"] == part
        and all(line["key"].get(name) == value for name, value in wanted.items())
    ]


def ratio(line, name):
    return line[f"bayesml_{name}"]["median"] / line[name]["median"]


def test_both_libraries_agree():
    assert len(lines("grid", codes="int64")) == 30
    for part in ("grid", "table1"):
        assert all(line["max_difference"] < 1e-11 for line in lines(part))


@pytest.mark.xfail(strict=True, reason="missed at two points of fifty rows, by 3 % at most")
def test_an_update_is_ten_times_faster_than_bayesml_s_at_every_point():
    assert min(ratio(line, "update") for line in lines("grid", codes="int64")) >= 10


def test_updates_and_predictions_are_faster_than_bayesml_s():
    grid = lines("grid", codes="int64")
    assert all(ratio(line, "update") >= 10 for line in grid if line["key"]["n"] >= 1000)
    assert all(ratio(line, "predict") >= 30 for line in grid if line["key"]["n"] == 10_000)


def test_table_1_has_the_layout_of_the_paper():
    table = {line["key"]["n"]: line for line in lines("table1")}
    assert sorted(table) == [50, 100, 200]
    assert table[200]["rows"]["mean"] > 3 * table[50]["rows"]["mean"]  # row by row: linear in n
    assert table[200]["update"]["mean"] < 2 * table[50]["update"]["mean"]  # a batch: hardly


@pytest.mark.parametrize(
    "name", ["breast_cancer", "banana", "magic04", "spambase", "abalone", "kin8nm"]
)
def test_a_forest_of_meta_trees_is_as_good_as_its_forest_or_better(name):
    for depth in (5, 10, None):
        folds = lines("forest", data=name, depth=depth)
        assert len(folds) == 5
        change = (
            np.mean([line["loss"] for line in folds])
            / np.mean([line["base_loss"] for line in folds])
            - 1
        )
        assert change < 0.002
        if "coverage" in folds[0]:
            held = np.mean([line["coverage"] for line in folds], axis=0)
            assert np.abs(held - [0.5, 0.8, 0.9, 0.95]).max() < 0.03


def test_a_single_meta_tree_is_no_worse_than_its_tree_and_far_surer_of_its_doubts():
    single = lines("single")
    classes = [r for r in single if "error" in r]
    numbers = [r for r in single if "error" not in r]
    assert np.mean([r["error"] for r in classes]) <= np.mean([r["base_error"] for r in classes])
    assert np.mean([r["loss"] for r in classes]) < 0.3 * np.mean([r["base_loss"] for r in classes])
    assert np.mean([r["loss"] / r["base_loss"] for r in numbers]) < 1
