"""What meta-trees promise beside a shrunk tree, a pruned tree and the forest they are made of; noise; intervals.

Run with `--measure -s`; imodels has to be importable. Tables come from the folder FABINTERP_DATA;
each has ten splits, 3000 rows to learn from at most, three splits where forests are grown. The
figures of one run are kept in `nbs/results`: `python -m fabinterp.bench metatrees`, `metatrees-forests`.
"""

from functools import cache

import numpy as np
import pytest
from shared.needs import need, need_data

from fabinterp import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.bench import metatrees

pytestmark = pytest.mark.measure
SIZES = (100, 300, 1000, 5000)


@cache
def figures_of_job(**key):
    """What one job finds, as a line."""
    return {"key": key} | metatrees.measure_beside_plain_trees(key)


def lines_of(tables, splits, **key):
    """The lines of some tables on so many splits, measured here."""
    for name in tables:
        need_data(name)
    return [figures_of_job(data=name, split=k, **key) for name in tables for k in range(splits)]


def worse_and_mean(verdicts):
    """On how many tables ours is worse, and the geometric mean of the ratios; printed, too."""
    worse = [name for name, found in verdicts.items() if found["worse"]]
    ratios = {name: found["ratio"] for name, found in verdicts.items()}
    mean = np.exp(np.mean(np.log([*ratios.values()])))
    print(f"\nworse on {worse}, geometric mean of ratios {mean:.3f}")
    print("  " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
    return len(worse), mean


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "classes"])
def test_the_likeliest_pruning_of_noise_is_the_root(numbers):
    n_roots = 0
    make = MetaTreeRegressor if numbers else MetaTreeClassifier
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n = SIZES[seed % 4]
        X = rng.normal(size=(n, 6))
        y = rng.normal(size=n) if numbers else rng.integers(0, 2, n)
        n_roots += make(random_state=0).fit(X, y).map_tree_.n_leaves == 1
    print(f"\nroots: {n_roots} of 50")
    assert n_roots >= 48


@pytest.mark.parametrize("peer", ["HSTree", "CART(cv)"])
def test_a_single_meta_tree_is_seldom_worse(peer):
    need("imodels")
    lines = lines_of(metatrees.REPORT, 10, part="single")
    worse, mean = worse_and_mean(metatrees.single_verdicts(lines)[peer])
    assert worse <= 2 and mean <= 1


@pytest.mark.parametrize("depth", [5, 10, None])
def test_a_meta_forest_is_seldom_worse_than_its_forest(depth):
    lines = lines_of(metatrees.REPORT, 3, part="forest", depth=depth)
    worse, _ = worse_and_mean(metatrees.forest_verdicts(lines)[depth])
    assert worse <= 1


@pytest.mark.parametrize("n_trees", [1, 100])
def test_intervals_hold_what_they_promise(n_trees):
    if n_trees == 1:
        need("imodels")
        lines = lines_of(metatrees.NUMBERS, 10, part="single")
    else:
        lines = [
            line
            for depth in metatrees.DEPTHS
            for line in lines_of(metatrees.NUMBERS, 3, part="forest", depth=depth)
        ]
    held = np.mean([line["held"] for line in lines], axis=0)
    print(f"\nheld of {metatrees.LEVELS}: {held.round(3)}")
    assert np.all(np.abs(held - metatrees.LEVELS) <= 0.02)
