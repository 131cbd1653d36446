"""What the dial of piecewise linear models promises: truth and noise at "small", error at "balanced".

Run with `--measure -s`. Tables come from the folder FABINTERP_DATA; one that is not there is skipped
by name.
"""

import numpy as np
import pytest
from shared.needs import need_data

from fabinterp import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.bench.datasets import load
from fabinterp.fab.hme import simulate

pytestmark = pytest.mark.measure
SIZES = (200, 500, 1500, 5000)


def is_constant(model):
    """Whether a model is one leaf without a term."""
    return len(model.rules_) == 1 and model.rules_.leaves[0].features == ()


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "classes"])
def test_noise_is_a_constant(numbers):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = SIZES[seed % 4]
        X = rng.normal(size=(n, 6))
        y = rng.normal(size=n) if numbers else rng.integers(0, 2, n)
        cls = PiecewiseLinearRegressor if numbers else PiecewiseLinearClassifier
        found.append(is_constant(cls(size="small", random_state=0).fit(X, y)))
    print(f"\nconstants: {sum(found)} of 20")
    assert sum(found) >= 19


def test_the_true_number_of_leaves_is_found():
    right = []
    for seed in range(20):
        n_leaves = 2 + seed % 5
        d, noise = [(5, 0.1), (10, 0.3), (20, 0.5)][seed % 3]
        n = max(100, 60 * n_leaves * (1, 2, 4)[seed // 3 % 3])
        X, y, truth = simulate(seed, 1e-4, n=n, d=d, n_leaves=n_leaves)
        y = y + np.random.default_rng(seed).normal(size=n) * noise * y.std()
        model = PiecewiseLinearRegressor(size="small", random_state=0).fit(X, y)
        right.append(len(model.rules_) == truth.n_leaves)
    print(f"\nleaves right: {sum(right)} of 20")
    assert sum(right) >= 17


@pytest.mark.parametrize("name", ["space_ga", "wine_red", "energy", "bodyfat", "baseball"])
def test_the_size_that_folds_choose_is_not_far_from_the_best(name):
    need_data(name)
    data = load(name)
    regrets = []
    for split in range(3):
        order = np.random.default_rng(split).permutation(len(data.y))
        test, train = np.split(order, [len(order) // 5])
        model = PiecewiseLinearRegressor(random_state=0).fit(data.X[train], data.y[train])
        errors = [
            np.sqrt(np.mean((entry.fitted["tree_"].predict(data.X[test]) - data.y[test]) ** 2))
            for entry in model._path
        ]
        own = np.sqrt(np.mean((model.predict(data.X[test]) - data.y[test]) ** 2))
        regrets.append(own / min(errors) - 1)
    print(f"\n{name}: {np.round(regrets, 3)}")
    assert np.mean(regrets) <= 0.1  # of each split's own best, which nobody can choose
