"""Evidence and prediction of each leaf family are two readings of one integral, whatever the rows and weights."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats as law
from scipy.integrate import quad
from shared.effort import examples

from fabinterp.fab.distributions import Mixture, normal_mixture
from fabinterp.metatree.conjugate import (
    BetaBernoulli,
    DirichletCategorical,
    GammaExponential,
    GammaPoisson,
    LinearNormalGamma,
    NormalGamma,
    sufficient_statistics,
)

FAMILIES = {
    "bernoulli": BetaBernoulli(0.6, 1.7),
    "categorical": DirichletCategorical((0.3, 1.0, 2.5)),
    "poisson": GammaPoisson(1.3, 0.4),
    "exponential": GammaExponential(2.5, 0.8),
    "normal": NormalGamma(-0.4, 0.7, 1.6, 2.1),
    "linear": LinearNormalGamma((0.2, -1.0, 0.0), (0.5, 1.0, 2.0), 1.6, 2.1),
}
NUMBERS = ("poisson", "exponential", "normal", "linear")
each = pytest.mark.parametrize("name", FAMILIES)


def rows(name, n, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    y = {
        "bernoulli": rng.integers(0, 2, n),
        "categorical": rng.integers(0, 3, n),
        "poisson": rng.poisson(3, n),
        "exponential": rng.exponential(2, n),
    }.get(name, rng.normal(1, 2, n) + Z[:, 0])
    return y, Z


def held(family, y, w, Z):
    return sufficient_statistics(family, np.zeros(len(y), int), 1, y, w, Z)


@each
@given(n=st.integers(0, 12), seed=st.integers(0, 10**6))
@examples(25)
def test_evidence_is_the_product_of_predictions_in_any_order(name, n, seed):
    family = FAMILIES[name]
    (y, Z) = rows(name, n, seed)
    total = 0.0
    so_far = held(family, y[:0], np.zeros(0), Z[:0])
    for i in np.random.default_rng(seed).permutation(n):
        total += family.log_density(y[[i]], family.posterior(so_far), Z[[i]])[0]
        so_far = so_far + held(family, y[[i]], np.ones(1), Z[[i]])
    assert np.isclose(total, family.log_evidence(so_far)[0], rtol=1e-11, atol=1e-11)


@each
@given(seed=st.integers(0, 10**6))
@examples(15)
def test_a_weight_is_a_row_given_that_often_and_sums_add(name, seed):
    family = FAMILIES[name]
    (y, Z) = rows(name, 9, seed)
    w = np.random.default_rng(seed).integers(0, 4, 9)
    often = np.repeat(np.arange(9), w)
    weighted = held(family, y, w.astype(float), Z)
    assert np.allclose(weighted, held(family, y[often], np.ones(len(often)), Z[often]), rtol=1e-12)
    assert np.allclose(
        weighted, held(family, y[:4], w[:4] * 1.0, Z[:4]) + held(family, y[4:], w[4:] * 1.0, Z[4:])
    )


@each
def test_no_rows_have_evidence_one(name):
    family = FAMILIES[name]
    (y, Z) = rows(name, 3, 0)
    assert abs(family.log_evidence(held(family, y, np.zeros(3), Z))[0]) < 1e-13


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("seed", range(4))
def test_mean_variance_cdf_and_quantile_belong_to_the_density(name, seed):
    family = FAMILIES[name]
    (y, Z) = rows(name, 14, seed)
    params = family.posterior(held(family, y, np.ones(14), Z))
    z = Z[:1]

    def density(t):
        return float(np.exp(family.log_density(np.array([t]), params, z)[0]))

    mean = family.mean(params, z)[0]
    variance = family.variance(params, z)[0]
    if family.discrete:
        t = np.arange(2000)
        p = np.array([density(k) for k in t])
        moments = [1, (p * t).sum() / p.sum(), (p * t**2).sum()]
        assert abs(p.sum() - 1) < 1e-9 and np.isclose(
            p[:5].sum(), family.cdf(np.array([4.0]), params, z)[0]
        )
    else:
        low = 0 if name == "exponential" else -np.inf
        moments = [
            quad(lambda t, k=k: density(t) * t**k, low, np.inf, limit=400)[0] for k in range(3)
        ]
        assert np.isclose(
            quad(density, low, 1.3)[0] if low == 0 else 0.5 + quad(density, mean, 1.3)[0],
            family.cdf(np.array([1.3]), params, z)[0],
            atol=1e-6,
        )
        for q in (0.05, 0.5, 0.9):
            if name != "linear":
                assert np.isclose(family.cdf(family.quantile(q, params), params)[0], q)
    assert np.isclose(moments[0], 1, rtol=1e-5) or family.discrete
    assert np.isclose(moments[1], mean, rtol=1e-4) and np.isclose(
        moments[2] - moments[1] ** 2, variance, rtol=1e-3
    )


def test_predictions_are_the_known_laws():
    family = FAMILIES["normal"]
    y = np.array([0.3, 2.0, -1.0])
    df, centre, scale = family.posterior(held(family, y, np.ones(3), None))[0]
    assert np.isclose(
        family.log_density(np.array([0.7]), np.array([[df, centre, scale]]))[0],
        law.t.logpdf(0.7, df, centre, scale),
    )
    a = 5.0
    r = 1.5
    assert np.isclose(
        GammaPoisson().log_density(np.array([3]), np.array([[a, r]]))[0],
        law.nbinom.logpmf(3, a, r / (r + 1)),
    )
    assert np.isclose(
        GammaExponential().log_density(np.array([0.4]), np.array([[a, r]]))[0],
        law.lomax.logpdf(0.4, a, scale=r),
    )


def test_a_million_rows_far_from_the_prior_keep_their_digits():
    rng = np.random.default_rng(0)
    y = 1e6 + rng.normal(size=10**6)
    family = NormalGamma(float(y.mean()), 1.0, 1.0, 1.0)
    found = family.log_evidence(held(family, y, np.ones(10**6), None))[0]
    near = law.norm.logpdf(y, y.mean(), y.std()).sum()
    assert np.isfinite(found) and abs(found - near) < 30


@given(seed=st.integers(0, 10**6), q=st.floats(0.001, 0.999))
@example(seed=3176, q=0.75390625)  # a narrow peak in which Newton's steps crawl
@examples(100)
def test_quantiles_invert_the_distribution_function_of_a_mixture(seed, q):
    rng = np.random.default_rng(seed)
    row = np.sort(rng.integers(0, 5, 30))
    row[:5] = np.arange(5)
    row.sort()
    weight = rng.random(30)
    weight /= np.bincount(row, weight)[row]
    params = np.column_stack(
        [rng.uniform(1, 30, 30), rng.normal(0, 10, 30), 10 ** rng.uniform(-3, 2, 30)]
    )
    mix = Mixture(NormalGamma(), row, weight, params, 5)
    found = mix.quantile(q)
    near = 1e-11 * (1 + np.abs(found))
    assert np.all(mix.cdf(found - near) <= q + 1e-12) and np.all(mix.cdf(found + near) >= q - 1e-12)
    counts = Mixture(
        GammaPoisson(), row, weight, np.column_stack([params[:, 0], params[:, 2] + 0.01]), 5
    )
    found = counts.quantile(q)
    assert np.all(counts.cdf(found) >= q) and np.all((counts.cdf(found - 1) < q) | (found == 0))


@pytest.mark.filterwarnings("error")
def test_what_no_component_holds_possible_has_no_density():
    components = np.zeros(2, int), np.full(2, 0.5), np.array([[3.0, 1.0], [5.0, 2.0]]), 1
    assert Mixture(GammaExponential(), *components).log_density([-0.5])[0] == -np.inf
    assert Mixture(GammaPoisson(), *components).log_density([1.5])[0] == -np.inf


def test_crps_of_a_normal_distribution_is_its_formula():
    y = np.array([-3.0, 0.5, 1.0, 7.0])
    z = (y - 1.0) / 2.0
    expected = 2.0 * (z * (2 * law.norm.cdf(z) - 1) + 2 * law.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert np.allclose(
        normal_mixture(np.ones((4, 1)), np.array([4.0])).crps(y), expected, rtol=1e-3
    )


def test_a_quantile_needs_a_probability():
    mix = Mixture(NormalGamma(), np.zeros(1, int), np.ones(1), np.array([[3.0, 0.0, 1.0]]), 1)
    with pytest.raises(ValueError, match=r"q must be above 0 and below 1, got 1\.0"):
        mix.quantile(1.0)
