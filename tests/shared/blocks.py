"""What the tests of rows in blocks share: how rows are cut, and a frame with labels."""

import numpy as np
import pandas as pd

LABELS = np.array(["no", "perhaps", "yes"])


def cut(rng, n, most=6):
    """Positions of n rows in some consecutive parts, none empty."""
    return np.split(
        np.arange(n), np.sort(rng.choice(np.arange(1, n), rng.integers(1, most), replace=False))
    )


def rows_at(X, at):
    """Rows of a frame or an array."""
    return X.iloc[at] if hasattr(X, "iloc") else X[at]


def mixed(rng, n):
    """A frame with labels, gaps and truth values, and what it decides."""
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green", "black"], n)),
            "yes": rng.random(n) < 0.5,
        }
    )
    t = (
        np.where(frame["colour"].isin(["red", "green"]), 2.0, 0.0)
        + frame["size"]
        + 0.1 * rng.normal(size=n)
    )
    frame.loc[rng.random(n) < 0.2, "size"] = np.nan
    return frame, t.to_numpy()
