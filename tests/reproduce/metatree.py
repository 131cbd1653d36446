"""The numbers of the page on meta-trees, one JSON line a measurement.

    FABINTERP_DATA=folder python tests/reproduce/metatree.py [--part NAME…] [--data NAME…] [--trees N]

What stands in the file with the same settings is not measured again, so a run that was killed goes on where it stopped.
Milliseconds of `table1` and `grid` are processor time of one thread, measured in turns in one process, so that they
outlive other load; seconds elsewhere are on the wall.
"""

import os
import sys
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read when numpy is imported
    if "numpy" not in sys.modules:
        os.environ[threads] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import argparse  # noqa: E402
import time  # noqa: E402
from itertools import product  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: E402
from sklearn.metrics import log_loss, root_mean_squared_error  # noqa: E402
from sklearn.model_selection import KFold  # noqa: E402

from fabinterp.belief import empty_state, next_state  # noqa: E402
from fabinterp.conjugate import BetaBernoulli, sums  # noqa: E402
from fabinterp.metatree import MetaTreeClassifier, MetaTreeRegressor  # noqa: E402
from fabinterp.prunings import path_to, perfect, sequential_step  # noqa: E402
from fabinterp.representative import Levels  # noqa: E402
from fabinterp.rules import Columns  # noqa: E402
from reproduce.lines import measure  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "nbs" / "results" / "metatree.jsonl"
CLASSES, NUMBERS = ("breast_cancer", "banana", "magic04", "spambase"), ("abalone", "kin8nm")
DEPTHS, LEVELS = (5, 10, None), (0.5, 0.8, 0.9, 0.95)


def table(name):
    """Features (n, d) and target (n,) of a data set."""
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    rows = np.loadtxt(Path(os.environ["FABINTERP_DATA"]) / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1] if name in NUMBERS else rows[:, -1].astype(int)


def seconds(call, clock=time.thread_time):
    """What a call returns, and how long it took."""
    start = clock()
    found = call()
    return found, clock() - start


# Speed


def bayesml_model(levels, n_features):
    """BayesML's meta-tree of the same perfect binary tree, g = 1/2 and Beta(1/2, 1/2) in every node."""
    from bayesml import bernoulli, metatree
    node_of = type(metatree.GenModel(0, n_features, c_max_depth=1).gen_params().get_params()["root"])
    depth = len(levels.features)

    def node(d):
        end = d == depth
        return node_of(d, k_candidates=list(range(n_features)), h_g=0.5, k=None if end else int(levels.features[d]),
                       sub_model=bernoulli.LearnModel(), leaf=end, ranges=np.zeros((0, 2)),
                       log_children_marginal_likelihood=np.zeros(2),
                       children=None if end else [node(d + 1), node(d + 1)])
    model = metatree.LearnModel(0, n_features, c_max_depth=depth)
    model.hn_metatree_list, model.hn_metatree_prob_vec = [node(0)], np.ones(1)
    return model


def row_by_row(start, levels, X, y):
    """Proposition 1 over all rows."""
    at, tree = levels.cells_of_codes(X), levels.skeleton
    split, stop, stats = start.before.log_split.copy(), start.before.log_stop.copy(), start.stats.copy()
    for leaf, value in zip(at.tolist(), y.tolist(), strict=True):
        path = path_to(tree, leaf)
        said = start.family.log_density(np.full(len(path), value), start.family.posterior(stats[path]))
        sequential_step(split, stop, path, said)
        stats[path, value] += 1
    return split


def bayesml_rows(model, X, y):
    """BayesML one row at a time."""
    for i in range(len(y)):
        model.update_posterior(x_categorical=X[i:i + 1], y=y[i:i + 1], alg_type="given_MT")


@np.errstate(divide="ignore")  # BayesML takes the logarithm of 1 - g where it is 0
def speed(n, depth, n_features, repeats, with_rows, kind):
    """Milliseconds (mean, sd, median) of update and prediction, ours and BayesML's, on the same tables in turns."""
    names = ("update", "bayesml_update", "predict", "bayesml_predict", "partial_fit", "rows", "bayesml_rows")
    times, apart = {name: [] for name in names}, 0.0
    for r in range(repeats):
        rng = np.random.default_rng(r)
        X, y = rng.integers(0, 2, (n, n_features)).astype(kind), rng.integers(0, 2, n)
        features = tuple((rng.permutation(n_features).tolist() * depth)[:depth])
        columns = Columns(tuple(f"x{j}" for j in range(n_features)), (None,) * n_features)
        levels = Levels(perfect(2, depth), features, np.zeros(depth), columns)
        start, model = empty_state(levels, BetaBernoulli(), 0.5), bayesml_model(levels, n_features)
        assert levels.skeleton.siblings and levels.weights.any()  # part of the model, as BayesML's nodes are

        def update(start=start, levels=levels, X=X, y=y):
            return next_state(start, sums(start.family, levels.cells_of_codes(X), levels.skeleton.size, y, None))
        _, t = seconds(lambda m=model, X=X, y=y: m.update_posterior(x_categorical=X, y=y, alg_type="given_MT"))
        times["bayesml_update"].append(t)
        state, t = seconds(update)
        times["update"].append(t)
        said, t = seconds(lambda s=state, levels=levels, X=X: s.table.take(levels.cells_of_codes(X), axis=0))
        times["predict"].append(t)
        theirs, t = seconds(lambda m=model, X=X: m.predict_proba(x_categorical=X))
        times["bayesml_predict"].append(t)
        apart = max(apart, float(np.abs(said - theirs).max()))
        if depth <= n_features:
            Z = X.astype(float)
            est = MetaTreeClassifier(list(features), max_depth=depth, leaf="bernoulli", prior=0.5).fit(Z[:2], [0, 1])
            times["partial_fit"].append(seconds(lambda e=est, Z=Z, y=y: e.partial_fit(Z, y))[1])
        if with_rows:
            split, t = seconds(lambda s=start, levels=levels, X=X, y=y: row_by_row(s, levels, X, y))
            times["rows"].append(t)
            apart = max(apart, float(np.abs(np.exp(split) - state.posterior.split_prob).max()))
            fresh = bayesml_model(levels, n_features)
            times["bayesml_rows"].append(seconds(lambda m=fresh, X=X, y=y: bayesml_rows(m, X, y))[1])
    found = {"max_difference": apart}
    for name, taken in times.items():
        if taken:
            ms = 1e3 * np.array(taken)
            found[name] = {"mean": ms.mean(), "sd": ms.std(), "median": float(np.median(ms))}
    return found


# Accuracy


def interval_shares(model, X, y):
    """For each level, the share of the first thousand rows that the interval holds; calibrated, and not.

    y lies between two quantiles exactly if the distribution function at y lies between their probabilities.
    """
    within = np.abs(2 * model.predict_dist(X[:1000]).cdf(y[:1000]) - 1)
    return {"coverage": [float(np.mean(within <= np.quantile(model.pit_, level))) for level in LEVELS],
            "coverage_raw": [float(np.mean(within <= level)) for level in LEVELS]}


def losses(model, base, X, y):
    """Loss and error of a meta-tree or a forest of them, and of what it was grown from."""
    if hasattr(model, "classes_"):
        return {"loss": log_loss(y, model.predict_proba(X)), "base_loss": log_loss(y, base.predict_proba(X)),
                "error": float(np.mean(model.predict(X) != y)), "base_error": float(np.mean(base.predict(X) != y))}
    return {"loss": root_mean_squared_error(y, model.predict(X)),
            "base_loss": root_mean_squared_error(y, base.predict(X))}


def accuracy(kind, name, depth, fold, folds, n_trees, leaf):
    """One fold of one data set: losses, intervals, and what the fit chose."""
    X, y = table(name)
    train, test = list(KFold(folds, shuffle=True, random_state=0).split(X))[fold]
    numbers = name in NUMBERS
    grown = None
    if kind == "forest":
        forest = RandomForestRegressor if numbers else RandomForestClassifier
        grown = forest(n_trees, max_depth=depth, random_state=fold)
    make = MetaTreeRegressor if numbers else MetaTreeClassifier
    model = make(grown, max_depth=depth, random_state=fold, **({"leaf": leaf} if leaf else {}))
    _, taken = seconds(lambda: model.fit(X[train], y[train]), time.perf_counter)
    base = type(model.estimator_)(**model.estimator_.get_params())
    _, alone = seconds(lambda: base.fit(X[train], y[train]), time.perf_counter)
    found = {"seconds": taken, "base_seconds": alone, "n_nodes": model.state_.trees.skeleton.size,
             "leaves": float(model.posterior_.leaf_prob.sum()) / model.state_.trees.skeleton.n_trees,
             "split_prob": float(model.state_.before.split_prob[0]),
             "evidence_effective": float(effective(model.tree_log_evidence_))}
    found |= losses(model, model.estimator_, X[test], y[test])
    if numbers:
        found |= interval_shares(model, X[test], y[test]) | {"sd": float(y.std())}
    return found


def effective(log_q):
    """How many trees weights by evidence amount to."""
    w = np.exp(log_q - log_q.max())
    return w.sum() ** 2 / (w**2).sum()


# The file


def jobs(parts, data, n_trees):
    """All measurements: a key, and the call that makes them."""
    if "table1" in parts:
        for n in (50, 100, 200):
            key = {"part": "table1", "n": n, "depth": 5, "features": 5, "codes": "int64"}
            yield key, lambda n=n: speed(n, 5, 5, 100, True, "int64")
    shapes = product(("int64", "uint8"), (5, 8, 10), (5, 20), (50, 200, 1000, 10_000, 100_000))
    for kind, depth, k, n in shapes if "grid" in parts else ():
        key = {"part": "grid", "n": n, "depth": depth, "features": k, "codes": kind}
        yield key, lambda a=(n, depth, k, 30 if n < 10**5 else 9, False, kind): speed(*a)
    for name in data:
        for kind, folds, leaves in (("single", 10, ("",)), ("forest", 5, ("",)), ("linear", 5, ("linear",))):
            for depth in DEPTHS if kind != "linear" else (5, 10):
                for leaf in leaves if kind in parts and (kind != "linear" or name in NUMBERS) else ():
                    for fold in range(folds):
                        key = {"part": kind, "data": name, "depth": depth, "fold": fold}
                        key |= {} if kind == "single" else {"trees": n_trees}
                        run = "single" if kind == "single" else "forest"
                        yield key, lambda r=run, a=(name, depth, fold, folds, n_trees, leaf): accuracy(r, *a)


def main():
    """Measure what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ["table1", "grid", "single", "forest", "linear"]
    parser.add_argument("--part", nargs="*", default=parts, choices=parts)
    parser.add_argument("--data", nargs="*", default=[*CLASSES, *NUMBERS])
    parser.add_argument("--trees", type=int, default=100)
    asked = parser.parse_args()
    measure(OUT, jobs(asked.part, asked.data, asked.trees), "bayesml")


if __name__ == "__main__":
    main()
