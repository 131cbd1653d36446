"""The engine: it climbs, shrinking costs next to nothing, and restarts do not depend on the number of threads."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from shared.effort import case
from sklearn.exceptions import ConvergenceWarning

from fabinterp.fab.constant_experts import categorical, constant_gaussian
from fabinterp.fab.criterion import MIN_WEIGHT_FRACTION, Model, block_mass, fic
from fabinterp.fab.em import e_step, responsibilities, row_price, shrink
from fabinterp.fab.engine import best_em_restart, fab, fab_steps, warn_unless_settled
from fabinterp.rows.bins import (
    bin_codes,
    bit_log_likelihood,
    bit_masses,
    bit_probs,
    cell_masses,
    incidence,
    merge_identical,
)
from fabinterp.rows.blocks import InMemory, in_memory

seeds = st.integers(0, 2**32 - 1)
CUTS = ([], [3], [7, 7, 40], [1, 2, 20, 33])  # where blocks end; one of them may be empty


@dataclass(frozen=True, eq=False)
class RegionMixture(Model):
    """The mixture of Hara and Hayashi from the package's own parts, (Hara 9).

    Here X is the incidence matrix.
    """

    bins: Any
    weights: np.ndarray
    eta: np.ndarray | None
    expert: Any

    @property
    def dims(self):
        return 1 + self.bins.n_bits + self.expert.dims

    def log_joint(self, X, y):
        return (
            np.log(self.weights)
            + bit_log_likelihood(X, self.bins, self.eta)
            + self.expert.log_lik(y)
        )

    def update(self, X, y, resp, w):
        q = resp * w[:, None]
        eta = bit_probs(*bit_masses(self.bins, cell_masses(X, q)), MIN_WEIGHT_FRACTION)
        weights = q.sum(axis=0) / q.sum()
        return replace(self, weights=weights, eta=eta, expert=self.expert.update(None, y, resp, w))

    def keep(self, mask):
        weights = self.weights[mask] / self.weights[mask].sum()
        return replace(self, weights=weights, eta=self.eta[mask], expert=self.expert.keep(mask))


def problem(seed, task, weighted):
    """Data, first model and first responsibilities, with few questions to many, with and without gaps."""
    rng = np.random.default_rng(seed)
    n = rng.integers(10, 120)
    d = rng.integers(1, 5)
    k = rng.integers(2, 9)
    X = rng.random((n, d)).round(rng.integers(1, 4))
    X[rng.random(X.shape) < rng.choice([0, 0.1])] = np.nan
    side = np.nan_to_num(X[:, 0]) > 0.5
    bins = merge_identical(X, [np.unique(rng.random(rng.integers(1, 40))) for _ in range(d)])
    w = rng.integers(0, 4, n) + rng.random(n) if weighted else np.ones(n)
    resp = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), n)
    if task == "regression":
        y = (2.0 * side + rng.normal(size=n)) * 10.0 ** rng.integers(-6, 7)
        expert = constant_gaussian(y, resp, w)
    else:
        y = (side + (rng.random(n) < 0.2)).astype(int)
        expert = categorical(y, resp, w, 3, MIN_WEIGHT_FRACTION)
    S = incidence(bin_codes(X, bins), bins)
    return S, y, RegionMixture(bins, np.full(k, 1 / k), None, expert).update(S, y, resp, w), resp, w


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "penalty, n_problems",
    [
        case(1.0, 200, quick=False),
        (1.0, 50),
        (0.0, 50),
        case(0.5, 50, quick=False),
        case(2.0, 50, quick=False),
    ],
)
def test_fic_never_falls(task, weighted, penalty, n_problems):
    n_plain = 0
    n_rising = 0
    n_dropped = 0
    for seed in range(n_problems):
        S, y, model, resp, w = problem(seed, task, weighted)
        assert weighted == (np.ptp(w) > 0)
        found = []
        max_e_steps = None if seed % 2 else 1
        fab(
            model,
            S,
            y,
            resp,
            w,
            penalty=penalty,
            max_e_steps=max_e_steps,
            max_iter=40,
            callback=found.append,
        )
        for before, after in zip(found, found[1:], strict=False):
            gain = after.fic - before.fic
            # a removal may cost as much as the mass removed
            allowed = 1e-10 * abs(before.fic) + (
                2 * MIN_WEIGHT_FRACTION * w.sum() if after.shrunk else 0
            )
            assert gain >= -allowed, (seed, gain)
            n_dropped += after.shrunk
            n_plain += not after.shrunk
            n_rising += not after.shrunk and gain > 1e-6 * abs(before.fic)
    assert n_plain > 2 * n_problems and n_rising > n_problems / 2, (n_plain, n_rising)
    assert penalty == 0 or n_dropped > n_problems / 10


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_careless_m_step_is_caught(task):
    """What the test above would see if probabilities were smoothed, not cut off at the floor."""

    class Smoothed(RegionMixture):
        def update(self, X, y, resp, w):
            better = super().update(X, y, resp, w)
            return replace(better, eta=0.9 * better.eta + 0.05)

    falls = 0
    for seed in range(50):
        S, y, model, resp, w = problem(seed, task, weighted=False)
        model = Smoothed(model.bins, model.weights, model.eta, model.expert)
        _, trace = fab(model, S, y, resp, w, max_iter=40, tol=-np.inf)
        falls += (np.diff(trace) < -1e-10 * np.abs(trace[:-1])).any()
    assert falls > 0


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_step_tells_the_fic_of_its_own_model_and_resp(task):
    for seed in range(20):
        S, y, model, resp, w = problem(seed, task, weighted=True)
        for _, step in zip(range(8), fab_steps(model, S, y, resp, w, penalty=0.7), strict=False):
            by_definition = fic(step.resp, step.model.log_joint(S, y), step.model, w, penalty=0.7)
            assert step.fic == pytest.approx(by_definition, rel=1e-11)
            np.testing.assert_allclose(step.resp.sum(axis=1), 1, rtol=1e-12)


def test_earlier_steps_are_not_overwritten():
    S, y, model, resp, w = problem(3, "regression", weighted=False)
    given_resp = resp.copy()
    steps = []
    for _, step in zip(range(6), fab_steps(model, S, y, resp, w), strict=False):
        steps.append((step, step.resp.copy()))
    assert all(np.array_equal(step.resp, then) for step, then in steps)
    assert np.array_equal(resp, given_resp)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_projection_keeps_the_climb(task):
    """Between the last responsibilities and the next, each row where it likes: with one E-step FIC never falls."""
    calls = []
    n_checked = 0
    for seed in range(60):
        S, y, model, resp, w = problem(seed, task, weighted=bool(seed % 2))
        rng = np.random.default_rng(seed)

        def between(q, before, rng=rng):
            calls.append(q.shape == before.shape)
            rho = rng.random((len(q), 1))
            return rho * q + (1 - rho) * before

        def project(model, rows, resp, before, between=between):
            return resp.map(between, before)

        steps = [
            step
            for _, step in zip(
                range(12), fab_steps(model, S, y, resp, w, max_e_steps=1, project=project)
            )
        ]
        for before, after in zip(steps, steps[1:]):
            by_definition = fic(after.resp, after.model.log_joint(S, y), after.model, w)
            assert after.fic == pytest.approx(by_definition, rel=1e-11)
            assert after.shrunk or after.fic >= before.fic - 1e-10 * abs(before.fic), seed
            n_checked += not after.shrunk
    assert len(calls) == 60 * 12 and all(calls) and n_checked > 400


def test_a_projection_needs_something_to_project_onto():
    S, y, model, _, w = problem(5, "regression", weighted=True)
    given_to = []

    def project(model, rows, resp, before):
        given_to.append(before.single_block)
        return resp

    plain = fab_steps(model, S, y, None, w)
    hooked = fab_steps(model, S, y, None, w, project=project)
    first = next(plain)
    _ = next(hooked)
    assert not given_to  # drawn parameters have no last responsibilities
    assert next(hooked).fic == pytest.approx(next(plain).fic, rel=1e-12)
    assert np.array_equal(given_to[0], first.resp)


def test_without_a_price_it_is_em():
    for seed in range(10):
        S, y, model, resp, w = problem(seed, "classification", weighted=True)
        step, trace = fab(model, S, y, resp, w, penalty=0.0, max_iter=30, min_weight_fraction=0.0)
        likelihood = w @ logsumexp(step.model.log_joint(S, y), axis=1)
        assert step.fic == pytest.approx(likelihood, rel=1e-10)


def test_parameters_alone_start_with_an_e_step_of_em():
    S, y, model, _, w = problem(5, "regression", weighted=True)
    em, _ = responsibilities(model.log_joint(S, y), 0.0)
    one = next(fab_steps(model, S, y, None, w))
    two = next(fab_steps(model, S, y, em, w))
    assert one.fic == two.fic and np.array_equal(one.resp, two.resp)


@dataclass(frozen=True)
class Priced:
    dims: np.ndarray
    blocks: np.ndarray | None = None
    const: Any = 0.0

    def keep(self, mask):
        return Priced(self.dims[mask])


@given(seeds, st.sampled_from([1.0, 30.0, 1e3, 1e6]))
def test_responsibilities_are_a_softmax(seed, spread):
    rng = np.random.default_rng(seed)
    log_f = rng.normal(0, spread, (rng.integers(1, 50), rng.integers(1, 9)))
    cost = rng.exponential(size=log_f.shape[1])
    for table in (log_f, np.asfortranarray(log_f)):
        resp, log_norm = responsibilities(table, cost)
        np.testing.assert_allclose(resp, softmax(log_f - cost, axis=1), rtol=1e-10, atol=1e-20)
        np.testing.assert_allclose(
            log_norm, logsumexp(log_f - cost, axis=1), rtol=1e-12, atol=1e-12
        )


@given(seeds, st.booleans(), st.booleans())
def test_the_e_step_climbs_with_blocks_and_fisher_factors(seed, with_blocks, with_fisher):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    k = rng.integers(1, 6)
    n_blocks = k + 2 if with_blocks else k
    blocks = (rng.random((n_blocks, k)) < 0.6).astype(float) if with_blocks else None
    fisher = rng.random((n, n_blocks)) if with_fisher else None
    model = Priced(rng.uniform(0, 20, n_blocks), blocks, rng.random(n_blocks))
    log_f = rng.normal(0, 4, (n, k))
    w = rng.uniform(0.1, 2, n)
    penalty = rng.uniform(0, 2)
    q = rng.dirichlet(np.ones(k), n)
    mass = block_mass(q, w, blocks, fisher)
    inside = q if blocks is None else q @ blocks.T
    written_out = (w[:, None] * (1 if fisher is None else fisher) * inside).sum(axis=0)
    np.testing.assert_allclose(mass, written_out, rtol=1e-10)
    value = fic(q, log_f, model, w, penalty, fisher)
    for _ in range(5):
        q, mass, new = e_step(log_f, mass, model, w, penalty, fisher, max_e_steps=1)
        assert new == pytest.approx(fic(q, log_f, model, w, penalty, fisher), rel=1e-9, abs=1e-9)
        assert new >= value - 1e-9 * (1 + abs(value))
        value = new


@given(seeds, st.booleans(), st.sampled_from([1.0, 30.0, 3000.0]))
def test_rounds_take_exponentials_anew_only_where_they_must(seed, with_blocks, size):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    k = rng.integers(1, 6)
    blocks = (rng.random((k + 2, k)) < 0.6).astype(float) if with_blocks else None
    model = Priced(rng.uniform(0, size, k + 2 if with_blocks else k), blocks)
    log_f = rng.normal(0, rng.choice([1.0, 100.0]), (n, k))
    w = rng.integers(0, 3, n) + 0.1
    start = block_mass(rng.dirichlet(np.ones(k), n), w, blocks)
    mass = start
    for _ in range(4):
        q = softmax(log_f - row_price(mass, model), axis=1)
        mass = block_mass(q, w, blocks)
    resp, got, value = e_step(log_f, start, model, w, max_e_steps=4, tol=0.0)
    np.testing.assert_allclose(resp, q, atol=1e-7)
    np.testing.assert_allclose(got, mass, atol=1e-5)
    assert value == pytest.approx(fic(resp, log_f, model, w), rel=1e-9, abs=1e-9)


@given(seeds)
def test_removing_a_component_costs_at_most_about_its_mass(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 30)
    k = rng.integers(2, 6)
    log_f = rng.normal(0, rng.uniform(0.5, 4), (n, k))
    w = rng.uniform(0.1, 2, n)
    model = Priced(rng.uniform(0.5, 10, k))
    q, _, before = e_step(log_f, w @ rng.dirichlet(np.ones(k), n), model, w, tol=1e-13)
    share = w @ q / w.sum()
    smaller, rest = shrink(model, q, w, min_weight_fraction=share.min() + 1e-12)
    gone = share < share.min() + 1e-12
    if gone.all() or rest.shape[1] == k:
        return
    lost = q[:, gone].sum(axis=1)
    if lost.max() > 0.999:
        return
    after = fic(rest, log_f[:, ~gone], smaller, w)
    assert after >= before + w @ np.log1p(-lost) - 1e-6 * (1 + abs(before))


def test_shrink_keeps_one_component_and_shares_out_orphans():
    model = Priced(np.ones(3))
    w = np.ones(4)
    resp = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    smaller, rest = shrink(model, resp, w, min_weight_fraction=0.9)
    assert rest.shape == (4, 1) and (rest == 1).all() and len(smaller.dims) == 1
    _, rest = shrink(
        model,
        np.array([[0.6, 0.4, 0], [0.5, 0.5, 0], [0.2, 0.8, 0], [1, 0, 0]]),
        w,
        min_weight_fraction=0.0,
    )
    assert rest.shape == (4, 2)  # an empty component goes even so
    _, rest = shrink(model, resp, np.array([1, 1, 1, 0.001]), min_weight_fraction=0.01)
    np.testing.assert_allclose(rest[3], [2 / 3, 1 / 3])


@given(seeds, st.integers(1, 4))
def test_a_few_at_once_the_smallest_first(seed, at_once):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 20)
    k = rng.integers(2, 7)
    resp = rng.dirichlet(rng.uniform(0.1, 3, k), n)
    w = rng.uniform(0.1, 2, n)
    model = Priced(np.arange(float(k)))
    share = w @ resp / w.sum()
    least = rng.uniform(0, 0.4)
    light = np.flatnonzero((share < least) & (share < share.max()))
    gone = light[np.argsort(share[light])][:at_once]
    smaller, rest = shrink(model, resp, w, least, at_once)
    kept = np.setdiff1d(np.arange(k), gone)
    assert np.array_equal(smaller.dims, kept)
    np.testing.assert_allclose(rest.sum(axis=1), 1)
    lost = resp[:, kept].sum(axis=1, keepdims=True) == 0
    np.testing.assert_allclose(
        rest * resp[:, kept].sum(axis=1, keepdims=True), np.where(lost, 0, resp[:, kept])
    )
    if len(light) <= at_once:
        assert np.array_equal(rest, shrink(model, resp, w, least)[1])
    for _ in range(k):  # again and again: it ends where all are heavy enough, or one is left
        smaller, rest = shrink(smaller, rest, w, least, at_once)
    share = w @ rest / w.sum()
    assert (share >= least - 1e-12).all() or len(share) == 1


SETTINGS = {
    "penalty": 1.0,
    "max_iter": 50,
    "tol": 1e-5,
    "min_weight_fraction": MIN_WEIGHT_FRACTION,
    "n_init": 5,
    "n_jobs": None,
    "verbose": 0,
    "random_state": None,
}


def best_of_regions(X, y, score=None, **settings):
    """The best restart of six regions at these settings."""
    bins = merge_identical(X, [np.linspace(0, 1, 20)] * X.shape[1])

    def start(rows, rng):
        S, y, w = rows.single_block
        resp = rng.dirichlet(np.ones(6), len(y))
        model = RegionMixture(bins, np.full(6, 1 / 6), None, constant_gaussian(y, resp, w))
        return model.update(S, y, resp, w), in_memory(resp)

    rows = in_memory((incidence(bin_codes(X, bins), bins), y, np.ones(len(y))))
    return best_em_restart(start, rows, score=score, **SETTINGS | settings)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    return X, 3.0 * (X[:, 0] > 0.5) + rng.normal(size=150)


def test_restarts_do_not_depend_on_threads(table):
    fits = [best_of_regions(*table, random_state=7, n_jobs=n) for n in (1, 2, 2)]
    for fit in fits[1:]:
        assert np.array_equal(fit.trace, fits[0].trace) and np.array_equal(
            fit.step.model.eta, fits[0].step.model.eta
        )
    assert not np.array_equal(best_of_regions(*table, random_state=8).trace, fits[0].trace)


def test_the_best_restart_wins(table, capsys):
    best = best_of_regions(*table, random_state=1, n_init=4, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[0].startswith("restart 1/4: ")
    assert max(float(line.split("FIC ")[1].split(",")[0]) for line in lines) == float(
        f"{best.score:.6g}"
    )
    assert best.score == best.step.fic == best.trace[-1]
    assert best.step.n_components == len(best.step.model.weights)


def test_a_score_may_choose_otherwise(table):
    def few(rows, step):
        return -step.n_components

    best, smallest = (
        best_of_regions(*table, score, random_state=1, n_init=8) for score in (None, few)
    )
    assert smallest.score == -smallest.step.n_components
    assert smallest.step.n_components <= best.step.n_components
    assert smallest.step.fic <= best.step.fic


def test_an_unfinished_fit_says_so(table):
    best = best_of_regions(*table, random_state=0, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        warn_unless_settled(best.trace, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unless_settled(best.trace, 3)


@dataclass(frozen=True, eq=False)
class Lines(Model):
    """K lines through the origin, the log joint written out; blocks and Fisher factors, to have everything priced."""

    slope: np.ndarray  # (K,)
    factors: bool
    const = 0.5

    @property
    def blocks(self):
        return np.vstack([np.ones(len(self.slope)), np.eye(len(self.slope))])

    @property
    def dims(self):
        return np.full(len(self.slope) + 1, 2.0)

    def fisher(self, X):
        return 1 / (1 + np.outer(X**2, np.arange(len(self.slope) + 1))) if self.factors else None

    def log_joint(self, X, y):
        return -0.5 * (y[:, None] - np.outer(X, self.slope)) ** 2

    def keep(self, mask):
        return Lines(self.slope[mask], self.factors)

    def maximise(self, rows, resp):
        cross, square = rows.sum(line_sums, resp)
        return Lines(
            np.divide(cross, square, out=self.slope.copy(), where=square > 0), self.factors
        )


def line_sums(part, resp):
    X, y, w = part
    return (w * X * y) @ resp, (w * X * X) @ resp


def halfway(resp, before):
    return 0.5 * resp + 0.5 * before


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_e_steps": 1},
        {"min_weight_fraction": 0.15, "at_once": 1, "penalty": 5.0},
        {"max_e_steps": 1, "project": lambda model, rows, resp, before: resp.map(halfway, before)},
    ],
)
def test_blocks_give_what_one_block_gives(cuts, factors, options):
    n_shrunk = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=45)
        w = rng.integers(0, 3, 45) + 0.5
        resp = rng.dirichlet(np.full(5, 0.5), 45)
        y = X * rng.choice([-1.0, 2.0], 45) + 0.3 * rng.normal(size=45)
        split = [np.split(column, cuts) for column in (X, y, w, resp)]
        rows = InMemory(zip(*split[:3], strict=True))
        held = InMemory(split[3])
        for first, blocked in ((resp, held), (None, None)):
            model = Lines(rng.normal(size=5), factors)
            whole, trace = fab(model, X, y, first, w, max_iter=15, tol=-np.inf, **options)
            step, same = fab(model, rows, resp=blocked, max_iter=15, tol=-np.inf, **options)
            np.testing.assert_allclose(same, trace, rtol=1e-10)
            assert step.n_components == whole.n_components and step.shrunk == whole.shrunk
            np.testing.assert_allclose(step.model.slope, whole.model.slope, rtol=1e-8)
            np.testing.assert_allclose(np.concatenate(step.resp.gather()), whole.resp, atol=1e-8)
            n_shrunk += step.n_components < 5
    assert "at_once" not in options or n_shrunk > 0


def test_a_model_without_sums_needs_one_block():
    S, y, model, resp, w = problem(3, "regression", weighted=False)
    rows = InMemory([(S[:5], y[:5], w[:5]), (S[5:], y[5:], w[5:])])
    steps = fab_steps(model, rows, resp=InMemory([resp[:5], resp[5:]]))
    next(steps)
    with pytest.raises(ValueError, match="in one block for this model, got 2"):
        next(steps)


def test_the_tolerance_is_per_unit_of_weight():
    """The run ends at the first step that gains at most `tol` nats per unit of weight."""
    S, y, model, resp, w = problem(0, "regression", weighted=True)
    _, whole = fab(model, S, y, resp, w, max_iter=40, tol=-np.inf)
    gains = np.diff(whole) / w.sum()
    tol = float(np.median(gains[gains > 0]))
    _, trace = fab(model, S, y, resp, w, max_iter=40, tol=tol)
    np.testing.assert_array_equal(trace, whole[: len(trace)])
    assert 1 < len(trace) < len(whole)
    steps = np.diff(trace) > tol * w.sum()
    assert steps[:-1].all() and not steps[-1]
