"""The printed text is the model on every table of the folder FABINTERP_DATA.

Run with `--measure -s`: it prints the largest deviation in standard deviations of y, or the share of other labels.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared.reader import read_classes, read_numbers

from fabinterp import (
    MetaTreeClassifier,
    MetaTreeRegressor,
    ObliqueAdditiveClassifier,
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
)
from fabinterp.fab.engine import Structure
from fabinterp.rules.core import SCORE_TOLERANCE

pytestmark = pytest.mark.measure

FOLDER = os.environ.get("FABINTERP_DATA")
NAMES = (
    sorted(path.name.removesuffix(".csv.gz") for path in Path(FOLDER).glob("*.csv.gz"))
    if FOLDER
    else []
)
MOST_ROWS = 1500
QUICK = {"search": Structure(0), "max_depth": 2, "random_state": 0}


def read_table(name):
    """Return at most `MOST_ROWS` rows of a table, its columns named by single words, and its target."""
    frame = pd.read_csv(Path(FOLDER) / f"{name}.csv.gz")
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0).reset_index(drop=True)
    y = frame.pop("target")
    frame.columns = [f"column{j}" for j in range(frame.shape[1])]
    return frame, y


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_finds_what_is_predicted(name):
    frame, y = read_table(name)
    if y.nunique() > 12:
        models = (
            PiecewiseLinearRegressor(**QUICK),
            ObliqueAdditiveRegressor(**QUICK),
            MetaTreeRegressor(max_depth=4, random_state=0),
            ProxyTreeRegressor(random_state=0),
        )
        for model in models:
            told, stated = read_numbers(str(model.fit(frame, y).rules_), frame)
            off = np.abs(told - model.predict(frame)).max() / np.std(y)
            print(
                f"{name} {type(model).__name__}: {off:.4f}, stated of curves {stated / np.std(y):.4f}"
            )
            assert off <= 0.005 + stated / np.std(y)
        return
    labels = np.array([f"class{code}" for code in pd.factorize(y, sort=True)[0]])
    models = (
        PiecewiseLinearClassifier(**QUICK),
        ObliqueAdditiveClassifier(**QUICK),
        MetaTreeClassifier(max_depth=4, random_state=0),
        ProxyTreeClassifier(random_state=0),
    )
    for model in models:
        told, margins, stated = read_classes(str(model.fit(frame, labels).rules_), frame)
        differs = told != model.predict(frame)
        print(
            f"{name} {type(model).__name__}: {differs.mean():.4f} of the labels, all within the margin"
        )
        assert (margins[differs] <= 2 * (SCORE_TOLERANCE + stated)).all()
