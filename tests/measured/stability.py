"""How stable the chosen trees of equations are: `python tests/measured/stability.py`.

The default fit of each table and split is compared with fits of the same table: its numbers times
1 + 1e-12, by another kernel of OpenBLAS, with rows permuted, and with columns permuted. Two trees are
the same if they have as many leaves and their predictions agree to 1e-5. `--resamples N` fits N
bootstrap resamples of the first split of each table instead: how often the first split is on the
column that is the most frequent there, and how often the size is within two leaves of the median. A
line for each fit is appended to a file (`--out`), so a run that stops goes on where it was.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from choices import (
    CHOOSE,
    CLASSES,
    MODELS,
    REPORT,
    fit_seconds,
    frame_of,
    measure_missing,
    split_rows,
)

OTHER_KERNEL = {"OPENBLAS_CORETYPE": "Prescott"}
VARIANTS = ("scaled", "other kernel", "rows permuted", "columns permuted")


def fitted(data, X, y):
    """The default fit."""
    return fit_seconds(MODELS["equations"][data in CLASSES](random_state=0), X, y)[0]


def tree_of(model, X):
    """Leaves and predictions: what two trees that are the same have in common."""
    predict = getattr(model, "predict_proba", model.predict)
    return {"leaves": model.n_components_, "predicted": np.ravel(predict(X)).tolist()}


def is_same(one, other):
    """Whether two of `tree_of` are the same tree."""
    predicted = np.array(one["predicted"])
    far = 1e-5 * max(predicted.std(), 1e-12)
    near = np.abs(predicted - other["predicted"]).max() <= far
    return bool(one["leaves"] == other["leaves"] and near)


def by_other_kernel(data, split):
    """`tree_of` a fit in a process that computes with other kernels."""
    command = [sys.executable, __file__, "--tables", data, "--one", str(split)]
    done = subprocess.run(command, env=os.environ | OTHER_KERNEL, capture_output=True, check=True)
    return json.loads(done.stdout)


def scaled(X):
    """A table whose fractions are larger by 1e-12 of themselves."""
    fractions = X.select_dtypes("float").columns
    return X.assign(**{name: X[name] * (1 + 1e-12) for name in fractions})


def compare(data, split):
    """Which variants of a fit give the same tree."""
    X, y, *_ = split_rows(data, split)
    tree = tree_of(fitted(data, X, y), X)
    rng = np.random.default_rng(split)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    others = (
        tree_of(fitted(data, scaled(X), y), scaled(X)),
        by_other_kernel(data, split),
        tree_of(fitted(data, X.iloc[rows], y[rows]), X),
        tree_of(fitted(data, X.iloc[:, columns], y), X.iloc[:, columns]),
    )
    same = {name: is_same(tree, other) for name, other in zip(VARIANTS, others, strict=True)}
    return {"leaves": tree["leaves"]} | same


def resample(data, draw):
    """Leaves and the column of the first split, of a fit to a bootstrap resample."""
    X, y, *_ = split_rows(data, 0)
    rows = np.random.default_rng(draw).integers(len(y), size=len(y))
    model = fitted(data, X.iloc[rows], y[rows])
    first = model.tree_.splits[0]
    return {"leaves": model.n_components_, "root": None if first is None else first.features[0]}


def stability_of_resamples(lines):
    """For each table, the shares of resamples with the usual first split and about the usual size."""
    return lines.groupby("data", sort=False).agg(
        draws=("leaves", "size"),
        same_root=("root", lambda roots: roots.map(str).value_counts(normalize=True).max()),
        leaves=("leaves", "median"),
        within_two=("leaves", lambda sizes: (abs(sizes - sizes.median()) <= 2).mean()),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("stability.jsonl"))
    parser.add_argument("--tables", nargs="*", default=[*CHOOSE, *REPORT])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--resamples", type=int, default=0)
    parser.add_argument("--one", type=int, help="print `tree_of` the fit of this split")
    given = parser.parse_args()
    if given.one is not None:
        X, y, *_ = split_rows(given.tables[0], given.one)
        print(json.dumps(tree_of(fitted(given.tables[0], X, y), X)))
        return
    name, n, what = ("split", given.splits, compare)
    if given.resamples:
        name, n, what = ("draw", given.resamples, resample)
    keys = [{"data": data, name: k} for k in range(n) for data in given.tables]
    measure_missing(keys, what, given.out)
    lines = frame_of(given.out)
    if given.resamples:
        print(stability_of_resamples(lines).round(2).to_string())
    else:
        print(lines[["data", "split", "leaves", *VARIANTS]].to_string(index=False))
        print(lines[[*VARIANTS]].sum().to_string(), f"of {len(lines)}")


if __name__ == "__main__":
    main()
