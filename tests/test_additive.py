"""Additive experts: every M-step is a maximum, FIC never falls, and lines are the linear experts'."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm
from shared.effort import examples

from fabinterp.fab.additive import additive_design
from fabinterp.fab.criterion import Model, fic
from fabinterp.fab.curve_strengths import (
    class_strengths,
    coefficient_covariance,
    number_strengths,
    reml_strengths,
    tune_curves,
    tune_smoothness,
)
from fabinterp.fab.engine import fab
from fabinterp.fab.experts import (
    Gaussian,
    Softmax,
    Terms,
    _fisher_variances,
    gaussian_experts,
    softmax_experts,
)
from fabinterp.fab.foba import foba
from fabinterp.fab.foba_classes import base_ridge, foba_softmax
from fabinterp.fab.hme import MixtureInputs
from fabinterp.fab.hme_starts import random_start, start_from_resp
from fabinterp.fab.spline_basis import fit_basis
from fabinterp.rows.bins import bin_codes as cells_of
from fabinterp.rows.bins import merge_identical, table_thresholds
from fabinterp.rows.blocks import in_memory

seeds = st.integers(0, 2**32 - 1)
quick = examples(30)


OPTIONS = [dict(zip(("count", "fisher_factors"), each, strict=True))
           for each in product(("features", "parameters"), (False, True))]  # fmt: skip
every_option = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(map(str, o.values()))
)


def additive(first_experts, X, y, resp, w, *args, smoothing=0.5, **options):
    """Experts from first responsibilities, in arrays; smoothing: a number, or "gcv"."""
    start = 0.5 if isinstance(smoothing, str) else smoothing
    expert = first_experts(X, y, resp, w, *args, smoothing=start, **options)
    if isinstance(smoothing, str):
        return tune_smoothness(expert, in_memory((X, y, w)), in_memory(resp))
    return expert


additive_gaussian = partial(additive, gaussian_experts)
additive_softmax = partial(additive, softmax_experts)


def problem(seed, **options):
    """Splines of a few features, one with two values, rows, targets, responsibilities of experts and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 150))
    d = int(rng.integers(1, 4))
    K = int(rng.integers(1, 4))
    x = np.column_stack([rng.random((n, d)), rng.integers(0, 2, n)])
    bases = [fit_basis(column, n_knots=int(rng.integers(2, 6))) for column in x.T]
    Z = additive_design(bases, x)
    y = np.sin(6 * x[:, 0]) * rng.integers(0, 2) + x[:, -1] + 0.3 * rng.normal(size=n)
    resp = rng.dirichlet(np.full(K, 0.5), n)
    w = rng.integers(0, 3, n) + (np.arange(n) == 0).astype(float)
    return rng, bases, x, Z, y, resp, w, Terms.of(bases, **options)


def labelled(rng, y, n_classes):
    """Class codes that follow y."""
    scores = 2 * np.cos(np.arange(n_classes) * 2) * y[:, None]
    return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def charged(expert, Z, y, resp, w):
    """What FIC sees of the experts: log-likelihood less prices and bending, row by row."""
    factors = expert.fisher(Z)
    mass = (w[:, None] * resp * (1 if factors is None else factors)).sum(axis=0)
    fit = float((w[:, None] * resp * expert.log_lik(Z, y)).sum())
    return fit - float(
        (0.5 * expert.terms.penalty * expert.dims * np.log1p(mass) + expert.const).sum()
    )


def perturbed(rng, expert):
    """Experts near by, with curves of the same features."""
    coef = expert.coef + rng.choice([1e-3, 0.1]) * rng.normal(size=expert.coef.shape) * (
        expert.coef != 0
    )
    if isinstance(expert, Softmax):
        return replace(expert, coef=coef - coef.mean(axis=2, keepdims=True))
    var = np.maximum(
        expert.var * np.exp(rng.choice([0.0, 0.1]) * rng.normal(size=len(expert.var))), expert.floor
    )
    return replace(expert, coef=coef, var=var)


# What an expert says


@quick
@given(seeds)
def test_an_expert_is_a_sum_of_curves(seed):
    rng, bases, x, Z, y, resp, w, terms = problem(seed)
    expert = additive_gaussian(Z, y, resp, w, terms)
    for k in range(resp.shape[1]):
        total = np.full(len(y), expert.coef[k, 0])
        for j, (basis, column) in enumerate(zip(bases, x.T, strict=True)):
            curve = basis.design(column) @ expert.coef[k, terms.groups == j]
            assert curve.any() == terms.active_curves(expert.coef)[k, j]
            total += curve
        np.testing.assert_allclose(
            expert.log_lik(Z, y)[:, k], norm(total, np.sqrt(expert.var[k])).logpdf(y)
        )


@quick
@given(seeds, st.integers(2, 4))
def test_classes_are_said_by_scores(seed, n_classes):
    rng, _, _, Z, y, resp, w, terms = problem(seed)
    codes = labelled(rng, y, n_classes)
    expert = additive_softmax(Z, codes, resp, w, n_classes, terms)
    odds = np.exp(np.einsum("np,kpc->nkc", Z, expert.coef))
    prob = odds / odds.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(np.exp(expert.log_prob(Z)), prob)
    np.testing.assert_allclose(
        expert.log_lik(Z, codes), np.log(prob[np.arange(len(y)), :, codes]), atol=1e-9
    )
    np.testing.assert_allclose(
        expert.log_lik(Z, np.eye(n_classes)[codes]), expert.log_lik(Z, codes)
    )


def test_what_is_counted():
    terms = Terms(np.array([-1, 0, 0, 0, 2, 2]), np.zeros(6))
    coef = np.array([[1.0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [1, 1, 0, 1, 0, 2]])
    np.testing.assert_array_equal(terms.active_curves(coef), [[0, 0, 0], [1, 0, 0], [1, 0, 1]])
    one = np.ones(3)
    smooth = np.zeros(3)
    by_columns = replace(terms, count="parameters")
    assert Gaussian(coef, one, terms, smooth).dims.tolist() == [0, 1, 2]
    assert Gaussian(coef, one, by_columns, smooth).dims.tolist() == [2, 5, 7]
    assert Gaussian(coef, one, by_columns, smooth, pooled=True).dims.tolist() == [1, 4, 6]
    three = np.stack([coef, -coef, 0 * coef], axis=2)
    assert Softmax(three, terms, smooth).dims.tolist() == [0, 2, 4]
    assert Softmax(three, by_columns, smooth).dims.tolist() == [2, 8, 12]


@pytest.mark.parametrize("wrong", [{"count": "rows"}, {"penalty": -1.0}, {"penalty": np.nan}])
def test_bad_options_are_named(wrong):
    name, given = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"{name} must be .*, got '?{given}"):
        Terms(np.array([-1, 0]), np.zeros(2), **wrong)


def test_pooled_and_factors_do_not_go_together():
    _, _, _, Z, y, resp, w, terms = problem(0, fisher_factors=True)
    with pytest.raises(ValueError, match="pooled=True cannot be combined"):
        additive_gaussian(Z, y, resp, w, terms, pooled=True)


def test_constant_features_leave_constants():
    rng = np.random.default_rng(12)
    bases = [fit_basis(np.ones(50)), fit_basis(np.ones(50))]
    Z = additive_design(bases, np.ones((50, 2)))
    w = np.ones(50)
    y = rng.normal(size=50)
    resp = rng.dirichlet(np.ones(2), 50)
    assert Z.shape == (50, 1)
    for options in OPTIONS:
        terms = Terms.of(bases, **options)
        numbers = additive_gaussian(Z, y, resp, w, terms, smoothing="gcv")
        np.testing.assert_allclose(numbers.coef[:, 0], y @ resp / resp.sum(axis=0))
        share = (y > 0) @ resp / resp.sum(axis=0)
        classes = additive_softmax(Z, (y > 0).astype(int), resp, w, 2, terms, smoothing="gcv")
        np.testing.assert_allclose(np.exp(classes.log_prob(Z))[0, :, 1], share, rtol=1e-4)
        assert (numbers.dims == 2.0 * (terms.count == "parameters")).all()


# The M-step


@every_option
@examples(10)
@given(seeds)
def test_an_update_is_never_worse(options, seed):
    rng, _, _, Z, y, resp, w, terms = problem(seed, **options)
    first = rng.permutation(resp)
    codes = labelled(rng, y, 2 + seed % 2)
    numbers = additive_gaussian(Z, y, first, w, terms, smoothing=rng.choice([0.01, 1.0]))
    classes = additive_softmax(Z, codes, first, w, 2 + seed % 2, terms)
    pairs = [(numbers, y), (classes, codes)]
    for expert, target in pairs + [(perturbed(rng, expert), target) for expert, target in pairs]:
        before, after = (
            charged(e, Z, target, resp, w) for e in (expert, expert.update(Z, target, resp, w))
        )
        assert after >= before - 1e-7 * (1 + abs(before))


@quick
@given(seeds, st.sampled_from(["features", "parameters"]), st.booleans(), st.booleans())
def test_refitted_curves_are_not_beaten_near_by(seed, count, fisher_factors, pooled):
    rng, _, _, Z, y, resp, w, terms = problem(
        seed, count=count, fisher_factors=fisher_factors and not pooled
    )
    expert = additive_gaussian(Z, y, resp, w, terms, pooled=pooled)
    top = charged(expert, Z, y, resp, w)
    for _ in range(20):
        other = perturbed(rng, expert)
        if pooled:
            other = replace(other, var=np.full_like(other.var, other.var[0]))
        if not fisher_factors or pooled:
            assert charged(other, Z, y, resp, w) <= top + 1e-7 * (1 + abs(top))
    for k in range(len(expert.var)):  # a curve less, the others and the variance refitted
        for j in np.flatnonzero(terms.active_curves(expert.coef)[k]):
            coef = expert.coef.copy()
            coef[k, terms.groups == j] = 0
            same = replace(
                terms,
                groups=np.where(coef[k] != 0, terms.groups, -1),
                penalty=0.0,
                fisher_factors=False,
            )
            if not pooled and not fisher_factors and (coef[k, 1:] != 0).any():
                on = np.r_[0, np.flatnonzero(coef[k, 1:]) + 1]
                part = replace(same, groups=np.r_[-1, same.groups[on[1:]]], ridge=terms.ridge[on])
                fewer = additive_gaussian(Z[:, on], y, resp[:, [k]], w, part)
                coef[k, on] = fewer.coef[0]
                var = expert.var.copy()
                var[k] = fewer.var[0]
                assert charged(replace(expert, coef=coef, var=var), Z, y, resp, w) <= top + 1e-6 * (
                    1 + abs(top)
                )


@quick
@given(seeds, st.integers(2, 3))
def test_refitted_classes_are_not_beaten_near_by(seed, n_classes):
    rng, _, _, Z, y, resp, w, terms = problem(seed)
    codes = labelled(rng, y, n_classes)
    expert = additive_softmax(Z, codes, resp, w, n_classes, terms)
    top = charged(expert, Z, codes, resp, w)
    for _ in range(20):
        assert charged(perturbed(rng, expert), Z, codes, resp, w) <= top + 1e-3


@quick
@given(seeds)
def test_variances_under_factors_are_the_least(seed):
    rng = np.random.default_rng(seed)
    square = 10 ** rng.uniform(-6, 6, 20)
    mass = 10 ** rng.uniform(-2, 5, 20)
    charge = rng.integers(0, 30, 20).astype(float)
    found = _fisher_variances(square, mass, 1e-12, charge)
    for v, S, N, D in zip(found, square, mass, charge, strict=True):

        def loss(log_v, S=S, N=N, D=D):
            return N * log_v + S / np.exp(log_v) + D * np.log1p(N / np.exp(log_v))

        brute = minimize_scalar(
            loss, bracket=(np.log(v) - 3, np.log(v) + 3), options={"xtol": 1e-12}
        )
        assert loss(np.log(v)) <= brute.fun + 1e-9 * (1 + abs(brute.fun))
    np.testing.assert_array_equal(_fisher_variances(square, mass, 1e9, charge), 1e9)
    np.testing.assert_allclose(
        _fisher_variances(square, mass, 0.0, 0 * charge), square / mass, rtol=1e-9
    )


# What is charged


@every_option
def test_fic_never_falls(options):
    for seed, n_classes in ((1, None), (2, 2), (3, 3)):
        rng, _, _, Z, y, _, w, terms = problem(seed, **options)
        resp = rng.dirichlet(np.ones(3), len(y))
        target = y if n_classes is None else labelled(rng, y, n_classes)
        if n_classes is None:
            expert = additive_gaussian(Z, target, resp, w, terms)
        else:
            expert = additive_softmax(Z, target, resp, w, n_classes, terms)
        steps = []
        last, trace = fab(
            Flat(np.full(3, 1 / 3), expert), Z, target, resp, w, max_iter=15, callback=steps.append
        )
        rises = np.diff(trace)[[not step.shrunk for step in steps[1:]]]
        assert (rises >= -1e-7 * np.abs(trace).max()).all()
        log_joint = last.model.log_joint(Z, target)
        assert trace[-1] == pytest.approx(
            fic(last.resp, log_joint, last.model, w, 1.0, last.model.fisher(Z))
        )


@dataclass(frozen=True, eq=False)
class Flat(Model):
    """A mixture without gates."""

    weights: np.ndarray
    expert: Any
    dims = property(lambda self: self.expert.dims)
    const = property(lambda self: getattr(self.expert, "const", 0.0))

    def fisher(self, X):
        return self.expert.fisher(X) if hasattr(self.expert, "fisher") else None

    def log_joint(self, X, y):
        return np.log(self.weights) + self.expert.log_lik(X, y)

    def update(self, X, y, resp, w):
        return replace(self, weights=w @ resp / w.sum(), expert=self.expert.update(X, y, resp, w))

    def keep(self, mask):
        return Flat(self.weights[mask] / self.weights[mask].sum(), self.expert.keep(mask))


@quick
@given(seeds, st.integers(2, 4))
def test_factors_are_second_derivatives(seed, n_classes):
    rng, _, _, Z, y, resp, w, terms = problem(seed, fisher_factors=True)
    numbers = additive_gaussian(Z, y, resp, w, terms)
    codes = labelled(rng, y, n_classes)
    classes = additive_softmax(Z, codes, resp, w, n_classes, terms)
    h = 1e-3

    def bent(expert, shift):  # second difference of the log-likelihood as the score moves
        def moved(s):
            coef = expert.coef.copy()
            coef[:, 0] += s * shift
            return replace(expert, coef=coef).log_lik(Z, y if shift is h else codes)

        return (moved(1) + moved(-1) - 2 * moved(0)) / h**2

    np.testing.assert_allclose(-bent(numbers, h), numbers.fisher(Z), rtol=1e-3)
    if n_classes == 2:  # the log-odds move by h
        np.testing.assert_allclose(
            -bent(classes, h * np.array([-0.5, 0.5])), classes.fisher(Z), rtol=1e-2, atol=1e-7
        )
    told = [
        np.eye(n_classes) * p - np.outer(p, p)
        for p in np.exp(classes.log_prob(Z)).reshape(-1, n_classes)
    ]
    mean = np.trace(np.array(told), axis1=1, axis2=2) / (2 * (n_classes - 1))
    np.testing.assert_allclose(classes.fisher(Z).ravel(), mean, atol=1e-12)


# Lines


def line_by_hand(X, y, weight, floor):
    """Coefficients and variance of one line: FoBa on plain moments and the mean square, in turn."""
    gram = (X * weight[:, None]).T @ X
    cross = X.T @ (weight * y)
    price = 0.5 * np.log1p(weight.sum())
    coef = np.zeros(X.shape[1])
    coef[0] = weight @ y / weight.sum()
    while True:
        var = max(weight @ (y - X @ coef) ** 2 / weight.sum(), floor)
        found = foba(gram / var, cross / var, price, start=np.flatnonzero(coef)).coef
        if ((found != 0) == (coef != 0)).all():
            return found, max(weight @ (y - X @ found) ** 2 / weight.sum(), floor)
        coef = found


def lines_problem(seed):
    """Numbers that follow two lines, their features and splines of one straight column each."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 5))
    bases = [fit_basis(column, n_knots=2, degree=1) for column in x.T]
    Z = additive_design(bases, x)
    np.testing.assert_allclose(np.abs(Z[:, 1:]), np.abs(x - x.mean(axis=0)) / x.std(axis=0))
    y = np.where(x[:, 0] > 0, 2 * x[:, 1], -x[:, 2] + x[:, 1]) + 0.3 * rng.normal(size=300)
    return rng, bases, Z, y, rng.dirichlet(np.ones(3), 300), rng.uniform(0.5, 2, 300)


@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_lines_are_curves_of_one_column(n_classes, seed):
    rng, bases, Z, y, resp, w = lines_problem(seed)
    terms = Terms.of(bases, count="parameters")
    if n_classes is None:
        found = additive_gaussian(Z, y + 7, resp, w, terms)
        for k in range(3):
            coef, var = line_by_hand(Z, y + 7, w * resp[:, k], found.floor)
            np.testing.assert_allclose(found.coef[k], coef, atol=1e-8)
            assert found.var[k] == pytest.approx(var, rel=1e-9)
            assert found.dims[k] == 2 + (coef[1:] != 0).sum()
        return
    codes = labelled(rng, y, n_classes)
    found = additive_softmax(Z, codes, resp, w, n_classes, terms)
    for k in range(3):
        weight = w * resp[:, k]
        price = 0.5 * np.log1p(weight.sum())
        told = foba_softmax(Z, np.eye(n_classes)[codes], weight, price)
        np.testing.assert_allclose(found.coef[k], told.coef, atol=1e-6)
        assert found.dims[k] == (n_classes - 1) * (1 + len(told.support))


def test_lines_in_the_tree_of_hme():
    """The whole mixture, gates and all: straight splines are the lines of `random_start`."""
    rng = np.random.default_rng(11)
    x = rng.random((400, 3))
    y = np.where(x[:, 0] > 0.4, 2 * x[:, 1], 3 - x[:, 2]) + 0.1 * rng.normal(size=400)
    bins = merge_identical(x, table_thresholds(x, max_bins=20))
    straight = [fit_basis(column, n_knots=2, degree=1) for column in x.T]
    table = MixtureInputs(additive_design(straight, x), cells_of(x, bins))
    w = np.ones(400)
    n_known = np.array([len(cuts) + 1 for cuts in bins.thresholds])
    rows = in_memory((table, y, w))
    linear, resp = random_start(rows, n_known, np.random.default_rng(0), depth=2)
    terms = Terms.of(straight, count="parameters")
    curved, _ = start_from_resp(rows, resp, linear.gates, terms, smoothing=0.5)
    (line, told), (curve, found) = (
        fab(model, rows, resp=resp, max_iter=30) for model in (linear, curved)
    )
    np.testing.assert_allclose(found, told, rtol=1e-8)
    np.testing.assert_array_equal(curve.model.assign(table), line.model.assign(table))
    np.testing.assert_allclose(curve.model.expert.coef, line.model.expert.coef, atol=1e-8)


# Smoothness


def test_smoothness_by_cross_validation():
    rng = np.random.default_rng(5)
    x = rng.random((400, 2))
    bases = [fit_basis(column, n_knots=12) for column in x.T]
    Z = additive_design(bases, x)
    terms = Terms.of(bases)
    w = np.ones(400)
    resp = np.ones((400, 1))
    rough = additive_gaussian(
        Z, np.sin(25 * x[:, 0]) + 0.1 * rng.normal(size=400), resp, w, terms, smoothing="gcv"
    )
    plain = additive_gaussian(
        Z, 3 * x[:, 0] + 0.5 * rng.normal(size=400), resp, w, terms, smoothing="gcv"
    )
    assert rough.smoothing[0] < 1e-2 * plain.smoothing[0]
    y = np.sin(9 * x[:, 0]) + 0.5 * rng.normal(size=400)
    start = additive_gaussian(Z, y, resp, w, terms)
    found = tune_smoothness(start, in_memory((Z, y, w)), in_memory(resp))
    on = np.flatnonzero(start.coef[0])

    def score(smooth):  # leave-one-out with the mean leverage
        hat = Z[:, on] @ np.linalg.solve(
            Z[:, on].T @ Z[:, on] + smooth * np.diag(terms.ridge[on]), Z[:, on].T
        )
        return np.sum((y - hat @ y) ** 2) / (400 - np.trace(hat)) ** 2

    assert all(
        score(found.smoothing[0]) <= score(found.smoothing[0] * 10.0**step) * (1 + 1e-9)
        for step in (-2, -1, 1, 2)
    )


def test_smoothness_of_classes():
    rng = np.random.default_rng(6)
    x = rng.random((600, 2))
    bases = [fit_basis(column, n_knots=12) for column in x.T]
    Z = additive_design(bases, x)
    terms = Terms.of(bases)
    w = np.ones(600)
    resp = np.ones((600, 1))
    rough = (3 * np.sin(25 * x[:, 0]) + rng.logistic(size=600) > 0).astype(int)
    plain = (6 * x[:, 0] - 3 + rng.logistic(size=600) > 0).astype(int)
    found = [
        additive_softmax(Z, codes, resp, w, 2, terms, smoothing="gcv").smoothing[0]
        for codes in (rough, plain)
    ]
    assert found[0] < 1e-2 * found[1]
    start = additive_softmax(Z, rough, resp, w, 2, terms, smoothing=found[0])
    again = tune_smoothness(start, in_memory((Z, rough, w)), in_memory(resp))
    assert 0.1 <= again.smoothing[0] / found[0] <= 10


def curves_and_sums(seed, noise=0.5, n=400):
    """A wave, a bow and noise on fine knots: terms, design, y, and the sums of the rows."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    bases = [fit_basis(column, n_knots=15) for column in x.T]
    Z = additive_design(bases, x)
    y = np.sin(20 * x[:, 0]) + 4 * (x[:, 1] - 0.5) ** 2 + noise * rng.normal(size=n)
    return Terms.of(bases), Z, y, (Z.T @ Z, Z.T @ y)


@examples(10)
@given(seeds, st.sampled_from([1e-3, 1.0, 1e4]))
def test_strengths_are_those_of_a_flat_restricted_likelihood(seed, unit):
    terms, Z, y, (gram, cross) = curves_and_sums(seed)
    square = unit**2 * (y @ y)
    found = reml_strengths(
        gram, unit * cross, terms.ridge, terms.groups, np.ones(3), square, len(y)
    )
    in_units_of_y = reml_strengths(
        gram, cross, terms.ridge, terms.groups, np.ones(3), y @ y, len(y)
    )
    assert np.allclose(found, in_units_of_y, rtol=1e-3)  # whatever the unit
    S = terms.ridge * np.append(found, 0.0)[terms.groups]
    inverse = np.linalg.inv(gram + np.diag(S))
    beta = inverse @ cross
    var = np.sum((y - Z @ beta) ** 2) / (len(y) - np.sum(inverse * gram))
    for d in (0, 1):  # the third may have no bound
        own = (terms.groups == d) & (terms.ridge > 0)
        free = own.sum() - np.sum(S[own] * inverse.diagonal()[own])
        assert np.isclose(free, np.sum(S[own] * beta[own] ** 2) / var, rtol=0.1)
    assert found[0] < found[2]


def test_each_curve_has_its_own_strength():
    terms, Z, y, _ = curves_and_sums(1)
    w = np.ones(len(y))
    rows, resp = in_memory((Z, y, w)), in_memory(np.column_stack([w, 0 * w]))
    start = gaussian_experts(Z, y, resp.single_block, w, terms, 0.5)
    found = tune_curves(start, rows, resp)
    assert found.smoothing.shape == (2, 3)
    assert found.smoothing[0, 0] < 0.3 * found.smoothing[0, 1]
    ridge = found.smoothing[0][terms.groups[1:]] * terms.ridge[1:]
    assert np.allclose(found.curve_ridge[0, 1:], ridge)
    kept = found.keep(np.array([True, False]))
    assert np.array_equal(kept.smoothing, found.smoothing[:1])
    codes = (y > y.mean()).astype(int)
    classes = tune_curves(
        softmax_experts(Z, codes, resp.single_block, w, 2, terms, 0.5),
        in_memory((Z, codes, w)),
        resp,
    )
    assert classes.smoothing[0, 0] < 0.3 * classes.smoothing[0, 1]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_all_curves_at_once_with_more_columns_than_rows(n_classes):
    rng = np.random.default_rng(3)
    x = rng.random((60, 8))
    y = np.sin(12 * x[:, 0]) + 0.1 * rng.normal(size=60)
    y = np.digitize(y, np.linspace(-1, 1, n_classes + 1)[1:-1]) if n_classes else y
    bases = [fit_basis(column, n_knots=20) for column in x.T]
    Z = additive_design(bases, x)
    assert Z.shape[1] > 60
    targets = np.eye(n_classes)[y][:, 1:] if n_classes else y[:, None]
    strengths = class_strengths if n_classes else number_strengths
    found = strengths(Z, targets, np.ones(60), Terms.of(bases), np.ones(8))
    assert found.shape == (8,) and np.isfinite(found).all() and (found > 0).all()
    assert found[0] < np.median(found[1:])


def test_bending_is_a_prior():
    """The curve is the mode of exp(log-likelihood − const), and `const` is what FIC is charged."""
    rng, _, _, Z, y, resp, w, terms = problem(7)
    expert = additive_gaussian(Z, y, resp[:, :1], w, replace(terms, penalty=0.0), smoothing=3.0)
    on = np.flatnonzero(expert.coef[0])
    weight = w * resp[:, 0]

    def loss(coef):
        square = weight @ (y - Z[:, on] @ coef) ** 2 + 3.0 * terms.ridge[on] @ coef**2
        return 0.5 * square / expert.var[0]

    best = minimize(loss, np.zeros(len(on)), method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(expert.coef[0, on], best, atol=1e-4)
    square = weight @ (y - Z @ expert.coef[0]) ** 2
    assert expert.const[0] == pytest.approx(1.5 * terms.ridge @ expert.coef[0] ** 2 / expert.var[0])
    assert expert.var[0] == pytest.approx(
        (square + 2 * expert.var[0] * expert.const[0]) / weight.sum(), rel=1e-6
    )


@quick
@given(seeds, st.integers(2, 3))
def test_covariance_is_the_inverse_curvature(seed, n_classes):
    """By second differences of what the M-step maximises, along the coefficients on the support."""
    rng, _, _, Z, y, resp, w, terms = problem(seed)
    numbers = additive_gaussian(Z, y, resp, w, terms, smoothing=2.0)
    found = coefficient_covariance(numbers, in_memory((Z, y, w)), in_memory(resp))
    codes = labelled(rng, y, n_classes)
    classes = additive_softmax(Z, codes, resp, w, n_classes, terms, smoothing=2.0)
    by_class = coefficient_covariance(classes, in_memory((Z, codes, w)), in_memory(resp))
    assert found.shape == (resp.shape[1], Z.shape[1], Z.shape[1]) and by_class.shape[1] == n_classes
    for k in range(resp.shape[1]):
        on = np.r_[0, 1 + np.flatnonzero(numbers.coef[k, 1:])]
        assert not np.delete(found[k], on, axis=0).any()
        step = rng.normal(size=len(on)) / len(on)

        def loss(coef, k=k):
            one = replace(
                numbers,
                coef=np.where(np.arange(len(numbers.coef))[:, None] == k, coef, numbers.coef),
            )
            return one.const[k] - w @ (resp[:, k] * one.log_lik(Z, y)[:, k])

        def moved(t, k=k, on=on, step=step):
            coef = numbers.coef[k].copy()
            coef[on] += t * step
            return coef

        bent = loss(moved(1)) + loss(moved(-1)) - 2 * loss(moved(0))
        assert step @ np.linalg.solve(found[k][np.ix_(on, on)], step) == pytest.approx(
            bent, rel=1e-5
        )
        if n_classes == 2:  # log-odds, twice the score
            odds = Z @ (classes.coef[k, :, 1] - classes.coef[k, :, 0])
            held = np.r_[0, 1 + np.flatnonzero(classes.coef[k, 1:, 1])]
            weight = w * resp[:, k] / (2 + np.exp(odds) + np.exp(-odds))
            curvature = (Z[:, held] * weight[:, None]).T @ Z[:, held] + np.diag(
                2.0 * terms.ridge[held]
            )
            curvature += np.diag(base_ridge((w * resp[:, k]) @ Z[:, held] ** 2))
            np.testing.assert_allclose(
                4 * by_class[k, 1][np.ix_(held, held)] @ curvature, np.eye(len(held)), atol=1e-6
            )


# Units, weights, edges


@quick
@given(seeds, st.integers(-6, 6), st.sampled_from([0.0, 1.0, 1e6]))
def test_scale_and_offset_of_y(seed, power, offset):
    _, _, _, Z, y, resp, w, terms = problem(seed)
    scale = 2.0 ** (3 * power)
    plain, moved = (
        additive_gaussian(Z, target, resp, w, terms) for target in (y, scale * (y + offset))
    )
    value = charged(plain, Z, y, resp, w)
    shift = (w @ resp).sum() * np.log(scale)
    assert charged(moved, Z, scale * (y + offset), resp, w) + shift == pytest.approx(
        value, abs=1e-4 * (1 + abs(value))
    )


@quick
@given(seeds)
def test_a_weight_is_a_repetition(seed):
    rng, bases, x, Z, y, resp, w, terms = problem(seed)
    again = np.repeat(np.arange(len(y)), w.astype(int))
    codes = labelled(rng, y, 3)
    for make, target in (
        (additive_gaussian, y),
        (lambda *a: additive_softmax(*a[:4], 3, a[4]), codes),
    ):
        one = make(Z, target, resp, w, terms)
        two = make(Z[again], target[again], resp[again], np.ones(len(again)), terms)
        value = charged(one, Z, target, resp, w)
        assert charged(two, Z, target, resp, w) == pytest.approx(
            value, abs=1e-3 + 1e-6 * abs(value)
        )


def test_many_rows_are_as_few():
    rng, _, _, Z, y, resp, w, terms = problem(8)
    times = 5000 // len(y) + 1
    rows = np.tile(np.arange(len(y)), times)
    many = additive_gaussian(Z[rows], y[rows], resp[rows], w[rows] / times, terms)
    np.testing.assert_allclose(
        many.coef, additive_gaussian(Z, y, resp, w, terms).coef, rtol=1e-6, atol=1e-8
    )


def test_an_expert_without_rows_stays_as_it_is():
    rng, _, _, Z, y, _, w, terms = problem(9)
    resp = rng.dirichlet(np.ones(2), len(y))
    dead = np.column_stack([np.ones(len(y)), np.zeros(len(y))])
    numbers = additive_gaussian(Z, y, resp, w, terms)
    codes = labelled(rng, y, 2)
    after = numbers.update(Z, y, dead, w)
    np.testing.assert_allclose(after.coef[1], numbers.coef[1])
    assert after.var[1] == numbers.var[1]
    classes = additive_softmax(Z, codes, resp, w, 2, terms)
    np.testing.assert_array_equal(classes.update(Z, codes, dead, w).coef[1], classes.coef[1])
    for expert in (numbers, classes):
        kept = expert.keep(np.array([False, True]))
        np.testing.assert_array_equal(kept.coef, expert.coef[1:])
        assert len(kept.dims) == len(kept.const) == len(kept.smoothing) == 1


def test_constant_targets_and_separable_classes_stay_finite():
    rng, _, x, Z, y, resp, w, terms = problem(10)
    flat = additive_gaussian(Z, np.full(len(y), 5.0), resp, w, terms)
    assert not flat.coef[:, 1:].any() and np.allclose(flat.coef[:, 0], 5)
    exact = additive_gaussian(Z, x[:, -1], resp, w, terms)
    assert np.isfinite(exact.coef).all() and (exact.var >= exact.floor).all() and (exact.floor > 0)
    for codes in ((x[:, 0] > 0.5).astype(int), np.ones(len(y), int)):
        classes = additive_softmax(Z, codes, resp, w, 3, terms)
        assert np.isfinite(classes.coef).all() and np.isfinite(classes.log_lik(Z, codes)).all()
