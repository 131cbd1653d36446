"""The SQL of every estimator in SQLite, DuckDB and PostgreSQL, for columns of seven types, NULL and NaN."""

import numpy as np
import pytest
from shared.estimators import ONE_OF_EACH
from shared.homes import TYPES, as_frame, fitted, homes, n_that_differ, rules_of

from fabinterp import Rule, RuleSet
from fabinterp.rules.core import Columns, Leaf, Split

pytestmark = pytest.mark.xdist_group("databases")

QUICK = [setting for setting in ONE_OF_EACH if setting.quick]


def check_all(database, settings, n, dialects):
    """Compare a database with the predictions of some estimators for n rows."""
    columns = homes(n, seed=2)
    X = as_frame(columns)
    database.load("homes", TYPES, columns)
    for setting in settings:
        rules = rules_of(setting)
        for dialect in dialects:
            query = rules.to_sql("homes", keep="id", dialect=dialect)
            rows = sorted((int(row[0]), row[1]) for row in database.rows(query))
            assert [place for place, _ in rows] == columns["id"]
            differ = n_that_differ([value for _, value in rows], rules.predict(X))
            assert differ == 0, (setting.name, dialect, differ)


@pytest.mark.filterwarnings("ignore")
def test_sql_predicts_what_the_quick_estimators_predict(database):
    check_all(database, QUICK, 1000, ["ansi", database.name])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_sql_predicts_what_each_estimator_predicts(database):
    assert len(ONE_OF_EACH) >= 10
    check_all(database, ONE_OF_EACH, 100_000, ["ansi"])


@pytest.mark.filterwarnings("ignore")
def test_probabilities_and_interval_ends(database):
    columns = homes(500, seed=3)
    X = as_frame(columns)
    database.load("homes", TYPES, columns)
    classes, lines = (
        next(s for s in QUICK if s.name == name) for name in ("rules of classes", "lines")
    )
    model = fitted(classes)
    rows = database.rows(model.rules_.to_sql("homes", keep="id", proba=True))
    found = np.array([row[2:] for row in sorted(rows, key=lambda row: int(row[0]))], float)
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-9)
    model = fitted(lines)
    rows = database.rows(model.rules_.to_sql("homes", keep="id", level=0.8))
    found = np.array([row[2:] for row in sorted(rows, key=lambda row: int(row[0]))], float)
    np.testing.assert_allclose(found, model.predict_interval(X, level=0.8), rtol=1e-9)


def one_split(split, labels=None, name="x"):
    """Rules that predict 1 where a split of one column answers yes, otherwise 0."""
    columns = Columns((name,), (labels,))
    return RuleSet((Rule(((split, True),), Leaf(1.0)), Rule((), Leaf(0.0))), columns)


def answers(database, rules, kind, values, **options):
    """What a database returns for values of one column of an SQL type."""
    columns = {"id": range(len(values)), "x": values}
    database.load("t", {"id": "INTEGER", "x": kind}, columns)
    query = rules.to_sql("t", keep="id", **options)
    return [float(row[1]) for row in sorted(database.rows(query), key=lambda row: int(row[0]))]


@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "REAL"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("side", [False, True])
def test_nan_is_missing(database, kind, missing, side):
    values = [-1.0, 2.0, np.nan, None]
    for threshold in (0.5, np.inf):
        split = Split((0,), threshold, missing=missing)
        rule = Rule(((split, side),), Leaf(1.0))
        rules = RuleSet((rule, Rule((), Leaf(0.0))), Columns(("x",), (None,)))
        expected = rules.predict(np.array([[-1.0], [2.0], [np.nan], [np.nan]]))
        assert answers(database, rules, kind, values) == expected.tolist()


BOOLEANS = {
    "BOOLEAN": [True, False, None],
    "INTEGER": [1, 0, None],
    "TEXT": ["True", "False", None],
}


@pytest.mark.parametrize("kind", BOOLEANS)
@pytest.mark.parametrize("missing", [False, True])
def test_truth_values_may_be_stored_as_booleans_integers_or_text(database, kind, missing):
    rules = one_split(Split((0,), categories=(1,), missing=missing), (False, True))
    assert answers(database, rules, kind, BOOLEANS[kind]) == [1.0, 0.0, float(missing)]
    codes = RuleSet((Rule((), Leaf(1.0, (0,), (2.0,), mean=9.0)),), rules.columns)
    assert answers(database, codes, kind, BOOLEANS[kind]) == [3.0, 1.0, 9.0]


def test_labels_of_two_types_are_compared_as_text(database):
    rules = one_split(Split((0,), categories=(0, 2)), (1, 2, "A", "B"))
    assert answers(database, rules, "TEXT", ["1", "2", "A", "B", None]) == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_labels_that_are_numbers(database):
    rules = one_split(Split((0,), categories=(0, 1)), (10, 2.5, 7))
    values = [10.0, 2.5, 7.0, np.nan, None]
    assert answers(database, rules, "DOUBLE PRECISION", values) == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_a_sum_of_large_integers_does_not_overflow(database):
    cut = Split((0, 1), 0.0, (1.0, 1.0))
    columns = Columns(("x", "id"), (None, None))
    rules = RuleSet((Rule(((cut, True),), Leaf(1.0)), Rule((), Leaf(0.0))), columns)
    assert answers(database, rules, "INTEGER", [2**31 - 1, 2**31 - 1]) == [1.0, 1.0]


def test_a_kept_column_is_returned_as_it_is(database):
    database.load("t", {"x": "INTEGER"}, {"x": [3]})
    (row,) = database.rows(one_split(Split((0,), 1.0)).to_sql("t", keep="x"))
    assert str(row[0]) == "3" and float(row[1]) == 1.0


def test_names_that_differ_in_case_only_need_their_names_in_the_table(database):
    columns = Columns(("Temp", "temp", "b"), (None,) * 3)
    rules = RuleSet((Rule(((Split((1,), 0.0), True),), Leaf(1.0)), Rule((), Leaf(0.0))), columns)
    with pytest.raises(ValueError, match="rename must .* got 'temp'"):
        rules.to_sql("t")
    assert '"temp"' in rules.to_sql("t", dialect="postgres")  # where names are exact
    types = {"Temp": "REAL", "temp_2": "REAL"}
    database.load("t", types, {"Temp": [1.0], "temp_2": [-1.0]})
    rows = database.rows(rules.to_sql("t", rename={"temp": "temp_2"}))
    assert [float(row[0]) for row in rows] == [0.0]
    unaffected = RuleSet((Rule(((Split((2,), 0.0), True),), Leaf(1.0)),), columns)
    assert '"b"' in unaffected.to_sql("t")


def test_options_are_checked():
    rules = one_split(Split((0,), 1.0))
    with pytest.raises(ValueError, match="dialect must be one of 'ansi', .* got 'mysql'"):
        rules.to_sql("t", dialect="mysql")
    with pytest.raises(
        ValueError, match="rename must have only column names of the rules as keys, got 'z'"
    ):
        rules.to_sql("t", rename={"z": "y"})


def test_without_nan_the_text_is_shorter():
    rules = one_split(Split((0,), 1.0))
    assert rules.to_sql("t", dialect="sqlite").endswith('END AS "y"\nFROM "t"')
    assert "CAST" in rules.to_sql("t", dialect="duckdb") == rules.to_sql("t")


def test_a_literal_is_not_rounded_to_the_type_of_the_column(database):
    """1.2 of 32 bits is larger than 1.2; a decimal literal would be rounded first."""
    rules = one_split(Split((0,), 1.2))
    assert answers(database, rules, "REAL", [float(np.float32(1.2)), 1.0]) == [1.0, 0.0]
