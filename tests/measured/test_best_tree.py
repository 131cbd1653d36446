"""The search beside the best of all trees of depth two, under the same criterion."""

from types import SimpleNamespace

import numpy as np
import pytest
from shared.needs import need_data

from fabinterp.bench.datasets import load
from fabinterp.fab.gates import Cut
from fabinterp.models.piecewise import (
    PiecewiseLinearRegressor,
    _make_line_design,
    make_search_problem,
    run_tree_search,
)
from fabinterp.rows.tables import location_scale
from fabinterp.rules.core import read_columns

pytestmark = pytest.mark.measure

NEAR = ("boston", "auto_mpg", "cal_housing", "wine_red", "energy", "abalone")
# the share that the search misses there: .13, .10, .08, .03
FAR = ("space_ga", "kin8nm", "puma8NH", "stock")
misses = pytest.mark.xfail(reason="the search ends at a tree that no single move betters")
N_ROWS = 1000
N_THRESHOLDS = 5
SHARE = 0.02  # of what the best tree gains over one leaf that the search may miss


def all_cuts(problem):
    """Every split of a problem without missing values."""
    return [
        Cut(j, cell, False, False, 0.0, int(problem.n_known[j]))
        for j in problem.features
        for cell in range(problem.n_known[j] - 1)
    ]


def best_value(problem, rows, cuts, depth):
    """The value of the best tree of at most that depth for the rows: all are tried."""
    if depth == 0:
        return problem.leaf(rows).value
    parts = [(cut, problem.split_rows(rows, cut)) for cut in cuts]
    parts = [(cut, sides) for cut, sides in parts if sides is not None]
    if depth == 1:
        problem.fit_leaves([side for _, sides in parts for side in sides])
    values = [
        sum(best_value(problem, side, cuts, depth - 1) for side in sides)
        - problem.split_penalty(rows, cut)
        for cut, sides in parts
    ]
    return max([problem.leaf(rows).value, *values])


def found_and_best(name):
    """FIC of one leaf, of what the search finds, and of the best tree; at the search's variance."""
    data = load(name)
    some = np.random.default_rng(0).permutation(len(data.y))[:N_ROWS]
    X, y = np.asarray(data.X, float)[some], np.asarray(data.y, float)[some]
    settings = PiecewiseLinearRegressor(max_depth=2, max_bins=N_THRESHOLDS + 1)
    w = np.ones(len(y))
    sample = SimpleNamespace(Z=X, w=w, columns=read_columns(X))
    none = np.zeros(X.shape[1], bool)
    chunked = SimpleNamespace(sample=sample, columns_with_missing=lambda: none)
    design = _make_line_design(settings, chunked, 1.0)
    location, scale = location_scale(y, w)
    part = design.table(X), (y - location) / scale, w
    problem = make_search_problem(settings, design, part, 0, 1.0)
    problem, tree, _ = run_tree_search(problem, 100, np.random.default_rng(0), 200)
    rows = np.arange(len(y), dtype=np.int32)
    return problem.leaf(rows).value, tree.value, best_value(problem, rows, all_cuts(problem), 2)


@pytest.mark.parametrize("name", [*NEAR, *(pytest.param(name, marks=misses) for name in FAR)])
def test_the_search_is_near_the_best_tree_of_depth_two(name):
    need_data(name)
    one, found, best = found_and_best(name)
    assert found <= best + 1e-6 * abs(best)
    assert best - found <= SHARE * (best - one)
