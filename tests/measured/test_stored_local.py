"""What the page on local explanations says of loss and time beside LIME is what stands in its file of results."""

import numpy as np
import pytest
from frame import NBS

from fabinterp.bench.runner import latest, read_lines

RESULTS = NBS / "results"
LINES = latest(read_lines(RESULTS / "local.jsonl")).values()
PAPER = "LIME, highest weights"
DATA = pytest.mark.parametrize("data", ["boston", "auto_risk"])


def numbers(data, method, name):
    """One number of a method over the splits of a data set."""
    return np.array(
        [
            line["methods"][method][name]
            for line in LINES
            if line["key"]["part"] == "fidelity" and line["key"]["data"] == data
        ]
    )


@DATA
@pytest.mark.parametrize("method", ["tree", "tree, at most 3 leaves", "tree, plain normal"])
def test_the_loss_at_the_point_is_less_than_lime_s_in_the_mean(data, method):
    ours = numbers(data, method, "loss")
    assert len(ours) >= 5
    for theirs in (
        PAPER,
        f"{PAPER}, quartiles",
        f"{PAPER}, around x",
        "LIME, forward",
        "LIME, forward, around x",
    ):
        assert ours.mean() < numbers(data, theirs, "loss").mean()


@DATA
def test_the_weighted_loss_is_less_than_that_of_lime_as_the_paper_set_it_up(data):
    for method in ("tree", "tree, at most 3 leaves"):
        assert (numbers(data, method, "near") < numbers(data, PAPER, "near")).all()


MISSED = pytest.mark.xfail(
    strict=True, reason="missed: 9.9 times, where LIME runs faster than it did"
)


@pytest.mark.parametrize("data", ["boston", pytest.param("auto_risk", marks=MISSED)])
def test_an_explanation_takes_less_than_a_tenth_of_lime_s_time(data):
    assert np.median(numbers(data, PAPER, "ms") / numbers(data, "tree", "ms")) > 10


@DATA
def test_a_second_call_says_the_same_and_lime_s_does_not(data):
    assert (numbers(data, "tree", "same_features") == 1).all() and (
        numbers(data, "tree", "answers_apart") == 0
    ).all()
    assert (
        numbers(data, PAPER, "same_features").mean() < 1
        and (numbers(data, PAPER, "answers_apart") > 0).all()
    )
