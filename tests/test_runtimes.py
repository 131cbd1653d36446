"""The exported JavaScript in a browser, formulas in a spreadsheet, and Python with the values of a frame."""

import subprocess
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from browser.serve import chromium
from shared.doors import by_python
from shared.estimators import ONE_OF_EACH
from shared.homes import as_frame, homes, n_that_differ, rules_of
from shared.needs import PATIENCE, need

from fabinterp import ProxyTreeRegressor, Rule, RuleSet
from fabinterp.rules.core import Columns, Curve, Leaf, Split

QUICK = [setting for setting in ONE_OF_EACH if setting.quick]
IN_BROWSER = """rows => {
    %s
    const plain = value => value instanceof Map ? [...value.entries()] : value
    return rows.map(row => plain(predict(row)))
}"""


def plain_rows(X):
    """The rows of a frame as dicts without nan."""
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in X.to_dict("records")
    ]


@pytest.fixture(scope="module")
def page():
    need("chromium", "playwright")
    with chromium() as browser:
        yield browser.new_page()


def by_javascript(page, rules, X, **options):
    """What the exported function returns for each row of a frame."""
    return page.evaluate(IN_BROWSER % rules.to_javascript(**options), plain_rows(X))


def check_javascript(page, settings, n):
    """Compare the browser and Python with the predictions of some estimators for n rows."""
    X = as_frame(homes(n, seed=4))
    for setting in settings:
        rules = rules_of(setting)
        predicted = rules.predict(X)
        assert n_that_differ(by_javascript(page, rules, X), predicted) == 0, setting.name
        assert n_that_differ(by_python(rules, X), predicted) == 0, setting.name
        if rules.classes:
            pairs = by_javascript(page, rules, X[:200], proba=True)
            assert [label for label, _ in pairs[0]] == list(rules.classes)
            found = [[share for _, share in row] for row in pairs]
            np.testing.assert_allclose(found, rules.predict_proba(X[:200]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_a_browser_predicts_what_the_quick_estimators_predict(page):
    check_javascript(page, QUICK, 300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_browser_predicts_what_each_estimator_predicts(page):
    check_javascript(page, ONE_OF_EACH, 1000)


EVERYTHING = RuleSet(
    (
        Rule(((Split((0, 1), 3.0, (1.0, -2.0), missing=True), True),), Leaf(-1.5)),
        Rule(((Split((2,), categories=(1,), missing=True), True),), Leaf(1e-7)),
        Rule(
            ((Split((2,), categories=(0,)), True),),
            Leaf(
                0.5,
                (0, 2),
                (0.25, 3.0),
                lower=-1.0,
                upper=2.0,
                curves=(Curve(1, (-2.0, 0.5, 1.0), ((1.0, 2.0, -1.0), (0.5, 0.0, 3.0)), 7.0),),
                mean=9.0,
            ),
        ),
        Rule((), Leaf(1.0, curves=(Curve(2, (0.0, 1.0, 2.0), ((0.0, 1.0), (1.0, 5.0)), None),), mean=8.0)),
    ),
    Columns(("a", 'b "c" {d}', "e"), (None, None, ("x", "</script>", "y\\"))),
)  # fmt: skip


def everything(n):
    """Rows for these rules, with gaps and labels that they do not know."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(0, 3, n).round(1)),
            'b "c" {d}': np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "e": rng.choice(np.array(["x", "</script>", "y\\", "X", None], dtype=object), n),
        }
    )
    return X


def test_every_part_of_a_rule_in_a_browser(page):
    X = everything(500)
    assert n_that_differ(by_javascript(page, EVERYTHING, X), EVERYTHING.predict(X)) == 0


def test_a_missing_value_in_an_equation_without_a_mean_is_an_error(page):
    rules = RuleSet((Rule((), Leaf(1.0, (0,), (2.0,))),), Columns(("a",), (None,)))
    assert by_javascript(page, rules, pd.DataFrame({"a": [3.0]})) == [7.0]
    with pytest.raises(Exception, match="a feature in the equation of the rule is missing"):
        by_javascript(page, rules, pd.DataFrame({"a": [np.nan]}))


# ------------------------------------------------------------------ spreadsheets


def cells(names, row):
    """The cells of a row by column, and that of the rule."""
    letters = "ABCDEFGHIJKLMNOP"
    return {name: f"{letters[k]}{row}" for k, name in enumerate(names)}


def by_spreadsheet(folder, models, X):
    """What LibreOffice computes for each row: one list of tuples for each rule set."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for k, rules in enumerate(models):
        sheet = book.create_sheet(f"rules {k}")
        for i, row in enumerate(plain_rows(X), 1):
            of = cells([*X.columns, f"{rules.target}_rule"], i)
            formulas = rules.to_excel_formulas(of, proba=True)
            sheet.append([*row.values(), *formulas.values()])
    book.save(folder / "in.xlsx")
    command = ["soffice", f"-env:UserInstallation=file://{folder}/settings", "--headless",
               "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", "out", "in.xlsx"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=2 * PATIENCE)
    found = openpyxl.load_workbook(folder / "out" / "in.xlsx", data_only=True)
    n = X.shape[1]
    return [[row[n:] for row in sheet.iter_rows(values_only=True)] for sheet in found.worksheets]


def check_spreadsheet(folder, models, X):
    """Compare LibreOffice with the predictions of some rule sets."""
    need("soffice", "openpyxl")
    for rules, rows in zip(models, by_spreadsheet(folder, models, X), strict=True):
        assert [row[0] for row in rows] == (rules.apply(X) + 1).tolist()
        assert n_that_differ([row[1] for row in rows], rules.predict(X)) == 0
        if rules.classes:
            found = [row[2 : 2 + len(rules.classes)] for row in rows]
            np.testing.assert_allclose(found, rules.predict_proba(X), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_spreadsheet_predicts_what_rules_and_equations_predict(tmp_path):
    named = {setting.name: setting for setting in ONE_OF_EACH}
    models = [rules_of(named[name]) for name in ("rules of classes", "lines", "tree of classes")]
    check_spreadsheet(tmp_path, models, as_frame(homes(3400, seed=5)))


@pytest.mark.slow
def test_every_part_of_a_rule_in_a_spreadsheet(tmp_path):
    check_spreadsheet(tmp_path, [EVERYTHING], everything(500))


def test_formulas_of_a_list_of_rules():
    rules = RuleSet(
        (Rule(((Split((0,), 30.0), True),), Leaf(0.8)), Rule((), Leaf(0.1))),
        Columns(("age",), (None,)),
        target="risk",
    )
    assert rules.to_excel_formulas({"age": "B2", "risk_rule": "C2"}) == {
        "risk_rule": "=IF(IF(ISNUMBER(B2), B2 > 30, FALSE), 1, 2)",
        "risk": "=IF(C2=1, 0.8, 0.1)",
    }
    with pytest.raises(
        ValueError,
        match="cell_of must contain the spreadsheet cell of column 'age', got 'risk_rule'",
    ):
        rules.to_excel_formulas({"risk_rule": "C2"})


def test_what_a_cell_cannot_hold_is_rejected():
    columns = Columns(("age",), (None,))
    many = [Rule(((Split((0,), float(k)), True),), Leaf(float(k))) for k in range(70)]
    of = {"age": "A1", "y_rule": "B1"}
    with pytest.raises(
        ValueError, match="formulas must fit in spreadsheet cells of 8192 characters and 64 nested"
    ):
        RuleSet((*many, Rule((), Leaf(0.0))), columns).to_excel_formulas(of)
    labels = [f"a long name of a town {k}" for k in range(400)]
    half = Split((0,), categories=range(300))
    wide = RuleSet((Rule(((half, True),), Leaf(1.0)),), Columns(("age",), (labels,)))
    with pytest.raises(ValueError, match="got [0-9]+ and [0-9]+ in 'y_rule'"):
        wide.to_excel_formulas(of)


# ------------------------------------------------------------------ Python


def function_of(rules):
    """The exported Python function."""
    scope = {}
    exec(rules.to_python(), scope)
    return scope["predict"]


@pytest.mark.parametrize("names", [[0, 1], [("a", 1), ("a", 2)], [1.5, None]])
def test_names_of_columns_need_not_be_text(names):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)))
    X.columns = pd.Index(names, tupleize_cols=False)
    y = (X.iloc[:, 0] > 0) * 2.0 + (X.iloc[:, 1] > 0.5)
    model = ProxyTreeRegressor().fit(X, y)
    predict = function_of(model.rules_)
    assert [predict(row) for row in X.to_dict("records")] == model.predict(X).tolist()


LABELS = {
    "dates": [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)],
    "timestamps": [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-02-01 12:00"), pd.NaT],
    "periods": pd.period_range("2026-01", periods=3, freq="M").tolist(),
    "intervals": pd.IntervalIndex.from_breaks([0, 1, 2, 3]).tolist(),
    "bytes": [b"a", b"b", b"c"],
    "numpy": [np.int64(1), np.str_("b"), np.bool_(True)],
    "decimals": [Decimal("1.10"), Decimal("2"), None],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_read_as_they_are_in_the_frame(kind):
    rng = np.random.default_rng(0)
    values = np.empty(3, dtype=object)
    values[:] = LABELS[kind]
    known = Columns(("day",), (LABELS[kind][:2],))
    rules = RuleSet(
        (Rule(((Split((0,), categories=(1,)), True),), Leaf(1.0)), Rule((), Leaf(0.0))), known
    )
    X = pd.DataFrame({"day": pd.Series(rng.choice(values, 60), dtype=object)})
    predict = function_of(rules)
    assert [predict(row) for row in X.to_dict("records")] == rules.predict(X).tolist()
    assert len(set(rules.predict(X))) == 2


def test_numbers_may_be_decimals():
    rules = RuleSet((Rule((), Leaf(1.0, (0,), (2.0,))),), Columns(("fee",), (None,)))
    assert function_of(rules)({"fee": Decimal("1.25")}) == 3.5
