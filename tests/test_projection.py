"""A projection is the best sparse equation of a reference: by brute force, on any table, in any units."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from shared.effort import examples
from shared.tables import mixed_columns, with_gaps
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV

from fabinterp.blackbox.wrapping import as_reference
from fabinterp.proxy.equation_estimators import (
    ProxyLinearClassifier,
    ProxyLinearRegressor,
    candidate_terms,
    coef_in_table_units,
)
from fabinterp.proxy.projection import (
    FLOOR,
    GaussianProblem,
    SoftmaxProblem,
    penalized_log_lik,
    projection_path,
    select_projection,
)
from fabinterp.rules.core import encode, read_columns
from fabinterp.rules.ruleset import RuleSet


def draws_of(seed, n=60, d=4, L=7, C=0):
    """A table, and L draws of numbers (L, n), or of probabilities (L, n, C), that a line explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    if not C:
        lines = rng.normal(size=(L, d)) * 0.2 + rng.normal(size=d) * (rng.random(d) < 0.6)
        return X, lines @ X.T + np.sin(2 * X[:, 0]) + 3
    scores = np.einsum("ldc,nd->lnc", rng.normal(size=(L, d, C)) * 0.3 + rng.normal(size=(d, C)), X)
    scores += rng.normal(size=(L, n, C)) * 0.3
    return X, np.exp(log_softmax(scores, axis=2))


def gaussian(X, mean, var, w):
    D = np.column_stack([np.ones(len(X)), X])
    weighted = D.T * w
    return GaussianProblem(
        weighted @ D, weighted @ mean, float(w @ mean**2), float(w.sum()), float(w @ var / w.sum())
    )


def columns_of(support):
    return [0, *support]


# ------------------------------------------------------------------ the projection, by brute force


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_and_its_variance_maximise_the_expected_likelihood(seed):
    rng = np.random.default_rng(seed)
    X, draws = draws_of(seed)
    mean = draws.mean(axis=0)
    var = rng.uniform(0.1, 2, 60)
    w = rng.uniform(0, 2, 60)
    support = (1, 3)
    D = np.column_stack([np.ones(60), X])[:, columns_of(support)]

    def loss(theta):  # -E log N(y | Dw, s²), row by row
        s2 = np.exp(theta[-1])
        return w @ (0.5 * np.log(2 * np.pi * s2) + (var + (mean - D @ theta[:-1]) ** 2) / (2 * s2))

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    found = gaussian(X, mean, var, w).fit(support)
    assert np.allclose(found.coef[columns_of(support), 0], best.x[:-1], atol=1e-5)
    assert np.isclose(found.var, np.exp(best.x[-1]), rtol=1e-5) and np.isclose(
        found.value, -best.fun, rtol=1e-9
    )
    assert not found.coef[[2, 4]].any()


def test_the_expected_likelihood_is_the_mean_over_rows_that_the_reference_makes_up():
    rng = np.random.default_rng(0)
    X, draws = draws_of(1, n=40, L=6)
    noise = rng.uniform(0.5, 1.5, 6)
    mean = draws.mean(axis=0)
    var = noise.mean() + draws.var(axis=0)
    found = gaussian(X, mean, var, np.ones(40)).fit((1, 2))
    answer = np.column_stack([np.ones(40), X]) @ found.coef[:, 0]
    layer = rng.integers(0, 6, 20000)
    y = draws[layer] + rng.normal(size=(20000, 40)) * np.sqrt(noise[layer])[:, None]
    likelihood = -0.5 * np.sum(
        np.log(2 * np.pi * found.var) + (y - answer) ** 2 / found.var, axis=1
    )
    assert abs(likelihood.mean() - found.value) < 4 * likelihood.std() / np.sqrt(20000)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_projected_by_the_expected_multinomial_likelihood(seed, n_classes):
    rng = np.random.default_rng(seed)
    X, draws = draws_of(seed, C=n_classes)
    shares = draws.mean(axis=0)
    w = rng.uniform(0, 2, 60)
    D = np.column_stack([np.ones(60), X])
    support = (1, 4)

    def loss(theta):
        return -w @ (
            shares * log_softmax(D[:, columns_of(support)] @ theta.reshape(3, -1), axis=1)
        ).sum(axis=1)

    best = minimize(loss, np.zeros(3 * n_classes), method="BFGS", options={"gtol": 1e-8})
    found = SoftmaxProblem(D, shares, w).fit(support)
    theirs = best.x.reshape(3, -1)
    theirs = theirs - theirs.mean(axis=1, keepdims=True)
    assert np.allclose(found.coef[columns_of(support)], theirs, atol=1e-3)
    assert np.isclose(found.value, -best.fun, rtol=1e-6) and np.allclose(found.coef.sum(axis=1), 0)


@pytest.mark.parametrize("C", [0, 2, 3])
def test_path_and_choice_against_all_supports(C):
    right = []
    sizes = []
    for seed in range(30 if C == 0 else 8):
        X, draws = draws_of(seed, d=6 if C == 0 else 4, C=C)
        D = np.column_stack([np.ones(60), X])
        w = np.ones(60)
        mean = draws.mean(axis=0)
        problem = SoftmaxProblem(D, mean, w) if C else gaussian(X, mean, np.full(60, 0.3), w)
        p = X.shape[1]
        every = {
            s: max(
                (problem.fit(c) for c in combinations(range(1, p + 1), s)),
                key=lambda one: one.value,
            )
            for s in range(p + 1)
        }
        for one in projection_path(problem, 0.0, p):
            ideal = every[len(one.support)]
            assert one.value <= ideal.value + 1e-6
            right.append(one.support == ideal.support)
        best, price, found = select_projection(problem, 1.0, p)
        top = max(penalized_log_lik(one, price) for one in every.values())
        assert penalized_log_lik(best, price) <= top + 1e-6 and best in found
        sizes.append(top - penalized_log_lik(best, price))
    assert np.mean(right) > 0.9 and np.mean(np.array(sizes) < 1e-6) >= 0.75 and max(sizes) < 2


def test_the_best_four_terms_are_found_by_exchange():
    X, draws = draws_of(297, d=6, L=2)
    problem = gaussian(X, draws.mean(axis=0), np.full(60, 0.3), np.ones(60))
    best = max(combinations(range(1, 7), 4), key=lambda support: problem.fit(support).value)
    three, four = projection_path(problem, 0.0, 6)[3:5]
    assert four.support == best and not set(three.support) <= set(best)


def test_a_fit_to_all_terms_is_the_end_of_the_path():
    X, draws = draws_of(3, d=5)
    model = ProxyLinearRegressor(draws, penalty=0.0).fit(X)
    D = np.column_stack([np.ones(60), X])
    coef = np.linalg.lstsq(D, draws.mean(axis=0), rcond=None)[0]
    assert np.allclose(model.coef_, coef[1:]) and np.isclose(model.intercept_, coef[0])
    values = [one.value for one in model.path_]
    assert np.all(np.diff(values) > 0) and [len(one.support) for one in model.path_] == list(
        range(6)
    )


# ------------------------------------------------------------------ draws


def test_every_draw_is_projected_on_the_same_terms():
    X, draws = draws_of(0)
    model = ProxyLinearRegressor(draws).fit(X)
    on = np.flatnonzero(model.coef_)
    assert 0 < len(on) < 4 or model.penalty == 1.0
    D = np.column_stack([np.ones(60), X[:, on]])
    for draw, value, coef, std in zip(
        draws, model.intercept_draws_, model.coef_draws_, model.std_draws_, strict=True
    ):
        theirs, rss = np.linalg.lstsq(D, draw, rcond=None)[:2]
        assert np.allclose([value, *coef[on]], theirs) and np.isclose(std, np.sqrt(rss[0] / 60))
        assert not np.delete(coef, on).any()
    assert np.allclose(model.coef_draws_.mean(axis=0), model.coef_)


def test_predicted_variance_adds_up_to_that_of_the_projection():
    X, draws = draws_of(5)
    w = np.random.default_rng(5).uniform(0.1, 2, 60)
    noise = np.linspace(0.2, 0.9, 7)
    for reference in ((draws, noise), (draws.mean(axis=0), np.linspace(0.5, 1, 60)), draws[0]):
        model = ProxyLinearRegressor(reference).fit(X, sample_weight=w)
        dist = model.predict_dist(X)
        assert np.isclose(w @ dist.variance() / w.sum(), model.std_**2, rtol=1e-9)
        assert np.allclose(dist.mean(), model.predict(X)) and np.allclose(
            model.predict_draws(X).mean(0), dist.mean()
        )
        half = dist.quantile(0.5)
        assert np.allclose(dist.cdf(half), 0.5) and np.isfinite(dist.log_density(half)).all()
        mean, var = model.reference_.mean_var(X)
        lack = w @ (mean - model.predict(X)) ** 2 / w.sum()
        assert np.isclose(model.std_**2, w @ var / w.sum() + lack)


@pytest.mark.parametrize("C", [2, 3])
def test_draws_of_classes_are_projected_on_the_same_terms(C):
    X, draws = draws_of(2, C=C)
    model = ProxyLinearClassifier(draws).fit(X)
    assert model.coef_.shape == (1 if C == 2 else 3, 4) and model.coef_draws_.shape == (
        7,
        *model.coef_.shape,
    )
    support = model.projection_.support
    D = np.column_stack([np.ones(60), X])
    units = model.terms_.design(X)
    assert (
        np.allclose(units[:, 1:], (X - model.terms_.centre) / model.terms_.scale)
        and units.shape == D.shape
    )
    said = model.predict_draws(X)
    for draw, shares in zip(draws, said, strict=True):
        own = SoftmaxProblem(units, draw, np.ones(60)).fit(support)
        assert np.allclose(np.exp(log_softmax(units @ own.coef, axis=1)), shares, atol=1e-4)
    assert said.shape == (7, 60, C) and np.allclose(said.sum(axis=2), 1)


def test_inclusion_counts_the_draws_that_choose_a_term_for_themselves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    draws = np.stack([2 * X[:, 0] + (s < 3) * X[:, 1] + 0.01 * X[:, 2] ** 2 for s in range(10)])
    noise = np.full(10, 0.5)
    model = ProxyLinearRegressor((draws, noise)).fit(X)
    assert np.allclose(model.inclusion_, [1, 0.3, 0])
    shares = 1 / (1 + np.exp(-np.stack([1 - draws, draws], axis=2) + 0.5))
    shares /= shares.sum(axis=2, keepdims=True)
    assert np.allclose(ProxyLinearClassifier(shares).fit(X).inclusion_, [1, 0.3, 0])


# ------------------------------------------------------------------ references of many kinds


def test_models_fitted_and_not_functions_and_draws():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    ridge = BayesianRidge().fit(X, y)
    fitted = ProxyLinearRegressor(ridge, random_state=0).fit(X)
    state = pickle.dumps(ridge)
    again = ProxyLinearRegressor(BayesianRidge(), random_state=0).fit(X, y)
    given_ = ProxyLinearRegressor(as_reference(ridge, random_state=3)).fit(X)
    called = ProxyLinearRegressor(lambda X: ridge.predict(X)).fit(X)
    assert pickle.dumps(ridge) == state and np.array_equal(fitted.coef_, again.coef_)
    assert np.allclose(given_.coef_, fitted.coef_) and len(fitted.coef_draws_) == 100
    assert called.coef_draws_.shape == (1, 10) and np.allclose(
        called.predict(X), ridge.predict(X), atol=20
    )
    assert ProxyLinearRegressor(ridge, n_draws=4, random_state=0).fit(X).coef_draws_.shape == (
        4,
        10,
    )
    gp = GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None, normalize_y=True).fit(
        X[:80], y[:80]
    )
    assert ProxyLinearRegressor(gp, n_draws=20).fit(X[:80]).coef_draws_.shape == (20, 10)
    kept = clone(ProxyLinearRegressor(FrozenEstimator(gp), n_draws=20)).fit(X[:80])
    assert kept.coef_draws_.shape == (20, 10) and kept.reference_.kind == "posterior"
    learnt = ProxyLinearRegressor(clone(gp), n_draws=20).fit(X[:80], y[:80])
    assert np.allclose(learnt.coef_, kept.coef_)
    iris = load_iris(as_frame=True)
    labels = np.array(["a", "b", "c"])[iris.target]
    forest = RandomForestClassifier(10, random_state=0)
    proxy = ProxyLinearClassifier(forest).fit(iris.data, labels)
    assert (
        proxy.classes_.tolist() == ["a", "b", "c"]
        and proxy.fidelity_ > 0.9
        and not hasattr(forest, "classes_")
    )
    shares = proxy.reference_.draws(iris.data)
    named = ProxyLinearClassifier(shares).fit(iris.data, labels)
    assert np.array_equal(named.predict(iris.data), proxy.predict(iris.data))


def test_without_a_reference_it_is_sparse_regression_on_y():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ProxyLinearRegressor().fit(X, y)
    assert model.reference_ is None and set(model.inclusion_) == {0.0, 1.0}
    assert np.array_equal(model.inclusion_ > 0, model.coef_ != 0) and np.allclose(
        model.coef_draws_[0], model.coef_
    )
    assert np.isclose(model.fidelity_, model.score(X, y))
    X, y = load_breast_cancer(return_X_y=True)
    model = ProxyLinearClassifier(max_features=4).fit(X, y)
    assert np.count_nonzero(model.coef_) == 4 and model.score(X, y) > 0.94


# ------------------------------------------------------------------ what is shown is what predicts


def many_kinds(rng, n):
    """Draw columns of all kinds, of one value, and of none."""
    frame = mixed_columns(rng, n)
    frame["size"] += 5
    frame["age"] = rng.integers(0, 5, n).astype(float)
    frame["same"] = 3.0
    frame["one"] = pd.Categorical(["x"] * n)
    frame["none"] = np.nan
    return with_gaps(rng, frame)


def test_gaps_of_a_column_of_one_value_have_a_term():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"same": np.where(rng.random(60) < 0.5, 3.0, np.nan), "b": rng.random(60)})
    y = 5.0 * X["same"].isna() + X["b"]
    model = ProxyLinearRegressor(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y)
    np.testing.assert_allclose(model.rules_.predict(X), y)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["numbers", "two", "three"]))
@examples(60)
def test_rules_say_what_predicts_on_any_table(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 100))
    X = many_kinds(rng, n)
    other = many_kinds(rng, 50)
    other.loc[0, "size"] = 1e9
    other.loc[1, "size"] = -1e9
    if (
        not X["size"].isna().any()
    ):  # gaps that training did not know are refused in numbers, see below
        other["size"] = other["size"].fillna(5.0)
    t = X["size"].fillna(9) + 2 * (X["colour"] == "red") + X["yes"] + rng.normal(size=n)
    penalty = rng.choice([0.0, 1.0, 5.0])
    most = None if seed % 2 else 3
    if kind == "numbers":
        model = ProxyLinearRegressor(penalty=penalty, max_features=most).fit(
            X, t * 10.0 ** rng.integers(-6, 7)
        )
        assert np.allclose(
            model.predict_draws(other)[0],
            model.predict(other),
            rtol=1e-7,
            atol=1e-9 * t.abs().max(),
        )
    else:
        y = np.digitize(t, [6] if kind == "two" else [5, 7])
        model = ProxyLinearClassifier(penalty=penalty, max_features=most).fit(
            X, np.array(["no", "yes", "?"])[y]
        )
        assert np.allclose(model.predict_draws(other)[0], model.predict_proba(other), atol=1e-4)
        assert np.array_equal(
            model.classes_[model.predict_proba(other).argmax(axis=1)], model.predict(other)
        )
    for rules in (model.rules_, RuleSet.from_json(model.rules_.to_json())):
        assert np.array_equal(rules.predict(other), model.predict(other))
    assert len(model.rules_.rules) == 1 and isinstance(str(model.rules_), str)
    assert len(model.projection_.support) <= (3 if most else 99)
    assert model.coef_frame().shape[1] == 6 and len(model.path_frame()) == len(model.path_)


def test_labels_and_gaps_are_terms_of_their_own():
    rng = np.random.default_rng(0)
    frame = many_kinds(rng, 400)
    t = (
        2 * (frame["colour"] == "red")
        + np.where(frame["size"].isna(), -3, frame["size"])
        + 0.1 * rng.normal(size=400)
    )
    model = ProxyLinearRegressor().fit(frame, t)
    names = model.terms_.names
    assert names[:6] == (
        "size",
        "size is missing",
        "colour = black",
        "colour = blue",
        "colour = green",
        "colour = red",
    )
    assert "yes = True" in names and "yes = False" not in names and "same" in names
    said = dict(zip(names, model.coef_, strict=True))
    assert abs(said["colour = red"] - 2) < 0.1 and abs(said["size"] - 1) < 0.1
    assert abs(said["size is missing"] + model.intercept_ + 3) < 0.2
    assert {names[k - 1] for k in model.projection_.support} == {
        "size",
        "size is missing",
        "colour = red",
    }
    curves = {curve.feature: curve for curve in model.rules_.rules[0].leaf.curves}
    assert np.isclose(curves[1](np.array([3.0]))[0], said["colour = red"]) and "red → " in str(
        model.rules_
    )
    assert "missing → " in str(model.rules_)


def test_a_column_of_many_labels_is_one_curve():
    codes = np.arange(400) % 40
    effect = np.random.default_rng(0).normal(size=40)
    frame = pd.DataFrame({"town": pd.Categorical([f"town {k}" for k in codes])})
    model = ProxyLinearRegressor(random_state=0).fit(frame, effect[codes])
    (curve,) = model.rules_.rules[0].leaf.curves
    assert len(curve.coef) == 40
    assert np.allclose(model.predict(frame), effect[codes], atol=0.2)
    assert np.array_equal(model.rules_.predict(frame), model.predict(frame))


def test_a_gap_where_the_equation_needs_a_number_is_refused():
    X, draws = draws_of(0)
    model = ProxyLinearRegressor(draws, penalty=0, missing="error").fit(X)
    X[0, 0] = np.nan
    for ask in (model.predict, model.predict_draws, model.predict_dist):
        with pytest.raises(ValueError, match="X must hold numbers in 'x0' for an equation"):
            ask(X)


# ------------------------------------------------------------------ the contract


@pytest.mark.parametrize("C", [0, 2, 3])
def test_weights_are_repetitions_and_rows_have_no_order(C):
    X, draws = draws_of(4, C=C)
    make = ProxyLinearClassifier if C else ProxyLinearRegressor
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, 60)
    often = rng.permutation(np.repeat(np.arange(60), w))
    one = make(draws).fit(X, sample_weight=w)
    two = make(draws[:, often]).fit(X[often])
    assert one.projection_.support == two.projection_.support
    assert np.allclose(one.coef_, two.coef_, rtol=1e-7) and np.allclose(
        one.coef_draws_, two.coef_draws_, rtol=1e-5
    )
    assert np.isclose(one.fidelity_, two.fidelity_) and np.isclose(one.fic_, two.fic_)
    assert np.allclose(one.inclusion_, two.inclusion_)


@pytest.mark.parametrize("C", [0, 2])
@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_units_do_not_matter(C, size):
    X, draws = draws_of(6, C=C)
    make = ProxyLinearClassifier if C else ProxyLinearRegressor
    y_size = 1.0 if C else size
    plain = make(draws).fit(X)
    scaled = make(draws * y_size).fit(X * size)
    assert np.allclose(scaled.coef_ * size / y_size, plain.coef_, rtol=1e-5)
    shifted = make(draws).fit(X + 1e4)
    assert np.allclose(shifted.coef_, plain.coef_, rtol=1e-4, atol=1e-7)
    if not C:
        wide = X * [1e8, 1e-8, 1, 1]
        assert np.allclose(make(draws).fit(wide).predict(wide), plain.predict(X), rtol=1e-6)
        assert np.isclose(scaled.std_, plain.std_ * size) and np.isclose(
            scaled.fidelity_, plain.fidelity_
        )


@pytest.mark.parametrize("C", [0, 2, 3])
def test_constant_and_repeated_columns_stay_out(C):
    X, draws = draws_of(7, C=C)
    make = ProxyLinearClassifier if C else ProxyLinearRegressor
    wide = np.column_stack([np.full(60, 7.0), X, X, X[:, 0] + X[:, 1]])
    plain = make(draws, penalty=0.1).fit(X)
    more = make(draws, penalty=0.1).fit(wide)
    coef = np.atleast_2d(more.coef_)
    assert (
        not coef[:, 0].any()
        and (coef != 0).any(axis=0).sum() <= (np.atleast_2d(plain.coef_) != 0).any(axis=0).sum()
    )
    answer = "predict_proba" if C else "predict"
    assert np.allclose(getattr(more, answer)(wide), getattr(plain, answer)(X), atol=1e-4)


def test_same_seed_same_answer_whatever_the_threads():
    X, y = load_diabetes(return_X_y=True)
    ridge = BayesianRidge().fit(X, y)
    one = ProxyLinearRegressor(ridge, random_state=0).fit(X)
    two = ProxyLinearRegressor(ridge, random_state=0, n_jobs=2).fit(X)
    assert np.array_equal(one.coef_draws_, two.coef_draws_) and np.array_equal(
        one.inclusion_, two.inclusion_
    )
    other = ProxyLinearRegressor(ridge, random_state=1).fit(X)
    assert not np.array_equal(one.coef_draws_, other.coef_draws_) and np.array_equal(
        one.coef_, other.coef_
    )
    X, draws = draws_of(0, C=3)
    one, two = (ProxyLinearClassifier(draws, n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert np.array_equal(one.coef_draws_, two.coef_draws_) and np.array_equal(
        one.inclusion_, two.inclusion_
    )
    copy = pickle.loads(pickle.dumps(one))
    assert np.array_equal(copy.predict_draws(X), one.predict_draws(X))


def test_one_draw_is_all_there_is():
    X, draws = draws_of(0, L=1)
    model = ProxyLinearRegressor(draws).fit(X)
    assert np.array_equal(model.coef_draws_[0], model.coef_) and np.array_equal(
        model.inclusion_, model.coef_ != 0
    )
    assert np.allclose(model.predict_dist(X).variance(), model.std_**2)
    model = ProxyLinearRegressor(np.repeat(draws, 3, axis=0)).fit(X)
    assert np.array_equal(model.inclusion_, model.coef_ != 0)


def test_trivial_references_give_trivial_equations():
    X, _ = draws_of(0)
    flat = ProxyLinearRegressor().fit(X, np.full(60, 3e5))
    assert not flat.coef_.any() and flat.intercept_ == 3e5 and flat.fidelity_ == 1
    one = ProxyLinearClassifier().fit(X, ["a"] * 60)
    assert np.array_equal(one.predict_proba(X), np.ones((60, 1))) and one.predict_draws(
        X
    ).shape == (1, 60, 1)
    assert one.fidelity_ == 1 and not one.inclusion_.any() and one.coef_.shape == (1, 4)
    sure = ProxyLinearClassifier(np.tile([0.0, 1.0], (2, 60, 1))).fit(X)
    assert np.array_equal(sure.predict(X), np.ones(60)) and not sure.coef_.any()
    line = ProxyLinearRegressor().fit(X, 1 + X @ [1.0, 0, 2, 0])
    assert np.allclose(line.coef_, [1, 0, 2, 0], atol=2e-2) and line.fidelity_ > 1 - 2 * FLOOR
    none = ProxyLinearRegressor(max_features=0).fit(X, X[:, 0])
    assert (
        not none.coef_.any()
        and len(none.path_) == 1
        and np.isclose(none.intercept_, X[:, 0].mean())
    )
    split = np.where(X[:, 0] > 0, "yes", "no")
    assert ProxyLinearClassifier().fit(X, split).score(X, split) == 1


def test_limits_hold_and_prices_shrink():
    X, draws = draws_of(9, d=8)
    sizes = [
        np.count_nonzero(ProxyLinearRegressor(draws, penalty=v).fit(X).coef_)
        for v in (0, 0.5, 1, 4, 1e9)
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 0
    for most in range(5):
        model = ProxyLinearRegressor(draws, penalty=0, max_features=most).fit(X)
        assert (
            np.count_nonzero(model.coef_) == most
            and (model.coef_draws_ != 0).sum(axis=1).max() <= most
        )
    frame = ProxyLinearRegressor(draws).fit(X).path_frame()
    assert frame["chosen"].sum() == 1 and frame["fic"].idxmax() == frame.index[frame["chosen"]][0]


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100))
    y = 3 * X[:, 4] + rng.normal(size=30)
    model = ProxyLinearRegressor(max_features=3).fit(X, y)
    assert 4 in np.flatnonzero(model.coef_) and len(model.path_) <= 4
    label = ProxyLinearClassifier(max_features=2).fit(X, y > 0)
    assert 4 in np.flatnonzero(label.coef_)


BAD = [
    (
        ProxyLinearRegressor,
        {"max_features": -1},
        "max_features must be an integer of at least 0, got -1",
    ),
    (
        ProxyLinearRegressor,
        {"penalty": -0.5},
        "penalty must be a finite number of at least 0.*got -0.5",
    ),
    (ProxyLinearRegressor, {"n_draws": 0}, "n_draws must be an integer of at least 1, got 0"),
    (ProxyLinearRegressor, {"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
    (ProxyLinearRegressor, {"random_state": "x"}, "random_state must be None"),
    (ProxyLinearRegressor, {"reference": np.zeros((3, 59))}, r"draws must have shape .*60"),
    (
        ProxyLinearRegressor,
        {"reference": np.full((3, 60), np.nan)},
        "draws must be finite, got nan",
    ),
    (ProxyLinearRegressor, {"reference": np.zeros((0, 60))}, "draws must"),
    (
        ProxyLinearRegressor,
        {"reference": np.full((3, 60, 2), 0.5)},
        "reference must predict numbers",
    ),
    (ProxyLinearClassifier, {"reference": np.zeros((3, 60))}, "reference must predict classes"),
    (
        ProxyLinearClassifier,
        {"reference": np.full((3, 60, 2), 0.7)},
        "draws of class probabilities must be at least 0",
    ),
    (
        ProxyLinearClassifier,
        {"reference": BayesianRidge().fit(np.eye(4), np.arange(4))},
        "must predict classes",
    ),
    (
        ProxyLinearRegressor,
        {"reference": LogisticRegression().fit(np.eye(4), [0, 0, 1, 1])},
        "predict numbers",
    ),
    (
        ProxyLinearRegressor,
        {"reference": BayesianRidge()},
        "which is not fitted, requires y",
    ),
    (ProxyLinearRegressor, {}, "requires y to be passed, but the target y is None"),
    (ProxyLinearRegressor, {"reference": "forest"}, "reference must be"),
]


@pytest.mark.parametrize(("cls", "changed", "message"), BAD, ids=lambda v: str(v)[:40])
def test_what_cannot_be_is_refused_in_one_line(cls, changed, message):
    X, _ = draws_of(0)
    with pytest.raises(ValueError, match=message) as told:
        cls(**changed).fit(X)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("cls", [ProxyLinearRegressor, ProxyLinearClassifier])
def test_a_target_beside_a_reference_is_checked_too(cls):
    X, _ = draws_of(0)
    labels = np.where(X[:, 0] > 0, 1, 0)
    known = LogisticRegression() if cls is ProxyLinearClassifier else BayesianRidge()
    known.fit(X, labels)
    cls(known).fit(X, labels)
    bad = [(np.where(labels, 1.0, np.nan), "Input y contains NaN")]
    bad += [(X[:, 0], "Unknown label type: continuous")] * (cls is ProxyLinearClassifier)
    for y, message in bad:
        with pytest.raises(ValueError, match=message):
            cls(known).fit(X, y)


def test_nothing_is_known_before_fit_and_grids_find_their_way():
    for model in (ProxyLinearRegressor(), ProxyLinearClassifier()):
        assert not hasattr(model, "rules_")
        with pytest.raises(NotFittedError):
            model.predict_draws(np.zeros((2, 2)))
    X, y = load_diabetes(return_X_y=True)
    grid = GridSearchCV(
        ProxyLinearRegressor(RandomForestRegressor(10, random_state=0)), {"max_features": [1, 4]}
    )
    assert grid.fit(X, y).best_params_ == {"max_features": 4}
    model = clone(grid.best_estimator_).fit(X, y)
    assert np.array_equal(model.coef_, grid.best_estimator_.coef_)


@given(seed=st.integers(0, 10**6))
@examples(20)
def test_the_design_and_its_values_differ_by_units_alone(seed):
    rng = np.random.default_rng(seed)
    frame = many_kinds(rng, 30)
    columns = read_columns(frame)
    Z = encode(frame, columns)
    terms = candidate_terms(Z, rng.uniform(0.1, 1, 30), columns)
    coef = rng.normal(size=(1 + len(terms.names), 2))
    value, slopes = coef_in_table_units(terms, coef, (3.0, 2.0))
    assert np.allclose(
        3 + 2 * terms.design(Z) @ coef, value + terms.values(Z) @ slopes.T, atol=1e-9
    )
