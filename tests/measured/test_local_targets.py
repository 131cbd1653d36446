"""Local explanations of boosted trees: the tree's class at the point, its losses, and milliseconds.

Run with `--measure -s`, which prints the figures; tables come from the folder FABINTERP_DATA.
"""

import time

import numpy as np
import pytest
from shared.needs import need_data
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from fabinterp import explain_local
from fabinterp.bench.datasets import load
from fabinterp.proxy.local import pointwise_loss

pytestmark = pytest.mark.measure


class Remembered:
    """A model's answers, and the seconds it takes for them."""

    def __init__(self, model):
        self.model = model
        self.classes_ = model.classes_
        self.seconds = 0.0

    def predict_proba(self, X):
        """Return what the model says, and count the seconds."""
        start = time.process_time()
        found = self.model.predict_proba(X)
        self.seconds += time.process_time() - start
        return found


@pytest.mark.parametrize(("name", "least"), [("australian", 0.93), ("pima_diabetes", 0.86)])
def test_most_trees_predict_the_models_class_at_the_point(name, least):
    need_data(name)
    data = load(name)
    X, X_new, y, _ = train_test_split(np.asarray(data.X, float), data.y, random_state=0)
    model = Remembered(HistGradientBoostingClassifier(random_state=0).fit(X, y))
    start = time.process_time()
    found = explain_local(model.predict_proba, X_new, X, random_state=0)
    many = (time.process_time() - start - model.seconds) / len(X_new)
    alone = []
    for x in X_new[:40]:
        model.seconds = 0.0
        start = time.process_time()
        explain_local(model.predict_proba, x, X, random_state=0)
        alone.append(time.process_time() - start - model.seconds)
    fresh = explain_local(model.predict_proba, X_new, X, random_state=1, max_depth=0)
    agree = np.mean([np.argmax(e.prediction) == np.argmax(e.surrogate_prediction) for e in found])
    at_point = np.mean(np.clip([e.loss for e in found], 0, 20))
    near = {
        kind: np.mean(
            [
                pointwise_loss(other.neighbour_predictions, e.tree.predict_proba(other.neighbours))
                .clip(0, 20)
                .mean()
                for e, other in zip(explanations, fresh, strict=True)
            ]
        )
        for kind, explanations in (("tree", found), ("constant", fresh))
    }
    print(
        f"\n{name}: predicts the model's class at {agree:.1%} of the points; loss near "
        f"{near['tree']:.4f}, of a constant {near['constant']:.4f}, at the point {at_point:.4f}; "
        f"{1e3 * many:.2f} ms, alone {1e3 * np.median(alone):.2f}"
    )
    assert agree >= least
    assert near["tree"] < near["constant"]
