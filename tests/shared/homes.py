"""A made table of homes: columns of seven SQL types with gaps, the same as a frame, and fitted rules."""

from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd

TYPES = {
    "id": "INTEGER",
    "rooms": "INTEGER",
    "area": "BIGINT",
    "fee": "DECIMAL(12,2)",
    "heat": "REAL",
    "noise": "DOUBLE PRECISION",
    "garden": "BOOLEAN",
    "town's": "TEXT",
}
FEATURES = list(TYPES)[1:]
LABELLED = ("garden", "town's")
TOWNS = np.array(["Ay", "bo", "O'Hara", "Ay "], dtype=object)


def with_gaps(values, rng, share=0.1):
    """Values with None in a share of the places."""
    column = np.asarray(values, dtype=object)
    column[rng.random(len(column)) < share] = None
    return column.tolist()


def homes(n, seed=0):
    """Columns as a database takes them: None is NULL, and NaN stays NaN."""
    rng = np.random.default_rng(seed)
    floats = [np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)) for _ in range(2)]
    return {
        "id": list(range(n)),
        "rooms": with_gaps(rng.integers(1, 7, n), rng),
        "area": with_gaps(rng.integers(20, 180, n), rng),
        "fee": with_gaps([Decimal(int(cents)) / 100 for cents in rng.integers(1e4, 3e5, n)], rng),
        "heat": with_gaps([float(np.float32(value)) for value in floats[0]], rng),
        "noise": with_gaps(floats[1], rng),
        "garden": with_gaps(rng.random(n) < 0.5, rng),
        "town's": with_gaps(rng.choice(TOWNS, n), rng),
    }


def as_frame(columns):
    """The same columns as a frame: NULL and NaN are missing."""
    data = {}
    for name in FEATURES:
        values = columns[name]
        if name not in LABELLED:
            values = [np.nan if v is None else float(v) for v in values]
        data[name] = values
    return pd.DataFrame(data)


def rents(X, is_classifier, rng):
    """A target that depends on all columns."""
    filled = X.fillna({"rooms": 3, "area": 90, "fee": 1000, "heat": 2, "noise": -2})
    warm = filled.heat * (filled["town's"] == "bo") + filled.noise.clip(-1, 1)
    rent = 2.0 * filled.area + 0.01 * filled.fee + 40 * warm + 30 * (filled.garden == True)  # noqa: E712
    rent += filled.rooms**2 + rng.normal(0, 5, len(X))
    return np.where(rent > rent.median(), "high", "it's low") if is_classifier else rent


@cache
def fitted(setting):
    """An estimator that was fitted to homes, once."""
    X = as_frame(homes(400))
    y = rents(X, setting.is_classifier, np.random.default_rng(1))
    model = setting.fresh(random_state=0)
    if "missing" in model.get_params():
        model.set_params(missing="answer")
    return model.fit(X, pd.Series(y, name="rent"))


def rules_of(setting):
    """The rules of a fitted estimator, or those of the likeliest of its trees."""
    model = fitted(setting)
    return getattr(model, "rules_", None) or model.map_tree_.rules()


def n_that_differ(values, predicted):
    """Count the values that are not those predicted; numbers may differ by rounding."""
    if np.asarray(predicted).dtype.kind == "f":
        close = np.isclose(np.array(values, float), predicted, rtol=1e-9, atol=1e-9)
        return int((~close).sum())
    return sum(str(a) != str(b) for a, b in zip(values, predicted, strict=True))
