"""Random tables: numbers with ties and gaps, labels with gaps, truth values and words."""

import numpy as np
import pandas as pd

WORDS = ("a", "b's", "c")


def mixed_columns(rng, n, digits=2, size="size", words=WORDS):
    """Draw a number, a label, a truth value and a word for each of n rows; nothing is missing yet."""
    return pd.DataFrame(
        {
            size: rng.normal(size=n).round(digits),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green", "black"], n)),
            "yes": rng.random(n) < 0.5,
            "word": rng.choice(words, n).astype(object),
        }
    )


def with_gaps(rng, frame, size="size"):
    """Take a fifth of the numbers and a tenth of the labels away."""
    frame.loc[rng.random(len(frame)) < 0.2, size] = np.nan
    frame.loc[rng.random(len(frame)) < 0.1, "colour"] = None
    return frame


def mixed_frame(rng, n):
    """Draw n rows of a number with gaps, a label with gaps, a truth value and a word."""
    return with_gaps(rng, mixed_columns(rng, n))


def wide_frame(rng, n, size="size", words=WORDS):
    """Draw the columns of `mixed_frame` behind a number and one with ties, neither with gaps."""
    first = pd.DataFrame({"height": rng.normal(size=n), "age": rng.integers(0, 5, n).astype(float)})
    rest = with_gaps(rng, mixed_columns(rng, n, 1, size, words), size)
    return pd.concat([first, rest], axis=1)


def any_table(rng, kind, target, draw_frame=None):
    """Draw a table of 2 to 80 rows, some given twice, its target, weights, and 40 rows never seen.

    Its rows are those of `draw_frame(rng, n)`, or an array of one to four columns, some with gaps;
    `target(kind, t)` makes class numbers of t unless `kind` is "numbers". The first two weights are
    1.
    """
    n = int(rng.integers(2, 60))
    d = int(rng.integers(1, 5))
    digits = int(rng.integers(0, 3))
    gaps = rng.random(d) < 0.4

    def draw(m):
        if draw_frame is not None:
            return draw_frame(rng, m)
        return np.where(
            gaps & (rng.random((m, d)) < 0.2), np.nan, rng.normal(size=(m, d)).round(digits)
        )

    X = draw(n)
    new = draw(40)
    first = X if draw_frame is None else X.to_numpy()[:, :2].astype(float)
    t = np.nan_to_num(first).sum(axis=1) * rng.choice([-1.0, 3.0], n) + rng.normal(size=n).round(
        digits
    )
    labels = np.array([["no", "yes", "perhaps"], [3, 1, 7]][int(rng.integers(2))])
    y = t * 10.0 ** rng.integers(-6, 7) if kind == "numbers" else labels[target(kind, t)]
    again = rng.integers(0, n, int(rng.integers(0, 20)))
    X = np.vstack([X, X[again]]) if draw_frame is None else pd.concat([X, X.iloc[again]])
    w = rng.integers(0, 3, len(X)).astype(float)
    w[:2] = 1
    return X, np.append(y, y[again]), w, new
