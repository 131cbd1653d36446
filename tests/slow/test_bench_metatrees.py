"""The page that measures meta-trees beside plain trees: jobs, figures, judging, stored lines."""

import numpy as np
import pytest
from frame import NBS
from shared.needs import need

from fabinterp.bench import metatrees
from fabinterp.bench.metatrees import TABLES
from fabinterp.bench.runner import UnavailableError, key_text, latest, read_lines, render

RESULTS = NBS / "results"
LINES = latest(read_lines(RESULTS / "metatrees.jsonl"))


def single_line(data, split, ours, theirs):
    """Return a stored line of single trees in which all the others lose the same."""
    losses = dict.fromkeys(metatrees.SINGLES, theirs + split) | {"meta-tree": ours + split}
    return {"key": {"part": "single", "split": split, "data": data}, "loss": losses, "leaves": 3}


def test_tables_for_choosing_are_not_reported():
    assert not set(metatrees.CHOICE) & set(metatrees.REPORT)
    for table in TABLES:
        splits = [job["split"] for job in table.jobs(False)]
        assert splits == sorted(splits) and set(table.keys(True)) <= set(table.keys())
    assert len(TABLES[0].keys()) == 12 * 10 + 6 * 3 and len(TABLES[1].keys()) == 12 * 3 * 3


def test_every_job_is_measured_with_the_settings_of_today():
    assert set(LINES) == {text for table in TABLES for text in table.keys()}
    for line in LINES.values():
        assert line["settings"] == metatrees.digest_of_meta_trees(line["key"]), key_text(
            line["key"]
        )


def test_the_stored_figures_make_tables():
    singles, forests = (render(table, RESULTS) for table in TABLES)
    assert list(singles.frame.index[:2]) == list(metatrees.REPORT[:2])
    assert len(singles.frame) == 18 and len(forests.frame) == 36
    for row in singles.shortfalls()["row"]:
        assert singles.why.get(row, singles.why.get("")), row


def test_tables_are_judged_over_their_splits():
    lines = [single_line("energy", split, 1.0, 2.0) for split in range(3)]
    lines += [single_line("boston", split, 9.0, 2.0) for split in range(3)]
    lines += [single_line("stock", split, 2.0, 1.0) for split in range(3)]
    found = metatrees.single_verdicts(lines)["HSTree"]
    assert set(found) == {"energy", "stock"}  # boston is for choosing
    assert found["energy"]["ratio"] == 2 / 3 and not found["energy"]["worse"]
    assert found["stock"]["ratio"] == 3 / 2 and found["stock"]["worse"]


@pytest.mark.parametrize("data", ["breast_cancer", "diabetes"])
def test_a_forest_is_weighed_twice(data):
    case = metatrees.split_case(data, 0)
    found = metatrees.measure_forest_weights(case, 5)
    assert found["equal"]["effective"] == pytest.approx(100)
    assert found["evidence"]["effective"] < 50
    assert found["equal"]["loss"] != found["evidence"]["loss"]
    assert ("held" in found) == case.numbers == ("CRPS" in found["equal"])


def test_single_trees_of_every_method():
    need("imodels")
    found = metatrees.measure_single_trees(metatrees.split_case("breast_cancer", 0))
    assert list(found["loss"]) == list(metatrees.SINGLES)
    assert np.isfinite([*found["loss"].values()]).all() and found["leaves"] >= 1


def test_without_imodels_a_line_is_blank(monkeypatch):
    def absent(name):
        raise UnavailableError(f"{name} is not installed")

    monkeypatch.setattr(metatrees, "import_available", absent)
    with pytest.raises(UnavailableError, match="imodels"):
        metatrees.measure_single_trees(metatrees.split_case("breast_cancer", 0))
