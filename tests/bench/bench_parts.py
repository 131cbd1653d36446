"""What every fit is made of: one step of the mixture, cells, a question, an equation, a posterior; see bench_fits."""

import time

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from fabinterp.bench.cost import BASE, TASKS, classes_of, simulated_table
from fabinterp.fab.bernoulli_gate import best_cut
from fabinterp.fab.foba import foba
from fabinterp.forests.reading import read_ensemble
from fabinterp.metatree.conjugate import BetaBernoulli, sufficient_statistics
from fabinterp.metatree.posterior import empty_state, update_state
from fabinterp.metatree.prunings import perfect
from fabinterp.metatree.representative import LevelTree
from fabinterp.rows.bins import bin_codes, incidence, merge_identical, table_thresholds
from fabinterp.rules.core import Columns, read_columns

pytestmark = pytest.mark.benchmark(timer=time.process_time)
N = 20_000
D = 10


@pytest.mark.parametrize("L", [500, 8000])
def test_steps_of_the_mixture(benchmark, L):
    benchmark.pedantic(TASKS["step"](**{**BASE["step"], "L": L}).call, rounds=10, warmup_rounds=1)


def test_cells_of_a_table(benchmark):
    X, _ = simulated_table(N, D)
    bins = merge_identical(X, table_thresholds(X, 256))
    benchmark.pedantic(lambda: incidence(bin_codes(X, bins), bins), rounds=10, warmup_rounds=1)


def test_best_question(benchmark):
    rng = np.random.default_rng(0)
    cells = np.asfortranarray(rng.integers(0, 256, (N, D), np.uint8))
    diff = rng.normal(size=N)
    benchmark.pedantic(best_cut, args=(cells, [256] * D, diff), rounds=20, warmup_rounds=1)


def test_sparse_equation(benchmark):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(N), rng.normal(size=(N, 4 * D))])
    y = X[:, 1:6].sum(axis=1) + rng.normal(size=N)
    found = benchmark.pedantic(foba, args=(X.T @ X, X.T @ y, 10.0), rounds=20, warmup_rounds=1)
    assert set(range(1, 6)) <= set(found.support)


def test_reading_a_forest(benchmark):
    X, y = classes_of(2000, D)
    forest = RandomForestClassifier(50, random_state=0).fit(X, y)
    columns = read_columns(X)
    benchmark.pedantic(read_ensemble, args=(forest, columns), rounds=3)


def test_batch_of_a_meta_tree(benchmark):
    depth = 10
    X = np.random.default_rng(0).integers(0, 2, (N, depth), np.uint8)
    y = np.arange(N) % 2
    levels = LevelTree(
        perfect(2, depth),
        tuple(range(depth)),
        np.zeros(depth),
        Columns(tuple("abcdefghij"), (None,) * 10),
    )
    start = empty_state(levels, BetaBernoulli(), 0.5)

    def update():
        return update_state(
            start,
            sufficient_statistics(
                start.family, levels.leaves_of_codes(X), levels.topology.size, y, None
            ),
        )

    state = benchmark.pedantic(update, rounds=20, warmup_rounds=1)
    assert state.total_weight[0] == N
