"""The numbers of the page on local explanations, one JSON line a measurement.

    FABINTERP_DATA=folder python tests/reproduce/local.py [--part NAME…] [--data NAME…] [--splits N]

The paper's section 4.2: BART explained at the points of a tenth of the rows, by small trees and by LIME. What stands in
the file with the same settings is not measured again, so a run that was killed goes on where it stopped. Milliseconds
are processor time of one thread, the reference's own predictions left out, measured in turns in one process.
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

import numpy as np  # noqa: E402
from lime.lime_tabular import LimeTabularExplainer  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from stochtree import BARTModel  # noqa: E402

from fabinterp.local import explain_local  # noqa: E402
from fabinterp.reference import as_reference  # noqa: E402
from reproduce.lines import measure  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "nbs" / "results" / "local.jsonl"
DATA = ("boston", "auto_risk")
N_SAMPLES, N_FRESH, N_AGAIN = 200, 100, 10
TREES = {
    "tree": {},
    "tree, at most 3 leaves": {"max_leaves": 3},
    "tree, σ = ½": {"scale": 0.5},
    "tree, σ = 1": {"scale": 1.0},
}
LIMES = {  # the paper: two features by the highest weights of a ridge
    "LIME, highest weights": {"feature_selection": "highest_weights", "discretize_continuous": False},
    "LIME, highest weights, quartiles": {"feature_selection": "highest_weights", "discretize_continuous": True},
    "LIME, highest weights, around x": {"feature_selection": "highest_weights", "discretize_continuous": False,
                                        "sample_around_instance": True},
    "LIME, forward": {"discretize_continuous": False},
    "LIME, forward, around x": {"discretize_continuous": False, "sample_around_instance": True},
}


def table(name):
    """Features (n, d) and target (n,) of a data set."""
    rows = np.loadtxt(Path(os.environ["FABINTERP_DATA"]) / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


class Timed:
    """A function that keeps account of the time spent in it, and of the rows it was asked about."""

    def __init__(self, function):
        self.function, self.spent = function, 0.0

    def __call__(self, X):
        start = time.thread_time()
        found = self.function(X)
        self.spent += time.thread_time() - start
        return found


def apart(call, predict):
    """What a call returns, and its processor time without the predictions."""
    predict.spent, start = 0.0, time.thread_time()
    found = call()
    return found, time.thread_time() - start - predict.spent


def normal(spread, scale):
    """Neighbours of (1) in the plainest sense: every column moves, labels and whole numbers or not."""
    return lambda x, n, rng: x + scale * spread * rng.standard_normal((n, len(x)))


def fit_bart(X, y, seed):
    """BART with the settings of its library, 50 draws."""
    model = BARTModel()
    model.sample(X_train=X, y_train=y, num_gfr=10, num_burnin=100, num_mcmc=50,
                 general_params={"random_seed": seed, "num_threads": 1})
    return model


# Explanations as functions, so that they can be asked anywhere


def tree_answers(explanation, Z):
    """A local tree at rows Z."""
    return explanation.tree.predict(Z)


def lime_answers(explainer, found, Z):
    """LIME's equation at rows Z: of standardised numbers, or of whether a number lies in the quarter of x."""
    if explainer.discretizer is None:
        columns = (Z - explainer.scaler.mean_) / explainer.scaler.scale_
    else:
        quarters = explainer.discretizer.discretize(np.vstack([found.x, Z]))
        columns = (quarters[1:] == quarters[0]).astype(float)
    return found.intercept[1] + sum(weight * columns[:, j] for j, weight in found.local_exp[1])


def ridge_answers(explanation, spread, centre):
    """LIME's ridge on our neighbours: two features of highest weight times value, α = 0.01, then 1; all count alike."""
    columns = (explanation.neighbours - centre) / spread
    weights = Ridge(alpha=0.01).fit(columns, explanation.said[:, 0]).coef_
    used = np.argsort(-np.abs(weights * (explanation.x - centre) / spread))[:2]
    line = Ridge(alpha=1.0).fit(columns[:, used], explanation.said[:, 0])
    return lambda Z: line.predict(((Z - centre) / spread)[:, used])


# One split


def scores(answer_of, points, predictions, fresh, fresh_said):
    """Squared loss at the points (m, d), and on average over fresh neighbours (m, S, d) of each, drawn with σ = 1."""
    here = [answer_of[i](points[i:i + 1])[0] for i in range(len(points))]
    near = [np.mean((answer_of[i](fresh[i]) - fresh_said[i]) ** 2) for i in range(len(points))]
    return {"loss": float(np.mean((np.array(here) - predictions) ** 2)), "near": float(np.mean(near))}, np.array(here)


def fidelity(name, split):
    """All methods on one split: losses, milliseconds per point, features, and what a second call changes."""
    X, y = table(name)
    A, points, ya, yb = train_test_split(X, y, test_size=0.1, random_state=split)
    bart = fit_bart(A, ya, split)
    mean = Timed(lambda Z: bart.predict(Z, type="mean", terms="y_hat"))
    centre, spread = A.mean(axis=0), np.where(A.std(axis=0) > 0, A.std(axis=0), 1.0)
    predictions, rng = mean(points), np.random.default_rng([7, split])
    fresh = points[:, None] + spread * rng.standard_normal((len(points), N_FRESH, X.shape[1]))
    said = mean(fresh.reshape(-1, X.shape[1])).reshape(len(points), N_FRESH)
    found = {"n_points": len(points), "d": X.shape[1], "var_y": float(y.var()),
             "reference_mse": float(np.mean((predictions - yb) ** 2)), "methods": {}}
    explain_local(mean, points[:2], A, random_state=split)  # whatever happens only once
    every = {**TREES, "tree, plain normal": {"sampler": normal(spread, 0.7)}}
    for method, how in every.items():
        many, seconds = apart(lambda h=how: explain_local(mean, points, A, random_state=split, **h), mean)
        line, here = scores([lambda Z, e=e: tree_answers(e, Z) for e in many], points, predictions, fresh, said)
        again = explain_local(mean, points[:N_AGAIN], A, random_state=split, **how)
        line |= {"ms": 1e3 * seconds / len(points), "features": float(np.mean([len(e.features) for e in many])),
                 "leaves": float(np.mean([e.n_leaves for e in many])),
                 "own": float(np.mean([e.local_loss for e in many]))}
        found["methods"][method] = line | same(*([set(e.features) for e in part] for part in (many, again)), here,
                                               np.array([e.answer for e in again]))
        if method == "tree":
            one = [apart(lambda x=x: explain_local(mean, x, A, random_state=split), mean)[1] for x in points[:N_AGAIN]]
            found["methods"][method]["ms_alone"] = 1e3 * float(np.mean(one))
            lines = [ridge_answers(e, spread, centre) for e in many]
            found["methods"]["LIME's ridge on our neighbours"], _ = scores(lines, points, predictions, fresh, said)
    for method, how in LIMES.items():
        found["methods"][method] = by_lime(how, A, points, mean, predictions, fresh, said, split)
    return found


def by_lime(how, A, points, mean, predictions, fresh, said, seed):
    """LIME's losses, time, features, and what a second call of the same explainer, and of one seeded alike, changes."""
    explainer = LimeTabularExplainer(A, mode="regression", random_state=seed, **how)

    def explain(x):
        found = explainer.explain_instance(x, mean, num_features=2, num_samples=N_SAMPLES)
        found.x = x
        return found
    for x in points[:2]:  # whatever happens only once
        explain(x)
    first, seconds = apart(lambda: [explain(x) for x in points], mean)
    answer_of = [lambda Z, e=e: lime_answers(explainer, e, Z) for e in first]
    line, here = scores(answer_of, points, predictions, fresh, said)
    assert np.allclose(here, [e.local_pred[0] for e in first])  # its equation is read as it is meant
    again = [explain(x) for x in points[:N_AGAIN]]
    chosen = [[{j for j, _ in e.local_exp[1]} for e in part] for part in (first, again)]
    line |= {"ms": 1e3 * seconds / len(points), "features": 2.0}
    return line | same(*chosen, here, np.array([e.local_pred[0] for e in again]))


def same(features, again, here, there):
    """How often a second call with the same seed names the same features, and how far its answers are."""
    return {"same_features": float(np.mean([a == b for a, b in zip(features, again, strict=False)])),
            "answers_apart": float(np.abs(here[:len(there)] - there).mean())}


def draws(name, split):
    """What the uncertainty costs: milliseconds per point for a tree per draw, and how wide the intervals are."""
    X, y = table(name)
    A, points, ya, _ = train_test_split(X, y, test_size=0.1, random_state=split)
    reference = as_reference(fit_bart(A, ya, split))
    many = explain_local(reference, points[:10], A, random_state=split)
    start = time.thread_time()
    for e in many:
        e.question.draws(np.vstack([e.x, e.neighbours]))
    spent, start = time.thread_time() - start, time.thread_time()
    sampled = [e.sampled for e in many]
    seconds = time.thread_time() - start - spent
    held = [low <= e.prediction <= high for e, s in zip(many, sampled, strict=True) for low, high in s.interval(0.9)]
    wide = [high - low for s in sampled for low, high in s.interval(0.9)]
    return {"draws": len(sampled[0]), "ms": 1e3 * seconds / len(many), "held": float(np.mean(held)),
            "width": float(np.mean(wide)), "inclusion": np.mean([s.inclusion for s in sampled], axis=0).tolist()}


# The file


def jobs(parts, data, splits):
    """All measurements: a key, and the call that makes them."""
    calls = {"fidelity": (fidelity, splits), "draws": (draws, min(splits, 3))}
    for split in range(splits):
        for part in parts:
            for name in data if split < calls[part][1] else ():
                key = {"part": part, "data": name, "split": split}
                yield key, lambda call=calls[part][0], name=name, split=split: call(name, split)


def main():
    """Measure what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="*", default=["fidelity", "draws"], choices=["fidelity", "draws"])
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--splits", type=int, default=10)
    asked = parser.parse_args()
    measure(OUT, jobs(asked.part, asked.data, asked.splits), "lime", "stochtree")


if __name__ == "__main__":
    main()
