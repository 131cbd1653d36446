"""`cv=`: which rows are left out where a size is chosen, and a column that numbers the rows."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from fabinterp import (
    ObliqueAdditiveClassifier,
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
)
from fabinterp.fab.engine import Structure
from fabinterp.models.equation_paths import _parts_of_folds
from fabinterp.models.equation_trees import GaussianLikelihood
from fabinterp.rows.tables import build_training_data, split_masks, with_parts

REGRESSORS = [PiecewiseLinearRegressor, ObliqueAdditiveRegressor]
CLASSIFIERS = [PiecewiseLinearClassifier, ObliqueAdditiveClassifier]


def quick(kind, **settings):
    return kind(search=Structure(0), max_depth=1, random_state=0, **settings)


def table(n=80, seed=0):
    """A table with values that repeat, and labels that depend on y."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, 2)).astype(float)
    y = np.where(X[:, 0] > 4, X[:, 1], 3 - X[:, 0]) + rng.normal(0, 0.5, n)
    return X, y, np.where(y > 1, "high", "low")


def positions(training):
    """The folds that are drawn by default, as positions of the rows of the table."""
    at = training.places
    return [
        [np.flatnonzero(part[at] & (at >= 0)) for part in fold]
        for fold in _parts_of_folds(GaussianLikelihood(), training)
    ]


@pytest.mark.parametrize("kind", [*REGRESSORS, *CLASSIFIERS])
def test_the_default_folds_as_a_list_give_the_same_fit(kind):
    """Also of a table with copies, weights and rows without weight."""
    X, y, labels = table()
    y = labels if kind in CLASSIFIERS else y
    X, y = np.r_[X, X[:20]], np.r_[y, y[:20]]
    w = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    default = quick(kind).fit(X, y, w)
    cv = positions(build_training_data(quick(kind), X, y, w))
    listed = quick(kind, cv=cv).fit(X, y, w)
    assert str(listed.tree_) == str(default.tree_)
    assert listed.path_.equals(default.path_)
    assert listed.path_.cv_error.notna().all()


@pytest.mark.parametrize(
    "cv", [KFold(4), TimeSeriesSplit(4), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)]
)
@pytest.mark.parametrize("kind", REGRESSORS)
def test_the_error_of_a_constant_is_that_on_the_test_parts(kind, cv):
    """The mean over rows of the mean over the folds that leave them out; the other rows have no part."""
    X, y, _ = table()
    X = X + np.linspace(0, 0.1, len(X))[:, None] ** 2
    w = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    path = quick(kind, cv=cv).fit(X, y, w).path_
    squares = np.zeros(len(y))
    times = np.zeros(len(y))
    for train, test in cv.split(X):
        squares[test] += (y[test] - np.average(y[train], weights=w[train])) ** 2
        times[test] += 1
    out = times > 0
    error = np.average(squares[out] / times[out], weights=(w * times)[out])
    assert path.n_numbers[0] == 1
    assert path.cv_error[0] == pytest.approx(error, rel=1e-9)


def test_rows_of_one_group_are_left_out_together():
    """By the groups of `fit`; a size that knows the groups by heart is then no better."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 8)
    X = rng.normal(size=(12, 3))[group] + 0.01 * rng.normal(size=(96, 3))
    y = rng.normal(size=12)[group] + 0.1 * rng.normal(size=96)
    names = np.array([f"p{k}" for k in group], dtype=object)
    together = quick(PiecewiseLinearRegressor, cv=GroupKFold(4)).fit(X, y, groups=names)
    listed = quick(PiecewiseLinearRegressor, cv=list(GroupKFold(4).split(X, y, names))).fit(X, y)
    assert together.path_.equals(listed.path_)
    assert (
        together.path_.cv_error.min()
        > quick(PiecewiseLinearRegressor).fit(X, y).path_.cv_error.min()
    )


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_number_of_folds_has_all_classes_in_each(kind):
    X, _, labels = table()
    order = np.argsort(labels, kind="stable")
    numbered, stratified = (
        quick(kind, cv=cv).fit(X[order], labels[order]).path_ for cv in (3, StratifiedKFold(3))
    )
    assert numbered.equals(stratified)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_training_part_may_lack_a_class(kind):
    X, _, labels = table()
    order = np.argsort(labels, kind="stable")
    path = quick(kind, cv=TimeSeriesSplit(3)).fit(X[order], labels[order]).path_
    assert np.isfinite(path.cv_error).all()


def test_a_copy_counts_where_it_stands():
    X = np.array([[1.0], [1.0], [2.0], [3.0], [1.0]])
    y = np.array([5.0, 5.0, 6.0, 7.0, 5.0])
    w = np.array([1.0, 2.0, 1.0, 0.0, 1.0])
    training = build_training_data(PiecewiseLinearRegressor(), X, y, w)
    masks = split_masks([([0, 2], [1, 4]), ([1], [2, 3])], X)
    parts = with_parts(training, masks, w).parts
    assert parts.tolist() == [[[0.25, 0.75], [0.5, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]


def test_each_row_twice_is_a_weight_of_two():
    X, y, _ = table()
    cv = list(TimeSeriesSplit(3).split(X))
    twice = [[np.r_[part, part + len(y)] for part in fold] for fold in cv]
    a = quick(PiecewiseLinearRegressor, cv=cv).fit(X, y, np.full(len(y), 2.0))
    b = quick(PiecewiseLinearRegressor, cv=twice).fit(np.r_[X, X], np.r_[y, y])
    assert a.path_.equals(b.path_)


REFUSED = [
    (1, "n_splits=1"),
    ("five", "Got five"),
    ([1, 2], "cannot unpack"),
    ([], "at least one"),
    ([([0, 1], [80])], "index 80"),
    ([([0, 1], [])], "a fold has no training or no test rows"),
    (KFold(90), "n_splits=90"),
    (GroupKFold(3), "'groups' parameter"),
]


@pytest.mark.parametrize("kind", [PiecewiseLinearRegressor, ProxyTreeRegressor])
@pytest.mark.parametrize("cv, why", REFUSED)
def test_what_does_not_split_the_rows_is_refused_in_one_line(kind, cv, why):
    X, y, _ = table()
    with pytest.raises(ValueError) as refused:
        kind(cv=cv).fit(X, y)
    message = str(refused.value)
    assert message.startswith("cv must ") and "\n" not in message
    assert why in message or kind is ProxyTreeRegressor and cv == 1


def test_rows_that_come_in_chunks_have_no_positions():
    X, y, _ = table()
    with pytest.raises(ValueError, match="cv must be None for rows that are not in memory"):
        PiecewiseLinearRegressor(cv=3).fit_chunks([(X, y)])


# ------------------------------------------------------------------ proxies


def test_a_tree_is_judged_on_the_test_parts():
    X, y, _ = table()
    X = np.c_[np.arange(len(y)), X]
    cv = TimeSeriesSplit(4)
    model = ProxyTreeRegressor(cv=cv, size="balanced", random_state=0).fit(X, y)
    squares = [(y[test] - y[train].mean()) ** 2 for train, test in cv.split(X)]
    assert model.path_["size"][0] == 1
    assert model.path_.cv_error[0] == pytest.approx(np.concatenate(squares).mean(), rel=1e-9)


def test_a_proxy_of_classes_takes_stratified_folds():
    X, _, labels = table()
    order = np.argsort(labels, kind="stable")
    X = X[order] + np.linspace(0, 0.1, len(X))[:, None]
    numbered, stratified = (
        ProxyTreeClassifier(cv=cv, size="balanced", random_state=0).fit(X, labels[order]).path_
        for cv in (list(StratifiedKFold(3).split(X, labels[order])), StratifiedKFold(3))
    )
    assert numbered.equals(stratified)


# ------------------------------------------------------------------ row numbers


def numbering_warnings(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in caught if "seems to number its rows" in str(one.message)]


@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_column_that_numbers_the_rows_is_named(kind):
    pd = pytest.importorskip("pandas")
    X, y, _ = table()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(day=np.arange(80) * 7 + 3)
    for rows in (frame, frame[::-1]):
        (message,) = numbering_warnings(quick(kind), rows, y)
        assert "'day'" in message and "'a'" not in message and "cv=" in message
    assert not numbering_warnings(quick(kind, cv=4), frame, y)
    assert not numbering_warnings(quick(kind), frame[["day"]], y)
    assert not numbering_warnings(quick(kind), frame[:19], y[:19])
    assert not numbering_warnings(quick(kind), frame.sample(frac=1, random_state=0), y)
    assert not numbering_warnings(quick(kind, penalty=1.0), frame, y)
