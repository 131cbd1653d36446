"""How well sizes are chosen, over tables and splits: `python tests/measured/choices.py`.

A line for each fit is appended to a file (`--out`), so a run that stops goes on where it was.
`--summary` prints the tables of *Done when*: regret against the best size of the path and of direct
searches (DESIGN, terms for evaluation), what a direct search finds that the path does not, leaves
with fewer rows than three times their numbers, coverage of intervals, and how often a fit is clearly
worse than a constant, a tree of five leaves and a lasso. The tables are files `name.csv.gz` of the
folder FABINTERP_DATA, the last column `target`.
"""

import argparse
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
from fabinterp.bench.runner import add_line, key_text, read_lines
from fabinterp.models.equation_paths import n_coefficients
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


def losses_of(model, X_new, y_new):
    """RMSE on new rows, or log loss and the share of errors, to which one error is added; by name."""
    predicted = model.predict(X_new)
    if not hasattr(model, "predict_proba"):
        return {"loss": root_mean_squared_error(y_new, predicted)}
    wrong = np.sum(predicted != y_new)
    loss = log_loss(y_new, model.predict_proba(X_new), labels=model.classes_)
    return {"loss": loss, "errors": (wrong + 1) / (len(y_new) + 1)}


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


def measure(kind, data, split, prices=PRICES):
    """The figures of one fit, and of direct searches at some prices."""
    X, y, X_new, y_new = split_rows(data, split)
    is_class = data in CLASSES
    make = MODELS[kind][is_class]
    model, seconds = fit_seconds(make(random_state=0), X, y)
    path = [
        {
            "size": entry.size,
            "numbers": entry.n_numbers,
            "cv_error": entry.cv_error,
            "price": entry.price,
            "criterion": entry.criterion,
            "chosen": chosen,
        }
        | losses_of(other, X_new, y_new)
        for entry, other, chosen in sizes_of(model)
    ]
    direct = {}
    for price in prices:
        other, _ = fit_seconds(make(random_state=0, penalty=price), X, y)
        direct[str(price)] = {"criterion": -other.fic_} | losses_of(other, X_new, y_new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = {
            name: losses_of(rival.fit(X, y), X_new, y_new)["loss"]
            for name, rival in rivals(not is_class).items()
        }
    found = {"rows": len(y), "seconds": seconds, "path": path, "direct": direct, "rivals": others}
    found["rows_per_number"] = least_rows_per_number(model)
    if not is_class:
        bounds = [model.predict_interval(X_new, level=level).T for level in LEVELS]
        found["coverage"] = [np.mean((y_new >= low) & (y_new <= high)) for low, high in bounds]
    return found


def measure_missing(keys, measure, out):
    """Append to a file the line of each key that it has not."""
    known = {key_text(line["key"]) for line in read_lines(out)}
    for key in keys:
        if key_text(key) not in known:
            add_line(out, {"key": key} | measure(**key))
            print(*key.values(), flush=True)


def frame_of(file):
    """The lines of a file, a column for each part of their keys and for each figure."""
    return pd.DataFrame([line["key"] | line for line in read_lines(file)])


def at_size(path, size, by="cv_error"):
    """The entry of a path that `at(size)` gives."""
    largest = max((e["size"] for e in path if e["size"] <= size), default=path[0]["size"])
    return min((e for e in path if e["size"] == largest), key=lambda entry: entry[by])


def regrets_of(part, what):
    """Regret of the chosen size, in percent: against the path and direct searches, and the path alone."""
    mine = [chosen_of(path)[what] for path in part["path"]]
    sizes = sorted({entry["size"] for path in part["path"] for entry in path})
    of_path = [[at_size(path, size)[what] for size in sizes] for path in part["path"]]
    direct = [[one[what] for one in found.values()] for found in part["direct"]]
    best = np.hstack([of_path, np.reshape(direct, (len(part), -1))])
    return {
        f"regret {what}": 100 * regret(mine, best),
        f"on the path {what}": 100 * regret(mine, of_path),
    }


def chosen_of(path):
    """The entry of a path that was chosen."""
    return next(entry for entry in path if entry["chosen"])


def of_fic(path):
    """The entry of a path that FIC chooses (λ = 1)."""
    return min((entry for entry in path if entry["price"] > 1), key=lambda entry: entry["price"])


def figures(part):
    """The figures of one table."""
    paths = part["path"]
    chosen = [chosen_of(path) for path in paths]
    mine = np.array([entry["loss"] for entry in chosen])
    found = {"rows": int(part["rows"].iloc[0]), "splits": len(part)} | regrets_of(part, "loss")
    if "errors" in chosen[0]:
        found |= regrets_of(part, "errors")
    pairs = [(path, one["1.0"]) for path, one in zip(paths, part["direct"]) if "1.0" in one]
    gaps = [min(e["criterion"] for e in path) - one["criterion"] for path, one in pairs]
    found["FIC at 1"] = np.mean(gaps) if gaps else np.nan
    found["leaves"] = np.median([entry["size"] for entry in chosen])
    found["numbers"] = np.median([entry["numbers"] for entry in chosen])
    found["sizes"] = np.median([len({entry["size"] for entry in path}) for path in paths])
    found["rows per number"] = part["rows_per_number"].min()
    found["seconds"] = part["seconds"].mean()
    if "errors" not in chosen[0]:
        covered = 100 * np.mean(part["coverage"].to_list(), axis=0)
        found |= {f"cover {level:g}": share for level, share in zip(LEVELS, covered)}
    least = [min(path, key=lambda entry: entry["cv_error"])["loss"] for path in paths]
    found["to the least cv error"] = mine.mean() / np.mean(least)
    found["to FIC alone"] = mine.mean() / np.mean([of_fic(path)["loss"] for path in paths])
    for rival in part["rivals"].iloc[0]:
        theirs = np.array([one[rival] for one in part["rivals"]])
        found[f"to {rival}"] = np.exp(np.mean(np.log(mine / theirs)))
        found[f"worse than {rival}"] = is_worse_over_splits(mine, theirs)
    return found


def summary(lines):
    """A frame of `figures`, a row for each model and table."""
    tables = lines.groupby(["kind", "data"], sort=False)
    return pd.DataFrame(
        [{"kind": kind, "data": data} | figures(part) for (kind, data), part in tables]
    )


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
        keys = [
            {"kind": kind, "data": data, "split": split}
            for split in range(given.splits)
            for kind in given.kind
            for data in given.tables
            if split in splits_of(data, given.splits)
        ]
        measure_missing(keys, partial(measure, prices=given.prices), given.out)
    print(summary(frame_of(given.out)).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
