"""A fit to y in other units says the same in those units, and refuses where squares end."""

import signal
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared.effort import case
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from fabinterp import (
    MetaTreeRegressor,
    ObliqueAdditiveRegressor,
    PiecewiseLinearRegressor,
    ProxyLinearRegressor,
    ProxyTreeRegressor,
    RuleMixtureRegressor,
    explain,
    explain_local,
)
from fabinterp.fab.engine import EM, Structure
from fabinterp.rows.tables import (
    LARGEST,
    LEAST,
    centre_and_spread,
    check_span,
    fit_at_unit_scale,
    power_of_two_scale,
)
from fabinterp.rules.core import Leaf, Rule, read_columns
from fabinterp.rules.ruleset import RuleSet

QUICK = dict(search=EM(n_components=3), max_rules=5, n_perturbations=5, n_init=1, random_state=0)
FOREST = RandomForestRegressor(8, max_depth=4, random_state=0)
LARGE_LEAVES = DecisionTreeRegressor(min_samples_leaf=9, random_state=0)
REGRESSORS = {
    "mixture": lambda: RuleMixtureRegressor(**QUICK),
    "mixture of a forest": lambda: RuleMixtureRegressor(FOREST, **QUICK),
    "mixture, target ensemble": lambda: RuleMixtureRegressor(FOREST, target="ensemble", **QUICK),
    "pieces": lambda: PiecewiseLinearRegressor(
        penalty=1.0, search=Structure(3), max_depth=2, random_state=0
    ),
    "pieces by EM": lambda: PiecewiseLinearRegressor(
        search=EM(max_iter=20), max_depth=2, random_state=0
    ),
    "oblique": lambda: ObliqueAdditiveRegressor(
        penalty=1.0, search=Structure(3), max_depth=2, random_state=0
    ),
    "oblique by EM": lambda: ObliqueAdditiveRegressor(
        search=EM(max_iter=10), max_depth=1, random_state=0
    ),
    "proxy tree": lambda: ProxyTreeRegressor(random_state=0),
    "proxy tree of leaves": lambda: ProxyTreeRegressor(size=5, lookahead=True, random_state=0),
    "proxy tree of a forest": lambda: ProxyTreeRegressor(
        FOREST, size=5, n_draws=3, n_synthetic=50, random_state=0
    ),
    "proxy line": lambda: ProxyLinearRegressor(),
    "proxy line of a forest": lambda: ProxyLinearRegressor(FOREST, n_draws=3, random_state=0),
    "meta-tree": lambda: MetaTreeRegressor(LARGE_LEAVES, random_state=0),
    "meta-tree of small leaves": lambda: MetaTreeRegressor(max_depth=4, random_state=0),
    "meta-tree of lines": lambda: MetaTreeRegressor(max_depth=3, leaf="linear", random_state=0),
    "meta-forest": lambda: MetaTreeRegressor(n_trees=5, max_depth=4, random_state=0),
}
# In bags and in leaves of two rows columns tie, and rounding decides between them.
TIED = {
    name
    for name in REGRESSORS
    if any(word in name for word in ("forest", "ensemble", "small leaves"))
}
BY_LOGS = {name for name in REGRESSORS if "meta" in name}  # a factor moves the logs they weigh by
every = pytest.mark.parametrize("name", REGRESSORS)
powers = st.integers(-332, 332)
few = settings(max_examples=3, deadline=None)


@contextmanager
def within(seconds=60):
    """Raises TimeoutError in what takes longer: an endless search fails, it does not hang."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def table(seed=0, n=90):
    """Rows with steps, slopes and noise; y of unit size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0.2, 2 * X[:, 1], -1.5) + 0.2 * rng.normal(size=n)


def fitted(name, X, y):
    with within():
        return REGRESSORS[name]().fit(X, y)


def structure(model):
    """What is asked, without what is answered."""
    if getattr(model, "n_trees", 1) > 1:
        trees = [model.to_tree(t) for t in range(model.n_trees)]
        return [tree.splits for tree in trees]
    return [(rule.conditions, rule.leaf.features) for rule in model.rules_.rules]


@pytest.mark.slow
@every
@few
@given(k=powers, seed=st.integers(0, 3))
def test_power_of_two_moves_exponents_only(name, k, seed):
    X, y = table(seed)
    s = 2.0**k
    one = fitted(name, X, y)
    other = fitted(name, X, s * y)
    assert structure(other) == structure(one)
    if name in BY_LOGS:
        np.testing.assert_allclose(other.predict(X) / s, one.predict(X), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(other.predict(X) / s, one.predict(X))
    for value in ("std_", "leaf_draws_", "std_draws_", "coef_", "coef_draws_"):
        if getattr(one, value, None) is not None:
            np.testing.assert_allclose(getattr(other, value) / s, getattr(one, value), rtol=1e-12)
    if getattr(one, "fidelity_", None) is not None:
        assert other.fidelity_ == one.fidelity_
    if getattr(one, "var_", None) is not None:
        assert other.var_ / s / s == one.var_


@pytest.mark.slow
@every
@few
@given(k=powers)
def test_likelihood_is_a_density_of_y(name, k):
    X, y = table()
    one = fitted(name, X, y)
    other = fitted(name, X, 2.0**k * y)
    for value in ("fic_", "log_evidence_"):
        if hasattr(one, value):
            rounding = 1e-10 * (abs(getattr(one, value)) + len(y) * 332)
            moved = getattr(one, value) - len(y) * k * np.log(2)
            assert getattr(other, value) == pytest.approx(moved, rel=0, abs=rounding)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pieces", "oblique", "meta-tree", "meta-forest"])
@few
@given(k=powers)
def test_intervals_go_with_the_unit(name, k):
    X, y = table()
    one = fitted(name, X, y)
    other = fitted(name, X, 2.0**k * y)
    with within():
        said = one.predict_interval(X)
        again = other.predict_interval(X)
    np.testing.assert_allclose(again / 2.0**k, said, rtol=1e-7, atol=1e-7)
    assert (said[:, 0] < said[:, 1]).all()


@pytest.mark.parametrize("name", sorted(set(REGRESSORS) - TIED))
@pytest.mark.parametrize(
    "factor", [1e-100, case(1e-9, quick=False), case(1e100, quick=False), 3e41]
)
def test_decimal_factor_keeps_the_structure(name, factor):
    X, y = table()
    one = fitted(name, X, y)
    other = fitted(name, X, factor * y)
    assert structure(other) == structure(one)
    np.testing.assert_allclose(other.predict(X) / factor, one.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", sorted(TIED))
def test_trees_of_a_small_target_are_no_constants(name):
    X, y = table()
    said = fitted(name, X, 1e-9 * y).predict(X) / 1e-9
    assert np.mean((y - said) ** 2) < 0.7 * y.var()


@every
@pytest.mark.parametrize("factor", [1e-200, 1e154, 1e-130, 1e125])
def test_out_of_range_is_refused_by_name(name, factor):
    X, y = table()
    with pytest.raises(ValueError, match=r"^y must .*take a (larger|smaller) unit"):
        fitted(name, X, factor * y)


@every
@pytest.mark.parametrize("value", [0.0, 1e-200, -1e-100, 1.0, 1e100])
def test_constant_is_said_at_every_scale(name, value):
    X, _ = table()
    said = fitted(name, X, np.full(len(X), value)).predict(X)
    np.testing.assert_allclose(said, value, rtol=1e-9)


def test_rows_without_weight_do_not_count():
    X, y = table()
    wild = np.append(y, 1e200)
    w = np.append(np.ones(len(y)), 0.0)
    X = np.vstack([X, X[:1]])
    for name in ("pieces", "proxy tree", "proxy line", "meta-tree"):
        with within():
            model = REGRESSORS[name]().fit(X, wild, w)
        np.testing.assert_array_equal(model.predict(X), fitted(name, X[:-1], y).predict(X))


@pytest.mark.parametrize("name", ["mixture", "pieces by EM", "meta-tree"])
def test_chunks_pass_the_same_door(name):
    X, y = table()

    def chunks(factor):
        return [(X[i : i + 30], factor * y[i : i + 30]) for i in range(0, len(y), 30)]

    with within():
        one, other = (REGRESSORS[name]().fit_chunks(chunks(factor)) for factor in (1.0, 2.0**-200))
    np.testing.assert_allclose(other.predict(X) / 2.0**-200, one.predict(X), rtol=1e-9, atol=1e-9)
    for factor in (1e-200, 1e154):
        with pytest.raises(ValueError, match="^y must"), within():
            REGRESSORS[name]().fit_chunks(chunks(factor))
    small = [(X[:30], 1e-200 * y[:30]), (X[30:], y[30:])]  # one chunk alone may be small
    with within():
        REGRESSORS[name]().fit_chunks(small)


def test_dask_passes_the_same_door():
    da = pytest.importorskip("dask.array")
    X, y = table()
    for factor in (1e-200, 1e154):
        with pytest.raises(ValueError, match="^y must"), within():
            rows, target = (da.from_array(part, chunks=30) for part in (X, factor * y))
            REGRESSORS["meta-tree"]().fit(rows, target)


def test_rows_that_come_later_are_held_to_the_range():
    X, y = table()
    model = fitted("meta-tree", X, y)
    with pytest.raises(ValueError, match="^y must lie within"):
        model.partial_fit(X, 1e154 * y)
    before = model.predict(X)
    model.partial_fit(X[:1], [1e-200])  # one row cannot tell a unit
    assert np.isfinite(model.predict(X)).all() and not np.array_equal(model.predict(X), before)


def line(X):
    return np.asarray(X) @ [2.0, -1.0, 0.0] + 3.0 * (np.asarray(X)[:, 0] > 0)


@few
@given(k=powers)
def test_draws_of_a_reference_go_with_the_unit(k):
    X, y = table()
    s = 2.0**k
    draws = y + np.random.default_rng(1).normal(size=(4, len(y)))
    with within():
        one = ProxyTreeRegressor(draws, size=4, n_draws=4, random_state=0).fit(X)
        other = ProxyTreeRegressor(s * draws, size=4, n_draws=4, random_state=0).fit(X)
        flat = ProxyLinearRegressor(draws).fit(X)
        moved = ProxyLinearRegressor(s * draws).fit(X)
    np.testing.assert_array_equal(other.leaf_draws_ / s, one.leaf_draws_)
    np.testing.assert_array_equal(other.leaf_vars_ / s / s, one.leaf_vars_)
    assert [tree.splits for tree in other.trees_] == [tree.splits for tree in one.trees_]
    np.testing.assert_array_equal(moved.coef_draws_ / s, flat.coef_draws_)
    np.testing.assert_array_equal(moved.inclusion_, flat.inclusion_)


@few
@given(k=powers)
def test_local_explanation_goes_with_the_unit(k):
    X, _ = table()
    s = 2.0**k
    with within():
        one = explain_local(line, X[:3], X, random_state=0)
        other = explain_local(lambda Z: s * line(Z), X[:3], X, random_state=0)
    for near, moved in zip(one, other, strict=True):
        assert moved.tree.splits == near.tree.splits
        assert (
            moved.surrogate_prediction / s == near.surrogate_prediction
            and moved.loss / s / s == near.loss
        )


@pytest.mark.parametrize("factor", [1e-200, 1e154])
def test_references_out_of_range_are_refused_by_name(factor):
    X, _ = table()

    def reference(Z):
        return factor * line(Z)

    for fit in (
        ProxyTreeRegressor(reference).fit,
        ProxyLinearRegressor(reference).fit,
        lambda Z: explain_local(reference, Z[0], Z),
    ):
        with pytest.raises(ValueError, match="^reference must"), within():
            fit(X)
    with pytest.raises(ValueError, match="^model must"), within():
        explain(reference, X)


def test_ensembles_handed_over_keep_their_own_values():
    X, y = table()
    forest = RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, y)
    with within():
        one = RuleMixtureRegressor(forest, target="ensemble", **QUICK).fit(X, y)
    small = RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, y)
    for member in small.estimators_:
        member.tree_.value[:] *= 2.0**-30
    with within():
        other = RuleMixtureRegressor(small, target="ensemble", **QUICK).fit(X, 2.0**-30 * y)
    assert structure(other) == structure(one) and other.fidelity_ == one.fidelity_
    for member in small.estimators_:
        member.tree_.value[:] *= 2.0**600
    with pytest.raises(ValueError, match="^estimator must"), within():
        RuleMixtureRegressor(small, **QUICK).fit(X, y)


def test_ensemble_that_is_constant_but_for_rounding_has_a_fidelity():
    X, y = table()
    forest = RandomForestRegressor(8, random_state=0).fit(X, 1e-9 * y)  # no variance, it thinks
    assert all(member.tree_.node_count == 1 for member in forest.estimators_)
    with within():
        model = RuleMixtureRegressor(forest, **QUICK).fit(X, 1e-9 * y)
    assert 0 <= model.fidelity_ <= 1


def test_rounding_is_no_variance():
    rules = RuleSet((Rule((), Leaf(0.3)),), read_columns(np.zeros((1, 1))))
    rounded = np.array([0.1 + 0.2, 0.3, 0.3])
    assert rules.measure(np.zeros((3, 1)), rounded).fidelity == 1
    assert rules.measure(np.zeros((3, 1)), rounded + 1).fidelity == 0


@given(k=st.integers(-390, 390), seed=st.integers(0, 100))
def test_scale_is_a_power_of_two_and_goes_with_y(k, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=20) * 10.0 ** rng.integers(-3, 4)
    w = rng.integers(0, 3, 20).astype(float)
    w[0] = 1.0
    scale = power_of_two_scale(y, w)
    assert np.frexp(scale)[0] == 0.5 and power_of_two_scale(2.0**k * y, w) == 2.0**k * scale
    spread = centre_and_spread(y[w > 0], w[w > 0])[1]
    assert 1 <= (spread or np.abs(y[w > 0]).max()) / scale < 2
    assert power_of_two_scale(np.append(y, 1e300), np.append(w, 0.0)) == scale


@given(low=st.floats(-1e300, 1e300), high=st.floats(-1e300, 1e300))
def test_span_is_refused_exactly_where_squares_end(low, high):
    low, high = min(low, high), max(low, high)
    size = max(abs(low), abs(high))
    bad = size > LARGEST or 1e-14 * size < high - low < LEAST
    try:
        check_span("y", low, high)
    except ValueError as error:
        assert bad and str(error).startswith("y must") and "\n" not in str(error)
    else:
        assert not bad


def test_scale_of_a_constant_keeps_its_rounding_pure():
    X = np.arange(9.0)[:, None]
    for size in (1e-100, 1.0, 1e100):
        y = size * np.array([0.1 + 0.2, *[0.3] * 8])
        assert fit_at_unit_scale(DecisionTreeRegressor(random_state=0), X, y).get_n_leaves() == 1


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(random_state=0),
        FOREST,
        ExtraTreesRegressor(5, random_state=0),
        DecisionTreeRegressor(ccp_alpha=0.01, random_state=0),
        LinearRegression(),
        DecisionTreeRegressor(min_impurity_decrease=0.01, random_state=0),
    ],
    ids=str,
)
def test_answers_of_ordinary_targets_do_not_change(model):
    X, y = table()
    for factor in (1.0, 100.0):
        plain = model.fit(X, factor * y).predict(X)
        np.testing.assert_array_equal(fit_at_unit_scale(model, X, factor * y).predict(X), plain)
