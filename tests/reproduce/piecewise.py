"""The numbers of the page on piecewise sparse linear models, one JSON line a fit.

    FABINTERP_DATA=folder python tests/reproduce/piecewise.py [--data NAME…] [--method NAME…] [--quick]

What stands in the file with the same settings is not fitted again, so a run that was killed goes on where it stopped.
Seconds are those of one thread: `seconds` on the wall, `cpu` of the process, `load` what else the machine did, and
`tuning` the share of the seconds that went into choosing settings. An SVR's coefficients are its support vectors.
"""

import os
import sys

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read when numpy is imported
    if "numpy" not in sys.modules:
        os.environ[threads] = "1"

from pathlib import Path  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[1]))  # so that it runs as a script and as `reproduce.piecewise`

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
import zlib  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Callable  # noqa: E402
from datetime import date  # noqa: E402
from functools import cache, partial  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from typing import NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.base import BaseEstimator, RegressorMixin  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.metrics import log_loss, root_mean_squared_error  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVR  # noqa: E402
from sklearn.tree import DecisionTreeRegressor  # noqa: E402
from sklearn.utils.validation import validate_data  # noqa: E402

from reproduce.lines import read_lines  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "nbs" / "results" / "piecewise.jsonl"
REGRESSION = ("abalone", "ailerons", "bank32nh", "cal_housing", "communities", "comp_activ", "kin8nm", "pol", "puma32H")
BINARY = ("banana", "australian", "pima_diabetes", "fourclass", "splice", "banknote", "titanic", "svmguide1",
          "eeg_eye_state", "magic04", "cod_rna", "ijcnn1")
TEN_FOLDS = ("banana", "magic04")  # of the binary sets; the others get five
NOISES = {"simulation sd 0.1": 0.1, "simulation var 0.1": 0.1**0.5}
SEEDS = 20


# Data


@cache
def read_table(name):
    """Features (n, d) and target (n,) as they stand in the file."""
    rows = np.loadtxt(Path(os.environ["FABINTERP_DATA"]) / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def is_there(name):
    """Say whether the folder has that table."""
    folder = os.environ.get("FABINTERP_DATA")
    return bool(folder) and (Path(folder) / f"{name}.csv.gz").exists()


def standardised(A):
    """Columns of mean 0 and deviation 1; constant columns are 0."""
    varies = np.ptp(A, axis=0) > 0
    return np.where(varies, A - A.mean(axis=0), 0.0) / np.where(varies, A.std(axis=0), 1.0)


@cache
def table(name):
    """X and y; standardised over the whole table for regression, as in the paper."""
    X, y = read_table(name)
    return (standardised(X), standardised(y)) if name in REGRESSION else (X, y.astype(int))


def parts(name, fold, folds):
    """X, y to learn from and X, y of one of the shuffled folds."""
    X, y = table(name)
    train, test = list(KFold(folds, shuffle=True, random_state=0).split(X))[fold]
    return X[train], y[train], X[test], y[test]


# Methods


def shimmed():
    """`linear-tree` 0.3.5 on scikit-learn ≥ 1.7, which took `_validate_data` away (linear-tree's issue #48)."""
    from lineartree import LinearTreeRegressor

    class Shimmed(LinearTreeRegressor):
        def _validate_data(self, *args, force_all_finite=True, **kwargs):
            return validate_data(self, *args, ensure_all_finite=force_all_finite, **kwargs)

    return Shimmed


class TunedSVR(RegressorMixin, BaseEstimator):
    """SVR-RBF whose C and gamma (in units of 1/d) come from 3 folds of at most `most` rows."""

    def __init__(self, C=(1, 10), gamma=(0.1, 0.3, 1, 3), most=2000, random_state=0):
        self.C, self.gamma, self.most, self.random_state = C, gamma, most, random_state

    def fit(self, X, y):
        grid = {"C": list(self.C), "gamma": [g / X.shape[1] for g in self.gamma]}
        rows = np.random.default_rng(self.random_state).permutation(len(y))[: self.most]
        found = GridSearchCV(SVR(), grid, scoring="neg_mean_squared_error", cv=3, refit=False).fit(X[rows], y[rows])
        start = time.perf_counter()
        self.svr_ = SVR(**found.best_params_).fit(X, y)
        self.refit_time_ = time.perf_counter() - start
        return self

    def predict(self, X):
        return self.svr_.predict(X)


def tuned_tree(seed):
    grid = {"ccp_alpha": [0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]}
    inner = KFold(3, shuffle=True, random_state=seed)
    leaf = DecisionTreeRegressor(min_samples_leaf=5, random_state=seed)
    return GridSearchCV(leaf, grid, scoring="neg_mean_squared_error", cv=inner)


def linear_tree(seed, **settings):
    return shimmed()(LinearRegression(), max_depth=4, **settings)


def ours(seed, **settings):
    from fabinterp.piecewise import PiecewiseLinearRegressor

    return PiecewiseLinearRegressor(random_state=seed, **settings)


def ours_for_classes(seed, **settings):
    from fabinterp.piecewise import PiecewiseLinearClassifier

    return PiecewiseLinearClassifier(random_state=seed, **settings)


def calibrated(seed):
    return CalibratedClassifierCV(ours_for_classes(seed), method="sigmoid", cv=3, ensemble=False)


def logistic(seed):
    return make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))


# Sizes


def size(features):
    """Sizes of a model from the number of features in each of its equations."""
    features = np.asarray(features)
    return {"experts": len(features), "features": float(features.mean()), "coefficients": int(np.sum(features + 1))}


def size_of_ours(model):
    return size([np.count_nonzero(leaf.coef) for leaf in model.tree_.leaves if leaf is not None])


def size_of_tree(model):
    return size(np.zeros(model.best_estimator_.get_n_leaves(), dtype=int))


def size_of_linear_tree(model):
    return size([np.count_nonzero(leaf.model.coef_) for leaf in model._leaves.values()])


def size_of_svr(model):
    return {"experts": None, "features": None, "coefficients": len(model.svr_.support_) + 1}


def experts_only(model):
    return {"experts": getattr(model, "n_components_", None)}


class Method(NamedTuple):
    """How an estimator is made (from a seed), measured and asked."""

    make: Callable
    size: Callable
    needs: str = "sklearn"
    first: int | None = None  # only so many of the folds: it is slow
    predict: str = "predict"
    asked: bool = False  # runs only when named


HOME = "fabinterp.piecewise"
SLOW = dict(search="em", init="random", n_init=1, max_iter=100)
SOFT = dict(projection=False, hard_gates=False)
REGRESSORS = {
    "structure": Method(ours, size_of_ours, HOME),
    "fab+": Method(partial(ours, penalty=1, **SLOW), size_of_ours, HOME, 3),
    "fab": Method(partial(ours, penalty=1, **SOFT, **SLOW), size_of_ours, HOME, 3, "predict_path"),
    "em": Method(partial(ours, penalty=0, **SOFT, **SLOW), size_of_ours, HOME, 3, "predict_path"),
    "fab+ grown": Method(partial(ours, search="em", init="grow"), size_of_ours, HOME, 3),
    "tree": Method(tuned_tree, size_of_tree),
    "svr": Method(lambda seed: TunedSVR(random_state=seed), size_of_svr),
    "linear-tree": Method(linear_tree, size_of_linear_tree, "lineartree"),
    # the default asks for 10 % of the rows in a leaf; with our 2 % it is larger, slower and better
    "linear-tree fine": Method(partial(linear_tree, min_samples_leaf=0.02), size_of_linear_tree, "lineartree", 2),
}
CLASSIFIERS = {
    "structure": Method(ours_for_classes, experts_only, HOME),
    "structure, calibrated": Method(calibrated, experts_only, HOME, asked=True),
    "logistic": Method(logistic, experts_only),
}


def is_installed(module):
    """Say whether a module can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# One fit


def timed(model, X, y):
    """Fit; seconds on the wall, of the process, of tuning, the machine's load before, whether it converged."""
    load, wall, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    row = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "load": load}
    refit = getattr(model, "refit_time_", row["seconds"])
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in said)
    return row | {"tuning": max(0.0, row["seconds"] - refit), "converged": converged}


def regression_row(name, method, fold, folds):
    """Errors, sizes and seconds of one fold."""
    X, y, X_new, y_new = parts(name, fold, folds)
    model = method.make(fold)
    row = timed(model, X, y)
    rmse = root_mean_squared_error(y_new, getattr(model, method.predict)(X_new))
    return {"rmse": rmse, **method.size(model), **row}


def calibration_error(y, prob, bins=10):
    """Mean distance between the probability said and the frequency seen, over bins of equally many rows."""
    groups = np.array_split(np.argsort(prob, kind="stable"), bins)
    return float(sum(abs(y[g].mean() - prob[g].mean()) * len(g) for g in groups if len(g)) / len(y))


def classification_row(name, method, fold, folds):
    """Accuracy, log-loss, calibration, experts and seconds of one fold."""
    X, y, X_new, y_new = parts(name, fold, folds)
    model = method.make(fold)
    row = timed(model, X, y)
    prob = model.predict_proba(X_new)
    scores = {"accuracy": float(np.mean(model.predict(X_new) == y_new)), "log_loss": log_loss(y_new, prob),
              "calibration_error": calibration_error(y_new, prob[:, 1])}
    return {**scores, **method.size(model), **row}


def gate_features(tree):
    """How often each feature is asked about."""
    return Counter(split.features for split in tree.splits if split is not None)


def simulation_row(name, method, seed, folds):
    """Whether the number of experts and the features of the gates of the true tree were found."""
    from fabinterp.hme import simulate

    X, y, truth = simulate(seed, NOISES[name])
    model = method.make(seed)
    row = timed(model, X, y)
    true_experts = int(np.sum(np.bincount(truth.apply(X)) > 0.02 * len(X)))
    found = method.size(model)
    return {"true_experts": true_experts, "experts_right": found["experts"] == true_experts,
            "gates_right": gate_features(model.tree_) == gate_features(truth), **found, **row}


# All fits


def chosen(methods, asked):
    """The methods that are asked for and installed; the others are named."""
    for name, method in methods.items():
        if not (name in asked if asked else not method.asked):
            continue
        if is_installed(method.needs):
            yield name, method
        else:
            print(f"skipped: {name}, no module {method.needs}", flush=True)


def tables(names, asked):
    """The data sets that are asked for and there; the others are named."""
    for name in names:
        if asked and name not in asked:
            continue
        if is_there(name):
            yield name
        else:
            print(f"skipped: {name}, FABINTERP_DATA names no folder with {name}.csv.gz", flush=True)


def all_tasks(options):
    """(part, data, name of the method, method, fold, folds, function) of every fit; all data before the next fold."""
    numbers = dict(chosen(REGRESSORS, options.method)) if "regression" in options.part else {}
    labels = dict(chosen(CLASSIFIERS, options.method)) if "classification" in options.part else {}
    found = dict(chosen({"structure": REGRESSORS["structure"]}, options.method)) if "simulation" in options.part else {}
    plans = [("regression", list(tables(REGRESSION, options.data)) if numbers else [], numbers, regression_row),
             ("simulation", [n for n in NOISES if not options.data or n in options.data], found, simulation_row),
             ("classification", list(tables(BINARY, options.data)) if labels else [], labels, classification_row)]
    for part, data, methods, measure in plans:
        count = {"regression": options.folds, "simulation": SEEDS, "classification": 10}[part]
        for fold in range(min(count, 2) if options.quick else count):
            for name in data:
                folds = count if part != "classification" or name in TEN_FOLDS else 5
                for label, method in methods.items():
                    if fold < (method.first or folds) and fold < folds:
                        yield part, name, label, method, fold, folds, measure


def settings_of(model):
    """What an estimator was made with, its seed apart, as JSON has it; λ as a number where it was left to us."""
    simple = (int, float, str, bool, type(None))
    settings = {k: v if isinstance(v, simple) and v == v else " ".join(repr(v).split()) for k, v in
                model.get_params(deep=False).items() if k != "random_state"}
    price = {"penalty": model._price()} if hasattr(model, "_price") else {}
    return {"estimator": type(model).__name__} | settings | price


def key_of(part, name, label, method, fold, folds):
    """What a line is known by, and the settings its number stands for."""
    settings = settings_of(method.make(0)) | {"asked by": method.predict}
    number = f"{zlib.crc32(json.dumps(settings, sort_keys=True).encode()):08x}"
    key = {"part": part, "data": name, "method": label, "fold": fold, "folds": folds, "settings": number}
    return key, {"part": "settings", "method": label, "settings": number, "values": settings}


def processor():
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def header():
    """Where and with what the lines below were measured."""
    versions = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "fabinterp", "linear-tree"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {"part": "header", "versions": versions, "processor": processor(), "cores": os.cpu_count()}


def rounded(row):
    """Six significant digits are enough."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()}


def run(options):
    """Fit what is not in the file and append it, line by line."""
    names = ("part", "data", "method", "fold", "folds", "settings")
    lines = read_lines(options.out)
    done = set() if options.again else {tuple(line.get(k) for k in names) for line in lines}
    known = {json.dumps({k: v for k, v in line.items() if k != "date"}) for line in lines}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        def write(line):
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()

        for part, name, label, method, fold, folds, measure in all_tasks(options):
            key, settings = key_of(part, name, label, method, fold, folds)
            if tuple(key.values()) in done:
                continue
            for line, stamp in ((header(), {"date": str(date.today())}), (settings, {})):
                if json.dumps(line) not in known:
                    known.add(json.dumps(line))
                    write(line | stamp)
            note = {"note": f"first {method.first} of {folds} folds"} if method.first else {}
            row = rounded(measure(name, method, fold, folds))
            write(key | row | note)
            print(f"{part} {name} {label} {fold + 1}/{folds}: " + " ".join(
                f"{k} {v:.4g}" for k, v in row.items() if v is not None), flush=True)


# The tables of the page


def frame(path, part):
    """The lines of one part, the last where a fit stands twice."""
    import pandas as pd

    rows = pd.DataFrame([line for line in read_lines(path) if line["part"] == part])
    return rows.drop_duplicates(["data", "method", "fold"], keep="last")


def summary(path=OUT):
    """Regression, data × method: mean error and its deviation over folds, mean sizes, median seconds, folds."""
    return frame(path, "regression").groupby(["data", "method"]).agg(
        rmse=("rmse", "mean"), sd=("rmse", "std"), experts=("experts", "mean"), features=("features", "mean"),
        coefficients=("coefficients", "mean"), seconds=("seconds", "median"), cpu=("cpu", "median"),
        n_folds=("fold", "count"))


def simulation_summary(path=OUT):
    """Noise × method: in how many of the seeds experts and gates were right."""
    return frame(path, "simulation").groupby(["data", "method"]).agg(
        experts_right=("experts_right", "sum"), gates_right=("gates_right", "sum"), n_seeds=("fold", "count"),
        experts=("experts", "mean"), seconds=("seconds", "median"))


def classification_summary(path=OUT):
    """Classification, data × method: means over the folds."""
    return frame(path, "classification").groupby(["data", "method"]).agg(
        accuracy=("accuracy", "mean"), log_loss=("log_loss", "mean"), calibration_error=("calibration_error", "mean"),
        experts=("experts", "mean"), seconds=("seconds", "median"), n_folds=("fold", "count"))


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ("regression", "simulation", "classification")
    parser.add_argument("--part", nargs="+", choices=every, default=every)
    parser.add_argument("--data", nargs="+", choices=[*REGRESSION, *NOISES, *BINARY], metavar="NAME")
    parser.add_argument("--method", nargs="+", choices=[*REGRESSORS, *CLASSIFIERS], metavar="NAME")
    parser.add_argument("--folds", type=int, default=10, help="of the regression tables")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true", help="two folds, two seeds")
    parser.add_argument("--again", action="store_true", help="fit also what is in the file; the last line counts")
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
