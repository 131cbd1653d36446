"""Splines: the basis against SciPy and by its own laws, the penalty, degrees of freedom, GCV, awkward features."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline
from scipy.linalg import null_space
from shared.effort import examples

from fabinterp.fab.spline import effective_df, gcv, raw_splines, second_differences
from fabinterp.fab.spline_basis import fit_basis

seeds = st.integers(0, 2**32 - 1)
KINDS = ("normal", "ties", "two", "constant", "huge", "tiny", "far", "heavy", "few", "empty")
SETTINGS = st.fixed_dictionaries(
    {
        "n_knots": st.integers(2, 9),
        "degree": st.integers(1, 5),
        "knots": st.sampled_from(["uniform", "quantile"]),
    }
)


def feature(rng, kind, n=None, gaps=None):
    """A feature of some kind, with or without gaps, and weights that may be zero."""
    n = int(rng.integers(1, 60)) if n is None else n
    x = rng.normal(size=n)
    x = {
        "normal": x,
        "ties": x.round(1),
        "two": np.where(x > 0, 7.0, -3.0),
        "constant": np.full(n, rng.choice([0.0, -4.2, 1e12])),
        "huge": 1e12 * x,
        "tiny": 1e-12 * x,
        "far": 1e9 + x,
        "heavy": np.exp(2 * x),
        "few": rng.integers(0, 4, n).astype(float),
        "empty": np.full(n, np.nan),
    }[kind]
    if rng.random() < 0.5 if gaps is None else gaps:
        x = np.where(rng.random(n) < 0.2, np.nan, x)
    w = rng.integers(0, 3, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    w[rng.integers(n)] = 1
    return x, w


def piecewise(basis, beta, x):
    """What `pieces` say of x, read as a stranger would read them, a row at a time."""
    coef, missing = basis.polynomials(beta)
    answers = []
    for value in x:
        if np.isnan(value):
            answers.append(missing)
            continue
        inside = np.clip(value, basis.breaks[0], basis.breaks[-1])
        k = max(int(np.sum(basis.breaks[:-1] <= inside)) - 1, 0)
        u = (inside - basis.breaks[k]) / (basis.breaks[k + 1] - basis.breaks[k])
        answers.append(sum(c * u**power for power, c in enumerate(coef[k])))
    return np.array(answers)


def places(basis, x, rng):
    """Training values, breaks, values inside and far outside, and a missing one."""
    left, right = basis.breaks[[0, -1]]
    inside = rng.uniform(left, right, 20)
    return np.concatenate(
        [x, basis.breaks, inside, [left - 3 * (right - left), right + 5 * (right - left), np.nan]]
    )


def raw(basis, cyclic=False):
    """Powers of the raw splines of a basis and its difference matrix."""
    powers, widths = raw_splines(basis.breaks, basis.degree, cyclic)
    return powers, second_differences(widths, basis.degree, cyclic)[0]


# The columns


@examples(300)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_columns_have_mean_zero_and_are_orthonormal_in_the_weights(seed, kind, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind)
    basis = fit_basis(x, w, **options)
    columns = basis.design(x)
    assert columns.shape == (len(x), basis.n_columns) and columns.dtype == float
    assert np.abs(w @ columns / w.sum()).max(initial=0) < 1e-6
    gram = columns.T @ (w[:, None] * columns) / w.sum()
    assert np.abs(gram - np.eye(basis.n_columns)).max(initial=0) < 1e-6


@examples(300)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_columns_are_as_many_as_the_rows_can_tell_apart(seed, kind, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind)
    basis = fit_basis(x, w, **options)
    seen = x[w > 0]
    values = np.unique(seen[~np.isnan(seen)])
    gaps = np.isnan(seen).any() and not np.isnan(seen).all()
    assert basis.has_missing_column == gaps
    smooth = basis.n_columns - gaps
    assert (
        smooth <= max(len(values) - 1, 0) and smooth <= options["n_knots"] + options["degree"] - 2
    )
    assert smooth >= min(max(len(values) - 1, 0), 1)
    if kind == "two":
        assert smooth == max(len(values) - 1, 0)
    if kind in ("constant", "empty"):
        assert smooth == 0
    assert np.all(np.diff(basis.breaks) > 0) and len(basis.breaks) <= options["n_knots"]
    if len(values) > 1:
        assert basis.breaks[0] == values[0] and basis.breaks[-1] == values[-1]


@pytest.mark.parametrize("kind", ["normal", "huge", "tiny", "far"])
def test_a_rich_feature_has_all_columns(kind):
    x, _ = feature(np.random.default_rng(0), kind, 500, gaps=False)
    for knots in ("uniform", "quantile"):
        assert fit_basis(x, knots=knots).n_columns == 7  # 5 intervals + degree 3, less the constant
    x[3] = np.nan
    assert fit_basis(x).n_columns == 8


@examples(200)
@given(seeds, st.integers(1, 12), st.integers(1, 5), st.booleans())
def test_raw_splines_sum_to_one_and_are_those_of_scipy(seed, m, degree, even):
    rng = np.random.default_rng(seed)
    widths = np.ones(m) if even else rng.uniform(0.01, 1, m)
    breaks = rng.normal() + np.append(0, np.cumsum(widths))
    powers, padded = raw_splines(breaks, degree, False)
    assert np.allclose(powers.sum(axis=2), np.eye(degree + 1)[0], atol=1e-9)  # 1 + 0u + 0u² + …
    knots = (
        breaks[0]
        + (np.cumsum(np.append(0, padded)) - padded[:degree].sum()) * np.diff(breaks).max()
    )
    u = rng.random(7)
    x = (breaks[:-1, None] + u * np.diff(breaks)[:, None]).ravel()
    ours = np.einsum("kpj,ip->kij", powers, u[:, None] ** np.arange(degree + 1)).reshape(len(x), -1)
    assert ours.min() > -1e-12
    assert np.allclose(
        ours, BSpline(knots, np.eye(m + degree), degree, extrapolate=True)(x), atol=1e-9
    )
    if degree > 1:  # SciPy is strict about its ends
        assert np.allclose(ours, BSpline.design_matrix(x, knots, degree).toarray(), atol=1e-9)


@examples(200)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_columns_span_constant_and_splines(seed, kind, options):
    """On the training rows: every raw spline is a combination of the constant and the columns."""
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind, gaps=False)
    basis = fit_basis(x, w, **options)
    x = x[(w > 0) & ~np.isnan(x)]
    columns = np.column_stack([np.ones(len(x)), basis.design(x)])
    if len(x):
        u = (x - basis.breaks[0]) / (
            basis.breaks[-1] - basis.breaks[0]
        )  # powers of x are splines too
        target = u[:, None] ** np.arange(options["degree"] + 1)
        residual = target - columns @ np.linalg.lstsq(columns, target)[0]
        assert np.abs(residual).max() < 1e-5


# What is said


@examples(150)
@given(seeds, st.sampled_from(KINDS), SETTINGS, st.sampled_from([None, 3]))
def test_pieces_say_what_the_design_does(seed, kind, options, n_outputs):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind)
    basis = fit_basis(x, w, **options)
    beta = rng.normal(size=basis.n_columns if n_outputs is None else (basis.n_columns, n_outputs))
    at = places(basis, x, rng)
    said = piecewise(basis, beta, at)
    done = basis.design(at) @ beta
    scale = (np.abs(basis.powers) @ np.abs(beta)).max(initial=0) + np.abs(basis.missing @ beta).max(
        initial=0
    )
    assert said.shape == done.shape and np.abs(said - done).max() <= 1e-12 * scale


@examples(150)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_outside_is_as_at_the_end_and_missing_is_the_mean(seed, kind, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind)
    basis = fit_basis(x, w, **options)
    left, right = basis.breaks[[0, -1]]
    ends = basis.design(np.array([left, right]))
    wide = right - left
    outside = basis.design(np.array([left - wide, -np.inf, right + wide, np.inf]))
    assert np.array_equal(outside, ends[[0, 0, 1, 1]])
    missing = basis.design(np.array([np.nan]))[0]
    assert np.array_equal(missing, basis.missing) and np.all(
        missing[: basis.n_columns - basis.has_missing_column] == 0
    )
    assert basis.design(np.zeros(0)).shape == (0, basis.n_columns)


@examples(100)
@given(seeds, SETTINGS)
def test_the_curve_has_no_seams(seed, options):
    """Value and degree − 1 derivatives meet at the breaks."""
    rng = np.random.default_rng(seed)
    basis = fit_basis(rng.normal(size=50), **options)
    coef = basis.powers
    for order in range(options["degree"]):
        width = np.diff(basis.breaks)[:, None] ** order
        ends = coef.sum(axis=1) / width
        starts = coef[:, 0] / width
        scale = np.abs(coef).max() / width.min()
        assert np.abs(ends[:-1] - starts[1:]).max(initial=0) <= 1e-10 * scale
        coef = coef[:, 1:] * np.arange(1, coef.shape[1])[:, None]  # differentiate in u


def test_a_missing_column_separates_the_missing():
    x = np.array([0.0, 1, 2, 3, np.nan, np.nan, 4, 5])
    basis = fit_basis(x)
    columns = basis.design(x)
    values = columns[:, -1]
    assert np.ptp(values[np.isnan(x)]) == 0 and np.ptp(values[~np.isnan(x)]) < 1e-14
    step = values[4] - values[0]
    assert np.isclose(basis.penalty[-1], step**2)  # a ridge on the step
    effect = np.where(np.isnan(x), 3.0, 0.0) - 0.75
    assert np.allclose(columns @ (columns.T @ effect / 8), effect)


# The penalty


@examples(200)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_penalty_is_the_squared_second_difference(seed, kind, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind, gaps=False)
    basis = fit_basis(x, w, **options)
    beta = rng.normal(size=basis.n_columns)
    _, differences = raw(basis)
    bend = np.sum((differences @ basis.transform @ beta) ** 2)
    assert np.isclose(bend, basis.penalty @ beta**2, rtol=1e-6, atol=1e-12)
    assert np.all(np.diff(basis.penalty) >= 0) and np.all(basis.penalty[:1] == 0)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_even_knots_have_the_plain_second_differences(degree):
    _, widths = raw_splines(np.linspace(2, 7, 6), degree, False)
    plain = np.diff(np.eye(5 + degree), n=2, axis=0)
    assert np.allclose(second_differences(widths, degree, False)[0], plain, atol=1e-12)
    _, widths = raw_splines(np.linspace(2, 7, 6), degree, True)
    ring = np.roll(np.eye(5), 1, axis=1) - 2 * np.eye(5) + np.roll(np.eye(5), -1, axis=1)
    differences = second_differences(widths, degree, True)[0]
    assert np.allclose(np.sort(differences @ differences.T), np.sort(ring @ ring.T), atol=1e-12)


@examples(100)
@given(seeds, st.integers(2, 8), st.integers(1, 5), st.booleans())
def test_uneven_differences_are_distances_from_the_chord(seed, m, degree, cyclic):
    rng = np.random.default_rng(seed)
    widths = rng.uniform(0.05, 1, m)
    inside = np.append(0, np.cumsum(widths))
    around = np.tile(widths, 20) if cyclic else np.pad(widths, 20 * m, mode="edge")
    knots = np.append(0, np.cumsum(around))
    knots -= knots[10 * m if cyclic else 20 * m]  # the first break stands at 0
    first = np.flatnonzero(np.abs(knots) < 1e-9)[0] - degree
    places = np.array(
        [knots[first + j + 1 : first + j + degree + 1].mean() for j in range(2 * m + 9)]
    )
    _, padded = raw_splines(inside, degree, cyclic)
    differences, _ = second_differences(padded, degree, cyclic)
    c = rng.normal(size=differences.shape[1])
    for row, told in enumerate(differences @ c):
        before, here, after = (c[(row + step) % len(c)] for step in range(3))
        left, right = np.diff(places[row : row + 3])
        chord = (right * before + left * after) / (left + right)
        assert np.isclose(told, 2 * (chord - here))


@examples(100)
@given(seeds, SETTINGS)
def test_lines_are_splines_and_free_on_any_knots(seed, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, "heavy", 60, gaps=False)
    basis = fit_basis(x, w, **options)
    mean = w @ x / w.sum()
    line = (x - mean) / np.sqrt(w @ (x - mean) ** 2 / w.sum())
    assert np.allclose(basis.design(x)[w > 0, 0], line[w > 0], atol=1e-8)
    assert basis.penalty[0] == 0


def test_degree_one_with_two_knots_is_the_linear_term():
    x = np.random.default_rng(0).normal(3, 5, 200)
    basis = fit_basis(x, n_knots=2, degree=1)
    assert basis.n_columns == 1 and np.array_equal(basis.penalty, [0])
    assert np.allclose(basis.design(x)[:, 0], (x - x.mean()) / x.std(), atol=1e-12)
    assert np.array_equal(basis.breaks, [x.min(), x.max()])


@examples(100)
@given(seeds, SETTINGS)
def test_what_the_rows_cannot_see_is_as_smooth_as_possible(seed, options):
    """No other coefficients with the same values on the rows have smaller differences."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 30, int(rng.integers(2, 6))).astype(float)
    basis = fit_basis(x, **options)
    if len(np.unique(x)) < 2:
        return
    powers, differences = raw(basis)
    k = np.searchsorted(basis.breaks[1:-1], x, side="right")
    u = (x - basis.breaks[k]) / np.diff(basis.breaks)[k]
    values = np.einsum("npj,np->nj", powers[k], u[:, None] ** np.arange(options["degree"] + 1))
    assert np.allclose(values @ basis.transform, basis.design(x), atol=1e-6)
    unseen = null_space(values, rcond=1e-9)
    steep = np.abs(differences @ basis.transform).max(initial=1)
    assert (
        np.abs((differences @ unseen).T @ (differences @ basis.transform)).max(initial=0)
        < 1e-6 * steep
    )


def kernel(basis, at):
    """C (1 + P)⁻¹ C' at some places: the same for the same penalised space, whatever the signs of the columns."""
    columns = basis.design(at)
    return columns / (1 + basis.penalty) @ columns.T


@examples(100)
@given(seeds, SETTINGS, st.booleans())
def test_weights_are_repeated_rows(seed, options, gaps):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 40, 60) / 4
    x[rng.random(60) < 0.2 * gaps] = np.nan
    w = rng.integers(0, 4, 60)
    w[:3] = 1
    weighted = fit_basis(x, w, **options)
    repeated = fit_basis(np.repeat(x, w), **options)
    assert (
        np.array_equal(weighted.breaks, repeated.breaks)
        and weighted.n_columns == repeated.n_columns
    )
    at = np.append(np.linspace(0, 10, 50), np.nan)
    assert np.allclose(kernel(weighted, at), kernel(repeated, at), atol=1e-7)
    scaled = fit_basis(x, 1e-5 * w, **options)
    assert np.allclose(kernel(weighted, at), kernel(scaled, at), atol=1e-7)


@examples(100)
@given(seeds, SETTINGS, st.sampled_from([1e-12, 1e-3, 1e12]), st.sampled_from([0.0, 1e3]))
def test_units_do_not_matter(seed, options, scale, shift):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, 80) / 64
    at = np.linspace(0, 4, 60)
    here = fit_basis(x, **options)
    there = fit_basis(scale * (x + shift), **options)
    assert here.n_columns == there.n_columns
    assert np.allclose(kernel(here, at), kernel(there, scale * (at + shift)), atol=1e-6)


@examples(50)
@given(seeds)
def test_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, "ties")
    order = rng.permutation(len(x))
    one = fit_basis(x, w)
    other = fit_basis(x[order], w[order])
    assert one.n_columns == other.n_columns and np.allclose(one.breaks, other.breaks)
    assert np.allclose(kernel(one, x), kernel(other, x), atol=1e-7)


# Periods and labels


@examples(150)
@given(seeds, SETTINGS, st.sampled_from([24.0, 360.0, 0.1]), st.sampled_from([0.0, -0.5, 3.25]))
def test_periodic_columns_wrap(seed, options, period, shift):
    rng = np.random.default_rng(seed)
    x = period * (rng.random(int(rng.integers(2, 60))) + shift)
    basis = fit_basis(x, period=period, **options)
    left = basis.breaks[0]
    assert np.isclose(basis.breaks[-1] - left, period) and basis.period == period
    at = left + period * rng.random(20)
    for turns in (-3, 1, 7):
        assert np.allclose(basis.design(at + turns * period), basis.design(at), atol=1e-5)
    ends = basis.design(np.array([left, left + period * (1 - 1e-13)]))
    assert np.allclose(ends[0], ends[1], atol=1e-6 * max(1, np.abs(ends).max(initial=0)))
    assert np.all(basis.penalty > 0)  # no line goes round
    gram = basis.design(x).T @ basis.design(x) / len(x)
    assert np.allclose(gram, np.eye(basis.n_columns), atol=1e-6)
    _, differences = raw(basis, True)
    beta = rng.normal(size=basis.n_columns)
    assert np.isclose(
        np.sum((differences @ basis.transform @ beta) ** 2), basis.penalty @ beta**2, rtol=1e-6
    )
    coef, _ = basis.polynomials(beta)
    inside = _values(coef, basis.breaks, at)
    assert np.allclose(inside, basis.design(at) @ beta, atol=1e-9 * max(1, np.abs(coef).max()))


def _values(coef, breaks, x):
    k = np.searchsorted(breaks[1:-1], x, side="right")
    u = (x - breaks[k]) / np.diff(breaks)[k]
    return (coef[k] * u[:, None] ** np.arange(coef.shape[1])).sum(axis=1)


@examples(50)
@given(seeds, st.integers(0, 4))
def test_it_does_not_matter_where_an_even_circle_is_cut(seed, turns):
    """Moved round by whole knots, the splines are the same: the seam is a knot like any other."""
    rng = np.random.default_rng(seed)
    x = rng.random(60)
    at = np.linspace(0, 1, 40)
    shift = turns / 5
    here = fit_basis(x, period=1.0)
    there = fit_basis((x + shift) % 1, period=1.0)
    assert np.allclose(kernel(here, at), kernel(there, at + shift), atol=1e-7)


def test_where_the_circle_is_cut():
    hours = (0, 23, 24, 0)
    evening = (13, 22, 24, 0)
    months = (1, 12, 12, 0)
    days = (3, 99, 7, 0)
    longitudes = (-179, 180, 360, -180)
    for low, high, period, left in (hours, evening, months, longitudes, days):
        basis = fit_basis(np.linspace(low, high, 50), period=period)
        assert basis.breaks[0] == left and basis.breaks[-1] == left + period


@examples(150)
@given(seeds, st.integers(1, 12))
def test_labels_have_a_step_each_and_a_ridge(seed, n_labels):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, n_labels, 30).astype(float)
    x[rng.random(30) < rng.choice([0, 0.2])] = np.nan
    w = rng.integers(0, 3, 30).astype(float)
    w[0] = 1
    basis = fit_basis(x, w, n_labels=n_labels)
    seen = np.unique(x[(w > 0) & ~np.isnan(x)])
    assert basis.n_columns == max(len(seen) - 1, 0) + basis.has_missing_column
    assert np.array_equal(basis.breaks, np.arange(n_labels + 1) - 0.5) and basis.degree == 0
    columns = basis.design(x)
    gram = columns.T @ (w[:, None] * columns) / w.sum()
    assert np.allclose(gram, np.eye(basis.n_columns), atol=1e-9)
    beta = rng.normal(size=basis.n_columns)
    smooth = np.arange(basis.n_columns) < basis.n_columns - basis.has_missing_column
    effects = basis.transform[:, smooth] @ beta[smooth]
    assert np.isclose(np.sum(effects**2), basis.penalty[smooth] @ beta[smooth] ** 2)  # a ridge
    unseen = np.setdiff1d(np.arange(n_labels), seen)
    assert np.allclose(effects[unseen], 0, atol=1e-9)  # the mean effect
    assert np.allclose(piecewise(basis, beta, x), columns @ beta)


def test_penalised_labels_are_shrunken_means():
    """The ridge on labels: with weighted mean zero the fit solves the plain constrained problem."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 80).astype(float)
    y = np.array([3.0, -1, 0, 2, 5])[x.astype(int)] + rng.normal(size=80)
    y -= y.mean()
    basis = fit_basis(x, n_labels=5)
    columns = basis.design(x)
    beta = np.linalg.solve(columns.T @ columns + 4 * np.diag(basis.penalty), columns.T @ y)
    counts = np.bincount(x.astype(int))
    sums = np.bincount(x.astype(int), y)
    saddle = np.block(
        [[np.diag(counts + 4.0), counts[:, None]], [counts[None, :], np.zeros((1, 1))]]
    )
    assert np.allclose(basis.transform @ beta, np.linalg.solve(saddle, np.append(sums, 0))[:5])


# Degrees of freedom and GCV


def fit(columns, penalty, smooth, y, w):
    """Fitted values by the augmented least squares problem."""
    rows = np.vstack([np.sqrt(w)[:, None] * columns, np.diag(np.sqrt(smooth * penalty))])
    return columns @ np.linalg.lstsq(rows, np.append(np.sqrt(w) * y, np.zeros(len(penalty))))[0]


@examples(60)
@given(seeds, SETTINGS, st.floats(-3, 3))
def test_effective_df_is_the_trace_and_the_derivative(seed, options, power):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=40)
    w = rng.uniform(0.2, 2, 40)
    resp = rng.random(40)
    basis = fit_basis(x, w, **options)
    columns = basis.design(x)
    share = w * resp
    smooth = 10**power
    gram = columns.T @ (share[:, None] * columns)
    df = effective_df(gram, basis.penalty, smooth)
    rows = np.vstack([np.sqrt(share)[:, None] * columns, np.diag(np.sqrt(smooth * basis.penalty))])
    assert np.isclose(
        df, np.sum(np.linalg.qr(rows)[0][:40] ** 2), rtol=1e-6
    )  # the trace of the hat matrix
    assert 1 - 1e-9 <= df <= basis.n_columns + 1e-9
    y = rng.normal(size=40)
    moved = 0.0
    base = fit(columns, basis.penalty, smooth, y, share)
    for i in range(40):
        moved += (
            fit(columns, basis.penalty, smooth, y + np.eye(40)[i], share)[i] - base[i]
        )  # linear in y: exact
    assert np.isclose(df, moved, rtol=1e-5)


@examples(60)
@given(seeds, st.sampled_from(KINDS), SETTINGS)
def test_effective_df_falls_from_all_columns_to_the_line(seed, kind, options):
    rng = np.random.default_rng(seed)
    x, w = feature(rng, kind)
    basis = fit_basis(x, w, **options)
    columns = basis.design(x)
    gram = columns.T @ (w[:, None] * columns)
    dfs = [effective_df(gram, basis.penalty, smooth) for smooth in (0, 1e-3, 0.5, 10, 1e5, 1e15)]
    assert np.all(np.diff(dfs) <= 1e-9) and np.isclose(dfs[0], basis.n_columns)
    assert np.isclose(dfs[-1], np.sum(basis.penalty == 0), atol=1e-3)
    formula = np.sum(w.sum() / (w.sum() + 0.5 * basis.penalty))
    assert np.isclose(dfs[2], formula, rtol=1e-6)


def test_effective_df_of_nothing_and_of_unseen_columns():
    assert effective_df(np.zeros((0, 0)), np.zeros(0), 0.5) == 0
    assert effective_df(np.zeros((3, 3)), np.array([0.0, 1, 2]), 0.5) == 0
    assert np.isclose(effective_df(np.ones((2, 2)), np.zeros(2), 0.5), 1)  # twins are one column


@examples(60)
@given(seeds, SETTINGS)
def test_endless_smoothness_is_the_straight_line(seed, options):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=50)
    w = rng.uniform(0.1, 2, 50)
    y = np.sin(2 * x) + rng.normal(size=50)
    basis = fit_basis(x, w, **options)
    columns = np.column_stack([np.ones(50), basis.design(x)])
    fitted = fit(columns, np.append(0, basis.penalty), 1e12, y, w)
    line = np.polynomial.Polynomial.fit(x, y, 1, w=np.sqrt(w))(x)
    assert np.allclose(fitted, line, atol=1e-6)


@examples(60)
@given(seeds)
def test_gcv_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    w = rng.uniform(0.1, 2, 60)
    y = np.sin(3 * x) + rng.normal(size=60)
    basis = fit_basis(x, w)
    columns = np.column_stack([np.ones(60), basis.design(x)])
    penalty = np.append(0, basis.penalty)
    grid = 10.0 ** np.arange(-3, 6)
    gram = columns.T @ (w[:, None] * columns)
    cross = columns.T @ (w * y)
    square = w @ y**2
    best, scores = gcv(gram, cross, square, w.sum(), penalty, grid)
    mass = w.sum()
    for smooth, score in zip(grid, scores):
        loss = w @ (y - fit(columns, penalty, smooth, y, w)) ** 2
        assert np.isclose(score, mass * loss / (mass - effective_df(gram, penalty, smooth)) ** 2)
    assert best == grid[np.argmin(scores)]
    assert gcv(gram, cross, square, mass, penalty)[1].shape == (28,)


def test_gcv_tells_a_line_from_a_wave():
    rng = np.random.default_rng(0)
    x = rng.random(400)
    dfs = []
    basis = fit_basis(x, n_knots=12)
    columns = np.column_stack([np.ones(400), basis.design(x)])
    penalty = np.append(0, basis.penalty)
    gram = columns.T @ columns
    for truth in (2 * x, np.sin(9 * x)):
        y = truth + rng.normal(0, 0.2, 400)
        smooth, _ = gcv(gram, columns.T @ y, y @ y, 400, penalty)
        dfs.append(effective_df(gram, penalty, smooth))
    assert dfs[0] < 3.5 < 5 < dfs[1]


def test_gcv_without_room_is_refused_or_infinite():
    gram = np.eye(3)
    best, scores = gcv(gram, np.ones(3), 3.0, 3.0, np.array([0.0, 1, 1]), [0.0, 1.0])
    assert scores[0] == np.inf and best == 1.0  # as many free columns as rows: no score


# Bad input, extreme numbers, plain objects, speed


@pytest.mark.filterwarnings("error")
@examples(100)
@given(
    seeds,
    SETTINGS,
    st.sampled_from(["near", "cauchy", "denormal", "enormous", "far"]),
    st.booleans(),
)
def test_extreme_features_and_weights(seed, options, kind, wide):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=50)
    steps = rng.integers(0, 4, 50)
    x = {
        "near": x.round() + 1e-9 * steps,
        "cauchy": rng.standard_cauchy(50),
        "denormal": 5e-324 * steps,
        "enormous": 1e299 * x,
        "far": 1e15 + 0.125 * steps,
    }[kind]
    w = 10 ** rng.uniform(-12, 0, 50) if wide else np.ones(50)
    basis = fit_basis(x, w, **options)
    columns = basis.design(x)
    gram = columns.T @ ((w / w.sum())[:, None] * columns)
    assert np.allclose(gram, np.eye(basis.n_columns), atol=1e-5) and basis.n_columns >= 1
    assert basis.n_columns <= len(np.unique(x)) - 1


@pytest.mark.parametrize(
    "name, x, options",
    [
        ("x", [[1.0]], {}),
        ("x", [1.0, np.inf], {}),
        ("w", [1.0, 2], {"w": [1.0]}),
        ("w", [1.0, 2], {"w": [1.0, -1]}),
        ("w", [1.0, 2], {"w": [0.0, 0]}),
        ("w", [1.0, 2], {"w": [1.0, np.nan]}),
        ("w", [], {}),
        ("n_knots", [1.0, 2], {"n_knots": 1}),
        ("n_knots", [1.0, 2], {"n_knots": 2.5}),
        ("n_knots", [1.0, 2], {"n_knots": "6"}),
        ("degree", [1.0, 2], {"degree": 0}),
        ("knots", [1.0, 2], {"knots": "even"}),
        ("period", [1.0, 2], {"period": 0}),
        ("n_labels", [1.0, 2], {"n_labels": 2}),
        ("n_labels", [0.5], {"n_labels": 2}),
        ("n_labels", [np.nan], {"n_labels": 0}),
    ],
)
def test_bad_input_is_refused_in_one_line(name, x, options):
    with pytest.raises(ValueError, match=rf"^{name} must be .* got ") as caught:
        fit_basis(np.array(x), **options)
    assert "\n" not in str(caught.value)


def test_quantile_knots_follow_the_rows_and_merge_at_ties():
    x = np.random.default_rng(0).exponential(size=2000)
    even = fit_basis(x).breaks
    quantile = fit_basis(x, knots="quantile").breaks
    inside = np.histogram(x, quantile)[0]
    assert np.allclose(np.diff(even), np.diff(even)[0]) and np.ptp(inside) <= 2
    x[:1300] = 0.5
    merged = fit_basis(x, knots="quantile")
    assert len(merged.breaks) < 6 and 0.5 in merged.breaks
    near = fit_basis(
        np.concatenate([np.zeros(50), np.full(50, 0.5), np.full(50, 0.5 + 1e-9), [1.0]]),
        knots="quantile",
    )
    assert np.diff(near.breaks).min() > 1e-6  # quantiles a hair apart are one knot


def test_the_sign_of_a_column_is_settled():
    basis = fit_basis(np.random.default_rng(0).exponential(size=200), n_knots=9)
    assert np.all(np.diff(basis.transform[:, 0]) > 0)  # the line rises
    assert np.all(
        basis.transform[np.abs(basis.transform).argmax(axis=0), np.arange(basis.n_columns)] > 0
    )  # the largest is positive


def test_a_basis_travels_and_rows_with_weight_zero_do_not_count():
    x = np.array([1.0, 2, 4, 8, np.nan, 1e9])
    basis = fit_basis(x, np.array([1, 1, 2, 1, 1, 0]))
    assert basis.breaks[-1] == 8
    again = pickle.loads(pickle.dumps(basis))
    assert np.array_equal(again.design(x), basis.design(x))
    with pytest.raises(AttributeError):
        basis.degree = 2
