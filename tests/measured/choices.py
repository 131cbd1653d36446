"""How well sizes are chosen, over tables and splits: `python tests/measured/choices.py`.

A line for each fit is appended to a file (`--out`), so a run that stops goes on where it was.
`--summary` prints the tables of *Done when*: regret against the best size of the path and of direct
searches (DESIGN, terms for evaluation), what a direct search finds that the path does not, leaves
with fewer rows than three times their numbers, coverage of intervals, and how often a fit is clearly
worse than a constant, a tree of five leaves and a lasso. The tables are files `name.csv.gz` of the
folder FABINTERP_DATA, the last column `target`.
"""

import argparse
import json
import os
import time
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp import (
    ObliqueAdditiveClassifier,
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
)
from fabinterp.bench.rules import is_worse_over_splits, regret
from fabinterp.models.piecewise import n_coefficients
from fabinterp.rules.size_path import sizes_of

CHOOSE = (
    "autoprice pyrim triazines servo concrete hepatitis heart_h cylinder_bands hypothyroid vowel "
    "breast_w ionosphere phoneme auto_mpg stock boston kin8nm"
).split()
REPORT = (
    "bodyfat baseball auto_risk energy space_ga wine_red abalone cpusmall australian pima_diabetes "
    "titanic splice magic04 spambase diabetes breast_cancer friedman1 friedman2 friedman3"
).split()
CLASSES = (
    "hepatitis heart_h cylinder_bands hypothyroid vowel breast_w ionosphere phoneme australian "
    "pima_diabetes titanic splice magic04 spambase breast_cancer"
).split()
MOST_ROWS = 2500  # of a training part
MANY_ROWS = 5000  # of a table; beyond, three splits
PRICES = (0.5, 0.7, 1.0, 1.5, 2.6)
LEVELS = (0.8, 0.95)
MODELS = {
    "equations": (PiecewiseLinearRegressor, PiecewiseLinearClassifier),
    "oblique": (ObliqueAdditiveRegressor, ObliqueAdditiveClassifier),
}
DRAWS = {
    "friedman1": partial(datasets.make_friedman1, noise=1.0),
    "friedman2": partial(datasets.make_friedman2, noise=125.0),
    "friedman3": partial(datasets.make_friedman3, noise=0.1),
}


@cache
def table(name):
    """X (frame) and y (array) of a table."""
    if name in DRAWS:
        X, y = DRAWS[name](n_samples=5000, random_state=0)
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y
    if name in ("diabetes", "breast_cancer"):
        return getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    frame = pd.read_csv(Path(os.environ["FABINTERP_DATA"]) / f"{name}.csv.gz")
    y = frame.pop("target").to_numpy()
    return frame, y


def split_rows(name, split):
    """Rows to fit and rows to predict of one of ten splits: X, y, X_new, y_new."""
    X, y = table(name)
    parts = StratifiedShuffleSplit if name in CLASSES else ShuffleSplit
    train, test = list(parts(10, test_size=0.25, random_state=0).split(X, y))[split]
    n = 1000 if name in DRAWS else MOST_ROWS
    train = train[:n]
    y = np.asarray(y)
    return X.iloc[train], y[train], X.iloc[test], y[test]


def splits_of(name, most):
    """The splits of a table: ten, or three of many rows."""
    many = name not in DRAWS and len(table(name)[1]) > MANY_ROWS
    return range(min(most, 3 if many else 10))


class Losses:
    """The loss of predictions on new rows: RMSE, or log loss and the share of errors, plus one a test set."""

    def __init__(self, model, X_new, y_new):
        self.model = model
        self.y = y_new
        self.Z = X_new

    def of(self, fitted):
        """The loss by which sizes are compared, and for classes the share of errors."""
        if not hasattr(fitted, "predict_proba"):
            return root_mean_squared_error(self.y, fitted.predict(self.Z)), np.nan
        wrong = np.sum(fitted.predict(self.Z) != self.y)
        shares = fitted.predict_proba(self.Z)
        return log_loss(self.y, shares, labels=fitted.classes_), (wrong + 1) / (len(self.y) + 1)


def least_rows_per_number(model):
    """The least, over the leaves with terms, of rows over numbers."""
    found = [(rule.support, n_coefficients(rule.leaf)) for rule in model.rules_.rules]
    return min((support / n for support, n in found if n > 1), default=np.inf)


def fit_seconds(model, X, y):
    """A fit, and its processor seconds."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, time.process_time() - begin


def rivals(is_number):
    """A constant, a tree of five leaves, and a line on all columns."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    labels = OneHotEncoder(handle_unknown="ignore")
    kinds = (
        make_column_selector(dtype_include="number"),
        make_column_selector(dtype_exclude="number"),
    )
    prepared = partial(make_column_transformer, (numbers, kinds[0]), (labels, kinds[1]))
    if is_number:
        constant, tree, line = DummyRegressor(), DecisionTreeRegressor, LassoCV(random_state=0)
    else:
        constant = DummyClassifier(strategy="prior")
        tree = DecisionTreeClassifier
        line = LogisticRegressionCV(max_iter=1000)
    five = tree(max_leaf_nodes=5, random_state=0)
    return {
        "constant": constant,
        "tree of five leaves": make_pipeline(prepared(), five),
        "line": make_pipeline(prepared(), line),
    }


def measure(kind, name, split, prices=PRICES):
    """The line of one fit, and of direct searches at some prices."""
    X, y, X_new, y_new = split_rows(name, split)
    number, classes = MODELS[kind]
    make = classes if name in CLASSES else number
    model, seconds = fit_seconds(make(random_state=0), X, y)
    losses = Losses(model, X_new, y_new)
    entries = []
    for entry, other, shown in sizes_of(model):
        loss, errors = losses.of(other)
        row = entry.size, entry.n_numbers, entry.cv_error, entry.cv_se, entry.price, entry.criterion
        entries.append([*map(float, row), loss, errors, shown])
    line = {
        "kind": kind,
        "data": name,
        "split": split,
        "rows": len(y),
        "seconds": seconds,
        "path": entries,
        "rows_per_number": least_rows_per_number(model),
    }
    if name not in CLASSES:
        bounds = [model.predict_interval(X_new, level=level) for level in LEVELS]
        line["coverage"] = [
            np.mean((y_new >= low) & (y_new <= high)) for low, high in (b.T for b in bounds)
        ]
        line["width"] = [float(np.mean(b[:, 1] - b[:, 0])) for b in bounds]
    line["direct"] = {}
    for price in prices:
        direct, took = fit_seconds(make(random_state=0, penalty=price), X, y)
        loss, errors = losses.of(direct)
        line["direct"][price] = [direct.n_components_, -direct.fic_, loss, errors, took]
    line["rivals"] = {}
    for name_of_rival, rival in rivals(name not in CLASSES).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            line["rivals"][name_of_rival] = losses.of(rival.fit(X, y))[0]
    return line


def run(kinds, names, n_splits, prices, out):
    """Append a line for each fit that the file has not."""
    known = set()
    if out.exists():
        lines = map(json.loads, out.read_text().splitlines())
        known = {(line["kind"], line["data"], line["split"]) for line in lines}
    for split in range(n_splits):
        for kind in kinds:
            for name in names:
                if split not in splits_of(name, n_splits) or (kind, name, split) in known:
                    continue
                line = measure(kind, name, split, prices)
                with out.open("a") as file:
                    file.write(json.dumps(line, default=float) + "\n")
                print(kind, name, split, f"{line['seconds']:.1f} s", flush=True)


def at_size(path, size):
    """The entry of a path that `at(size)` gives."""
    sizes = [row[0] for row in path]
    largest = max((s for s in sizes if s <= size), default=sizes[0])
    alike = [row for row in path if row[0] == largest]
    return min(alike, key=lambda row: row[2])


def summary(lines):
    """A frame of figures by table."""
    rows = []
    frame = pd.DataFrame(lines)
    for (kind, name), part in frame.groupby(["kind", "data"], sort=False):
        part = part.sort_values("split")
        is_class = name in CLASSES
        chosen = [[row for row in path if row[8]][0] for path in part["path"]]
        figure = {
            "kind": kind,
            "data": name,
            "rows": int(part["rows"].iloc[0]),
            "splits": len(part),
        }
        for what, at in (("loss", 6), ("errors", 7)):
            if what == "errors" and not is_class:
                continue
            sizes = sorted({row[0] for path in part["path"] for row in path})
            of_path = [[at_size(path, size)[at] for size in sizes] for path in part["path"]]
            prices = list(part["direct"].iloc[0])
            direct = np.reshape(
                [[d[p][at - 4] for p in prices] for d in part["direct"]], (len(part), -1)
            )
            mine = [row[at] for row in chosen]
            figure[f"regret {what}"] = 100 * regret(mine, np.hstack([of_path, direct]))
            figure[f"on the path {what}"] = 100 * regret(mine, of_path)
            figure[f"direct {what}"] = 100 * (
                np.mean(mine) / np.mean(direct, axis=0).min(initial=np.inf) - 1
            )
        gap = [
            min(r[5] for r in p) - d[k][1]
            for p, d in zip(part["path"], part["direct"])
            for k in d
            if float(k) == 1.0
        ]
        figure["FIC at 1"] = np.mean(gap)
        figure["leaves"] = np.median([row[0] for row in chosen])
        figure["numbers"] = np.median([row[1] for row in chosen])
        figure["sizes"] = np.median([len({row[0] for row in p}) for p in part["path"]])
        figure["rows per number"] = part["rows_per_number"].min()
        figure["seconds"] = part["seconds"].mean()
        if not is_class:
            for k, level in enumerate(LEVELS):
                figure[f"cover {level:g}"] = 100 * np.mean([c[k] for c in part["coverage"]])
        mine = np.array([row[6] for row in chosen])
        figure["loss"] = mine.mean()
        least = [min(path, key=lambda row: row[2])[6] for path in part["path"]]
        figure["to the least cv error"] = mine.mean() / np.mean(least)
        at_one = [min((r for r in p if r[4] > 1), key=lambda row: row[4])[6] for p in part["path"]]
        figure["to FIC alone"] = mine.mean() / np.mean(at_one)
        for rival in part["rivals"].iloc[0]:
            theirs = np.array([r[rival] for r in part["rivals"]])
            figure[rival] = np.exp(np.mean(np.log(mine / theirs)))
            figure[f"worse than {rival}"] = is_worse_over_splits(mine, theirs)
        rows.append(figure)
    return pd.DataFrame(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("choices.jsonl"))
    parser.add_argument("--kind", nargs="*", choices=list(MODELS), default=["equations"])
    parser.add_argument("--tables", nargs="*", default=[*CHOOSE, *REPORT])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument(
        "--prices", nargs="*", type=float, default=PRICES, help="of direct searches"
    )
    parser.add_argument("--summary", action="store_true", help="print what the file has")
    given = parser.parse_args()
    if not given.summary:
        run(given.kind, given.tables, given.splits, given.prices, given.out)
    found = summary(list(map(json.loads, given.out.read_text().splitlines())))
    print(found.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
