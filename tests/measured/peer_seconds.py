"""Processor seconds of fits relative to other methods: `python tests/measured/peer_seconds.py`.

The methods are fitted in alternation to the first split of each table, on one thread; the minimum of
`--repeats` fits counts. A line for each table is appended to a file (`--out`), so a run that stops
goes on where it was. The peers are those of the extra `bench` that are installed.
"""

import argparse
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from choices import CLASSES, MODELS, fit_seconds, frame_of, measure_missing, split_rows
from sklearn.preprocessing import OrdinalEncoder

TABLES = "boston abalone kin8nm concrete energy space_ga cpusmall stock australian pima_diabetes"
PEERS = {  # module, class, and arguments, for numbers and for classes
    "Cubist": [("cubist", "Cubist", {}), None],
    "EBM": [
        ("interpret.glassbox", "ExplainableBoostingRegressor", {"interactions": 0, "n_jobs": 1}),
        ("interpret.glassbox", "ExplainableBoostingClassifier", {"interactions": 0, "n_jobs": 1}),
    ],
}


@cache
def peers_of(is_class):
    """Return the installed peers by name, each without arguments."""
    peers = {}
    for name, kinds in PEERS.items():
        if kinds[is_class] is not None:
            module, kind, arguments = kinds[is_class]
            try:
                peers[name] = partial(getattr(import_module(module), kind), **arguments)
            except ImportError:
                print(name, "is not installed")
    return peers


def measure(data, repeats):
    """Measure the minimum processor seconds of each method."""
    X, y, *_ = split_rows(data, 0)
    texts = X.select_dtypes(exclude="number").columns
    if len(texts):
        X = X.assign(**pd.DataFrame(OrdinalEncoder().fit_transform(X[texts]), X.index, texts))
    is_class = data in CLASSES
    methods = {}
    for kind, pair in MODELS.items():
        methods[kind] = partial(pair[is_class], random_state=0)
        methods[f"{kind}, one price"] = partial(pair[is_class], random_state=0, penalty=1.0)
    methods |= peers_of(is_class)
    seconds = {name: np.inf for name in methods}
    for _ in range(repeats):
        for name, make in methods.items():
            seconds[name] = min(seconds[name], fit_seconds(make(), X, y)[1])
    return {"rows": len(y), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("peer_seconds.jsonl"))
    parser.add_argument("--tables", nargs="*", default=TABLES.split())
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    keys = [{"data": data} for data in given.tables]
    measure_missing(keys, partial(measure, repeats=given.repeats), given.out)
    lines = frame_of(given.out)
    print(pd.DataFrame(list(lines["seconds"]), lines["data"]).round(3).to_string())


if __name__ == "__main__":
    main()
