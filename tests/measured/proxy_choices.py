"""How well the sizes of proxy trees are chosen: `python tests/measured/proxy_choices.py`.

A line for each fit is appended to a file (`--out`), so a run that stops goes on where it was. The
reference is a forest of 100 trees. `--summary` prints, for each table, the loss of the proxy at its
default size, `small` and `accurate`; its ratios to a tree of five leaves on the data and to a tree
of as many leaves on the reference's predictions; classes without a prediction; seconds; and regret
against the best size of the path (DESIGN, terms for evaluation).
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from choices import CLASSES, Losses, at_size, split_rows
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


def measure(name, split, with_y):
    """The line of one table and split."""
    X, y, X_new, y_new = split_rows(name, split)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    is_class = name in CLASSES
    forest = RandomForestClassifier if is_class else RandomForestRegressor
    cart = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    proxy = ProxyTreeClassifier if is_class else ProxyTreeRegressor
    reference = prepared(forest(100, random_state=0)).fit(X, y)
    line = {"data": name, "split": split, "with_y": with_y, "rows": len(y)}
    line |= {"words": {}, "rivals": {}}
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
            "loss": Losses(model, X_new, y_new).of(model),
            "seconds": seconds,
            "fidelity": model.fidelity_,
            "warned": any("for no row of the fit" in str(one.message) for one in caught),
        }
        if is_class:
            found["recalls"] = recalls(y_new, predicted)
            answers = len(set(model.predict(X))), len(set(reference.predict(X)))
            found["predicts"], found["reference predicts"] = answers
        line["words"][word] = found
        if word == "balanced":
            line["path"] = [
                [entry.size, entry.n_numbers, entry.criterion, *Losses(one, X_new, y_new).of(one)]
                for entry, one, _ in sizes_of(model)
            ]
    n_leaves = line["words"]["default"]["leaves"]
    five = prepared(cart(max_leaf_nodes=5, random_state=0)).fit(X, y)
    same = tree_of_reference(reference, X, is_class, n_leaves)
    for rival, model in (("data", five), ("reference", same), ("forest", reference)):
        line["rivals"][rival] = {"loss": Losses(model, X_new, y_new).of(model)}
        if is_class:
            line["rivals"][rival]["recalls"] = recalls(y_new, model.predict(X_new))
    return line


def run(names, n_splits, with_y, out):
    """Append a line for each fit that the file has not."""
    known = set()
    if out.exists():
        lines = map(json.loads, out.read_text().splitlines())
        known = {(line["data"], line["split"], line["with_y"]) for line in lines}
    for split in range(n_splits):
        for name in names:
            if (name, split, with_y) in known:
                continue
            line = measure(name, split, with_y)
            with out.open("a") as file:
                file.write(json.dumps(line, default=float) + "\n")
            print(name, split, line["words"]["default"], flush=True)


def summary(lines):
    """A frame of figures by table; losses are RMSE or, for classes, shares of errors (log loss: regret)."""
    rows = []
    for (with_y, name), part in pd.DataFrame(lines).groupby(["with_y", "data"], sort=False):
        at = int(name in CLASSES)
        words = {word: [one[word] for one in part["words"]] for word in ("default", *WORDS)}
        default = np.array([one["loss"][at] for one in words["default"]])
        data, own = (
            np.array([one[rival]["loss"][at] for one in part["rivals"]])
            for rival in ("data", "reference")
        )
        better = data if data.mean() < own.mean() else own
        sizes = sorted({row[0] for path in part["path"] for row in path})
        figure = {"data": name, "y": with_y, "rows": part["rows"].iloc[0], "splits": len(part)}
        for word, found in words.items():
            figure[f"{word} leaves"] = np.mean([one["leaves"] for one in found])
            figure[f"{word} loss"] = np.mean([one["loss"][at] for one in found])
        figure["/ data"] = np.exp(np.mean(np.log(default / data)))
        figure["/ reference"] = np.exp(np.mean(np.log(default / own)))
        figure["worse"] = is_worse_over_splits(default, better)
        for what, k in (("regret", 0), ("regret errors", 1))[: 1 + at]:
            path = [[at_size(p, size)[3 + k] for size in sizes] for p in part["path"]]
            figure[what] = 100 * regret([one["loss"][k] for one in words["default"]], path)
        figure["seconds"] = np.mean([one["seconds"] for one in words["default"]])
        leaves = np.array([[one["leaves"] for one in words[word]] for word in WORDS])
        figure["ordered"] = bool((np.diff(leaves, axis=0) >= 0).all())
        if at:
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
        run(given.tables, given.splits, not given.without_y, given.out)
    found = summary(list(map(json.loads, given.out.read_text().splitlines())))
    print(found.round(3).to_string(index=False))
    for with_y, part in found.groupby("y"):
        print(
            f"with y {with_y}: regret {part['regret'].mean():.1f} %, worst "
            f"{part['regret'].max():.1f} %, worse on {part['worse'].sum()} of {len(part)}"
        )


if __name__ == "__main__":
    main()
