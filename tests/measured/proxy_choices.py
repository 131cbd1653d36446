"""How well the sizes of proxy trees are chosen: `python tests/measured/proxy_choices.py`.

A line for each fit is appended to a file (`--out`), so a run that stops goes on where it was. The
reference is a forest of 100 trees. `--summary` prints, for each table, the loss of the proxy at its
default size, `small` and `accurate`; its ratios to a tree of five leaves on the data and to a tree
of as many leaves on the reference's predictions; classes without a prediction; seconds; and regret
against the best size of the path (DESIGN, terms for evaluation).
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from choices import CLASSES, at_size, frame_of, losses_of, measure_missing, split_rows
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp import ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.bench.rules import is_worse_over_splits, regret
from fabinterp.rules.size_path import sizes_of

CHOOSE = (
    "autoprice pyrim servo concrete hepatitis heart_h hypothyroid breast_w ionosphere boston"
).split()
REPORT = (
    "bodyfat baseball australian pima_diabetes titanic breast_cancer diabetes wine_red"
).split()
MOST_ROWS = 1500  # of a training part
WORDS = ("small", "balanced", "accurate")


def prepared(model):
    """A model behind a simple preprocessing of numbers and labels."""
    numbers = SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")
    labels = OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")
    return make_pipeline(make_column_transformer(numbers, labels), model)


def recalls(y, predicted):
    """{class: recall} of the predictions for new rows."""
    return {str(label): float(np.mean(predicted[y == label] == label)) for label in np.unique(y)}


def tree_of_reference(reference, X, is_class, n_leaves):
    """CART of so many leaves on what a reference predicts for the rows."""
    make = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    tree = prepared(make(max_leaf_nodes=max(n_leaves, 2), random_state=0))
    return tree.fit(X, reference.predict(X))


def measure(data, split, with_y):
    """The figures of one table and split."""
    X, y, X_new, y_new = split_rows(data, split)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    is_class = data in CLASSES
    forest = RandomForestClassifier if is_class else RandomForestRegressor
    cart = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    proxy = ProxyTreeClassifier if is_class else ProxyTreeRegressor
    reference = prepared(forest(100, random_state=0)).fit(X, y)
    line = {"rows": len(y), "words": {}, "rivals": {}}
    for word in ("default", *WORDS):
        settings = {} if word == "default" else {"size": word}
        begin = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = proxy(reference, random_state=0, **settings).fit(X, y if with_y else None)
        seconds = time.process_time() - begin
        predicted = model.predict(X_new)
        found = {
            "leaves": model.n_leaves_,
            "seconds": seconds,
            "fidelity": model.fidelity_,
            "warned": any("for any training row" in str(one.message) for one in caught),
        } | losses_of(model, X_new, y_new)
        if is_class:
            found["recalls"] = recalls(y_new, predicted)
            answers = len(set(model.predict(X))), len(set(reference.predict(X)))
            found["predicts"], found["reference predicts"] = answers
        line["words"][word] = found
        if word == "balanced":
            line["path"] = [
                {"size": entry.size, "criterion": entry.criterion} | losses_of(one, X_new, y_new)
                for entry, one, _ in sizes_of(model)
            ]
    n_leaves = line["words"]["default"]["leaves"]
    five = prepared(cart(max_leaf_nodes=5, random_state=0)).fit(X, y)
    same = tree_of_reference(reference, X, is_class, n_leaves)
    for rival, model in (("data", five), ("reference", same), ("forest", reference)):
        line["rivals"][rival] = losses_of(model, X_new, y_new)
        if is_class:
            line["rivals"][rival]["recalls"] = recalls(y_new, model.predict(X_new))
    return line


def summary(lines):
    """A frame of figures by table; losses are RMSE or, for classes, shares of errors (log loss: regret)."""
    rows = []
    for (with_y, name), part in lines.groupby(["with_y", "data"], sort=False):
        kinds = ["loss", "errors"] if name in CLASSES else ["loss"]
        shown = kinds[-1]
        words = {word: [one[word] for one in part["words"]] for word in ("default", *WORDS)}
        default = np.array([one[shown] for one in words["default"]])
        data, own = (
            np.array([one[rival][shown] for one in part["rivals"]])
            for rival in ("data", "reference")
        )
        better = data if data.mean() < own.mean() else own
        sizes = sorted({entry["size"] for path in part["path"] for entry in path})
        figure = {"data": name, "y": with_y, "rows": part["rows"].iloc[0], "splits": len(part)}
        for word, found in words.items():
            figure[f"{word} leaves"] = np.mean([one["leaves"] for one in found])
            figure[f"{word} loss"] = np.mean([one[shown] for one in found])
        figure["/ data"] = np.exp(np.mean(np.log(default / data)))
        figure["/ reference"] = np.exp(np.mean(np.log(default / own)))
        figure["worse"] = is_worse_over_splits(default, better)
        for what in kinds:
            path = [[at_size(p, n, "criterion")[what] for n in sizes] for p in part["path"]]
            figure[f"regret {what}"] = 100 * regret([one[what] for one in words["default"]], path)
        figure["seconds"] = np.mean([one["seconds"] for one in words["default"]])
        leaves = np.array([[one["leaves"] for one in words[word]] for word in WORDS])
        figure["ordered"] = bool((np.diff(leaves, axis=0) >= 0).all())
        if name in CLASSES:
            figure["recall"] = np.mean([min(one["recalls"].values()) for one in words["default"]])
            figure["recall data"] = np.mean(
                [min(one["data"]["recalls"].values()) for one in part["rivals"]]
            )
            figure["one class"] = sum(
                one["predicts"] == 1 < one["reference predicts"] for one in words["default"]
            )
            figure["without warning"] = sum(
                one["predicts"] < one["reference predicts"] and not one["warned"]
                for one in words["default"]
            )
        rows.append(figure)
    return pd.DataFrame(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("proxy_choices.jsonl"))
    parser.add_argument("--tables", nargs="*", default=[*CHOOSE, *REPORT])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--without-y", action="store_true", help="fit to the reference alone")
    parser.add_argument("--summary", action="store_true", help="print what the file has")
    given = parser.parse_args()
    if not given.summary:
        keys = [
            {"data": data, "split": split, "with_y": not given.without_y}
            for split in range(given.splits)
            for data in given.tables
        ]
        measure_missing(keys, measure, given.out)
    found = summary(frame_of(given.out))
    print(found.round(3).to_string(index=False))
    for with_y, part in found.groupby("y"):
        print(
            f"with y {with_y}: regret {part['regret loss'].mean():.1f} %, worst "
            f"{part['regret loss'].max():.1f} %, worse on {part['worse'].sum()} of {len(part)}"
        )


if __name__ == "__main__":
    main()
