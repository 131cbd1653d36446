"""References: draws of every kind of model in one shape, with the same parameter behind the same number."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    Lasso,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from fabinterp.blackbox.draws import as_draws
from fabinterp.blackbox.reference import Reference, total_variance
from fabinterp.blackbox.wrapping import as_reference

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
Y = 4 * X[:, 0] + 20 + rng.normal(0, 1, 80)
LABELS = np.array(["low", "middle", "high"])[
    np.digitize(Y, [18, 22])
]  # not in the order of the alphabet
TWO = np.where(Y > 20, "u", "v")
KERNEL = ConstantKernel(1.0) * RBF(2.0) + WhiteKernel(0.1)


def gp_fit(kernel=KERNEL, X=X, y=Y, **more):
    return GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True, **more).fit(X, y)


REGRESSORS = {
    "process": lambda: gp_fit(),
    "ridge": lambda: BayesianRidge().fit(X, Y),
    "ard": lambda: ARDRegression().fit(X, Y),
    "forest": lambda: RandomForestRegressor(7, random_state=0).fit(X, Y),
    "extra": lambda: ExtraTreesRegressor(7, random_state=0).fit(X, Y),
    "bagging": lambda: BaggingRegressor(Ridge(), 7, max_features=2, random_state=0).fit(X, Y),
    "list": lambda: [Ridge().fit(X, Y), Lasso().fit(X, Y), DecisionTreeRegressor().fit(X, Y)],
    "point": lambda: GradientBoostingRegressor(n_estimators=5).fit(X, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), BayesianRidge()).fit(X, Y),
    "search": lambda: GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6, 1e-3]}, cv=2).fit(X, Y),
    "target": lambda: TransformedTargetRegressor(
        BayesianRidge(), func=np.log, inverse_func=np.exp
    ).fit(X, Y),
    "function": lambda: lambda X: np.stack([X[:, 0], X[:, 1], X[:, 2]]),
    "pair": lambda: lambda X: (X[:, 0], X[:, 1] ** 2),
}
CLASSIFIERS = {
    "process": lambda: GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, LABELS),
    "two": lambda: GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, TWO),
    "one_vs_one": lambda: GaussianProcessClassifier(
        RBF(2.0), optimizer=None, multi_class="one_vs_one"
    ).fit(X, LABELS),
    "forest": lambda: RandomForestClassifier(7, random_state=0).fit(X, LABELS),
    "bagging": lambda: BaggingClassifier(n_estimators=7, random_state=0).fit(X, LABELS),
    "points": lambda: GradientBoostingClassifier(n_estimators=5).fit(X, LABELS),
    "no_proba": lambda: RidgeClassifier().fit(X, LABELS),
    "pipeline": lambda: make_pipeline(
        StandardScaler(), RandomForestClassifier(7, random_state=0)
    ).fit(X, LABELS),
    "function": lambda: LogisticRegression().fit(X, LABELS).predict_proba,
    "list": lambda: [LogisticRegression(C=c).fit(X, LABELS) for c in (0.1, 1.0, 10.0)],
}


# What every reference promises


@pytest.mark.parametrize("name", REGRESSORS)
def test_regression_references_keep_their_promises(name):
    reference = as_reference(REGRESSORS[name](), random_state=1)
    draws = reference.draws(X)
    noise = reference.noise(X)
    assert draws.shape == noise.shape and draws.shape[1] == len(X) and draws.dtype == float
    assert (noise >= 0).all() and reference.classes is None
    assert np.array_equal(draws, reference.draws(X))  # the same s is the same parameter
    assert np.allclose(reference.draws(X[:9]), draws[:, :9], atol=1e-6)
    mean, var = reference.mean_var(X)
    assert mean.shape == var.shape == (len(X),)
    S = len(draws)
    epistemic = draws.var(axis=0)
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * np.sqrt(epistemic / S) + 1e-9).all()
    assert (np.abs(epistemic + noise.mean(axis=0) - var) <= 6 * epistemic / np.sqrt(S) + 1e-9).all()
    assert all(
        same is reference
        for same in (as_reference(reference), clone(reference), copy.deepcopy(reference))
    )
    few = reference.draws(X, n_draws=2)
    assert len(few) == min(2, S) and all(
        any(np.array_equal(row, draw) for draw in draws) for row in few
    )
    chosen = (
        reference.draws(X, n_draws=2, rng=7),
        reference.draws(X, n_draws=2, rng=np.random.default_rng(7)),
    )
    assert np.array_equal(*chosen)
    assert reference.noise(X, n_draws=2).shape == few.shape
    assert "Reference to" in repr(reference)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classification_references_keep_their_promises(name):
    reference = as_reference(CLASSIFIERS[name](), random_state=1)
    classes = np.unique(TWO if name == "two" else LABELS)
    draws = reference.draws(X)
    assert np.array_equal(reference.classes, classes) and draws.shape[1:] == (len(X), len(classes))
    assert np.allclose(draws.sum(axis=2), 1) and (draws >= 0).all()
    mean, var = reference.mean_var(X)
    assert var is None and np.allclose(mean.sum(axis=1), 1)
    assert np.allclose(
        mean, draws.mean(axis=0), atol=0.15 if reference.kind == "posterior" else 1e-9
    )
    turned = as_reference(reference, classes=classes[::-1])
    assert np.array_equal(turned.draws(X), draws[..., ::-1]) and np.array_equal(
        turned.mean_var(X)[0], mean[:, ::-1]
    )
    more = as_reference(reference, classes=[*classes, "zebra"])
    assert (
        np.array_equal(more.draws(X)[..., :-1], draws) and (more.mean_var(X)[0][:, -1] == 0).all()
    )
    with pytest.raises(ValueError, match="classes must contain all classes of the model"):
        as_reference(reference, classes=classes[1:])


@pytest.mark.parametrize("name", [name for name in REGRESSORS if name not in ("function", "pair")])
def test_references_pickle(name):
    reference = as_reference(REGRESSORS[name](), random_state=1)
    again = pickle.loads(pickle.dumps(reference))
    assert np.array_equal(again.draws(X), reference.draws(X))


def test_frames_are_asked_as_frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    models = [BayesianRidge(), RandomForestRegressor(5), BaggingRegressor(n_estimators=3), gp_fit(), Ridge(),
              make_pipeline(StandardScaler(), BayesianRidge())]  # fmt: skip
    for model in models:
        reference = as_reference(model.fit(frame, Y), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (
                np.isfinite(reference.draws(frame)).all()
                and np.isfinite(reference.mean_var(frame)[1]).all()
            )
        with pytest.raises(ValueError):
            reference.draws(frame.rename(columns={"a": "z"}))
    assert as_reference(Ridge().fit(X, Y)).draws(X.tolist()).shape == (1, len(X))


def test_the_seed_makes_the_draws():
    model = BayesianRidge().fit(X, Y)
    one, same, other = (as_reference(model, random_state=seed).draws(X) for seed in (0, 0, 1))
    assert np.array_equal(one, same) and not np.allclose(one, other)
    assert np.array_equal(as_reference(model, random_state=0, n_draws=7).draws(X), one[:7])


def test_n_draws_of_a_chain_are_spread_evenly():
    chain = as_reference(np.arange(100.0)[:, None] + np.zeros((100, 4)))
    assert chain.draws(np.zeros((4, 1)), n_draws=4)[:, 0].tolist() == [0, 25, 50, 75]
    assert as_reference(chain, n_draws=4).draws(np.zeros((4, 1)))[:, 0].tolist() == [0, 25, 50, 75]
    assert as_reference(chain, n_draws=1000).n_draws == 100
    chosen = chain.draws(np.zeros((4, 1)), n_draws=100, rng=0)[:, 0]
    assert sorted(chosen) == list(range(100)) and list(chosen) != sorted(chosen)


# The mathematics


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_total_variance_is_that_of_the_mixture(S, n, seed):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(S, n))
    noise = rng.exponential(size=(S, n))
    mean, var = total_variance(draws, noise)
    assert np.allclose(mean, draws.mean(axis=0))
    assert np.allclose(var, (noise + draws**2).mean(axis=0) - mean**2)  # E y² − (E y)²
    assert np.allclose(
        total_variance(draws, noise[:, 0])[1],
        total_variance(draws, np.repeat(noise[:, :1], n, 1))[1],
    )


def test_gaussian_process_draws_have_the_posterior_covariance_without_white_noise():
    gp = gp_fit()
    Z = X[:5] + 0.3
    reference = as_reference(gp, n_draws=4000, random_state=0)
    K = gp.kernel_.k1
    k = gp.kernel_.k1(Z, X)
    inside = K(X) + 0.1 * np.eye(len(X))
    mean = Y.mean() + k @ np.linalg.solve(inside, Y - Y.mean())
    cov = Y.var() * (K(Z) - k @ np.linalg.solve(inside, k.T))
    draws = reference.draws(Z)
    error = np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / 4000)
    assert (np.abs(np.cov(draws.T) - cov) < 5 * error).all()
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(cov) / 4000)).all()
    assert np.allclose(reference.noise(Z), 0.1 * Y.var()) and np.allclose(
        reference.noise(), 0.1 * Y.var()
    )
    assert np.allclose(reference.mean_var(Z), (mean, np.diag(cov) + 0.1 * Y.var()))


@pytest.mark.parametrize(
    "kernel", [2.0 * WhiteKernel(0.1) + RBF(), (RBF() + WhiteKernel(0.2)) * 1.0, RBF()]
)
def test_white_noise_is_found_wherever_it_stands(kernel):
    level = 0.0 if isinstance(kernel, RBF) else 0.2
    reference = as_reference(gp_fit(kernel, alpha=1e-10))
    assert np.allclose(reference.noise(), level * Y.var(), atol=1e-8 * Y.var())


def test_noise_that_depends_on_the_row_and_alpha():
    gp = gp_fit(RBF() + DotProduct(1.0) * WhiteKernel(0.1), alpha=0.3)
    expected = Y.var() * (0.3 + 0.1 * (1 + (X**2).sum(axis=1)))
    reference = as_reference(gp, n_draws=3)
    assert np.allclose(reference.noise(X), expected) and np.allclose(
        reference.noise(), expected.mean()
    )
    assert np.allclose(
        reference.mean_var(X)[1], gp.predict(X, return_std=True)[1] ** 2 + 0.3 * Y.var()
    )


@pytest.mark.parametrize(
    "model", [BayesianRidge(), ARDRegression(), BayesianRidge(fit_intercept=False)]
)
def test_linear_draws_are_lines_with_the_posterior_of_their_coefficients(model):
    wide = np.column_stack([X, rng.normal(size=(80, 2)), X[:, 0] + 1e-3 * rng.normal(size=80)])
    model.fit(wide, Y)
    reference = as_reference(model, n_draws=3000, random_state=0)
    Z = rng.normal(size=(6, 6))
    draws = reference.draws(Z)
    line = np.column_stack([np.ones(80), wide])
    coef = np.linalg.lstsq(line, reference.draws(wide, n_draws=20).T, rcond=None)[0]
    assert np.allclose(line @ coef, reference.draws(wide, n_draws=20).T)
    assert np.allclose(
        np.column_stack([np.ones(6), Z]) @ coef, draws[:20].T, atol=1e-6
    )  # the same lines elsewhere
    assert np.allclose(draws.var(axis=0) + 1 / model.alpha_, reference.mean_var(Z)[1], rtol=0.15)
    assert np.allclose(reference.noise(), 1 / model.alpha_)


def test_ard_that_keeps_no_feature_still_answers():
    model = ARDRegression(threshold_lambda=1e-12).fit(X, Y)
    reference = as_reference(model)
    assert (
        np.allclose(reference.draws(X), model.predict(X)) and (reference.mean_var(X)[1] > 0).all()
    )


def test_latent_functions_agree_with_scikit_learn():
    why = "scikit-learn tells them from 1.7 on"
    pytest.importorskip("sklearn", minversion="1.7", reason=why)
    model = GaussianProcessClassifier(RBF(2.0), optimizer=None).fit(X, TWO)
    draws = as_reference(model, n_draws=4000, random_state=0).draws(X[:20])[..., 1]
    latent = np.log(draws / (1 - draws))
    mean, var = model.latent_mean_and_variance(X[:20])
    assert (np.abs(latent.mean(axis=0) - mean) < 5 * np.sqrt(var / 4000)).all()
    assert np.allclose(latent.var(axis=0), var, rtol=0.15)


def test_members_answer_as_their_ensemble():
    for model, y in (
        (RandomForestRegressor(5), Y),
        (BaggingRegressor(n_estimators=5, max_features=2), Y),
    ):
        assert np.allclose(as_reference(model.fit(X, y)).mean_var(X)[0], model.predict(X))
    for model in (
        RandomForestClassifier(5),
        BaggingClassifier(n_estimators=5),
        BaggingClassifier(SVC(), 5),
    ):
        reference = as_reference(model.fit(X, LABELS))
        assert reference.kind == "pseudo-draws" and np.allclose(
            reference.mean_var(X)[0], model.predict_proba(X)
        )


def test_a_member_that_never_saw_a_class_gives_it_nothing():
    y = LABELS.copy()
    y[0] = "rare"
    model = BaggingClassifier(KNeighborsClassifier(3), 9, max_samples=0.3, random_state=0).fit(X, y)
    assert any(len(member.classes_) < 4 for member in model.estimators_)
    assert np.allclose(as_reference(model).mean_var(X)[0], model.predict_proba(X))
    parts = [
        LogisticRegression().fit(X[LABELS != left], LABELS[LABELS != left])
        for left in np.unique(LABELS)
    ]
    reference = as_reference(parts)
    assert (
        reference.classes.tolist() == sorted(set(LABELS))
        and (reference.draws(X)[0, :, 0] == 0).all()
    )


def test_transformed_target_is_the_mean_and_not_the_median():
    inner = BayesianRidge().fit(X, np.log(Y))
    outer = TransformedTargetRegressor(BayesianRidge(), func=np.log, inverse_func=np.exp).fit(X, Y)
    f, tau = (getattr(as_reference(inner, random_state=0), name)(X) for name in ("draws", "noise"))
    reference = as_reference(outer, random_state=0)
    assert np.allclose(reference.draws(X), np.exp(f + tau / 2))
    assert np.allclose(reference.noise(X), np.exp(2 * f + tau) * np.expm1(tau))
    with pytest.raises(ValueError, match="X must be given"):
        reference.noise()
    scaled = TransformedTargetRegressor(BayesianRidge(), transformer=StandardScaler()).fit(X, Y)
    assert np.allclose(as_reference(scaled).mean_var(X)[0], scaled.predict(X), atol=0.2)
    inside = as_reference(
        TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp).fit(X, Y)
    )
    assert inside.kind == "point"


def test_a_pipeline_of_fewer_draws_is_the_mean_of_these():
    model = make_pipeline(StandardScaler(), RandomForestRegressor(7, random_state=0)).fit(X, Y)
    few = as_reference(model, n_draws=3)
    draws = few.draws(X)
    assert len(draws) == 3 and np.allclose(few.mean_var(X)[0], draws.mean(axis=0))
    nested = make_pipeline(StandardScaler(), model).fit(X, Y)
    rows = nested[-1][0].transform(nested[0].transform(X))
    forest = as_reference(nested[-1][-1])
    assert np.array_equal(as_reference(nested).draws(X), forest.draws(rows))


def test_point_references_are_their_predictions():
    model = SVC().fit(X, LABELS)
    draws = as_reference(model).draws(X)
    assert np.array_equal(model.classes_[draws[0].argmax(axis=1)], model.predict(X))
    assert set(np.unique(draws)) == {0.0, 1.0}
    iris = load_iris()
    flowers = LogisticRegression(max_iter=1000).fit(iris.data, iris.target_names[iris.target])
    assert np.array_equal(
        as_reference(flowers).draws(iris.data)[0], flowers.predict_proba(iris.data)
    )


# Draws made elsewhere


def test_arrays_answer_for_their_rows_only():
    draws = rng.normal(size=(6, len(X)))
    reference = as_reference(draws, X=X)
    assert np.array_equal(reference.draws(X), draws) and (reference.noise() == 0).all()
    for wrong in (X[:-1], X[::-1], X + 1):
        with pytest.raises(ValueError, match="rows for which the draws were computed"):
            reference.draws(wrong)
        with pytest.raises(ValueError, match="rows for which the draws were computed"):
            reference.mean_var(wrong)
    assert np.array_equal(
        as_reference(draws).draws(X[::-1]), draws
    )  # only the number of rows is known
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(TWO)})
    frame.loc[0, "b"] = np.nan
    known = as_reference(draws, X=frame)
    assert np.array_equal(known.draws(frame.copy()), draws)
    with pytest.raises(ValueError, match="rows for which the draws were computed"):
        known.draws(frame.iloc[::-1])


def test_a_pair_is_mean_and_variance():
    mean = rng.normal(size=len(X))
    var = rng.exponential(size=len(X))
    for reference in (
        as_reference((mean, var), X=X),
        as_reference(lambda X: (mean[: len(X)], var[: len(X)])),
    ):
        assert np.array_equal(reference.mean_var(X), (mean, var))
        assert np.array_equal(reference.draws(X), mean[None]) and np.array_equal(
            reference.noise(X), var[None]
        )
    assert as_reference((mean, 2.0)).mean_var(X)[1].tolist() == [2.0] * len(X)
    draws = rng.normal(size=(3, len(X)))
    noise = np.array([1.0, 2.0, 3.0])
    assert np.allclose(as_reference((draws, noise)).mean_var(X), total_variance(draws, noise))


@given(st.integers(2, 5), st.integers(6, 9), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_shapes_that_people_return(S, n, C, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(S, n))
    shares = rng.dirichlet(np.ones(C), size=(S, n))
    assert np.array_equal(as_draws(numbers, n), numbers) and np.array_equal(
        as_draws(numbers[0], n)[0], numbers[0]
    )
    assert np.array_equal(as_draws(numbers[:1].T, n), numbers[:1])
    for n_classes in (None, C):
        assert np.array_equal(as_draws(shares, n, n_classes), shares)
        assert np.array_equal(as_draws(shares[0], n, n_classes), shares[:1])
    seconds = as_draws(shares[..., 0], n, 2)
    assert np.array_equal(seconds[..., 1], shares[..., 0]) and np.allclose(seconds.sum(axis=2), 1)
    with pytest.raises(ValueError, match="transposed"):
        as_draws(numbers.T, n)
    with pytest.raises(ValueError, match="draws must have shape"):
        as_draws(numbers, n, 3)


def test_functions_learn_their_classes():
    model = LogisticRegression().fit(X, LABELS)
    assert as_reference(lambda X: model.predict_proba(X), X=X).classes.tolist() == [0, 1, 2]
    known = as_reference(lambda X: model.predict_proba(X), classes=model.classes_)
    assert known.classes.tolist() == sorted(set(LABELS))
    assert as_reference(model.predict_proba).classes.tolist() == sorted(set(LABELS))
    second = as_reference(lambda X: 1 / (1 + np.exp(-X[:, 0])), classes=["no", "yes"])
    assert second.draws(X).shape == (1, len(X), 2)
    with pytest.raises(ValueError, match="draws must have shape"):
        as_reference(lambda X: model.predict_proba(X)).draws(
            X
        )  # nobody said that these are classes


# What is refused


class _Bare:
    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def predict(self, X):
        return np.zeros(len(X))


REFUSED = {
    "nan": (np.full((3, 80), np.nan), "draws must be finite, got nan"),
    "infinity": (np.full((3, 80), np.inf), "draws must be finite, got infinity"),
    "no draws": (np.empty((0, 80)), "with S ≥ 1 draws"),
    "transposed": (rng.normal(size=(80, 3)), "transposed"),
    "four axes": (np.zeros((1, 80, 2, 2)), "draws must have shape"),
    "negative": (
        np.stack([np.full((2, 80), -0.5), np.full((2, 80), 1.5)], axis=2),
        "must be at least 0 and sum to 1",
    ),
    "sum": (np.full((2, 80, 3), 0.5), "sum to 1"),
    "objects": (["a", "b"], "draws must be an array of numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "draws must be an array of numbers"),
    "variance": ((np.zeros(80), -np.ones(80)), "model must return variances of at least 0"),
    "variance shape": ((np.zeros(80), np.ones(7)), "model must return variances of shape"),
    "triple": ((np.zeros(80), np.ones(80), np.ones(80)), "model may return a tuple only as"),
    "class": (Ridge, "model must be a fitted model, got the class Ridge"),
    "none": (None, "model must be a fitted estimator"),
    "text": ("model.pkl", "model must be a fitted estimator"),
    "several targets": (GaussianProcessRegressor().fit(X, np.stack([Y, Y], 1)), "one target"),
    "several outputs": (RandomForestClassifier(2).fit(X, np.stack([TWO, TWO], 1)), "one output"),
    "mixed": (
        [Ridge().fit(X, Y), LogisticRegression().fit(X, TWO)],
        "list of regressors, got a list with both",
    ),
    "no classes": (_Bare(), "classes must be given for _Bare"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_reference_is_refused_in_one_line(name):
    model, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as caught:
        as_reference(model, X=X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", [Ridge(), GaussianProcessRegressor(), RandomForestRegressor(), BayesianRidge(),
                                   make_pipeline(StandardScaler(), Ridge()), [Ridge()],
                                   GridSearchCV(Ridge(), {"alpha": [1.0]})])  # fmt: skip
def test_unfitted_models_are_refused(model):
    with pytest.raises(NotFittedError, match="model must be fitted"):
        as_reference(model)


def test_arguments_are_checked():
    model = BayesianRidge().fit(X, Y)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n_draws must be an integer of at least 1"):
            as_reference(model, n_draws=wrong)
        with pytest.raises(ValueError, match="n_draws must be an integer of at least 1"):
            as_reference(model).draws(X, n_draws=wrong)
    with pytest.raises(ValueError, match="random_state must be"):
        as_reference(model, random_state="x")
    with pytest.raises(ValueError, match="classes must be None for a model that predicts numbers"):
        as_reference(model, classes=["a", "b"])
    for wrong in ([], ["a", "a"], [["a"]]):
        with pytest.raises(ValueError, match="classes must list each label once"):
            as_reference(LogisticRegression().fit(X, TWO), classes=wrong)
    with pytest.raises(ValueError, match="X must have at least one row"):
        as_reference(model).draws(X[:0])
    with pytest.raises(
        ValueError, match="X must be given to compute the noise variance of a function"
    ):
        as_reference(lambda X: X[:, 0]).noise()


def test_a_model_that_answers_nan_is_caught_when_asked():
    reference = as_reference(lambda X: np.full(len(X), np.nan))
    with pytest.raises(ValueError, match="draws must be finite"):
        reference.mean_var(X)
    two = as_reference(lambda X: X)
    with pytest.raises(ValueError, match="draws must have shape"):
        two.draws(X)


# stochtree, the real one


@pytest.fixture(scope="module")
def stochtree():
    return pytest.importorskip("stochtree", reason="stochtree is not installed")


def sampled(stochtree, y, table=X, **more):
    model = stochtree.BARTModel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        general = {"random_seed": 1, **more.pop("general_params", {})}
        model.sample(
            X_train=table, y_train=y, num_gfr=5, num_mcmc=15, general_params=general, **more
        )
    return model


def test_bart_draws_are_those_of_its_chain(stochtree):
    model = sampled(stochtree, Y)
    reference = as_reference(model)
    draws = model.predict(X, type="posterior", terms="y_hat").T
    assert reference.kind == "posterior" and np.array_equal(reference.draws(X), draws)
    assert np.array_equal(reference.noise(), model.global_var_samples)
    assert np.allclose(reference.mean_var(X), total_variance(draws, model.global_var_samples))
    locked = X[:1].copy()
    locked.flags.writeable = False
    assert reference.draws(locked).shape == (15, 1)
    with pytest.raises(TypeError):
        pickle.dumps(model)
    assert clone(reference) is reference
    assert np.array_equal(pickle.loads(pickle.dumps(reference)).draws(X), draws)


def test_bart_with_other_noise(stochtree):
    rows = sampled(stochtree, Y, variance_forest_params={"num_trees": 5})
    reference = as_reference(rows)
    noise = rows.predict(X, type="posterior", terms="variance_forest").T
    assert np.array_equal(reference.noise(X), noise) and np.allclose(
        reference.noise(), noise.mean(axis=1)
    )
    fixed = sampled(stochtree, Y, general_params={"sample_sigma2_global": False})
    assert np.allclose(as_reference(fixed).noise(), fixed.sigma2_init * fixed.y_std**2)


def test_bart_for_classes(stochtree):
    for link in ("probit", "cloglog"):
        outcome = stochtree.OutcomeModel(outcome="binary", link=link)
        reference = as_reference(
            sampled(stochtree, (Y > 20) * 1.0, general_params={"outcome_model": outcome})
        )
        shares = reference.mean_var(X)[0]
        assert (
            reference.classes.tolist() == [0, 1] and np.corrcoef(shares[:, 1], Y > 20)[0, 1] > 0.6
        )
        assert (reference.noise() == 0).all()
    outcome = stochtree.OutcomeModel(outcome="ordinal", link="cloglog")
    grades = np.digitize(Y, [18, 22]) + 1.0
    reference = as_reference(sampled(stochtree, grades, general_params={"outcome_model": outcome}))
    assert reference.draws(X).shape == (15, len(X), 3) and reference.classes.tolist() == [1, 2, 3]
    assert (reference.classes[reference.mean_var(X)[0].argmax(axis=1)] == grades).mean() > 0.7


def test_bart_wrappers(stochtree):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    seed = {"general_params": {"random_seed": 1}}
    regressor = stochtree.StochTreeBARTRegressor(num_gfr=5, num_mcmc=15, **seed).fit(frame, Y)
    reference = as_reference(regressor)
    assert (
        np.allclose(reference.mean_var(frame)[0], regressor.predict(frame))
        and len(reference.noise()) == 15
    )
    classifier = stochtree.StochTreeBARTBinaryClassifier(num_gfr=5, num_mcmc=15, **seed).fit(X, TWO)
    reference = as_reference(classifier)
    assert reference.classes.tolist() == ["u", "v"]
    assert (
        np.corrcoef(reference.mean_var(X)[0][:, 1], classifier.predict_proba(X)[:, 1])[0, 1] > 0.99
    )
    again = pickle.loads(pickle.dumps(reference))
    assert np.array_equal(again.mean_var(X)[0], reference.mean_var(X)[0])
    piped = make_pipeline(StandardScaler(), regressor)
    assert as_reference(piped.fit(X, Y)).kind == "posterior"


def test_bart_with_categories_and_bart_that_needs_more(stochtree):
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(TWO)})
    assert as_reference(sampled(stochtree, Y, frame)).draws(frame[:3]).shape == (15, 3)
    with pytest.raises(NotFittedError, match="model must be fitted"):
        as_reference(stochtree.BARTModel())
    basis = sampled(stochtree, Y, leaf_basis_train=X[:, :1])
    with pytest.raises(ValueError, match="give a function of X"):
        as_reference(basis)
    answers = as_reference(
        lambda X: basis.predict(X, leaf_basis=X[:, :1], type="posterior", terms="y_hat").T
    )
    assert answers.draws(X).shape == (15, len(X))


@examples(20)
@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 1000))
def test_any_number_of_draws_of_any_rows(n_draws, n, seed):
    for model in (BayesianRidge().fit(X, Y), RandomForestRegressor(3, random_state=0).fit(X, Y)):
        reference = as_reference(model, random_state=seed)
        assert isinstance(reference, Reference)
        draws = reference.draws(X[:n], n_draws=n_draws)
        assert draws.shape == (n_draws if reference.kind == "posterior" else min(n_draws, 3), n)
        assert reference.draws(X[:n], n_draws=n_draws, rng=seed).shape == draws.shape
