"""Where rules and ensemble part, at size: small ensembles end, full forests are bounded, on ten tables.

Run with `--measure -s`, which prints the figures; the data are those of the folder FABINTERP_DATA.
"""

import time

import numpy as np
import pytest
from shared.machine import slowness
from shared.needs import need_data
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split

from fabinterp import disagreement, explain
from fabinterp.bench.datasets import load

pytestmark = pytest.mark.measure

NUMBERS = ["auto_mpg", "boston", "abalone", "kin8nm", "stock", "energy"]
CLASSES = ["australian", "pima_diabetes", "banknote", "magic04"]
SECONDS = 10.0


def searched(name, model, X, y):
    """What was found for eight rules, the seconds without reading; a line of it is printed."""
    model.fit(X, y)
    rules = explain(model, X, max_rules=8, held_out=0, random_state=0)
    start = time.process_time()
    found = disagreement(rules, model, X, max_seconds=SECONDS * slowness())
    seconds = time.process_time() - start
    print(
        f"{name:>14} {X.shape[1]:>3} columns, {type(model).__name__:>26}: {seconds:5.1f} s, "
        f"{found.n_boxes:>6} boxes, {found.lower:10.4g} to {found.upper:10.4g} ({found.unit}), "
        f"at rows {found.at_rows:10.4g}, in the box {found.n_rows_inside}"
    )
    return found, seconds


@pytest.mark.parametrize("name", NUMBERS + CLASSES)
def test_small_ensembles_end_and_large_ones_are_bounded(name):
    need_data(name)
    data = load(name)
    X, _, y, _ = train_test_split(np.asarray(data.X, float), data.y, train_size=0.5, random_state=0)
    X = X[:2000]
    y = y[:2000]
    forest, extra, boosting = (
        (RandomForestRegressor, ExtraTreesRegressor, GradientBoostingRegressor)
        if name in NUMBERS
        else (RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier)
    )
    for kind in (forest, extra):
        found, seconds = searched(name, kind(20, max_depth=4, random_state=0), X, y)
        assert X.shape[1] > 10 or found.proven and seconds < SECONDS
    searched(name, boosting(random_state=0), X, y)
    found, _ = searched(name, forest(100, random_state=0), X, y)
    assert found.at_rows <= found.lower <= found.upper < np.inf
