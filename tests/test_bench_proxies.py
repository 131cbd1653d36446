"""The page that measures proxies beside plain trees: jobs, figures, judging, stored lines."""

from pathlib import Path

import numpy as np
import pytest

from fabinterp.bench import proxies
from fabinterp.bench.proxies import TABLES
from fabinterp.bench.runner import key_text, read_lines, render, values_of

RESULTS = Path(__file__).resolve().parents[1] / "nbs" / "results"


def line(data, split, ours):
    """Return a stored line with the same losses at every size."""
    ways = {"CART on y": 1.0 + split, "CART on the model": 2.0, "always all": 3.0, "chosen": ours}
    return {
        "key": {"part": "split", "split": split, "data": data, "reference": "forest"},
        "loss": {way: [loss] * len(proxies.LEAVES) for way, loss in ways.items()},
        "growth": ["y itself"] * len(proxies.LEAVES),
        "seconds": [1.0] * len(proxies.LEAVES),
    }


def test_tables_for_choosing_are_not_reported():
    assert not set(proxies.CHOICE) & set(proxies.REPORT)
    jobs = list(TABLES[0].jobs(False))
    assert len(jobs) == 6 * len(proxies.REPORT) and set(TABLES[0].keys(True)) <= set(
        TABLES[0].keys()
    )
    wide = [job["data"] in proxies._WIDE for job in jobs]
    assert wide == sorted(wide)


@pytest.mark.parametrize(
    "data", ["diabetes", pytest.param("breast_cancer", marks=pytest.mark.slow)]
)
def test_a_line_of_every_way(data):
    found = proxies.measure_beside_plain({"split": 0, "data": data, "reference": "forest"})
    losses = np.array([found["loss"][way] for way in proxies.WAYS])
    assert losses.shape == (4, 3) and np.isfinite(losses).all()
    assert len(found["growth"]) == len(found["seconds"]) == 3


def test_a_cell_is_beside_the_better_tree_in_the_mean():
    judged = proxies.judge_cells(
        proxies.losses_of([line("stock", 0, 1.4), line("stock", 1, 1.4), line("stock", 2, 1.4)])
    )
    ours = judged[judged["way"] == "chosen"]
    assert len(ours) == 3 and np.allclose(ours["ratio"], 1.4 / 2.0)  # both have 2 in the mean
    worst = judged[judged["way"] == "always all"]
    assert ours["better"].all() and not ours["worse"].any() and not worst["better"].any()


def test_every_stored_line_answers_a_job():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "proxies.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked


def test_the_stored_figures_make_tables():
    grid = render(TABLES[0], RESULTS).frame
    assert list(grid.index) == list(proxies.WAYS)
    cells = render(TABLES[1], RESULTS).frame
    counted = values_of(grid).xs("cells", axis=1, level="name")
    assert len(cells) == counted.to_numpy()[0, 0]
