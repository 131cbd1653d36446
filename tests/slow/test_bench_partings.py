"""The page that measures where rules and ensembles part: its stored lines, and a small job."""

from math import isfinite

import pytest
from frame import NBS
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from fabinterp import disagreement, explain
from fabinterp.bench.partings import TABLES, measure_parting, parting_figures
from fabinterp.bench.runner import key_text, read_lines

RESULTS = NBS / "results"
LINES = read_lines(RESULTS / "partings.jsonl")


def test_every_job_has_a_stored_line_whose_bounds_are_in_order():
    (table,) = TABLES
    assert {key_text(line["key"]) for line in LINES} == set(table.keys())
    for line in LINES:
        assert line["at rows"] <= line["lower"] <= line["upper"] + 1e-9 and isfinite(line["upper"])
        if line["key"]["ensemble"].startswith("small"):
            assert line["proven"]


def test_bounds_that_meet_are_not_apart():
    figures = parting_figures(LINES)
    assert ((figures["apart"] == 0) == figures["proven"].astype(bool)).all()
    assert (figures["apart"] >= 0).all()


def test_a_small_job_finds_the_gap_of_what_explain_finds():
    found = measure_parting({"data": "iris", "ensemble": "small forest"})
    assert found["proven"] and found["columns"] == 4
    X, _, y, _ = train_test_split(*load_iris(return_X_y=True), train_size=0.5, random_state=0)
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    rules = explain(forest, X, max_rules=8, held_out=0, random_state=0)
    gap = disagreement(rules, forest, X)
    assert found["lower"] == pytest.approx(gap.lower)
    assert found["at rows"] == pytest.approx(gap.at_rows)
