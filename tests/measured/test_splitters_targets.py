"""Sizes that blocks of time choose, on the days that follow."""

import numpy as np
import pytest
from shared.needs import need_data
from sklearn.model_selection import KFold

from fabinterp import ObliqueAdditiveRegressor, PiecewiseLinearRegressor
from fabinterp.bench.datasets import load
from fabinterp.rules.size_path import sizes_of

pytestmark = pytest.mark.measure


@pytest.mark.parametrize("kind", [PiecewiseLinearRegressor, ObliqueAdditiveRegressor])
@pytest.mark.parametrize("with_day", [True, False])
def test_the_size_is_not_far_from_the_best_on_later_days(kind, with_day):
    """Days 1 to 550 of bike_rental, with or without their number, and days 551 to 731."""
    need_data("bike_rental")
    data = load("bike_rental")
    X = np.c_[data.X, np.arange(len(data.y))] if with_day else np.asarray(data.X)
    model = kind(cv=KFold(), random_state=0).fit(X[:550], data.y[:550])
    errors = {}
    for _, one, chosen in sizes_of(model):
        errors.setdefault(chosen, []).append(np.mean((one.predict(X[550:]) - data.y[550:]) ** 2))
    assert errors[True][0] ** 0.5 <= 1.1 * min(errors[True] + errors[False]) ** 0.5
