"""How closely an explanation follows the `predict` of models that differ from their trees.

Run with `--measure -s`, which prints the agreement of each model beside that of its queried `predict`.
"""

import time
import warnings

import numpy as np
import pytest
from shared.overriding import MODELS, X, agreement, as_function
from sklearn.ensemble import RandomForestClassifier

from fabinterp import explain
from fabinterp.forests.reading import N_COMPARED

pytestmark = pytest.mark.measure


@pytest.mark.filterwarnings("ignore")
def test_following_agrees_no_worse_than_querying():
    """31 models of 13 kinds: agreement with `predict` on the rows of the table."""
    assert len(MODELS) >= 30 and len({kind for kind, _ in MODELS.values()}) >= 12
    worse = []
    for name, (_, made) in MODELS.items():
        model = made()
        theirs = model.predict(X)
        function, classes = as_function(model)
        found = explain(model, X, random_state=0)
        asked = explain(function, X, classes=classes, random_state=0)
        ours, queried = (agreement(each.predict(X), theirs) for each in (found, asked))
        print(f"{name:45s} {ours:.4f} {queried:.4f} {found.method}: {found.subject.note}")
        if ours < queried - 0.01:
            worse.append(name)
    assert not worse


def test_the_comparison_takes_one_prediction_of_2000_rows(monkeypatch):
    """Seconds of `explain` with and without the comparison, beside those of `predict`."""
    table = np.random.default_rng(0).normal(size=(4000, 5))
    forest = RandomForestClassifier(100, random_state=0).fit(table, table[:, 0] > 0)
    calls = []
    predict = forest.predict

    def timed(rows):
        start = time.perf_counter()
        found = predict(rows)
        calls.append((len(rows), time.perf_counter() - start))
        return found

    forest.predict = timed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explain(forest, table, random_state=0)
    print("calls of predict (rows, seconds):", calls)
    assert sum(n for n, _ in calls) <= N_COMPARED
