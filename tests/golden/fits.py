"""Small fits at fixed seeds, by public names alone, and a record of all that each of them says.

`FITS` holds a function a fit. It makes the data and returns `work`, which fits, and `tell`, which
turns what was fitted into the record: a dict of texts, numbers and lists of numbers, none of them
rounded here.

As a script, `python tests/golden/fits.py NAME` writes record, seconds of the fit and peak memory as
one line of JSON, with numbers in hexadecimal; without a name it lists the names.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

from fabinterp import (
    MetaTreeClassifier,
    MetaTreeRegressor,
    ObliqueAdditiveClassifier,
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    ProxyLinearClassifier,
    ProxyLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    RuleMixtureClassifier,
    RuleMixtureRegressor,
    explain,
    explain_local,
)
from fabinterp.fab.engine import EM, Structure
from fabinterp.models.curve_trees import CurveOptions
from fabinterp.rules.ruleset import RuleSet

# distinct rows; the sample in memory holds 65 536, so blocks are read where rows come in chunks
N_MANY = 70_000
QUICK = {
    "max_rules": 4,
    "search": EM(n_components=5),
    "n_init": 3,
    "n_perturbations": 10,
    "random_state": 0,
}
FITS = {}


def fit(function):
    """Enter a function in `FITS` by its name."""
    FITS[function.__name__] = function
    return function


# ------------------------------------------------------------------ the records

NUMBERS = (
    "fic_",
    "trace_",
    "fidelity_",
    "error_",
    "overlap_",
    "std_",
    "var_",
    "alpha_",
    "coef_",
    "intercept_",
    "inclusion_",
    "leaf_draws_",
    "log_evidence_",
    "tree_weights_",
    "feature_importances_",
    "pit_",
)
ANSWERS = ("predict", "predict_proba", "predict_interval", "predict_posterior")


def plain(value):
    """Numbers and labels of numpy as lists, floats, integers and strings."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def spoken(said):
    """What rules or a tree say: printed, as JSON and, of rules, as SQL."""
    record = {"text": str(said), "json": said.to_json()}
    if isinstance(said, RuleSet):  # a tree's are those of its rules
        record["sql"] = said.to_sql("rows", proba=said.classes is not None)
    return record


def prefixed(front, record):
    """A record with `front` before every name."""
    return {f"{front} {name}": value for name, value in record.items()}


def fit_name(model):
    """Return the name of `FIT_VERSION` that an estimator's fit has."""
    name = type(model).__name__.removesuffix("Classifier").removesuffix("Regressor")
    by_em = name != "RuleMixture" and isinstance(getattr(model, "search", None), EM)
    return f"{name}-em" if by_em else name


def estimator_record(model, X):
    """All that a fitted estimator says, its answers for every row of X."""
    record = {"fit": fit_name(model)}
    for name in ("rules_", "tree_", "map_tree_"):
        said = getattr(model, name, None)
        if said is not None:
            record |= prefixed(name.rstrip("_"), spoken(said))
    for name in NUMBERS:
        value = getattr(model, name, None)
        if value is not None:
            record[name.rstrip("_")] = plain(value)
    for name in ANSWERS:
        if hasattr(model, name):
            record[name] = plain(np.asarray(getattr(model, name)(X)))
    return record


def answers_for(X):
    """The `tell` of an estimator: its record with the answers for X."""
    return lambda model: estimator_record(model, X)


def explanation_record(found, X):
    """All that an `Explanation` says."""
    record = prefixed("rules", spoken(found.rules)) | {"text": str(found)}
    record["fit"] = "RuleMixture" if found.method == "rule mixture" else "ProxyTree"
    record |= {
        name: getattr(found, name)
        for name in ("fidelity", "fidelity_held_out", "model_score", "rules_score")
    }
    return record | {"predict": plain(found.predict(X))}


def local_record(found):
    """All that local explanations say."""
    record = {"fit": "explain_local"}
    for k, one in enumerate(found):
        numbers = {name: plain(getattr(one, name)) for name in ("prediction", "loss", "local_loss")}
        numbers["answer"] = plain(one.surrogate_prediction)
        record |= prefixed(f"point {k}", {"text": str(one)} | numbers)
        record |= prefixed(f"point {k} tree", spoken(one.tree))
        record |= prefixed(f"point {k} rules", spoken(one.rules))
    return record


# ------------------------------------------------------------------ the data


def mixed_frame(n=300, seed=0):
    """A frame with a category, booleans, gaps and numbers; y as numbers and as words; weights, some of them 0."""
    rng = np.random.default_rng(seed)
    colour = pd.Categorical(rng.choice(["red", "blue", "green"], n))
    X = pd.DataFrame(
        {
            "size": rng.integers(0, 40, n) / 3,
            "colour": colour,
            "old": rng.random(n) < 0.5,
            "depth": rng.normal(size=n).round(2),
        }
    )
    number = (
        np.where(X["size"] > 6, 2 * X["depth"], 1.0)
        + 2 * (X["colour"] == "red")
        + X["old"] * X["depth"]
    )
    number = np.asarray(number + 0.3 * rng.normal(size=n))
    word = np.array(["low", "middle", "tall"])[np.digitize(number, [0.5, 2.5])]
    X.loc[rng.random(n) < 0.15, "size"] = np.nan
    return X, number, word, rng.integers(0, 4, n).astype(float)


def pieces(n=400, seed=0):
    """Numbers whose equation depends on a column: X (n, 5), y as numbers and as 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(3)
    number = np.where(X[:, 0] > 0.3, 2 * X[:, 1], np.where(X[:, 2] > 0, 1 - X[:, 1], X[:, 3]))
    number = number + 0.3 * rng.normal(size=n)
    return X, number, (number > 0.5).astype(int)


def tilted(n=400, seed=0):
    """Two classes on both sides of a tilted plane: X (n, 3) and y of 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    odds = np.where(X[:, 0] + X[:, 1] > 0, X[:, 2], -X[:, 2]) + 0.3 * rng.logistic(size=n)
    return X, (odds > 0).astype(int)


def flowers():
    """Iris: a frame with the names of its columns, and the species as words."""
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def tumours():
    """The first ten columns of the breast cancer table: arrays X (569, 10) and y of 0 and 1."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :10], y


def many_rows():
    """A frame of `N_MANY` distinct rows with y of two classes and of numbers in it."""
    X, number, two = pieces(N_MANY, seed=5)
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    return table, number, np.array(["no", "yes"])[two]


def parquet_fit(model, y_of, spread=50):
    """Fit a model to Parquet files of the many rows; the answers are for every `spread`-th row."""
    X, *targets = many_rows()
    folder = tempfile.TemporaryDirectory()
    cuts = [0, 9_000, 40_000, N_MANY]
    table = X.assign(y=targets[y_of])
    for k, (start, stop) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        table.iloc[start:stop].to_parquet(Path(folder.name) / f"part_{k}.parquet")

    def work(kept=folder):
        return model().fit_chunks(kept.name, target="y")

    return work, answers_for(X.iloc[::spread])


def dask_fit(model, y_of, spread=50):
    """Fit a model to Dask collections of the many rows, in this thread."""
    import dask
    import dask.dataframe as dd

    X, *targets = many_rows()
    table = dd.from_pandas(X.assign(y=targets[y_of]), npartitions=3)

    def work():
        with dask.config.set(scheduler="synchronous"):
            return model().fit(table[list(X)], table["y"])

    return work, answers_for(X.iloc[::spread])


# ------------------------------------------------------------------ rule mixtures


@fit
def rules_of_a_forest_for_two_classes():
    X, y = tumours()
    forest = RandomForestClassifier(15, max_depth=5, random_state=0).fit(X, y)
    return lambda: RuleMixtureClassifier(forest, **QUICK).fit(X, y), answers_for(X)


@fit
def rules_of_a_forest_for_several_classes():
    X, y = flowers()
    forest = RandomForestClassifier(15, random_state=0).fit(X, y)
    return lambda: RuleMixtureClassifier(forest, **QUICK).fit(X, y), answers_for(X)


@fit
def rules_of_boosted_trees_and_their_answers():
    X, y = load_wine(return_X_y=True)
    boosted = HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, random_state=0).fit(X, y)
    settings = QUICK | {"target": "ensemble", "max_conditions": 2}
    return lambda: RuleMixtureClassifier(boosted, **settings).fit(X, y), answers_for(X)


@fit
def rules_of_a_mixed_weighted_table_for_words():
    X, _, y, w = mixed_frame()
    return lambda: RuleMixtureClassifier(**QUICK).fit(X, y, sample_weight=w), answers_for(X)


@fit
def rules_of_a_forest_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(15, max_depth=4, random_state=0).fit(X, y)
    return lambda: RuleMixtureRegressor(forest, **QUICK).fit(X, y), answers_for(X)


@fit
def rules_of_a_mixed_weighted_table_for_numbers():
    X, y, _, w = mixed_frame()
    return lambda: RuleMixtureRegressor(**QUICK).fit(X, y, sample_weight=w), answers_for(X)


# ------------------------------------------------------------------ linear pieces


@fit
def linear_pieces_for_numbers():
    X, y, _ = pieces()
    model = PiecewiseLinearRegressor(
        penalty=2.6, search=Structure(n_perturbations=10), random_state=0
    )
    return lambda: model.fit(X, y), answers_for(X)


@fit
def linear_pieces_by_em_for_numbers():
    X, y, _ = pieces()
    settings = {"search": EM(), "max_depth": 3, "random_state": 0}
    return lambda: PiecewiseLinearRegressor(**settings).fit(X, y), answers_for(X)


@fit
def linear_pieces_by_em_from_random_starts():
    X, y, _ = pieces()
    settings = {"search": EM(init="random", n_init=2), "max_depth": 3, "random_state": 0}
    return lambda: PiecewiseLinearRegressor(**settings).fit(X, y), answers_for(X)


@fit
def linear_pieces_of_a_mixed_weighted_table():
    X, y, _, w = mixed_frame()
    model = PiecewiseLinearRegressor(
        penalty=2.6, search=Structure(n_perturbations=10), random_state=0
    )
    return lambda: model.fit(X, y, sample_weight=w), answers_for(X)


@fit
def linear_pieces_for_two_classes():
    X, _, y = pieces()
    settings = {
        "penalty": 1.0,
        "max_depth": 3,
        "search": Structure(n_perturbations=5),
        "random_state": 0,
    }
    return lambda: PiecewiseLinearClassifier(**settings).fit(X, y), answers_for(X)


@fit
def linear_pieces_by_em_for_several_classes():
    X, y = flowers()
    settings = {"search": EM(), "max_depth": 2, "random_state": 0}
    return lambda: PiecewiseLinearClassifier(**settings).fit(X, y), answers_for(X)


# ------------------------------------------------------------------ curves behind tilted questions


@fit
def curves_for_numbers():
    X, y, _ = pieces()
    model = ObliqueAdditiveRegressor(penalty=1.6, max_depth=2, random_state=0)
    return lambda: model.fit(X, y), answers_for(X)


@fit
def curves_by_em_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    X = X[:, [2, 3, 8]]
    settings = {"search": EM(), "max_depth": 2, "random_state": 0}
    return lambda: ObliqueAdditiveRegressor(**settings).fit(X, y), answers_for(X)


@fit
def curves_of_a_mixed_weighted_table():
    X, y, _, w = mixed_frame()
    settings = {"penalty": 1.6, "max_depth": 2, "curves": CurveOptions(n_knots=4, smoothing="gcv")}
    model = ObliqueAdditiveRegressor(**settings, random_state=0)
    return lambda: model.fit(X, y, sample_weight=w), answers_for(X)


@fit
def curves_for_two_classes():
    X, y = tilted()
    settings = {"penalty": 1.0, "max_depth": 1, "curves": CurveOptions(3, 2), "random_state": 0}
    return lambda: ObliqueAdditiveClassifier(**settings).fit(X, y), answers_for(X)


@fit
def curves_by_em_for_several_classes():
    X, y = flowers()
    X = X[["petal length (cm)", "petal width (cm)"]]
    settings = {
        "search": EM(max_iter=20),
        "max_depth": 1,
        "curves": CurveOptions(n_knots=3, degree=1),
        "random_state": 0,
    }
    model = ObliqueAdditiveClassifier(leaf_features=["petal width (cm)"], **settings)
    return lambda: model.fit(X, y), answers_for(X)


# ------------------------------------------------------------------ proxies


@fit
def proxy_tree_of_a_forest_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(15, max_depth=4, random_state=0).fit(X, y)
    settings = {"size": 5, "n_synthetic": 200, "n_draws": 5, "random_state": 0}
    return lambda: ProxyTreeRegressor(forest, **settings).fit(X), answers_for(X)


@fit
def proxy_tree_of_a_forest_for_several_classes():
    X, y = flowers()
    forest = RandomForestClassifier(15, random_state=0).fit(X, y)
    settings = {"n_synthetic": 200, "n_draws": 5, "random_state": 0}
    return lambda: ProxyTreeClassifier(forest, **settings).fit(X), answers_for(X)


@fit
def proxy_tree_of_a_mixed_weighted_table():
    X, _, y, w = mixed_frame()
    return lambda: ProxyTreeClassifier(random_state=0).fit(X, y, sample_weight=w), answers_for(X)


@fit
def proxy_equation_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    boosted = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    return lambda: ProxyLinearRegressor(boosted, max_features=4, random_state=0).fit(
        X, y
    ), answers_for(X)


@fit
def proxy_equation_for_two_classes():
    X, y = tumours()
    forest = RandomForestClassifier(15, max_depth=5, random_state=0).fit(X, y)
    settings = {"max_features": 3, "n_draws": 3, "random_state": 0}
    return lambda: ProxyLinearClassifier(forest, **settings).fit(X, y), answers_for(X)


@fit
def proxy_equation_for_several_classes():
    X, y = flowers()
    forest = RandomForestClassifier(15, max_depth=3, random_state=0).fit(X, y)
    return lambda: ProxyLinearClassifier(forest, random_state=0).fit(X, y), answers_for(X)


# ------------------------------------------------------------------ meta-trees

AS_IN_THE_PAPER = {"leaf_centre": "flat", "multiplicity": False}


@fit
def meta_tree_for_numbers():
    X, y, _ = pieces()
    settings = {"max_depth": 4, "random_state": 0} | AS_IN_THE_PAPER
    return lambda: MetaTreeRegressor(**settings).fit(X, y), answers_for(X)


@fit
def meta_tree_for_numbers_that_pays_for_cuts():
    X, y, _ = pieces()
    return lambda: MetaTreeRegressor(max_depth=4, random_state=0).fit(X, y), answers_for(X)


@fit
def meta_tree_of_a_mixed_weighted_table():
    X, _, y, w = mixed_frame()
    model = MetaTreeClassifier(max_depth=4, random_state=0, **AS_IN_THE_PAPER)
    return lambda: model.fit(X, y, sample_weight=w), answers_for(X)


@fit
def meta_tree_of_a_mixed_weighted_table_that_pays_for_cuts():
    X, _, y, w = mixed_frame()
    model = MetaTreeClassifier(max_depth=4, random_state=0)
    return lambda: model.fit(X, y, sample_weight=w), answers_for(X)


@fit
def meta_tree_with_equations_in_two_batches():
    X, y, _ = pieces()
    settings = {"max_depth": 3, "leaf": "linear", "random_state": 0} | AS_IN_THE_PAPER

    def work():
        model = MetaTreeRegressor(**settings).fit(X[:250], y[:250])
        return model.partial_fit(X[250:], y[250:])

    return work, answers_for(X)


@fit
def meta_trees_of_a_forest_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    return lambda: MetaTreeRegressor(n_trees=10, max_depth=5, random_state=0).fit(
        X, y
    ), answers_for(X)


@fit
def meta_trees_of_a_forest_for_several_classes():
    X, y = flowers()
    settings = {"n_trees": 10, "max_depth": 5, "tree_weights": "evidence", "random_state": 0}
    return lambda: MetaTreeClassifier(**settings).fit(X, y), answers_for(X)


# ------------------------------------------------------------------ explanations


@fit
def near_three_flowers():
    X, y = flowers()
    forest = RandomForestClassifier(15, random_state=0).fit(X, y)
    return lambda: explain_local(forest, X.iloc[[0, 70, 120]], X, random_state=0), local_record


@fit
def near_two_numbers():
    X, y, _ = pieces()
    boosted = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    return lambda: explain_local(boosted, X[:2], X, max_depth=2, random_state=0), local_record


@fit
def explanation_of_a_forest():
    X, y = flowers()
    forest = RandomForestClassifier(15, random_state=0).fit(X, y)
    settings = {"max_rules": 4, "n_init": 3, "n_perturbations": 10, "random_state": 0}
    return lambda: explain(forest, X, y, **settings), lambda found: explanation_record(found, X)


@fit
def explanation_of_an_equation():
    X, y = load_diabetes(return_X_y=True)
    line = LinearRegression().fit(X, y)
    settings = {"max_rules": 5, "n_synthetic": 200, "random_state": 0}
    return lambda: explain(line, X, y, **settings), lambda found: explanation_record(found, X)


@fit
def explanation_of_a_support_vector_machine():
    X, y = flowers()
    machine = SVC(random_state=0).fit(X, y)
    settings = {"max_rules": 4, "n_synthetic": 200, "random_state": 0}
    return lambda: explain(machine, X, y, **settings), lambda found: explanation_record(found, X)


# ------------------------------------------------------------------ rows from files and from Dask


@fit
def linear_pieces_from_files():
    return parquet_fit(
        lambda: PiecewiseLinearRegressor(search=EM(max_iter=5), max_depth=2, random_state=0), 0
    )


@fit
def meta_tree_from_files():
    return parquet_fit(
        lambda: MetaTreeClassifier(max_depth=3, random_state=0, **AS_IN_THE_PAPER), 1
    )


@fit
def rules_from_files():
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    settings = QUICK | {"n_init": 1, "n_perturbations": 1, "search": EM(n_components=5, max_iter=5)}
    return parquet_fit(lambda: RuleMixtureClassifier(forest, **settings), 1)


@fit
def meta_tree_from_dask():
    return dask_fit(lambda: MetaTreeRegressor(max_depth=3, random_state=0, **AS_IN_THE_PAPER), 0)


@fit
def linear_pieces_from_dask():
    return dask_fit(
        lambda: PiecewiseLinearClassifier(search=EM(max_iter=3), max_depth=1, random_state=0), 1
    )


# ------------------------------------------------------------------ one fit


def run(name, seconds=None):
    """The record of the fit `name`, and the least processor seconds that it took.

    With `seconds` it is done once more at least, and until these are over: the first time loads
    what is loaded late.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps and restarts are meant here
        work, tell = FITS[name]()
        found, least = timed(work)
        if seconds is not None:
            times = []
            while sum(times) < seconds or not times:
                found, last = timed(work)
                times.append(last)
            least = min(times)
        return tell(found), least


def timed(work):
    """What `work` returns, and its processor seconds."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def exact(value):
    """A record with its numbers as text that loses no bit."""
    if isinstance(value, dict):
        return {name: exact(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(part) for part in value]
    return value.hex() if isinstance(value, float) else value


def main(names):
    """List the fits, or do one and print what side_by_side.py compares."""
    import resource

    if not names:
        print("\n".join(FITS))
        return
    record, seconds = run(names[0], seconds=0.3)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    package = sys.modules["fabinterp"].__file__
    print(
        json.dumps(
            {"record": exact(record), "seconds": seconds, "memory": memory, "package": package}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
