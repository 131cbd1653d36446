"""What new users stumbled over, as far as no other test holds it: one test for each stumble."""

import html
import re
import warnings
from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from shared.estimators import ONE_OF_EACH, each
from shared.snapshots import leave_out_pictures
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer

from fabinterp import (
    MetaTreeRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    ProxyLinearClassifier,
    ProxyLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    RuleMixtureRegressor,
    explain,
    explain_local,
    explain_row,
    explore,
    load_rules,
    nearest_change,
    plot_row,
    plot_rules,
    plot_tradeoff,
    plot_tree,
    report,
)
from fabinterp.explorer import why_lines
from fabinterp.rules.ruleset import as_ruleset

mpl.use("Agg")

EQUATIONS = [
    PiecewiseLinearRegressor(random_state=0),
    PiecewiseLinearClassifier(random_state=0),
    ProxyLinearRegressor(),
    ProxyLinearClassifier(),
]


def homes(n=200):
    """Draw a frame with labels, numbers and yes/no, and a number that depends on all of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["north", "south", "west"], n),
            "size": rng.normal(size=n),
            "age": rng.normal(size=n),
        }
    )
    return frame, 2 * frame["size"] + frame["age"] + (frame["town"] == "north")


def fitted_equation(estimator):
    """Fit to homes, the target cut into two words for a classifier."""
    X, t = homes()
    y = np.where(t + np.random.default_rng(1).normal(size=len(t)) > 0, "dear", "cheap")
    return X, estimator.fit(X, y if is_classifier(estimator) else t)


# ------------------------------------------------------------------ scale of y


@pytest.mark.parametrize(
    "estimator",
    [
        ProxyTreeRegressor(size=3),
        RuleMixtureRegressor(max_rules=3, n_init=2, random_state=0),
        MetaTreeRegressor(),
    ],
)
def test_answers_near_a_million_are_told_apart(estimator):
    A = np.random.default_rng(0).normal(size=(300, 3))
    rules = estimator.fit(A, 1e6 + A[:, 0]).rules_
    texts = rules.to_frame()["prediction"].astype(str)
    assert len(set(texts)) == len({rule.leaf.constant for rule in rules}) > 1
    assert not texts.str.contains("e+", regex=False).any()


def test_what_is_only_rounding_is_not_printed():
    A = np.random.default_rng(0).normal(size=(300, 3))
    model = PiecewiseLinearRegressor(penalty=1.0, random_state=0)
    assert str(model.fit(A, 3 * A[:, 0]).tree_).startswith("3·x0, clipped")
    assert str(model.fit(A, 1e6 + A[:, 0]).tree_).startswith("1000000 + x0, clipped")


# ------------------------------------------------------------------ input, at predict


@pytest.mark.parametrize(
    "column, code",
    [
        (pd.date_range("2020", periods=60), "(X['when'] - X['when'].min()).dt.days"),
        (pd.to_timedelta(np.arange(60), "D"), "X['when'].dt.total_seconds()"),
    ],
)
def test_the_code_that_makes_numbers_of_dates_is_said_and_works(column, code):
    X = pd.DataFrame({"when": column, "size": np.arange(60.0)})
    with pytest.raises(ValueError, match="column 'when' of dtype") as caught:
        ProxyTreeRegressor().fit(X, X["size"])
    assert str(caught.value).endswith(f"as {code}")
    X["when"] = eval(code, {"X": X})
    assert ProxyTreeRegressor().fit(X, X["size"]).score(X, X["size"]) > 0.9


@each([setting for setting in ONE_OF_EACH if not setting.numbers_only])
def test_labels_of_another_librarys_frame(setting):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    X, y = homes(60)
    y = np.where(y > 0, "dear", "cheap") if setting.is_classifier else y
    other = pyarrow.Table.from_pandas(X)
    model = setting.fresh(random_state=0).fit(other, y)
    assert np.array_equal(model.predict(other), model.predict(X))
    assert model.columns_.categories[0] is not None


def test_a_model_is_explained_on_another_librarys_frame():
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    X, t = homes()
    X = X[["size", "age"]]
    model = LinearRegression().fit(X, t)
    other = pyarrow.Table.from_pandas(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain(model, other, max_rules=3, random_state=0)
        assert found.rules == explain(model, X, max_rules=3, random_state=0).rules
        local = [explain_local(model, table[:1], table, random_state=0) for table in (X, other)]
    assert str(local[0]) == str(local[1])


def test_a_table_of_two_distinct_rows():
    flags = pd.DataFrame({"flag": [0, 1] * 100})
    words = np.array(["no", "yes"] * 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ProxyTreeClassifier().fit(flags, words).score(flags, words) == 1
        assert ProxyTreeRegressor().fit(flags, flags["flag"]).score(flags, flags["flag"]) == 1


@each(ONE_OF_EACH)
def test_no_rows_are_refused_as_scikit_learn_does(setting):
    X, y = homes(60)
    X = X[["size", "age"]]
    y = np.where(y > 0, "dear", "cheap") if setting.is_classifier else y
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        setting.fresh(random_state=0).fit(X, y).predict(X[:0])


# ------------------------------------------------------------------ a gap where training had none


@pytest.mark.slow
@pytest.mark.parametrize("estimator", EQUATIONS)
@pytest.mark.parametrize("lacking", [["size"], ["size", "age"]])
def test_a_row_that_a_mean_answers_is_explained(estimator, lacking):
    X, model = fitted_equation(estimator)
    row = X.iloc[[0]].copy()
    row[lacking] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = model.predict(row)[0]
        proba = model.predict_proba(row).max() if is_classifier(model) else np.nan
    for background in (None, X, X.assign(size=X["size"].where(X["age"] > 0))):
        found = explain_row(model, row, background=background)
        parts = [part.contribution for part in found.contributions]
        assert np.isfinite(parts).all()
        assert np.isclose(found.base + sum(parts), found.prediction)
        assert np.isclose(found.probability, proba, equal_nan=True)
        assert found.label == said if is_classifier(model) else np.isclose(found.prediction, said)
        assert {part.column: part.words for part in found.contributions}["size"] == "missing"


def test_rows_that_say_nothing_of_an_equation_are_no_background():
    X, model = fitted_equation(ProxyLinearRegressor())
    with pytest.raises(
        ValueError, match="background must contain rows without missing values in the equations"
    ):
        explain_row(model, X.iloc[0], background=X.assign(size=np.nan))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", EQUATIONS)
def test_a_row_that_a_mean_answers_has_a_constant_to_change(estimator):
    X, model = fitted_equation(estimator)
    row = X.iloc[[0]].assign(size=np.nan)
    wanted = {} if is_classifier(model) else {"target": (50.0, None)}
    found = nearest_change(model, row, X, **wanted)
    lines = why_lines(model, row)
    assert found.proven and not found and "no prediction" not in found.current
    assert lines[0][1] in found.current and lines[-1][0] == "mean"
    assert lines[-1][1].endswith("its equation needs a missing value")


def test_without_a_mean_there_is_no_answer_to_change():
    X, model = fitted_equation(ProxyLinearRegressor(missing="error"))
    row = X.iloc[[0]].assign(size=np.nan)
    assert "no prediction" in nearest_change(model, row, X).current
    assert "its equation needs a missing value" in why_lines(model, row)[0][1]


# ------------------------------------------------------------------ scikit-learn


def test_scorers_take_probabilities_for_there_is_no_decision_function():
    X, t = homes()
    y = np.where(t > 0, "dear", "cheap")
    model = ProxyTreeClassifier(size=4).fit(X, y)
    assert not hasattr(model, "decision_function")  # as scikit-learn's trees and forests
    assert 0.8 < get_scorer("roc_auc")(model, X, y) < 1


def test_the_proxy_behind_an_explanation_is_told_to_tell():
    X, t = homes()
    model = LinearRegression().fit(X[["size"]], t)
    found = explain(model, X[["size"]], max_rules=3, verbose=True, random_state=0)
    assert found.model.verbose == 1


# ------------------------------------------------------------------ exports, pictures


def test_siblings_of_a_printed_tree_do_not_say_the_same():
    X, t = homes()
    tree = ProxyTreeClassifier(size=8).fit(X, np.where(t > 0, "dear", "cheap")).tree_
    inner = [k for k, split in enumerate(tree.splits) if split is not None]
    siblings = [(tree.leaves[tree.yes[k]], tree.leaves[tree.no[k]]) for k in inner]
    pairs = [(a.value, b.value) for a, b in siblings if a is not None and b is not None]
    assert len(pairs) > 1 and all(a != b for a, b in pairs)


@pytest.mark.parametrize(
    "show", [report, plot_rules, plot_tree, plot_row, explain_row, explore, nearest_change]
)
def test_another_librarys_model_is_told_the_way(show):
    X, t = homes()
    model = LinearRegression().fit(X[["size"]], t)
    more = (t, "never.html") if show is report else ()
    with pytest.raises(TypeError, match="got LinearRegression; ") as caught:
        show(model, X[["size"]], *more)
    assert "\n" not in str(caught.value)


def explained_forest(**settings):
    """Return rows, answers, a fitted forest and its explanation."""
    X, t = homes()
    X = X[["size", "age"]]
    forest = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X, t)
    return X, t, forest, explain(forest, X, t, max_rules=3, n_init=2, random_state=0, **settings)


def page_code(page):
    """Return the code that makes the model of a page again."""
    return html.unescape(re.search(r"Reproduce the model</h2><pre>(.*?)</pre>", page, re.S)[1])


def test_a_report_on_the_table_just_explained_knows_it(monkeypatch):
    leave_out_pictures(monkeypatch)
    X, t, forest, found = explained_forest()
    for each_found in (found, found.at(2)):
        page = report(each_found, X, t)
        assert "explain fitted 160 of the 200 rows and held out 40" in page
        assert "# the model was fitted before" in page_code(page)
    assert "not those of the fit" in report(found, X[:90], t[:90])
    whole = explained_forest(held_out=0)[-1]
    page = report(whole, X, t)
    assert "fitted to the 200 rows of the table" in page and "held_out=0" in page_code(page)
    fitted_here = explain(clone(forest), X, t, max_rules=2, n_init=2)
    assert "fitted before" not in page_code(report(fitted_here, X, t))
    unread = explain(forest.predict, X, t, max_rules=2, method="tree", random_state=0)
    assert "model = <bound method" in page_code(report(unread, X, t))


def test_an_explanation_has_what_its_rules_have(tmp_path):
    X, t, forest, found = explained_forest()
    found.save(tmp_path / "rules.json")
    assert load_rules(tmp_path / "rules.json") == found.rules
    assert found.to_sql("homes") == found.rules.to_sql("homes") and "to_sql" in dir(found)
    assert found.to_text() == found.rules.to_text() and found.to_html() == found._repr_html_()
    with pytest.raises(AttributeError, match="no attribute 'score'; its rules are `rules`"):
        found.score(X, t)


def test_an_explanation_at_another_size():
    X, t, forest, found = explained_forest()
    small = found.at(1)
    assert len(small.rules) == 1 < len(found.rules) and "; 1 rule\n" in str(small)
    assert small.rules.target == found.rules.target and "held out" not in str(small)
    assert small.fidelity == small.rules.fidelity <= found.fidelity
    tree = explain(forest, X, max_rules=3, method="tree", random_state=0)
    assert len(tree.at(2).rules) == 2 < len(tree.rules)


def test_the_pair_held_out_is_not_printed():
    X, t, forest, _ = explained_forest()
    with pytest.raises(ValueError, match=r"got tuple; fidelity_on\(X\) measures"):
        explain(forest, X, t, held_out=(X, t))
    with pytest.raises(TypeError, match="results must be .* got RuleMixtureRegressor; .*path_"):
        plot_tradeoff(RuleMixtureRegressor())


def test_a_row_keeps_its_values():
    X, t, _, found = explained_forest()
    frame = explain_row(found, X.iloc[3]).to_frame()
    assert frame["value"].tolist()[1:] == X.iloc[3].tolist()
    assert np.isclose(frame["contribution"].sum(), found.predict(X.iloc[[3]])[0])


def test_a_local_explanation_is_told_row_by_row():
    X, _, forest, _ = explained_forest()
    local = explain_local(forest, X.iloc[3], X, random_state=0)
    row = explain_row(local, X.iloc[3])
    assert np.isclose(row.prediction, local.surrogate_prediction)
    assert np.isclose(row.base, local.tree.predict(local.neighbours).mean())
    many = explain_local(forest, X.iloc[[3]], X, random_state=0)
    assert local.to_frame().equals(many.to_frame()) and local.to_text() == str(local)
    assert local.to_html() == many.to_html() == local._repr_html_()


def test_one_customer():
    X, t = homes()
    X = X[["size", "age"]]
    model = LogisticRegression().fit(X, np.where(t > 0, "dear", "cheap"))
    local = explain_local(model, X.iloc[3], X, random_state=0)
    for x in (X.iloc[[3]], X.iloc[3].to_dict()):
        assert str(explain_local(model, x, X, random_state=0)) == str(local)
    value = str(local).partition("(size = ")[2].partition(",")[0].partition(")")[0]
    assert len(value) <= 6 and abs(float(value) - X["size"][3]) < 0.005
    assert plot_tree(local) is not None and plot_rules(local) is not None
    assert as_ruleset(local) == local.rules


def test_the_number_of_a_row_is_no_row():
    X, _, forest, explained = explained_forest()
    for ask, model in ((explain_local, forest), (nearest_change, explained)):
        with pytest.raises(ValueError, match=r"x must be one row.*such as X.iloc\[7\], got 7"):
            ask(model, 7, X)


def test_labels_of_y_that_the_model_does_not_know_are_refused():
    X = np.random.default_rng(0).normal(size=(120, 3))
    words = np.where(X[:, 0] > 0, "granted", "refused")
    forest = RandomForestClassifier(10, random_state=0).fit(X, words)
    told = "y must hold labels among those of the model, 'granted'.*; only the scores need it"
    with pytest.raises(ValueError, match=told):
        explain(forest, X, (words == "granted").astype(int), random_state=0)
    page = str(report(explain(forest, X, words, random_state=0), X, words))
    assert "Measured on the 96 rows of the fit" in page


def test_a_label_that_training_did_not_know_is_said_of_one_row_too():
    frame = pd.DataFrame({"trade": list("abcd") * 30, "debt": np.arange(120.0)})
    y = np.where((frame.debt > 60) & (frame.trade != "a"), "yes", "no")
    model = ProxyTreeClassifier(size=4).fit(frame, y)
    row = {"trade": "q", "debt": 70.0}
    for ask in (explain_row, partial(nearest_change, X=frame)):
        with pytest.warns(
            UserWarning, match="labels that were not in the training rows, in 'trade'"
        ):
            ask(model, row)


def test_a_model_is_asked_of_rows_with_gaps():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (200, 3)), columns=list("abc"))
    frame = frame.astype(float)
    frame.iloc[::15, 1] = np.nan
    y = np.where(frame.a > 4, "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(frame, y)
    rules = explain(model, frame, random_state=0)
    found = nearest_change(
        rules, {"a": 2.0, "b": np.nan, "c": 1.0}, frame, target="yes", model=model
    )
    assert found[0].words() == "a from 2 to 5" and np.isnan(found.after[1])
    assert (
        found.to_dict()["changes"][0]["rule"]
        == found.rule
        == rules.rules.apply(found.after[None])[0]
    )
