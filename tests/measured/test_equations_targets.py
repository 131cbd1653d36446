"""What the dial of piecewise linear models promises at "balanced"; "small" is measured by `bench.sizes`.

Run with `--measure -s`. Tables come from the folder FABINTERP_DATA; one that is not there is skipped
by name.
"""

import numpy as np
import pytest
from shared.needs import need_data

from fabinterp import PiecewiseLinearRegressor
from fabinterp.bench.datasets import load

pytestmark = pytest.mark.measure


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
