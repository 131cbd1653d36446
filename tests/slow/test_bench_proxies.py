"""The page that measures proxies beside plain trees: jobs, figures, judging, stored lines."""

import numpy as np
import pytest
from frame import NBS

from fabinterp.bench import proxies
from fabinterp.bench.proxies import TABLES
from fabinterp.bench.runner import key_text, read_lines, render, values_of

RESULTS = NBS / "results"
NAMED = {table.name: table for table in TABLES}


def line(data, split, ours):
    """Return a stored line with the same losses at every size."""
    ways = {"CART on y": 1.0 + split, "CART on the model": 2.0, "proxy": ours}
    return {
        "key": {"part": "split", "split": split, "data": data, "reference": "forest"},
        "loss": {way: [loss] * len(proxies.LEAVES) for way, loss in ways.items()},
        "model": 1.0,
    }


def test_tables_for_choosing_are_not_reported():
    assert not set(proxies.CHOICE) & set(proxies.REPORT) and len(proxies.REPORT) == 12
    jobs = list(NAMED["proxies"].jobs(False))
    # of the small tables three are of numbers, with five models each, three of classes, with four
    assert len(jobs) == 10 * (3 * 5 + 3 * 4 + 6 * 2)
    assert set(NAMED["proxies"].keys(True)) <= set(NAMED["proxies"].keys())


def test_after_a_cut_the_first_splits_of_all_cells_are_complete():
    splits = [job["split"] for job in NAMED["proxies"].jobs(False)]
    assert splits == sorted(splits)


def test_small_tables_have_a_thousand_rows_and_large_ones_two():
    learnt = {data: proxies.most_rows(data) for data in proxies.REPORT}
    assert {data for data, rows in learnt.items() if rows == 750} == set(proxies.SMALL)
    assert {data for data, rows in learnt.items() if rows == 1500} == set(proxies.LARGE)


@pytest.mark.parametrize("data", ["diabetes", "breast_cancer"])
def test_a_line_of_every_way(data):
    key = {"split": 0, "data": data, "reference": "forest", "rows": 600}
    found = proxies.measure_beside_plain(key)
    losses = np.array([found["loss"][way] for way in proxies.WAYS])
    assert losses.shape == (3, 3) and np.isfinite(losses).all() and np.isfinite(found["model"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # two columns are idle
@pytest.mark.parametrize("name", ["Bayesian ridge", "GP", "MLP", "boosting"])
def test_models_that_are_explained_predict(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    numbers = name != "MLP"
    y = X[:, 0] if numbers else (X[:, 0] > 0).astype(int)
    model = proxies.fit_explained_model(name, X, y, numbers, 0)
    assert model.score(X, y) > 0.8


def test_the_digest_depends_on_the_model():
    keys = [{"data": "energy", "reference": name} for name in ("forest", "boosting", "BART", "GP")]
    assert len({proxies.digest_of_proxy(key) for key in keys}) == len(keys)


def test_a_cell_is_beside_the_better_tree_in_the_mean():
    judged = proxies.judge_cells(
        proxies.losses_of([line("stock", 0, 1.4), line("stock", 1, 1.4), line("stock", 2, 1.4)])
    )
    ours = judged[judged["way"] == "proxy"]
    assert len(ours) == 3 and np.allclose(ours["ratio"], 1.4 / 2.0)  # both have 2 in the mean
    assert ours["better"].all() and not ours["worse"].any()
    assert not ours["tied"].any() and not ours["beyond"].any()


def test_ties_are_counted_apart_and_what_the_model_itself_loses():
    lines = [line("stock", split, 2.001) for split in range(3)]
    judged = proxies.judge_cells(proxies.losses_of(lines))
    ours = judged[judged["way"] == "proxy"]
    assert ours["tied"].all() and not ours["better"].any()
    poor = [one | {"model": 2.5} for one in lines]
    assert proxies.judge_cells(proxies.losses_of(poor))["beyond"].all()


def test_every_stored_line_answers_a_job_with_the_settings_of_today():
    asked = {text for table in TABLES for text in table.keys()}
    lines = read_lines(RESULTS / "proxies.jsonl")
    assert lines and {key_text(line["key"]) for line in lines} <= asked
    for stored in lines:
        if "missing" not in stored:
            assert stored["settings"] == proxies.digest_of_proxy(stored["key"]), stored["key"]


def test_the_stored_figures_make_tables():
    grid = render(NAMED["proxies"], RESULTS).frame
    assert list(grid.index) == list(proxies.WAYS)
    cells = render(NAMED["proxies-cells"], RESULTS).frame
    by_model = render(NAMED["proxies-references"], RESULTS).frame
    for frame in (grid, by_model):
        counted = values_of(frame).xs("cells", axis=1, level="name").to_numpy()
        assert len(cells) == counted[-1, 0]
