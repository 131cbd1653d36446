"""The prefix sums against a dense N × L implementation of the same equations: the same numbers.

`dense_fab` is the oracle. It is written from the paper, on all the raw questions, and shares no
code with the package.
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy
from sklearn.ensemble import RandomForestClassifier

from fabinterp.fab.criterion import MIN_WEIGHT_FRACTION
from fabinterp.forests.reading import ensemble_thresholds, read_ensemble
from fabinterp.models.soft_regions import fab_of_mixture, random_mixture
from fabinterp.rows.bins import bin_codes, incidence, merge_identical
from fabinterp.rules.core import read_columns

N_RESTARTS = 20


def synthetic2(n, seed):
    """The paper's second simulation: two uniform features, a curved border, a tenth of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    border = 0.25 + 0.5 / (1 + np.exp(-20 * (X[:, 0] - 0.5))) + 0.05 * np.cos(2 * np.pi * X[:, 0])
    return X, ((X[:, 1] > border) ^ (rng.random(n) < 0.1)).astype(int)


def log_f(bits, y, alpha, eta, gamma):
    """(N, K) log p(k) + log p(s | k) + log p(y | k), equation (9), by two matrix products."""
    return (
        np.log(alpha) + bits @ np.log(eta).T + (1 - bits) @ np.log(1 - eta).T + y @ np.log(gamma).T
    )


def dense_fab(bits, y, alpha, eta, gamma, delta=MIN_WEIGHT_FRACTION, max_iter=200, tol=1e-5):
    """Algorithm 1 on bits (N, L) and one-hot y (N, C), from drawn parameters; `(bound, K, number of steps)`.

    First responsibilities, rounds of the E-step, tolerances, the floor of probabilities and the
    normalised responsibilities after a removal are the package's: the paper leaves them open, or
    the authors' program does otherwise than their text.
    """
    n = len(bits)
    omega = (y.shape[1] - 1 + bits.shape[1] + 1) / 2
    table = log_f(bits, y, alpha, eta, gamma)
    beta = np.full(table.shape, 1 / len(alpha))
    bounds = []
    while len(bounds) < max_iter:
        discounted = table - omega / (beta.sum(axis=0) + 1)
        beta = np.exp(discounted - logsumexp(discounted, axis=1, keepdims=True))  # (13)
        active = beta.mean(axis=0) >= delta
        if not active.all():
            beta = beta[:, active] / beta[:, active].sum(axis=1, keepdims=True)
            alpha = alpha[active] / alpha[active].sum()
            eta = eta[active]
            gamma = gamma[active]
            table = log_f(bits, y, alpha, eta, gamma)
        bounds.append(
            np.sum(beta * table - xlogy(beta, beta)) - omega * np.log(beta.sum(axis=0) + 1).sum()
        )  # (12)
        if active.all() and len(bounds) > 1 and bounds[-1] - bounds[-2] <= tol * n:
            break
        mass = beta.sum(axis=0)
        alpha = mass / n  # (14)
        eta = (beta.T @ bits / mass[:, None]).clip(delta, 1 - delta)
        gamma = (beta.T @ y / mass[:, None]).clip(delta, 1 - delta)
        table = log_f(bits, y, alpha, eta, gamma)
    return bounds[-1], len(alpha), len(bounds)


def case(n, n_trees):
    """Rows, questions of a forest, and the same random starts for both sides, merged questions and raw ones."""
    X, y = synthetic2(n, seed=0)
    forest = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
    thresholds = ensemble_thresholds(read_ensemble(forest, read_columns(X)))
    bins = merge_identical(X, thresholds)
    seeds = range(N_RESTARTS)
    starts = [
        random_mixture(bins, y, np.ones(n), 10, 2, np.random.default_rng(seed)) for seed in seeds
    ]
    times = bins.multiplicity.astype(int)
    raw = [(m.weights, np.repeat(m.eta, times, axis=1), m.expert.prob) for m in starts]
    bits = np.hstack([X[:, [j]] > cuts for j, cuts in enumerate(thresholds)]).astype(float)
    assert bits.shape[1] == bins.n_bits > len(times)
    return bits, y, raw, incidence(bin_codes(X, bins), bins), starts


def by_look_up(S, y, starts):
    ends = [fab_of_mixture(start, S, y, np.ones(len(y))) for start in starts]
    return [(step.fic, step.n_components, len(trace)) for step, trace in ends]


def by_bits(bits, y, raw):
    return [dense_fab(bits, np.eye(2)[y], *start) for start in raw]


def assert_same(ours, dense):
    assert len(ours) == len(dense) == N_RESTARTS
    np.testing.assert_allclose([a[0] for a in ours], [b[0] for b in dense], rtol=1e-8)
    assert [a[1:] for a in ours] == [b[1:] for b in dense]  # K, and the number of steps
    assert (
        len({a[1] for a in ours}) > 1 and min(a[2] for a in ours) > 2
    )  # the restarts do differ and do climb


@pytest.mark.parametrize("n, n_trees", [(200, 20), (400, 10)])
def test_restarts_end_where_the_dense_ones_end(n, n_trees):
    bits, y, raw, S, starts = case(n, n_trees)
    assert_same(by_look_up(S, y, starts), by_bits(bits, y, raw))


LARGE = """
import resource
import numpy as np
from fabinterp.rows.bins import bin_codes, incidence, merge_identical
from fabinterp.models.soft_regions import fab_of_mixture, random_mixture

rng = np.random.default_rng(0)
X = rng.random((100_000, 20))
y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(100_000) < 0.1)).astype(int)
bins = merge_identical(X, [rng.random(5000) for _ in range(20)])
S = incidence(bin_codes(X, bins), bins)
model = random_mixture(bins, y, np.ones(len(y)), 10, 2, np.random.default_rng(0))
step, trace = fab_of_mixture(model, S, y, np.ones(len(y)))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
print(bins.n_bits, len(trace), step.n_components, step.fic, peak, sep=",")
"""


@pytest.mark.slow
def test_a_hundred_thousand_rows_and_questions():
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    n_bits, n_steps, n_components, value, peak = map(float, done.stdout.split(","))
    print(f"\nN = 100000, L = {n_bits:.0f}, K = {n_components:.0f}: peak {peak:.2f} GB")
    assert n_bits == 100_000 and n_steps > 1 and np.isfinite(value)
    assert peak < 2
