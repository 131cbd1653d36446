"""What an explanation near a point promises: the model's class at the point, and milliseconds.

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
from fabinterp.proxy.local import fit_small_trees, pointwise_loss

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


@pytest.mark.parametrize("name", ["australian", "pima_diabetes"])
def test_the_leaf_of_the_point_names_the_models_class(name):
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
    agree = []
    share = []
    loss = []
    fresh = explain_local(model.predict_proba, X_new, X, random_state=1, max_depth=0)
    for e, other in zip(found, fresh, strict=True):
        options = e.settings.tree_options
        plain, _ = fit_small_trees(
            e.neighbours[None], e.neighbour_predictions[None], np.zeros(1), **options
        )
        trees = (plain, e.array_tree)
        leaves = [tree.apply(e.x[None])[0] for tree in trees]
        own = np.argmax(e.prediction)
        pairs = list(zip(trees, leaves, strict=True))
        agree.append([tree.value[leaf].argmax() == own for tree, leaf in pairs])
        share.append([tree.weight[leaf] / len(e.neighbours) for tree, leaf in pairs])
        loss.append(
            [
                [
                    pointwise_loss(other.neighbour_predictions, tree.leaf_values(other.neighbours))
                    .clip(0, 20)
                    .mean(),
                    pointwise_loss(e.prediction, tree.value[leaf]).clip(0, 20),
                ]
                for tree, leaf in pairs
            ]
        )
    before, after = np.mean(agree, axis=0)
    (near_before, at_before), (near, at) = np.mean(loss, axis=0)
    print(
        f"\n{name}: names the model's class at {before:.1%} without the cut, {after:.1%} with; least "
        f"share of neighbours {np.min(share, axis=0)[1]:.3f}; loss near {near_before:.4f}, {near:.4f}, "
        f"at the point {at_before:.4f}, {at:.4f}; {1e3 * many:.2f} ms, alone {1e3 * np.median(alone):.2f}"
    )
    assert after >= 0.99 and np.min(share, axis=0)[1] >= 0.05
    assert near <= 1.03 * near_before and at <= at_before
