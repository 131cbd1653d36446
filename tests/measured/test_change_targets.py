"""A change one can act on: on australian and pima rules always flip, the model behind them in nine of ten rows.

Run with `--measure -s`, which prints the figures; the data are those of the folder FABINTERP_DATA.
"""

import re
import time

import numpy as np
import pandas as pd
import pytest
from shared.needs import need_data
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from fabinterp import explain, nearest_change
from fabinterp.bench.datasets import load
from fabinterp.change import distance, feature_space

pytestmark = pytest.mark.measure

N_RANDOM = 20_000
SECONDS = 0.05  # of a change, without the model's calls


class Timed:
    """A model and the seconds that it takes."""

    def __init__(self, model):
        self.predict_rows = model.predict
        self.seconds = 0.0

    def predict(self, X):
        """Return what the model says, and count the time."""
        start = time.process_time()
        found = self.predict_rows(X)
        self.seconds += time.process_time() - start
        return found


def random_changes(rng, x, Z):
    """Return x (d,) with some features, more or fewer, as in rows of Z: N_RANDOM rows."""
    taken = rng.random((N_RANDOM, len(x))) < rng.random((N_RANDOM, 1))
    drawn = rng.integers(len(Z), size=(N_RANDOM, len(x)))
    return np.where(taken, Z[drawn, np.arange(len(x))], x)


@pytest.mark.parametrize("name", ["australian", "pima_diabetes"])
def test_rules_flip_always_and_the_model_where_random_steps_do(name):
    need_data(name)
    data = load(name)
    X = pd.DataFrame(data.X)
    train, test, y, _ = train_test_split(X, data.y, test_size=0.25, random_state=0)
    model = HistGradientBoostingClassifier(random_state=0).fit(train, y)
    rules = explain(model, train, random_state=0).rules
    space = feature_space(rules, train.to_numpy(dtype=float))
    rng = np.random.default_rng(0)
    seconds = []
    seconds_asked = []
    lengths = []
    batches = []
    n_flipped = n_agreed = n_by_chance = n_both = 0
    for i in range(len(test)):
        row = test.iloc[[i]]
        x = row.to_numpy(dtype=float)[0]
        start = time.process_time()
        found = nearest_change(rules, row, train)
        seconds.append(time.process_time() - start)
        n_flipped += bool(found) and rules.predict(found.after[None])[0] != rules.predict(row)[0]
        timed = Timed(model)
        start = time.process_time()
        told = nearest_change(rules, row, train, model=timed)
        seconds_asked.append(time.process_time() - start - timed.seconds)
        now = model.predict(row)[0]
        agreed = False
        if told:
            agreed = model.predict(pd.DataFrame(told.after[None], columns=X.columns))[0] != now
        batches.append(int(re.search(r"asked in (\d+) batches", told.verdict)[1]))
        random = random_changes(rng, x, train.to_numpy(dtype=float))
        changed = model.predict(pd.DataFrame(random, columns=X.columns)) != now
        n_agreed += agreed
        n_by_chance += changed.any()
        n_both += changed.any() and agreed
        # beside random rows that the rules accept, too, as those of `told` are
        accepted = random[changed & (rules.predict(random) != now)]
        if len(accepted) and agreed:
            lengths.append((told.distance, distance(x, accepted, space).min()))
    n = len(test)
    ours, by_chance = np.median(lengths, axis=0)
    print(
        f"\n{name}: rules flip in {n_flipped} of {n} rows; the model in {n_agreed}, "
        f"{n_both} of the {n_by_chance} where {N_RANDOM} random steps found a change\n"
        f"  distance, median: {ours:.2f}, of the nearest random one that both accept {by_chance:.2f}; "
        f"batches: median {np.median(batches):g}, most {max(batches)}\n"
        f"  CPU ms without the model's calls: rules {1e3 * np.median(seconds):.1f}, "
        f"with a model {1e3 * np.median(seconds_asked):.1f} "
        f"(90 %: {1e3 * np.quantile(seconds_asked, 0.9):.1f})"
    )
    assert n_flipped == n
    assert n_both >= 0.9 * n_by_chance
    assert max(batches) <= 50
    assert np.median(seconds) <= SECONDS
    assert np.median(seconds_asked) <= SECONDS
