"""A fit sees the same rows however they come, its labels in an order that makes sets intervals; the rest is refused."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fabinterp import ProxyLinearRegressor
from fabinterp.rows.tables import (
    apply_in_chunks,
    build_training_data,
    check_fit_target,
    check_parameters,
    check_predict_rows,
    check_rows,
    column_positions,
    distinct_rows,
    is_fitted,
    label_codes,
    location_scale,
    order_categories,
    seed_entropy,
)
from fabinterp.rules.core import Columns, encode
from fabinterp.rules.schema import ColumnSchema

seeds = st.integers(0, 10**6)


class Numbers(RegressorMixin, BaseEstimator):
    """An estimator that remembers the rows that it was given."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X, y, sample_weight=None):
        self.rows_ = build_training_data(self, X, y, sample_weight)
        self.columns_ = self.rows_.columns
        self._framed = self.rows_.framed
        return self


class Words(ClassifierMixin, Numbers):
    pass


def frame(rng, n):
    X = pd.DataFrame(
        {
            "size": rng.integers(0, 4, n) / 3,
            "colour": pd.Categorical(rng.choice(["red", "blue", "green", "black"], n)),
            "yes": rng.random(n) < 0.5,
            "word": rng.choice(["a", "b's", "c"], n).astype(object),
        }
    )
    X.loc[rng.random(n) < 0.2, "size"] = np.nan
    X.loc[rng.random(n) < 0.1, "colour"] = None
    return X


def same(a, b):
    """Whether two Training objects hold the same rows, bit for bit."""
    return (
        np.array_equal(a.Z, b.Z, equal_nan=True)
        and np.array_equal(a.y, b.y)
        and np.array_equal(a.w, b.w)
        and a.columns == b.columns
        and a.original_columns == b.original_columns
        and np.array_equal(a.target, b.target)
    )


# ------------------------------------------------------------------ the rows


@given(seeds)
@examples(50)
def test_distinct_rows_are_the_rows_once(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    Z = rng.integers(0, 3, (n, 2)).astype(float)
    y = rng.integers(0, 2, n)
    Z[rng.random(Z.shape) < 0.2] = np.nan
    w = rng.integers(0, 3, n).astype(float)
    w[0] = 1.0
    at, mass, _ = distinct_rows(Z, y, w)
    key = [str((*Z[i], y[i])) for i in range(n)]
    assert len({key[i] for i in at}) == len(at)
    assert {key[i]: m for i, m in zip(at, mass)} == {
        k: sum(w[i] for i in range(n) if key[i] == k)
        for k in {key[i] for i in range(n) if w[i] > 0}
    }
    turned = rng.permutation(n)
    other, weight, _ = distinct_rows(Z[turned], y[turned], w[turned])
    assert np.array_equal(Z[at], Z[turned][other], equal_nan=True) and np.array_equal(mass, weight)


@given(seeds, st.sampled_from([Numbers, Words]), st.booleans())
@examples(60)
def test_weights_are_repetitions_and_order_does_not_matter(seed, cls, framed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    X = frame(rng, n) if framed else rng.integers(0, 3, (n, 2)).astype(float)
    y = rng.integers(0, 3, n) / 7 if cls is Numbers else rng.choice(["low", "mid", "high"], n)
    w = rng.integers(1, 4, n)
    at = rng.permutation(np.repeat(np.arange(n), w))
    turned = X.iloc[at] if framed else X[at]
    one = cls().fit(X, y, w).rows_
    two = cls().fit(turned, y[at]).rows_
    assert same(one, two)
    assert one.w.sum() == w.sum() and len(np.unique(one.first_positions)) == len(
        one.first_positions
    )
    told = encode(X, one.columns)[one.first_positions] if framed else X[one.first_positions]
    assert np.array_equal(told, one.Z, equal_nan=True) and np.array_equal(
        y[one.first_positions], one.target
    )


@pytest.mark.parametrize("framed", [True, False])
def test_what_is_found_is_returned(framed):
    rng = np.random.default_rng(0)
    X = frame(rng, 60) if framed else rng.normal(size=(60, 2))
    y = rng.choice(["a", "b"], 60)
    model = Words().fit(X, y)
    assert model.rows_.classes.tolist() == ["a", "b"]
    assert (
        model.n_features_in_ == X.shape[1]
        and hasattr(model, "feature_names_in_") == framed == model.rows_.framed
    )
    assert np.array_equal(
        check_predict_rows(model, X)[model.rows_.first_positions], model.rows_.Z, equal_nan=True
    )
    assert (
        not hasattr(model, "classes_")
        and Numbers().fit(X, rng.normal(size=60)).rows_.classes is None
    )


def test_rows_of_no_weight_leave_no_trace_but_their_labels():
    rng = np.random.default_rng(1)
    X = frame(rng, 40)
    y = rng.normal(size=40)
    w = np.append(np.ones(30), np.zeros(10))
    other = X.copy()
    other.loc[30:, "size"] = 99.0
    assert same(
        Numbers().fit(X, y, w).rows_, Numbers().fit(other, np.append(y[:30], y[30:] + 5), w).rows_
    )


# ------------------------------------------------------------------ labels


@given(seeds, st.booleans())
@examples(60)
def test_ordered_categories_hold_the_best_set_as_an_interval(seed, classes):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    z = rng.integers(0, m, 60).astype(float)
    w = rng.random(60)
    y = rng.integers(0, 2, 60) if classes else rng.normal(size=60)
    ordered = order_categories(Columns(("c",), (tuple("abcdef"[:m]),)), z[:, None], y, w)

    def loss(inside):
        held = np.isin(z, list(inside))
        return sum(
            (w[part] * (y[part] - np.average(y[part], weights=w[part])) ** 2).sum()
            for part in (held, ~held)
            if part.any()
        )

    sets = [inside for size in range(m + 1) for inside in combinations(range(m), size)]
    intervals = [
        ["abcdef".index(label) for label in ordered.categories[0][:k]] for k in range(m + 1)
    ]
    assert min(map(loss, intervals)) == pytest.approx(min(map(loss, sets)), abs=1e-9)


@given(seeds, st.integers(2, 4))
@examples(40)
def test_the_order_does_not_depend_on_the_codes_at_the_start(seed, n_classes):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 5, 80)
    y = rng.integers(0, n_classes, 80)
    w = rng.random(80)
    names = np.array(list("abcde"))
    turned = rng.permutation(5)
    first = order_categories(
        Columns(("c",), (tuple(names),)), z[:, None].astype(float), y, w
    ).categories[0]
    again = order_categories(
        Columns(("c",), (tuple(names[turned]),)), np.argsort(turned)[z][:, None].astype(float), y, w
    ).categories[0]
    assert first in (again, again[::-1])


def test_what_has_no_order_to_learn_stays():
    columns = Columns(("n", "b", "c"), (None, (False, True), ("p", "q", "r")))
    Z = np.array([[1.0, 1.0, np.nan], [2.0, 0.0, np.nan]])
    assert (
        order_categories(columns, Z, np.array([3.0, 1.0]), np.ones(2)) == columns
    )  # no row has a label
    Z[:, 2] = [2.0, 0.0]
    assert order_categories(columns, Z, np.array([5.0, 5.0]), np.ones(2)) == columns  # constant y
    assert order_categories(columns, Z, np.array([0, 0]), np.ones(2)) == columns  # one class
    ordered = order_categories(columns, Z, np.array([3.0, 1.0]), np.ones(2))
    assert (
        set(ordered.categories[2]) == {"p", "q", "r"}
        and ordered.categories[:2] == columns.categories[:2]
    )
    assert ordered.categories[2].index("q") == 1  # a label without rows counts as average


# ------------------------------------------------------------------ units, chunks, seeds


@given(seeds, st.sampled_from([1e-12, 1e-3, 1e3, 1e12]), st.sampled_from([0.0, 1e6, -1e9]))
@examples(60)
def test_units_do_not_show(seed, scale, offset):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=30) * 1024) / 1024
    w = rng.random(30) + 0.1
    (c, s) = location_scale(x, w)
    (c_scaled, s_scaled) = location_scale(x * scale, w)
    (c_moved, s_moved) = location_scale(x + offset, w)
    assert np.allclose((x * scale - c_scaled) / s_scaled, (x - c) / s, rtol=1e-12, atol=1e-12)
    assert np.array_equal((x + offset - c_moved) / s_moved, (x - c) / s)


def test_units_of_what_has_none():
    w = np.ones(4)
    assert location_scale(np.full(4, np.nan), w) == (0.0, 1.0)
    assert location_scale(np.full(4, 1e9 / 3), w) == (1e9 / 3, 1.0)
    assert location_scale(np.array([np.nan, 1.0, 3.0, np.nan]), w) == (1.0, np.sqrt(2.0))


def test_by_chunks_sees_every_row_once():
    Z = np.arange(20.0).reshape(10, 2)
    sizes = []
    assert np.array_equal(
        apply_in_chunks(lambda rows: sizes.append(len(rows)) or rows[:, 0], Z, size=4), Z[:, 0]
    )
    assert sizes == [4, 4, 2]


def test_entropy_is_that_of_the_seed():
    assert np.array_equal(seed_entropy(3), seed_entropy(np.random.RandomState(3)))
    assert not np.array_equal(seed_entropy(3), seed_entropy(4)) and seed_entropy(None).shape == (4,)
    for wrong in ("seed", -1, 2**32, 1.5):
        with pytest.raises(ValueError, match=r"random_state must be None, an integer .* got"):
            seed_entropy(wrong)


# ------------------------------------------------------------------ refusals

LIMITS = {
    "at_least": {"depth": 1, "verbose": 0, "price": 0.0, "rules": 2},
    "one_of": {"init": ("grow", "random")},
    "may_be_none": ("depth",),
}
GOOD = {"depth": 3, "verbose": 0, "price": 1.0, "rules": 2, "init": "grow"}


def holding(**values):
    return type("Holding", (), values)()


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"depth": None},
        {"verbose": True},
        {"verbose": False},
        {"price": 0},
        {"price": np.float32(0.5)},
        {"depth": np.int64(1)},
        {"n_jobs": None},
        {"n_jobs": -1},
        {"min_weight_fraction": 0.0},
        {"init": "random"},
    ],
)
def test_right_parameters_pass(right):
    check_parameters(GOOD | right, **LIMITS)


@pytest.mark.parametrize(
    "name,value,said",
    [
        ("depth", 0, "an integer of at least 1"),
        ("depth", 2.0, "an integer of at least 1"),
        ("depth", True, "an integer of at least 1"),
        ("rules", None, "an integer of at least 2"),
        ("price", -1e-9, "a finite number of at least 0.0"),
        ("price", np.nan, "a finite number of at least 0.0"),
        ("price", np.inf, "a finite number of at least 0.0"),
        ("price", None, "a finite number of at least 0.0"),
        ("price", True, "a finite number of at least 0.0"),
        ("price", "1", "a finite number of at least 0.0"),
        ("init", "grown", "one of 'grow', 'random'"),
        ("init", None, "one of 'grow', 'random'"),
        ("min_weight_fraction", 1, "below 1"),
        ("n_jobs", 0, "None or an integer other than 0"),
        ("n_jobs", 1.5, "None or an integer other than 0"),
        ("verbose", "loud", "an integer of at least 0"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(name, value, said):
    with pytest.raises(ValueError) as refused:
        check_parameters(GOOD | {name: value}, **LIMITS)
    assert str(refused.value) == f"{name} must be {said}, got {value!r}"


@pytest.mark.parametrize("cls", [Numbers, Words])
def test_wrong_tables_are_refused(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = rng.normal(size=20) if cls is Numbers else rng.choice(["a", "b"], 20)
    infinite = X.copy()
    infinite[3, 1] = np.inf
    for bad, said in (
        (infinite, "infinity in column 'x1'"),
        (X[:1], "1 sample"),
        (X[:, 0], "2D array"),
        (X[:9], "incons"),
        (X[:, :0], "0 feature"),
        (X.astype(str), "X must hold numbers"),
        (None, "Expected 2D"),
    ):
        with pytest.raises(ValueError, match=said):
            cls().fit(bad, y[:1] if bad is not None and len(bad) == 1 else y)
    for w in (-np.ones(20), np.zeros(20), np.ones(3), np.full(20, np.nan)):
        with pytest.raises(ValueError, match="(?i)sample.?weight"):
            cls().fit(X, y, w)
    with pytest.raises(ValueError, match="infinity"):
        check_predict_rows(cls().fit(X, y), infinite)
    with pytest.raises(NotFittedError):
        check_predict_rows(cls(), X)


def test_other_tables_are_refused_at_predict():
    rng = np.random.default_rng(0)
    X = frame(rng, 40)
    model = Numbers().fit(X, rng.normal(size=40))
    turned = check_predict_rows(model, X[X.columns[::-1]])
    assert np.array_equal(turned, check_predict_rows(model, X), equal_nan=True)
    for other in (
        X.drop(columns="yes"),
        X.assign(more=1.0),
        X.rename(columns={"size": "area"}),
    ):
        with pytest.raises(ValueError, match="feature names"):
            check_predict_rows(model, other)
    unseen = X.head(1).assign(colour="pink", word=None)
    with pytest.warns(UserWarning, match="not in the training rows, in 'colour' in 1 of 1 rows;"):
        assert np.isnan(check_predict_rows(model, unseen)[0, [1, 3]]).all()
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(
            check_predict_rows(model, model.rows_.Z), model.rows_.Z, equal_nan=True
        )


def test_encoded_and_target_of():
    X = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]})
    columns = Columns(("a", "b"), (None, ("y", "x")))
    assert np.array_equal(check_rows(X, columns, Numbers()), [[1, 1], [np.nan, 0]], equal_nan=True)
    codes, classes = check_fit_target(Words(), np.zeros((3, 1)), ["u", "t", "u"])
    assert codes.tolist() == [1, 0, 1] and classes.tolist() == ["t", "u"]
    numbers, none = check_fit_target(Numbers(), np.zeros((3, 1)), [1, 2, 3])
    assert numbers.dtype == float and none is None
    with pytest.raises(ValueError, match="Unknown label type"):
        check_fit_target(Words(), np.zeros((3, 1)), [0.5, 1.5, 2.5])


# Parts that are handed over


@pytest.mark.parametrize("given, found", [
    ([], []), ([1, "a"], [1, 0]), (("c", np.int64(0)), [2, 0]), (iter("ab"), [0, 1]),
])  # fmt: skip
def test_columns_are_chosen_by_name_or_position(given, found):
    columns = Columns(("a", "b", "c"), (None,) * 3)
    assert column_positions(given, columns, "fixed") == found


@pytest.mark.parametrize("given", ["a", 1, None, ["d"], [3], [-1], [True], [["a"]]])
def test_columns_that_are_none_are_refused(given):
    columns = Columns(("a", "b", "c"), (None,) * 3)
    with pytest.raises(ValueError, match="^fixed must .* got") as error:
        column_positions(given, columns, "fixed")
    assert "\n" not in str(error.value)


def test_labels_have_one_code_whatever_holds_them():
    classes = (False, 1.5, "a")
    for labels in (
        ["a", False, 1.5, "b"],
        np.array(["a", np.bool_(False), np.float64(1.5), None], dtype=object),
        pd.Series(["a", False, 1.5, "b"], dtype="category"),
    ):
        assert label_codes(labels, classes).tolist() == [2, 0, 1, -1]
    assert label_codes([], classes).shape == (0,)


X_FEW = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("model", [
    LinearRegression(), GaussianProcessRegressor(), make_pipeline(LinearRegression()), Numbers(),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_an_estimator_is_fitted_after_its_fit(model):
    assert not is_fitted(model) and not is_fitted(type(model))
    model.fit(X_FEW, X_FEW[:, 0])
    assert is_fitted(model) and is_fitted(FrozenEstimator(model))


def test_libraries_with_a_method_of_their_own_are_asked():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=1, verbose=0, allow_writing_files=False)
    assert not is_fitted(model) and is_fitted(model.fit(X_FEW, X_FEW[:, 0]))
    stochtree = pytest.importorskip("stochtree")
    assert not is_fitted(stochtree.BARTModel())


def test_what_is_never_fitted_is_ready():
    for model in (np.mean, "model.json", {"trees": []}, [1, 2], None):
        assert is_fitted(model)


# ------------------------------------------------------------------ what is no table


def test_what_is_nearly_a_table_is_refused_with_the_code_that_helps():
    frame = pd.DataFrame({"age": np.arange(30.0), "income": 1.0})
    y = 2 * frame["age"]
    model = ProxyLinearRegressor().fit(frame, y)
    cases = [
        (frame.iloc[0], r"X must be a table, got a Series: select one row by X.iloc\[\[0\]\]"),
        (frame["age"], "X must be a table, got a Series"),
        (frame[:2].to_dict("records"), r"got a list of dicts: convert it by pd.DataFrame\(X\)"),
        (dict(frame.iloc[0]), r"got a dict: convert one row by pd.DataFrame\(\[X\]\)"),
    ]
    for X, said in cases:
        with pytest.raises(ValueError, match=said):
            model.predict(X)
        with pytest.raises(ValueError, match=said):
            clone(model).fit(X, y[: len(X)])


def test_a_sparse_matrix_is_refused_with_both_ways_out():
    frame = pd.DataFrame({"home": ["north", "south", "east"] * 10})
    y = np.arange(30.0)
    said = r"X must be dense, got a sparse matrix; take X.toarray\(\), or .*sparse_output=False"
    with pytest.raises(TypeError, match=said):
        make_pipeline(OneHotEncoder(), ProxyLinearRegressor()).fit(frame, y)
    dense = make_pipeline(OneHotEncoder(sparse_output=False), ProxyLinearRegressor()).fit(frame, y)
    assert dense.predict(frame).shape == (30,)


def test_the_order_of_labels_of_two_classes_does_not_depend_on_rounding():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        code = rng.integers(3, size=90)
        y = (rng.random(90) < 0.2 + 0.3 * code).astype(int)
        columns = Columns(["c"], [("a", "b", "c")], [False])
        orders = {
            order_categories(
                columns, code[rows, None].astype(float), y[rows], np.ones(90)
            ).categories
            for rows in (rng.permutation(90) for _ in range(8))
        }
        assert len(orders) == 1


def test_numbers_among_texts_are_not_read_as_texts():
    """A row of a frame as a Series has numbers and labels of type object."""
    column = ColumnSchema("number", decimal=",", thousands=".")
    values = column.convert(pd.Series(["2.501,5", 2.501, None], dtype=object), "rent")
    assert values.tolist()[:2] == [2501.5, 2.501] and np.isnan(values[2])
