"""Changes on australian and pima: the prediction of the rules always changes, that of the model in 9 of 10 rows.

Run with `--measure -s`, which prints the figures; the data are those of the folder FABINTERP_DATA.
"""

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
LIMITS = {  # median distance of a change that rules and model accept, mean number of rows queried
    "australian": (1.49, 26_863),
    "pima_diabetes": (1.01, 27_973),
}


class Counted:
    """A model and the number of rows that it is queried about."""

    def __init__(self, model):
        self.predict_rows = model.predict
        self.n_rows = 0

    def predict(self, X):
        """Return the predictions and count the rows."""
        self.n_rows += len(X)
        return self.predict_rows(X)


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
    distances = []
    lengths = []
    n_rows = []
    n_flipped = n_agreed = n_by_chance = n_both = 0
    for i in range(len(test)):
        row = test.iloc[[i]]
        x = row.to_numpy(dtype=float)[0]
        found = nearest_change(rules, row, train)
        n_flipped += bool(found) and rules.predict(found.after[None])[0] != rules.predict(row)[0]
        counted = Counted(model)
        joint = nearest_change(rules, row, train, model=counted)
        n_rows.append(counted.n_rows)
        distances.append(joint.distance if joint else np.inf)
        now = model.predict(row)[0]
        agreed = False
        if joint:
            agreed = model.predict(pd.DataFrame(joint.after[None], columns=X.columns))[0] != now
        random = random_changes(rng, x, train.to_numpy(dtype=float))
        changed = model.predict(pd.DataFrame(random, columns=X.columns)) != now
        n_agreed += agreed
        n_by_chance += changed.any()
        n_both += changed.any() and agreed
        accepted = random[changed & (rules.predict(random) != now)]
        if len(accepted) and agreed:
            lengths.append((joint.distance, distance(x, accepted, space).min()))
    n = len(test)
    ours, by_chance = np.median(lengths, axis=0)
    print(
        f"\n{name}: rules flip in {n_flipped} of {n} rows; the model in {n_agreed}, "
        f"{n_both} of the {n_by_chance} where {N_RANDOM} random steps found a change\n"
        f"  distance, median: {ours:.2f}, of the nearest random one that both accept {by_chance:.2f}; "
        f"all rows {np.median(distances):.3f}; rows queried: mean {np.mean(n_rows):.0f}"
    )
    assert n_flipped == n
    assert n_both >= 0.9 * n_by_chance
    largest_distance, most_rows = LIMITS[name]
    assert np.median(distances) <= largest_distance
    assert np.mean(n_rows) <= most_rows
