"""How closely an explanation follows the `predict` of models that differ from their trees.

Run with `--measure -s`, which prints the agreement of each model beside that of its queried `predict`.
"""

import time
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from shared.overriding import MODELS, X, agreement, as_function
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from fabinterp import explain, explanation
from fabinterp.forests.reading import N_COMPARED, compare_ensemble

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
        print(f"{name:45s} {ours:.4f} {queried:.4f} {found.method}: {found.reference.difference}")
        if ours < queried - 0.01:
            worse.append(name)
    assert not worse


@pytest.mark.parametrize("name", ["forest", "histograms", "LightGBM", "XGBoost"])
def test_the_comparison_takes_one_prediction_of_2000_rows(name, monkeypatch):
    """Seconds that the comparison adds to `explain`, beside those of one `predict` of 2000 rows."""
    table = np.random.default_rng(0).normal(size=(4000, 8))
    model = {
        "forest": RandomForestClassifier(100, random_state=0),
        "histograms": HistGradientBoostingClassifier(),
        "LightGBM": lgb.LGBMClassifier(n_jobs=1, verbose=-1),
        "XGBoost": xgb.XGBClassifier(n_jobs=1),
    }[name].fit(table, table[:, 0] + table[:, 1] ** 2 > 1)
    seconds = []
    rows = []
    predict = model.predict

    def timed(X):
        rows.append(len(X))
        return predict(X)

    def timed_comparison(*arguments):
        start = time.perf_counter()
        found = compare_ensemble(*arguments)
        seconds.append(time.perf_counter() - start)
        return found

    monkeypatch.setattr(model, "predict", timed)
    monkeypatch.setattr(explanation, "compare_ensemble", timed_comparison)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explain(model, table, n_perturbations=2, random_state=0)
        start = time.perf_counter()
        predict(table[:N_COMPARED])
    alone = time.perf_counter() - start
    print(f"{name}: comparison {sum(seconds):.4f} s, predict {alone:.4f} s")
    assert rows == [N_COMPARED]
