"""The numbers of the page on oblique-treed sparse additive models and their peers, one JSON line a fit.

    FABINTERP_DATA=folder python tests/reproduce/oblique.py [--only NAME…] [--folds N] [--again]

Twenty-four tables of Wang et al. (Tables 3 and 4), shuffled ten-fold cross-validation, stratified for classes, the same
folds for every method. What stands in the file with the same settings is not fitted again, so a run that was killed
goes on where it stopped. `error` is the RMSE in units of the target, or the percentage of wrong labels. `seconds` are
those of one thread on the wall, `cpu` of the process, `load` what else the machine did. Sizes: `features` of an expert
on average, `terms` of all experts together, `coefficients` the numbers in their equations.

Caution. banana has 5300 rows here and 400 in the paper, splice 3175 and 1000, ijcnn1 is a sub-sample of 30000;
parkinsons includes the number of the subject; eeg_eye_state is in time order, so shuffled folds leak neighbours.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # so that it runs as a script and as `reproduce.oblique`

from reproduce.piecewise import calibration_error, is_installed, is_there, processor  # noqa: E402, I001 (one thread)
from reproduce.piecewise import read_table, rounded, settings_of, timed  # noqa: E402
from reproduce.lines import read_lines  # noqa: E402

import argparse  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import warnings  # noqa: E402
import zlib  # noqa: E402
from collections.abc import Callable  # noqa: E402
from datetime import date  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from typing import NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.metrics import log_loss, root_mean_squared_error  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "nbs" / "results" / "oblique.jsonl"
ROWS = {"auto_mpg": 392, "boston": 506, "stock": 950, "space_ga": 3107, "abalone": 4177, "parkinsons": 5875,
        "cpusmall": 8192, "kin8nm": 8192, "puma8NH": 8192, "comp_activ": 8192, "ailerons": 13750, "cal_housing": 20640,
        "banana": 5300, "australian": 690, "pima_diabetes": 768, "fourclass": 862, "splice": 3175, "banknote": 1372,
        "titanic": 2201, "svmguide1": 7089, "eeg_eye_state": 14980, "magic04": 19020, "cod_rna": 59535,
        "ijcnn1": 30000}
REGRESSION, BINARY = tuple(ROWS)[:12], tuple(ROWS)[12:]
# the paper's OT-SpAM: RMSE (its ±), and accuracy in % (its ±)
TABLE_3 = dict(zip(REGRESSION, (
    (2.79, 0.52), (3.41, 0.55), (1.02, 0.10), (0.12, 0.02), (2.22, 0.12), (2.99, 0.19), (3.26, 0.35), (0.19, 0.00),
    (3.31, 0.08), (2.79, 0.61), (1.66e-4, 0.0), (5.97e4, 0.1e4)), strict=True))
TABLE_4 = dict(zip(BINARY, (
    (91.3, 4.0), (87.1, 3.9), (77.5, 7.1), (96.1, 1.8), (92.5, 2.2), (99.1, 0.7), (78.3, 0.5), (97.1, 0.6),
    (59.7, 2.3), (85.8, 1.1), (94.2, 0.2), (95.6, 1.9)), strict=True))
FOLDS = 10
FEW = 3  # the folds that peers get on tables of more than MANY rows
MANY = 20000
LONG = 120  # seconds of the process: a peer that takes more is run on one fold
ROUNDS = (range(1), range(1, FEW), range(FEW, FOLDS))  # all tables before the next round
UNTUNED = ("ailerons", "splice", "eeg_eye_state", "cod_rna", "ijcnn1")  # pyGAM's grid takes more than 30 s there
NOTES = {
    "folds": "KFold(10, shuffle=True, random_state=0), stratified for classes",
    "fewer": f"ebm, pygam and piecewise: folds 0 to {FEW - 1} only on tables of more than {MANY} rows "
             f"(cal_housing, ijcnn1, cod_rna), and no fold after one that took more than {LONG} s",
    "pygam": "called without clone, which fails on this scikit-learn (pyGAM #422); predict_proba (n,) made (n, 2); "
             f"default smoothing, without a grid, on {', '.join(UNTUNED)}; pyGAM asks for SciPy < 1.17 but runs here",
}


# Data


def parts(name, fold):
    """X, y to learn from and X, y of one of the ten folds."""
    X, y = read_table(name)
    if name in BINARY:
        y = y.astype(int)
    cut = (StratifiedKFold if name in BINARY else KFold)(FOLDS, shuffle=True, random_state=0)
    train, test = list(cut.split(X, y))[fold]
    return X[train], y[train], X[test], y[test]


def simulate(seed, n=5000, d=15):
    """X (n, d) in the unit cube and y (n,) of section 5: four experts, three oblique gates, noise of deviation 0.01."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    x = dict(enumerate(X.T, start=1))  # numbered as in the paper
    experts = (
        5 * np.sin(np.pi * x[1]) + 15 * (x[2] - 0.5) ** 2 - 4 * x[7] + 1,
        7 / (1 + np.exp(5 - 10 * x[5])) + 5 * np.sin(np.pi * x[7] ** 2) - 5 * x[8] + 2,
        8 * abs(x[1] - 0.5) + 7 * (3 * x[8] - 2) ** 2 - 4,
        5 * np.cos(2 * np.pi * x[2]) + 5 * x[8] + 2 * np.log(100 * x[10] + 3) - 3,
    )
    left = np.where(1.5 * x[6] - 0.7 * x[4] < 0.358, experts[0], experts[1])
    right = np.where(1.6 * x[3] - 0.5 * x[12] < 0.715, experts[2], experts[3])
    y = np.where(2.5 * x[9] - 1.6 * x[10] < 0.613, left, right)
    return X, y + rng.normal(0, 0.01, n)


# features of gates and experts in that tree, counted from 0; the order of the children does not matter
TRUTH = (frozenset({8, 9}), frozenset({
    (frozenset({5, 3}), frozenset({frozenset({0, 1, 6}), frozenset({4, 6, 7})})),
    (frozenset({2, 11}), frozenset({frozenset({0, 7}), frozenset({1, 7, 9})})),
}))


# Methods


class PyGAM(BaseEstimator):
    """One spline a feature; its smoothness by pyGAM's own grid (`tuned`), or its default."""

    def __init__(self, n_splines=20, tuned=True):
        self.n_splines, self.tuned = n_splines, tuned

    def fit(self, X, y):
        import pygam

        model = getattr(pygam, self.family)(n_splines=self.n_splines)
        with contextlib.redirect_stdout(None):  # it prints whenever a point of its grid does not converge
            self.model_ = model.gridsearch(X, y, progress=False) if self.tuned else model.fit(X, y)
        if self.model_.logs_["diffs"][-1] >= self.model_.tol:
            warnings.warn("the model kept did not converge", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class PyGAMRegressor(RegressorMixin, PyGAM):
    family = "LinearGAM"


class PyGAMClassifier(ClassifierMixin, PyGAM):
    family = "LogisticGAM"

    def predict_proba(self, X):
        p = self.model_.predict_proba(X)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return super().predict(X).astype(int)


def ours(name, seed):
    from fabinterp.oblique import ObliqueAdditiveClassifier, ObliqueAdditiveRegressor

    return (ObliqueAdditiveClassifier if name in BINARY else ObliqueAdditiveRegressor)(random_state=seed)


def ebm(name, seed):
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if name in BINARY else ExplainableBoostingRegressor
    return kind(interactions=0, n_jobs=1, random_state=0)


def pygam(name, seed):
    return (PyGAMClassifier if name in BINARY else PyGAMRegressor)(tuned=name not in UNTUNED)


def piecewise(name, seed):
    from fabinterp.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor

    return (PiecewiseLinearClassifier if name in BINARY else PiecewiseLinearRegressor)(random_state=seed)


# Sizes


def used(leaf):
    """The features of a leaf's equation, straight or curved."""
    straight = {feature for feature, coef in zip(leaf.features, leaf.coef) if np.any(coef)}
    return frozenset(straight | {curve.feature for curve in getattr(leaf, "curves", ())})


def numbers_in(leaf):
    """The numbers that were free in a leaf: intercept, slopes, and m + degree − 1 for a curve of m pieces."""
    curves = getattr(leaf, "curves", ())
    return 1 + int(np.count_nonzero(leaf.coef)) + sum(len(c.coef) + len(c.coef[0]) - 2 for c in curves)


def size_of_leaves(model, X):
    """Experts, features of each, features of the gates."""
    leaves = [leaf for leaf in model.tree_.leaves if leaf is not None]
    gates = [len(split.features) for split in model.tree_.splits if split is not None]
    terms = sum(len(used(leaf)) for leaf in leaves)
    return {"experts": len(leaves), "features": terms / len(leaves), "terms": terms,
            "gate_features": float(np.mean(gates)) if gates else 0.0, "coefficients": sum(map(numbers_in, leaves))}


def size_of_additive(contributions, coefficients):
    """One expert; a term counts that varies over the rows (n, terms)."""
    deviations = contributions.std(axis=0)
    terms = int(np.sum(deviations > 1e-6 * contributions.sum(axis=1).std()))
    return {"experts": 1, "features": float(terms), "terms": terms, "gate_features": 0.0,
            "coefficients": int(coefficients)}


def size_of_ebm(model, X):
    return size_of_additive(model.eval_terms(X), 1 + sum(np.count_nonzero(s) for s in model.term_scores_))


def size_of_pygam(model, X):
    gam = model.model_
    terms = [gam.partial_dependence(term=k, X=X) for k, term in enumerate(gam.terms) if not term.isintercept]
    return size_of_additive(np.column_stack(terms), len(gam.coef_))


class Method(NamedTuple):
    """How an estimator is made (from the name of the table and a seed) and measured."""

    make: Callable
    size: Callable
    needs: str


METHODS = {
    "oblique": Method(ours, size_of_leaves, "fabinterp.oblique"),
    "ebm": Method(ebm, size_of_ebm, "interpret"),
    "pygam": Method(pygam, size_of_pygam, "pygam"),
    "piecewise": Method(piecewise, size_of_leaves, "fabinterp.piecewise"),
}


# One fit


def row(name, label, fold):
    """Error, sizes and seconds of one fold."""
    X, y, X_new, y_new = parts(name, fold)
    method = METHODS[label]
    model = method.make(name, fold)
    times = timed(model, X, y)
    times.pop("tuning")
    if name in REGRESSION:
        scores = {"error": root_mean_squared_error(y_new, model.predict(X_new))}
    else:
        prob = model.predict_proba(X_new)
        scores = {"error": 100 * float(np.mean(model.predict(X_new) != y_new)), "log_loss": log_loss(y_new, prob),
                  "calibration_error": calibration_error(y_new, prob[:, 1])}
    return {**scores, **method.size(model, X), **times}


def anatomy(tree, node=0):
    """Which features stand in gates and experts below a node, comparable with TRUTH."""
    if tree.splits[node] is None:
        return used(tree.leaves[node])
    below = frozenset({anatomy(tree, tree.yes[node]), anatomy(tree, tree.no[node])})
    return frozenset(tree.splits[node].features), below


def simulation_row(seed):
    """Whether the paper's tree came back, the error on new rows without noise counted in, the seconds."""
    X, y = simulate(seed)
    X_new, y_new = simulate(1000 + seed)
    model = ours("", seed)
    times = timed(model, X, y)
    return {"exact": anatomy(model.tree_) == TRUTH, "error": root_mean_squared_error(y_new, model.predict(X_new)),
            **size_of_leaves(model, X), **times}


# All fits


def folds_of(name, label):
    """How many of the ten folds a method is run on."""
    return FEW if label != "oblique" and ROWS[name] > MANY else FOLDS


def is_long(line):
    """Say whether that fit was of a peer and took too long for another fold."""
    return line.get("method") != "oblique" and line.get("cpu", 0) > LONG


def chosen(names, asked, why):
    """Those of the names that are asked for and can be had; of the others it is said why not."""
    wanted = [name for name in names if name in asked] or list(names)
    for name in wanted:
        if reason := why(name):
            print(f"skipped: {name}, {reason}", flush=True)
        else:
            yield name


def all_tasks(only=(), most=FOLDS):
    """(data, method, fold): a round of folds of every table, small tables first; then the next round."""
    methods = list(chosen(METHODS, only, lambda m: not is_installed(METHODS[m].needs) and f"no {METHODS[m].needs}"))
    names = list(chosen(sorted(ROWS, key=ROWS.get), only,
                        lambda n: not is_there(n) and f"FABINTERP_DATA names no folder with {n}.csv.gz"))
    for folds in ROUNDS:
        for name in names:
            for fold in folds:
                for label in methods:
                    if fold < min(most, folds_of(name, label)):
                        yield name, label, fold


def key_of(name, label, fold):
    """What a line is known by, and the settings its number stands for."""
    settings = settings_of(METHODS[label].make(name, 0))
    number = f"{zlib.crc32(json.dumps(settings, sort_keys=True).encode()):08x}"
    part = "regression" if name in REGRESSION else "classification"
    key = {"part": part, "data": name, "method": label, "fold": fold, "folds": FOLDS, "settings": number}
    return key, {"part": "settings", "method": label, "settings": number, "values": settings}


def header():
    """Where, with what and how the lines below were measured."""
    versions = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "fabinterp", "interpret-core", "pygam"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {"part": "header", "versions": versions, "processor": processor(), "cores": os.cpu_count(), "notes": NOTES}


def run(options):
    """Fit what is not in the file and append it, line by line; a fit that fails is noted and tried again next time."""
    names = ("data", "method", "fold", "folds", "settings")
    lines = read_lines(options.out)
    fits = () if options.again else (line for line in lines if line["part"] != "failure")
    done = {tuple(line.get(k) for k in names) for line in fits}
    long = {(line["data"], line["method"]) for line in lines if is_long(line)}
    known = {json.dumps({k: v for k, v in line.items() if k != "date"}) for line in lines}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        def write(line):
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()

        for name, label, fold in all_tasks(options.only, options.folds):
            key, settings = key_of(name, label, fold)
            if tuple(key[k] for k in names) in done or (fold and (name, label) in long):
                continue
            for line, stamp in ((header(), {"date": str(date.today())}), (settings, {})):
                if json.dumps(line) not in known:
                    known.add(json.dumps(line))
                    write(line | stamp)
            try:
                found = rounded(row(name, label, fold))
            except Exception as problem:  # one peer that breaks must not stop the others
                write(key | {"part": "failure", "reason": f"{type(problem).__name__}: {problem}"})
                print(f"failed: {name} {label} {fold}: {type(problem).__name__}: {problem}", flush=True)
                continue
            write(key | found)
            if is_long(key | found):
                long.add((name, label))
            print(f"{name} {label} {fold + 1}/{FOLDS}: " + " ".join(
                f"{k} {v:.4g}" for k, v in found.items() if v is not None), flush=True)


# The tables of the page


def frame(path=OUT):
    """One line a fit, the last where one stands twice."""
    import pandas as pd

    rows = pd.DataFrame([line for line in read_lines(path) if line["part"] in ("regression", "classification")])
    return rows.drop_duplicates(["data", "method", "fold"], keep="last")


def summary(path=OUT):
    """Data × method, in the paper's order: mean error and its deviation over folds, sizes, seconds, paper's error."""
    table = frame(path).groupby(["data", "method"]).agg(
        error=("error", "mean"), sd=("error", "std"), experts=("experts", "mean"), features=("features", "mean"),
        terms=("terms", "mean"), gate_features=("gate_features", "mean"), coefficients=("coefficients", "mean"),
        seconds=("seconds", "median"), cpu=("cpu", "median"), slowest=("cpu", "max"), n_folds=("fold", "count"))
    paper = {n: v for n, (v, _) in TABLE_3.items()} | {n: 100 - v for n, (v, _) in TABLE_4.items()}
    table["paper"] = [paper[name] for name, _ in table.index]
    return table.reindex([name for name in ROWS if name in table.index.levels[0]], level=0)


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*ROWS, *METHODS], metavar="NAME", default=(),
                        help="tables, methods, or both")
    parser.add_argument("--folds", type=int, default=FOLDS, help="the first so many of the ten")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--again", action="store_true", help="fit also what is in the file; the last line counts")
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
