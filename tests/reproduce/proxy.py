"""The numbers of the page on proxies: the paper's figures 3, 4 and 5 and its table 3, one JSON line a measurement.

    FABINTERP_DATA=folder python tests/reproduce/proxy.py [--part NAME…] [--data NAME…] [--repeats N]

What stands in the file with the same settings is not measured again, so a run that was killed goes on where it stopped.
`sizes`: a split of the rows into 75 % and 25 %, a reference fitted to the larger part, and trees of equal size: fitted
to the data (best split first, as scikit-learn grows them), to the reference as the paper does (its answers on the rows
themselves), and as the package does by default. `stability`: bootstrap instability of trees of eight leaves.
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
from dataclasses import dataclass  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: E402
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.tree import DecisionTreeRegressor  # noqa: E402

from fabinterp.proxy import ProxyTreeRegressor  # noqa: E402
from fabinterp.reference import Reference, as_reference  # noqa: E402
from fabinterp.stability import instability  # noqa: E402
from reproduce.lines import measure  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "nbs" / "results" / "proxy.jsonl"
DATA = ("bodyfat", "baseball", "auto_risk", "bike_rental", "auto_mpg", "wine_red", "boston")
THREE = DATA[:3]  # those of figure 3
SIZES = (2, 4, 6, 7, 8, 10, 12, 15, 20)
LEAST = 5  # rows in a leaf, of every tree
PAPER = {"n_synthetic": 0, "lookahead": False}  # the reference's answers on the rows of the table, grown greedily


def table(name):
    """Features (n, d) and target (n,) of a data set."""
    rows = np.loadtxt(Path(os.environ["FABINTERP_DATA"]) / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def halves(name, seed):
    """Training rows (75 %) and test rows (25 %) of a data set, in a random order of the seed's."""
    X, y = table(name)
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:len(y) // 4], order[len(y) // 4:]
    return X[train], y[train], X[test], y[test]


def rmse(said, y):
    """Root mean squared error."""
    return float(np.sqrt(np.mean((said - y) ** 2)))


# References


def bart(X, y, seed, trees=200):
    """Bayesian additive regression trees: after 500 steps that are thrown away, every fifth of the next 500."""
    from stochtree import BARTModel
    model = BARTModel()
    model.sample(X_train=X, y_train=y, num_gfr=0, num_burnin=500, num_mcmc=100,
                 general_params={"random_seed": seed, "num_threads": 1, "keep_every": 5},
                 mean_forest_params={"num_trees": trees})
    return model


def gaussian_process(X, y, seed):
    """A Matérn 5/2 kernel with a length for each feature and white noise, by marginal likelihood."""
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (0.05, 1e3), nu=2.5) + WhiteKernel(0.3, (1e-4, 10))
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed)
    return make_pipeline(StandardScaler(), process).fit(X, y)


REFERENCES = {"bart": bart, "bart3": lambda X, y, seed: bart(X, y, seed, 3), "gp": gaussian_process}


@dataclass(frozen=True, eq=False, repr=False)
class Remembered(Reference):
    """A reference that is asked about the same table once, for trees of many sizes."""

    def mean_var(self, X):
        """As the reference behind it says."""
        key = X.tobytes()
        if key not in self.places:
            self.places[key] = self.model.mean_var(X)
        return self.places[key]


def remembered(model):
    """A fitted model as a reference that remembers what it said."""
    return Remembered(as_reference(model), "a model", "posterior", places={})


# Trees of equal size


def sizes(name, label, seed):
    """Test errors and fidelities of trees of each size, fitted to the data and to a reference; and the reference's."""
    X, y, X_test, y_test = halves(name, seed)
    start = time.process_time()
    reference = remembered(REFERENCES[label](X, y, seed))
    fitted = time.process_time() - start
    said = reference.mean_var(X_test)[0]
    found = {"sizes": SIZES, "reference": rmse(said, y_test), "sd": float(y_test.std()), "reference_seconds": fitted}
    for method, make in trees_of(reference, seed).items():
        trees = [make(b).fit(X, y) for b in SIZES]
        answers = [tree.predict(X_test) for tree in trees]
        found[method] = [rmse(answer, y_test) for answer in answers]
        found[f"{method}_loss"] = [rmse(answer, said) for answer in answers]  # how far from the reference
        found[f"{method}_leaves"] = [int(leaves(tree)) for tree in trees]
    return found


def leaves(tree):
    """How many leaves a fitted tree has."""
    return tree.get_n_leaves() if isinstance(tree, DecisionTreeRegressor) else tree.n_leaves_


def trees_of(reference, seed):
    """The ways to fit a tree of at most b leaves."""
    return {"data": lambda b: DecisionTreeRegressor(max_leaf_nodes=b, min_samples_leaf=LEAST, random_state=seed),
            "paper": lambda b: ProxyTreeRegressor(reference, max_leaves=b, min_samples_leaf=LEAST, random_state=seed,
                                                  **PAPER),
            "proxy": lambda b: ProxyTreeRegressor(reference, max_leaves=b, min_samples_leaf=LEAST, random_state=seed)}


# Stability


def stability(name, method, seed, n_leaves=8):
    """Pairwise dissimilarities of the trees of ten bootstrap samples, mended and as the paper prints them.

    `data`: trees fitted to the samples. `utility`: to a BART fitted to each sample. `fixed`: to one BART of all rows,
    asked about the rows of each sample.
    """
    X, y = table(name)
    one = bart(X, y, seed) if method == "fixed" else None

    def fit(X, y):
        reference = None if method == "data" else as_reference(one or bart(X, y, seed))
        how = {} if reference else PAPER
        return ProxyTreeRegressor(reference, max_leaves=n_leaves, min_samples_leaf=LEAST, random_state=seed, **how
                                  ).fit(X, y).tree_
    found = instability(fit, X, y, n_bootstrap=10, random_state=seed)
    printed = found.as_printed
    return {"leaves": n_leaves, "mean": found.mean, "std": found.std, "standard_error": found.standard_error,
            "printed_mean": printed.mean, "printed_std": printed.std, "pairs": found.pairs.tolist(),
            "disagreement": float(np.mean(found.disagreement(X)))}


def jobs(parts, data, repeats):
    """All measurements: a key, and the call that makes them."""
    for seed in range(repeats):
        for name in data if "sizes" in parts else ():
            for label in REFERENCES if name in THREE else ("bart",):
                key = {"part": "sizes", "data": name, "reference": label, "repeat": seed}
                yield key, lambda a=(name, label, seed): sizes(*a)
    for name in data if "stability" in parts else ():
        for method in ("data", "utility", "fixed"):
            yield {"part": "stability", "data": name, "method": method}, lambda a=(name, method, 0): stability(*a)


def main():
    """Measure what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="*", default=["sizes", "stability"], choices=["sizes", "stability"])
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=DATA)
    parser.add_argument("--repeats", type=int, default=50)
    asked = parser.parse_args()
    measure(OUT, jobs(asked.part, asked.data, asked.repeats), "stochtree", "fabinterp")


if __name__ == "__main__":
    main()
