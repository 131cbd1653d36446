"""What every public estimator does: scikit-learn's checks, tables, repeatability, refusals.

The quick tier has one setting of each family, the slow tier has all others.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from shared.doors import by_python, by_sql
from shared.estimators import ONE_OF_EACH, SETTINGS, each
from shared.tables import mixed_frame
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_array_api_input, estimator_checks_generator

import fabinterp

pytestmark = [
    pytest.mark.filterwarnings("ignore:FIC still rises"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

HOSTILE = ["<script>alert(1)</script>", "a \"b\" 'c'; DROP TABLE t --", "$x_1$ {0} %s\\n"]
QUESTIONS = ("predict", "predict_proba", "predict_log_proba", "predict_interval", "predict_path", "predict_posterior",
             "predict_draws", "predict_dist", "apply", "decision_path")  # fmt: skip


def of_classes(settings=SETTINGS):
    """Choose the classifiers."""
    return [setting for setting in settings if setting.is_classifier]


def table(setting, n=120, n_classes=2):
    """Draw X (n, 3) and the target y (n,) of two pieces: numbers, or class numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(2)
    t = np.where(X[:, 0] > 0.3, 2 + X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=n)
    if setting.is_classifier:
        return X, np.digitize(t, np.quantile(t, np.arange(1, n_classes) / n_classes))
    return X, t


def answers(model, X):
    """Return what a model says of rows as numbers: class probabilities, or predictions."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def rules_of(model):
    """Return the rules of a model; None of a forest of meta-trees, which has none."""
    return getattr(model, "rules_", None)


def questions(model):
    """Return the questions about rows that a class of models answers."""
    return [name for name in QUESTIONS if hasattr(type(model), name) and hasattr(model, name)]


# ------------------------------------------------------------------ the registry


def test_every_public_estimator_is_asked():
    public = {
        value for name in fabinterp.__all__ if isinstance(value := getattr(fabinterp, name), type)
    }
    estimators = {cls for cls in public if issubclass(cls, BaseEstimator)}
    assert {type(setting.estimator) for setting in SETTINGS} == estimators


# ------------------------------------------------------------------ scikit-learn


def own_checks():
    """Pair each setting with scikit-learn's checks of it, but the one for libraries of arrays, which nobody claims."""
    for setting in SETTINGS:
        for estimator, check in estimator_checks_generator(setting.estimator, mark="xfail"):
            options = ",".join(f"{name}={value}" for name, value in check.keywords.items())
            name = check.func.__name__ + (f"({options})" if options else "")
            if check.func is not check_array_api_input:
                marks = [] if setting.quick else pytest.mark.slow
                yield pytest.param(estimator, check, marks=marks, id=f"{setting.name}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(own_checks()))
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@each()
def test_clone_pickle_and_repr(setting):
    X, y = table(setting)
    model = setting.fresh().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(answers(again, X), answers(model, X)) and rules_of(again) == rules_of(
        model
    )
    copy = clone(model)
    assert repr(copy) == repr(setting.estimator) and repr(model).startswith(
        type(model).__name__ + "("
    )
    assert not [name for name in vars(copy) if name.endswith("_")]


@each()
def test_columns_are_known_by_name(setting):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c d"])
    model = setting.fresh().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c d"] and model.n_features_in_ == 3
    assert np.array_equal(answers(model, frame[["b", "c d", "a"]]), answers(model, frame))
    others = [
        frame[["a", "b"]],
        frame.assign(e=1.0),
        frame.rename(columns={"a": "z"}),
    ]
    for other in others:
        for method in questions(model):
            with pytest.raises(ValueError, match="feature names|columns"):
                getattr(model, method)(other)
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(model.predict(X), model.predict(frame))
    with (
        pytest.raises(ValueError, match="features"),
        pytest.warns(UserWarning, match="feature names"),
    ):
        model.predict(X[:, :2])


# ------------------------------------------------------------------ any table


@each(ONE_OF_EACH)
def test_a_frame_of_another_library(setting):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    other = pyarrow.Table.from_pandas(frame)
    model = setting.fresh(random_state=0).fit(other, y)
    assert rules_of(model) == rules_of(setting.fresh(random_state=0).fit(frame, y))
    assert np.array_equal(model.predict(other), model.predict(frame))


@each([setting for setting in ONE_OF_EACH if not setting.numbers_only])
def test_a_label_that_was_never_seen_is_warned_of(setting):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"size": rng.normal(size=60), "home": rng.choice(["a", "b"], 60)})
    frame.loc[::7, "home"] = None
    y = frame["size"] + (frame["home"] == "a")
    model = setting.fresh().fit(frame, y > 0 if setting.is_classifier else y)
    with pytest.warns(UserWarning, match="labels that were not in the training rows, in 'home'"):
        model.predict(frame.assign(home="mars"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)


@each([setting for setting in ONE_OF_EACH if not setting.numbers_only])
def test_a_column_of_names_is_warned_of(setting):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(id=[f"no {k}" for k in range(len(X))])
    with pytest.warns(UserWarning, match="a distinct label in each row in 'id'"):
        setting.fresh().fit(frame, y)


@each(ONE_OF_EACH)
def test_what_y_is_called(setting):
    X, y = table(setting)
    model = setting.fresh().fit(X, pd.Series(y, name="churn"))
    assert model.rules_.target == "churn" and ' AS "churn"' in model.rules_.to_sql("people")
    assert setting.fresh().fit(X, y).rules_.target == "y"


@each(ONE_OF_EACH)
def test_a_target_with_none_or_text_is_refused_in_words(setting):
    X, y = table(setting)
    gap = y.astype(object)
    gap[3] = None
    with pytest.raises(ValueError, match="y must have no missing values, got None in row 3"):
        setting.fresh().fit(X, gap)
    if not setting.is_classifier:
        with pytest.raises(
            ValueError, match="y of a regressor must hold numbers, got '(low|high)'"
        ):
            setting.fresh().fit(X, np.where(y > y.mean(), "low", "high"))


@each([setting for setting in SETTINGS if not setting.numbers_only])
def test_a_frame_with_labels_and_gaps(setting):
    rng = np.random.default_rng(3)
    frame = mixed_frame(rng, 120)
    t = (
        np.where(frame["colour"].isin(["red", "black"]), 2.0, 0.0)
        + frame["yes"]
        + 0.3 * rng.normal(size=120)
    )
    y = np.where(t > 1.5, "in", "out") if setting.is_classifier else t
    if not get_tags(setting.estimator).input_tags.allow_nan:
        frame["size"] = frame["size"].fillna(0.0)
    model = setting.fresh().fit(frame, y)
    said = model.predict(frame)
    assert said.shape == (120,) and (
        set(said) <= {"in", "out"} if setting.is_classifier else np.isfinite(said).all()
    )
    if rules_of(model) is not None:
        assert np.array_equal(model.rules_.predict(frame), said)


@each()
def test_names_are_text_and_nothing_else(setting):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=HOSTILE)
    model = setting.fresh(random_state=0).fit(frame, y)
    plain = setting.fresh(random_state=0).fit(X, y)
    assert np.allclose(
        answers(model, frame), answers(plain, X), rtol=1e-10
    )  # a reference may add in another order
    rules = rules_of(model)
    if rules is None:
        return
    assert type(rules).from_json(rules.to_json()) == rules and rules.columns.names == tuple(HOSTILE)
    told = by_python(rules, frame), by_sql(rules, frame)[0]
    for other in told:
        if setting.is_classifier:
            assert other == model.predict(frame).tolist()
        else:
            assert np.allclose(other, model.predict(frame), rtol=1e-9, atol=1e-9)


@each(of_classes())
def test_labels_may_be_words(setting):
    X, y = table(setting, n_classes=3)
    words = np.array(["a few", "many", "no"])  # in the order of their numbers
    by_number, by_word = (setting.fresh(random_state=0).fit(X, labels) for labels in (y, words[y]))
    assert by_word.classes_.tolist() == words.tolist()
    assert np.array_equal(by_word.predict(X), words[by_number.predict(X)])
    assert np.allclose(answers(by_word, X), answers(by_number, X), rtol=1e-12)


# ------------------------------------------------------------------ the same answer, always


@each()
def test_weights_are_repetitions_and_rows_have_no_order(setting):
    X, y = table(setting, n=80)
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, 80)
    at = rng.permutation(np.repeat(np.arange(80), w))
    weighted = setting.fresh(random_state=0).fit(X, y, w)
    repeated = setting.fresh(random_state=0).fit(X[at], y[at])
    assert np.allclose(answers(weighted, X), answers(repeated, X), rtol=1e-7, atol=1e-9)
    junk = np.vstack([X, np.full((3, 3), 1e6)])
    unweighted = setting.fresh(random_state=0).fit(
        junk, np.append(y, [y[0]] * 3), np.append(w, [0, 0, 0])
    )
    assert np.allclose(answers(unweighted, X), answers(weighted, X), rtol=1e-7, atol=1e-9)


@each()
def test_one_seed_one_answer_whatever_the_number_of_jobs(setting):
    X, y = table(setting)
    runs = [setting.fresh(random_state=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 1)]
    for other in runs[1:]:
        assert np.array_equal(answers(other, X), answers(runs[0], X)) and rules_of(
            other
        ) == rules_of(runs[0])


# ------------------------------------------------------------------ refusals


@each()
@pytest.mark.parametrize("n_classes", [2, 3])
def test_wrong_data_are_refused(setting, n_classes):
    X, y = table(setting, n_classes=n_classes)
    infinite = X.copy()
    infinite[3, 1] = np.inf
    model = setting.fresh()
    for bad, said in (
        (infinite, "infinity in column|contains infinity"),
        (X[:1], "1 sample"),
        (X[:0], "0 sample"),
        (X[:, 0], "2D array"),
        (X[None], "dim 3"),
        (X[:, :0], "0 feature"),
        (X[:50], "inconsistent|does not match"),
        (X.astype(str), "X must hold numbers"),
        (None, "Expected 2D"),
    ):
        with pytest.raises(ValueError, match=said):
            model.fit(bad, y[: len(bad)] if np.size(bad) < 4 and bad is not None else y)
    for wrong, said in (
        (None, "y"),
        (np.c_[y, y], "y should be a 1d array"),
        (np.full(120, np.nan), "y"),
    ):
        with pytest.raises(ValueError, match=said):
            model.fit(X, wrong)
    for w in (-np.ones(120), np.zeros(120), np.ones(3), np.full(120, np.nan)):
        with pytest.raises(ValueError, match="(?i)sample.?weight"):
            model.fit(X, y, w)
    with pytest.raises(ValueError, match="infinity in column|contains infinity"):
        model.fit(X, y).predict(infinite)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(pd.DataFrame(infinite, columns=list("abc")), y)


@each(of_classes())
def test_a_classifier_refuses_numbers(setting):
    X, y = table(setting)
    with pytest.raises(ValueError, match="Unknown label type"):
        setting.fresh().fit(X, y + np.linspace(0, 0.5, len(y)))


@each()
def test_nothing_works_before_fit(setting):
    X, y = table(setting)
    asked = questions(setting.fresh().fit(X, y))
    assert "predict" in asked and ("predict_proba" in asked) == setting.is_classifier
    for method in asked:
        with pytest.raises(NotFittedError):
            getattr(setting.fresh(), method)(X)
