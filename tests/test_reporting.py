"""The report: its numbers are right and say on which rows, it stands alone, and no name can break it."""

import html
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import matplotlib.mathtext  # noqa: F401 (version 3.8 warns when it is imported, once)
import numpy as np
import pytest
from browser.serve import chromium
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from shared.needs import need
from shared.snapshots import leave_out_pictures, page_text
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fabinterp
from fabinterp import reporting as reports
from fabinterp.blackbox.wrapping import as_reference
from fabinterp.fab.engine import EM
from fabinterp.proxy.equation_estimators import ProxyLinearClassifier, ProxyLinearRegressor
from fabinterp.proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.reporting import report
from fabinterp.rules import html_format
from fabinterp.rules.core import Leaf, Rule, Split, read_columns
from fabinterp.rules.ruleset import RuleSet, Tree
from fabinterp.rules.size_path import choose_by_error, sizes_of

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

HOSTILE = ["<script>window.hit=1</script>", "\"quoted' </style><img src=x onerror=window.hit=2>", "a" * 300,
           "🙂 emoji", "ملف العميل", "$x_1$ $\\frac{", "line\nbreak\x00 \u202ereversed"]  # fmt: skip


class Parsed(HTMLParser):
    """Tags, attributes and words of a page; every tag closes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.words = []
        self.open = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "img", "source", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def words_of(text):
    return " ".join(" ".join(Parsed(text).words).split())


def lead_of(page):
    """Return what a page begins with, as text."""
    return page_text(page[: page.index("<h2")])


def section_of(page, heading):
    """Return one section of a page, as text."""
    (section,) = [part for part in page.split("<h2")[1:] if heading in part[:200]]
    return page_text(f"<h2{section}")


def origin_of(page):
    """Return what a page tells of the model that its rules come from, as text."""
    return re.split(r"\d+ rows, \d+ columns", section_of(page, "Table"))[0]


def made_again(page):
    """Return the code on a page that makes its model again."""
    return html.unescape(re.search(r"Reproduce the model</h2><pre>(.*?)</pre>", page, re.S)[1])


@pytest.fixture
def drawn():
    """Asked for by tests that need the pictures of a page."""


@pytest.fixture(autouse=True)
def pictures_where_needed(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        leave_out_pictures(monkeypatch)


def pictures(text):
    """The SVG texts of a page."""
    return re.findall(r'<div class="picture".*?(<svg.*?</svg>)', text, re.S)


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:200, :5], y[:200]


@pytest.fixture(scope="module")
def labels():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.iloc[:, :5], pd.Series(np.array(["red", "white", "rosé"])[y], name="colour")


@pytest.fixture(scope="module")
def tree(labels):
    return ProxyTreeClassifier(size=4, random_state=0).fit(*labels)


@pytest.fixture(scope="module")
def mixture(labels):
    settings = {"n_init": 1, "n_perturbations": 4, "random_state": 0}
    return fabinterp.RuleMixtureClassifier(**settings).fit(*labels)


@pytest.fixture(scope="module")
def equations(numbers):
    return fabinterp.PiecewiseLinearRegressor(max_depth=1, random_state=0).fit(*numbers)


# Numbers


def test_predictions_break_between_words_unless_one_is_very_long():
    styles = [html_format._wrap_style(2, f"<b>{word}</b>") for word in ("malignant", "x" * 300)]
    assert ["anywhere" in style for style in styles] == [False, True]
    assert "anywhere" in html_format._wrap_style(1, "radius > 3")
    assert "white-space:normal" in html_format._number_html("interval", (0.5, 0.75))


@given(st.integers(0, 400), st.integers(1, 400), st.floats(0.5, 0.999))
def test_wilson_is_the_score_test(k, n, level):
    k = min(k, n)
    low, high = reports.wilson(k, n, level)
    z = ndtri(0.5 + level / 2)
    assert 0 <= low <= k / n + 1e-12 and k / n - 1e-12 <= high <= 1
    for end in {low, high} - {0.0, 1.0}:
        assert n * (k / n - end) ** 2 == pytest.approx(z**2 * end * (1 - end), rel=1e-6, abs=1e-9)
    flipped = reports.wilson(n - k, n, level)
    assert np.allclose([low, high], [1 - flipped[1], 1 - flipped[0]], atol=1e-12)
    wider = reports.wilson(k, n, 0.5 + level / 2)
    assert wider[0] <= low + 1e-12 and high <= wider[1] + 1e-12


def test_wilson_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    n = 60
    for p in (0.05, 0.3, 0.5):
        ends = [reports.wilson(k, n) for k in range(n + 1)]
        hits = np.mean([ends[k][0] <= p <= ends[k][1] for k in rng.binomial(n, p, 4000)])
        assert 0.92 < hits < 0.985


def test_number_intervals_are_those_of_a_plain_bootstrap():
    rng = np.random.default_rng(1)
    y = rng.normal(size=150)
    said = 0.7 * y + rng.standard_t(4, 150)
    value, low, high = reports.regression_intervals(y, said, 0.9, 0)

    def measures(y, said):
        e = said - y
        return np.sqrt(np.mean(e**2)), np.mean(np.abs(e)), 1 - np.mean(e**2) / np.var(y)

    assert np.allclose(value, measures(y, said))
    drawn = [measures(y[at], said[at]) for at in rng.integers(150, size=(4000, 150))]
    slow = np.quantile(drawn, [0.05, 0.95], axis=0)
    assert np.abs(np.array([low, high]) - slow).max(axis=0) == pytest.approx(
        0, abs=0.1 * np.ptp(slow, axis=0).max()
    )
    again = reports.regression_intervals(y, said, 0.9, 0)
    assert np.array_equal(again[1], low) and np.array_equal(again[2], high)


def test_rows_of_the_fit_are_known_again(labels, tree):
    X, _ = labels
    Z = X.to_numpy()
    assert reports.is_training_table(tree.rules_, Z) is True
    assert reports.is_training_table(tree.rules_, Z[::-1]) is True
    assert reports.is_training_table(tree.rules_, Z[:-1]) is False
    assert reports.is_training_table(tree.tree_.rules(), Z) is None


def test_findings_are_the_errors(labels, tree):
    X, y = labels
    found = reports.evaluate_model(tree, tree.rules_, X, y, None, None, 0.95, 0)
    wrong, base = found.estimates
    assert wrong.value == np.mean(tree.predict(X) != y) and wrong.rows == "178 rows of the table"
    assert base.value == 1 - y.value_counts().iloc[0] / len(y) and "white" in base.metric
    assert len(found.notes) == 1
    assert sum(n for _, n, _ in found.by_class) == len(y)
    for label, n, share in found.by_class:
        assert n == (y == label).sum() and share.value == np.mean(
            tree.predict(X[y == label]) == label
        )


def test_unknown_labels_count_as_wrong(labels, tree):
    X, y = labels
    other = y.where(np.arange(len(y)) > 9, "green")
    found = reports.evaluate_model(tree, tree.rules_, X, other, None, None, 0.95, 0).estimates
    assert found[0].value == np.mean(tree.predict(X) != other)


def test_errors_on_rows_held_out(numbers, snapshot):
    X, y = numbers
    learnt = X[:150], y[:150]
    model = fabinterp.PiecewiseLinearRegressor(max_depth=1, penalty=1.0, random_state=0).fit(
        *learnt
    )

    def measured(held_out):
        found = reports.evaluate_model(model, model.rules_, *learnt, held_out, None, 0.95, 0)
        return found.estimates, found.notes

    estimates, notes = measured((X[150:], y[150:]))
    assert len(notes) == 1
    assert {f.rows for f in estimates} == {"150 rows of the table", "50 rows held out"}
    assert estimates[0].rows == "50 rows held out"
    wrong = model.predict(X[150:]) - y[150:]
    assert estimates[0].value == pytest.approx(np.sqrt(np.mean(wrong**2)))
    tables = [learnt, (X[149:], y[149:]), (X[:150], y[:150] + 1)]
    snapshot("notes_on_rows_held_out", "\n".join("\n".join(measured(table)[1]) for table in tables))


def rows_of_tables(page):
    """The cells of all rows of tables, without tags."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    cells = (re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in rows)
    return [[html.unescape(re.sub("<[^>]+>", "", cell)) for cell in row] for row in cells]


def test_each_rule_is_measured_on_rows_held_out(labels, tree):
    X, y = labels
    out = X[:40].assign(alcohol=14.0), y[:40]
    page = report(tree, X, y, held_out=out)
    said = tree.rules_.apply(out[0])
    right = tree.predict(out[0]) == out[1]
    table = reports.held_out_html(tree.rules_, *out, 0.95)
    found = rows_of_tables(table)[1:]
    assert all(row in rows_of_tables(page) for row in found)
    assert [row[:2] for row in found] == [
        [str(r + 1), str(np.sum(said == r))] for r in range(len(tree.rules_))
    ]
    assert ["0", "", ""] in [row[1:] for row in found] and len(set(said)) > 1
    for r in set(said):
        low, high = reports.wilson(np.sum(right[said == r]), np.sum(said == r), 0.95)
        share = 100 * np.mean(right[said == r])
        assert found[r][3] == f"{share:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %)"
        shares = tree.rules_.rules[r].leaf.value
        assert found[r][2] == f"{100 * max(shares):.1f} %"


def test_each_leaf_of_numbers_is_measured_on_rows_held_out(numbers):
    X, y = numbers
    model = ProxyTreeRegressor(size=3, random_state=0).fit(X[:150], y[:150])
    table = reports.held_out_html(model.rules_, X[150:], y[150:].to_numpy(), 0.9)
    said = model.rules_.apply(X[150:])
    for r, row in enumerate(rows_of_tables(table)[1:]):
        mine = y[150:][said == r]
        assert int(row[1]) == len(mine) > 1
        assert row[3].startswith(f"{mine.mean():.3g} (")
        assert row[2] == f"{model.rules_.rules[r].leaf.value:.3g}"
    (one,) = rows_of_tables(reports.held_out_html(model.rules_, X[:1], y[:1], 0.9))[1:][
        model.rules_.apply(X[:1])[0] :
    ][:1]
    assert one[1] == "1" and one[3] == f"{y.iloc[0]:.3g}"


def test_each_rule_is_set_beside_the_model_on_rows_held_out(labels, numbers):
    X, y = labels
    out = X[1::3], y[1::3]
    forest = RandomForestClassifier(10, random_state=0).fit(X[::3], y[::3])
    model = fabinterp.RuleMixtureClassifier(forest, n_init=1, n_perturbations=4, random_state=0)
    model.fit(X[::3], y[::3])
    page = report(model, X[::3], y[::3], held_out=out)
    (table,) = re.findall(r"<table[^>]*>(?:(?!</table>).)*>rows held out<.*?</table>", page, re.S)
    head = [html.unescape(h) for h in re.findall(r"<th[^>]*>(.*?)</th>", table)]
    column = head.index("agreement with RandomForestClassifier")
    said = model.rules_.apply(out[0])
    agree = model.predict(out[0]) == forest.predict(out[0])
    assert not agree.all()
    for r, row in enumerate(rows_of_tables(table)[1:]):
        mine = said == r
        assert row[column].startswith(f"{100 * agree[mine].mean():.1f} % (" if mine.any() else "")
    X, y = numbers
    forest = RandomForestRegressor(10, random_state=0).fit(X[:150], y[:150])
    model = ProxyTreeRegressor(forest, size=3, random_state=0).fit(X[:150], y[:150])
    answers = forest.predict(X[150:])
    table = reports.held_out_html(model.rules_, X[150:], y[150:].to_numpy(), 0.95, answers, "it")
    assert "fidelity to it" in table
    again = measured_again(model.rules_, X[150:], answers)
    assert [row[4] for row in rows_of_tables(table)[1:]] == [f"{each:.3g}" for each in again]


def measured_again(rules, X, reference):
    return [rule.fidelity for rule in rules.measure(X, reference=reference).rules]


def test_fidelity_is_explained_by_what_it_is(labels, numbers, mixture, equations, snapshot):
    """With what it agrees, counted again; of rules that were written and read back, too."""
    X, y = labels
    settings = {"n_init": 1, "n_perturbations": 2, "max_rules": 3, "random_state": 0}
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    made = {
        "a mixture": mixture,
        "a mixture, fitted to the ensemble": fabinterp.RuleMixtureClassifier(
            target="ensemble", **settings
        ).fit(X, y),
        "a mixture of a given forest": fabinterp.RuleMixtureClassifier(forest, **settings).fit(
            X, y
        ),
    }
    told = {}
    for name, model in made.items():
        again = measured_again(model.rules_, X, model.estimator_.predict(np.asarray(X)))
        assert [rule.fidelity for rule in model.rules_.rules] == pytest.approx(again)
        told[name] = reports.fidelity_words(model, model.rules_)
        kept = fabinterp.load_rules(model.to_json())
        assert reports.fidelity_words(kept, kept) == told[name]
    X, y = numbers
    forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    proxy = ProxyTreeRegressor(forest, size=3, random_state=0).fit(X)
    grown = ProxyTreeRegressor(size=3, random_state=0).fit(X, y)
    made = {
        "equations": (equations, y),
        "a tree": (grown, y),
        "a proxy": (proxy, forest.predict(X)),
    }
    for name, (model, reference) in made.items():
        again = measured_again(model.rules_, X, np.asarray(reference))
        assert [rule.fidelity for rule in model.rules_.rules] == pytest.approx(again)
        told[name] = reports.fidelity_words(model, model.rules_)
    bare = forest_rules(forest, X)
    told["rules alone"] = reports.fidelity_words(bare, bare)
    snapshot("fidelity", "\n".join(f"{name}: {words}" for name, words in told.items()))
    assert told["a mixture"] in words_of(report(mixture, *labels))


def forest_rules(forest, X):
    """Rules of nobody's making, measured against a forest."""
    columns = read_columns(X)
    rule = Rule(((Split((0,), 0.0), True),), Leaf(200.0))
    return RuleSet((rule, Rule((), Leaf(100.0))), columns).measure(X, reference=forest.predict(X))


def test_the_number_after_a_class_is_explained_by_what_it_is(labels, tree, mixture, snapshot):
    X, y = labels
    said = mixture.rules_.apply(X)
    for r, rule in enumerate(mixture.rules_.rules):
        mine = np.array([np.mean(y[said == r] == c) for c in mixture.classes_])
        table = np.array([np.mean(y == c) for c in mixture.classes_])
        n = np.sum(said == r)
        assert rule.leaf.value == pytest.approx(tuple((n * mine + table) / (n + 1)))
    model = clone(mixture).set_params(target="ensemble").fit(X, y)
    answers = model.estimator_.predict(np.asarray(X))
    said = model.rules_.apply(X)
    for r, rule in enumerate(model.rules_.rules):
        shares = [np.mean(answers[said == r] == c) for c in model.classes_]
        assert rule.leaf.value == pytest.approx(tuple(shares))
    equation = fabinterp.PiecewiseLinearClassifier(max_depth=0, penalty=1.0, random_state=0).fit(
        X, y
    )
    made = {
        "a mixture": mixture,
        "fitted to the ensemble": model,
        "a tree": tree,
        "an equation": equation,
    }
    told = {name: reports.class_number_words(one, one.rules_) for name, one in made.items()}
    snapshot("number_after_a_class", "\n".join(f"{name}: {words}" for name, words in told.items()))
    assert told["a mixture"] in words_of(report(mixture, X, y))


def test_a_share_outside_the_interval_of_rows_held_out_is_said(snapshot):
    X = np.repeat([0.0, 1.0], 50)[:, None]
    conditions = ((Split((0,), 0.5), False),)
    rules = RuleSet(
        (Rule(conditions, Leaf((0.9, 0.1))), Rule((), Leaf((0.4, 0.6)))), read_columns(X), (0, 1)
    )
    y = np.concatenate([np.arange(50) % 2, np.arange(50) % 5 > 1]).astype(int)
    of_y = page_text(reports.held_out_html(rules, X, y, 0.95))
    low, high = reports.wilson(25, 50)
    assert f"50.0 % ({100 * low:.1f} % to {100 * high:.1f} %)" in of_y
    # shares of another thing than what it is right about
    options = {"shares_of_y": False}
    of_forest = reports.held_out_html(rules, X, y, 0.95, rules.predict(X), "the forest", **options)
    snapshot("shares_on_rows_held_out", f"{of_y}\n\n{page_text(of_forest)}")


def test_a_mean_outside_the_interval_of_rows_held_out_is_said(snapshot):
    X = np.repeat([0.0, 1.0], 50)[:, None]
    conditions = ((Split((0,), 0.5), False),)
    rules = RuleSet((Rule(conditions, Leaf(3.0)), Rule((), Leaf(5.0))), read_columns(X))
    y = np.repeat([4.0, 5.0], 50) + np.tile([-0.1, 0.1], 50)
    told = page_text(reports.held_out_html(rules, X, y, 0.95))
    assert "4 (3.97 to 4.03)" in told
    first = replace(rules.rules[0], interval=(2.9, 3.1))  # said by the marks
    rules = replace(rules, rules=(first, rules.rules[1]))
    marked = page_text(reports.held_out_html(rules, X, y, 0.95))
    snapshot("means_on_rows_held_out", f"{told}\n\n{marked}")


@pytest.mark.parametrize("target", ["ensemble", "observed"])
def test_shares_of_what_an_ensemble_answers_are_not_held_against_y(target, snapshot):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (400, 3)), columns=list("abc"))
    y = np.where((X.a > 0) ^ (rng.random(400) < 0.25), "yes", "no")
    forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X[:200], y[:200])
    model = fabinterp.RuleMixtureClassifier(
        forest, target=target, max_rules=3, n_init=2, n_perturbations=2, random_state=0
    ).fit(X[:200], y[:200])
    page = report(model, X[:200], y[:200], held_out=(X[200:], y[200:]))
    snapshot(f"rules_fitted_to_{target}", section_of(page, "Predictions"))


def test_how_far_equations_are_rounded_is_said(numbers, equations, snapshot):
    X, y = numbers
    told = reports.rounding_words(equations.rules_)
    assert reports.significant_text(0.004 * equations.rules_.target_std) in told
    proxy = ProxyTreeRegressor(size=2)
    of_tree = reports.rounding_words(proxy.fit(X, y).rules_)
    snapshot("rounding", f"equations: {told}\na tree: {of_tree}")
    assert reports.rounding_words(proxy.fit(X, np.where(X["bmi"] > 0, 3.0, 1.5)).rules_) == ""
    assert words_of(told) in words_of(report(equations, X, y))


def test_agreement_has_the_simplest_answer_beside_it():
    scorer = reports.Scorer("rows", ("no", "yes"), 0.95, 0)
    answers = np.array([1, 1, 1, 0])
    found = scorer.agreement("it", np.array([1, 0, 1, 0]), answers)
    assert [(f.metric, f.value) for f in found] == [
        ("agreement with it", 0.75),
        ("agreement of always predicting yes with it", 0.75),
    ]


def test_a_rule_differs_if_the_interval_of_the_difference_excludes_0():
    """Both estimates have an error: an interval that the other value lies outside of is not enough."""
    X = np.repeat([0.0, 1.0, 2.0], 40)[:, None]
    y = np.repeat([0.0, 1.0, 2.0], 40) + np.tile([-0.5, 0.5], 60)
    cuts = [((Split((0,), cut), False),) for cut in (0.5, 1.5)]
    ends = [(-0.1, 0.1), (1.05, 1.35), (2.5, 3.0)]
    values = [0.0, 1.2, 2.7]
    rules = [
        Rule(c, Leaf(v), interval=e) for c, v, e in zip([*cuts, ()], values, ends, strict=True)
    ]
    columns = read_columns(X)
    table = reports.held_out_html(RuleSet(tuple(rules), columns), X, y, 0.95)
    assert rows_of_tables(table)[2][2] == "1.2 (1.05 to 1.35)" and "Rule 3" in table
    # 1.2 is beyond the interval 0.84 to 1.16 of rule 2, but the difference is not
    assert "Rule 1 " not in table and "Rule 2 " not in table
    y = np.array(["no", "yes"])[(np.arange(120) % 4 > 0).astype(int)]
    sure = RuleSet((Rule((), Leaf((0.1, 0.9)), interval=(0.85, 0.95)),), columns, ("no", "yes"))
    assert "Rule 1 predicts 90.0 %" in reports.held_out_html(sure, X, y, 0.95)


@pytest.mark.parametrize("seed", range(3))
def test_one_rule_in_twenty_differs_by_chance(seed):
    """Of rules with the intervals of a fit, measured on rows drawn in the same way."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(40, 400, (2, 600))
    hits = rng.binomial(sizes, rng.uniform(0.1, 0.9, 600))
    intervals = [
        [reports.wilson(k, n) for k, n in zip(*pair, strict=True)]
        for pair in zip(hits, sizes, strict=True)
    ]
    shares = hits / sizes
    differ = [
        reports.differs_beyond_chance(p, fit, q, *new)
        for p, fit, q, new in zip(shares[0], intervals[0], shares[1], intervals[1], strict=True)
    ]
    assert 0.02 < np.mean(differ) < 0.08


def test_what_is_there_can_be_seen():
    """A small share has a bar."""
    widths = [re.search(r'"width:(\d+)%', html_format._bar_html(v))[1] for v in (0, 1e-4, 0.5, 1)]
    assert widths == ["0", "2", "50", "100"]


def test_rows_held_out_are_among_those_where_rules_and_model_disagree(labels):
    X, y = labels
    forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    rules = ProxyTreeClassifier(forest, size=2, random_state=0).fit(X[::2])
    out = X[1::2]
    apart = rules.predict(out) != forest.predict(out)
    page = words_of(report(rules, X[::2], y[::2], held_out=(out, y[1::2])))
    assert apart.any() and f"{apart.sum()} of 89 rows held out" in page


def test_fidelity_is_that_of_the_rules(numbers):
    X, y = (table[:80] for table in numbers)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    proxy = ProxyTreeRegressor(as_reference(forest), size=4, random_state=0).fit(X)
    found = reports.evaluate_model(proxy, proxy.rules_, X, None, None, None, 0.95, 0).estimates
    assert (
        len(found) == 1
        and found[0].value == pytest.approx(proxy.fidelity_)
        and "RandomForestRegressor" in found[0].metric
    )
    for reference in (forest, forest.predict):
        found = reports.evaluate_model(
            proxy.tree_, proxy.rules_, X, None, None, reference, 0.95, 0
        ).estimates
        assert found[0].value == pytest.approx(proxy.fidelity_)


def test_draws_for_a_table_are_asked_about_that_table_only(numbers):
    X, y = numbers
    draws = np.random.default_rng(0).normal(y.to_numpy(), 10, (5, len(y)))
    proxy = ProxyTreeRegressor(draws, size=3, random_state=0).fit(X)
    found = reports.evaluate_model(
        proxy, proxy.rules_, X, y, (X[:60], y[:60]), None, 0.95, 0
    ).estimates
    assert [f.rows for f in found if f.metric.startswith("agreement")] == ["200 rows of the table"]


def test_a_summary_counts_every_known_row():
    rng = np.random.default_rng(0)
    for values, kind in (
        (rng.normal(size=300), "numbers"),
        (rng.integers(0, 5, 300), "whole numbers"),
    ):
        values = np.where(rng.random(300) < 0.1, np.nan, values)
        assert reports.summarize_column(values)[0] == kind
    assert reports.summarize_column(np.full(4, np.nan))[0] == "empty"
    assert reports.summarize_column(np.full(4, 2.5))[1] == "always 2.5"


# Every model has its page


SLOW = ("draws", "softmax", "log loss")


def cases(names):
    """Return the parameters of a test; the long ones are of the slow tier."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in names]


def two_columns(X, y):
    return X.iloc[:, :2], y


CASES = {
    "rules": lambda X, y, labels: (
        fabinterp.RuleMixtureClassifier(RandomForestClassifier(5, max_leaf_nodes=8, random_state=0), max_rules=3,
                                        search=EM(n_components=3), random_state=0).fit(*labels), labels),
    "piecewise": lambda X, y, labels: (
        fabinterp.PiecewiseLinearRegressor(max_depth=1, random_state=0).fit(X, y), (X, y)),
    "oblique": lambda X, y, labels: (
        fabinterp.ObliqueAdditiveRegressor(max_depth=1, max_leaves=2, random_state=0).fit(X, y), (X, y)),
    "metatree": lambda X, y, labels: (fabinterp.MetaTreeClassifier(max_depth=3, random_state=0).fit(*labels), labels),
    "draws": lambda X, y, labels: (
        ProxyTreeRegressor(RandomForestRegressor(10, random_state=0).fit(X, y), size=4, n_draws=5,
                           random_state=0).fit(X, y), (X, y)),
    "line": lambda X, y, labels: (ProxyLinearRegressor(random_state=0).fit(X, y), (X, y)),
    "softmax": lambda X, y, labels: (
        ProxyLinearClassifier(random_state=0).fit(*two_columns(*labels)), two_columns(*labels)),
}  # fmt: skip


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("case", cases(CASES))
def test_every_model_has_its_page(case, numbers, labels, tmp_path, snapshot):
    model, (X, y) = CASES[case](*numbers, labels)
    path = tmp_path / "page.html"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # letters that a font lacks would be told
        assert report(model, X, y, path) == path
    text = path.read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    snapshot(f"page_{case}", page_text(text))
    parsed = Parsed(text)
    words = words_of(text)
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    assert not re.search(r"\bon\w+=", text)
    for name, value in parsed.attributes:
        assert name not in {"href", "src", "srcset", "action"}
        assert name != "xlink:href" or value.startswith(("#", "data:image/png;base64,"))
    assert pictures(text)
    assert all("<script" not in svg for svg in pictures(text))
    for rule in model.rules_.rules:
        assert f"{rule.support:.6g}" in words
    said = html.unescape(
        re.search(r"from_json\(text\) reads it.</p><pre>(.*?)</pre>", text, re.S)[1]
    )
    assert RuleSet.from_json(said).rules == model.rules_.rules


def run_code(code, X, y):
    """Run the code of a page, which imports nothing; return its names."""
    public = {name: getattr(fabinterp, name) for name in fabinterp.__all__}
    space = public | {"RandomForestClassifier": RandomForestClassifier, "X": X, "y": y}
    exec(code, space)
    return space


def test_the_code_on_the_page_makes_the_model_again(labels):
    X, y = labels
    made = ProxyTreeClassifier(size=4, min_samples_leaf=7, random_state=3).fit(X, y)
    model = run_code(made_again(report(made, X, y)), X, y)["model"]
    assert model.rules_ == made.rules_ and model.get_params() == made.get_params()
    estimator = RandomForestClassifier(5, random_state=0)
    settings = {"max_rules": 3, "n_init": 1, "n_perturbations": 2, "random_state": 0}
    explained = fabinterp.explain(estimator, X, y, **settings)
    code = made_again(report(explained, X, y))
    assert "fitted before" not in code
    assert run_code(code, X, y)["explanation"].rules == explained.rules


def test_the_code_on_the_page_makes_the_size_that_is_shown(labels, mixture):
    """Of a model that is at(n) of another: by at(n), until it is fitted again."""
    X, y = labels
    other = next(k for k in mixture.path_["size"] if k != len(mixture.rules_))
    shown = mixture.at(int(other))
    assert len(shown.rules_) == other
    for model in (mixture, shown):
        code = made_again(report(model, X, y))
        assert run_code(code, X, y)["model"].rules_ == model.rules_
        assert (f".at({other})" in code) == (model is shown)
    again = shown.fit(X, y)
    assert again.rules_ == mixture.rules_ and ".at(" not in reports.fit_code(again, None, y)


def test_the_code_on_the_page_tells_trees_of_one_size_apart(numbers, equations):
    X, y = numbers
    path = equations.path_
    first = equations.at(1).path_.chosen.idxmax()
    entry = path[(path["size"] == 1) & (path.index != first)].iloc[-1]
    shown = equations.at(1, n_numbers=int(entry.n_numbers))
    code = reports.fit_code(shown, None, y)
    assert f".at(1, n_numbers={entry.n_numbers:.0f})" in code
    assert run_code(code, X, y)["model"].tree_ == shown.tree_ != equations.at(1).tree_


def test_the_code_on_the_page_marks_what_was_fitted_elsewhere(labels):
    X, y = labels
    settings = {"max_rules": 3, "n_init": 1, "n_perturbations": 2, "random_state": 0}
    forest = RandomForestClassifier(5, random_state=0).fit(X[::2], y[::2])
    made = fabinterp.RuleMixtureClassifier(forest, **settings).fit(X, y)
    assert "# estimator was fitted before" in made_again(report(made, X, y))
    explained = fabinterp.explain(forest, X, y, **settings)
    assert "# the model was fitted before" in made_again(report(explained, X, y))


def test_what_cannot_be_made_again_is_said(numbers, snapshot):
    X, y = numbers
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    fitted = report(ProxyTreeRegressor(forest, size=3).fit(X, y), X, y)
    function = ProxyTreeRegressor(forest.predict, size=3, random_state=0).fit(X)
    pages = [fitted, report(function, X)]
    snapshot(
        "not_made_again", "\n\n".join(section_of(page, "Reproduce the model") for page in pages)
    )


def test_the_search_for_where_rules_and_ensemble_part_has_a_number_of_boxes(
    labels, monkeypatch, mixture
):
    """It depends on the size of the ensemble; very large ones are left out."""
    X, y = labels
    asked = []

    def watched(*args, **limits):
        asked.append(limits)
        return found(*args, **limits)

    found = reports.disagreement
    monkeypatch.setattr(reports, "disagreement", watched)
    report(mixture, X, y)
    assert asked[0]["max_seconds"] is None and 16 <= asked[0]["max_nodes"] <= 1000
    nodes = SimpleNamespace(n_leaves=10_000_000)
    large = SimpleNamespace(nodes=nodes, link=None, classes=tuple(mixture.classes_))
    monkeypatch.setattr(reports, "read_ensemble", lambda *args: large)
    monkeypatch.setattr(
        reports, "disagreement", lambda *args, **limits: SimpleNamespace(to_html=str)
    )
    assert reports.largest_difference_html(mixture, mixture.rules_, X) == ""


@pytest.mark.usefixtures("drawn")
def test_what_each_size_errs_is_drawn(numbers, equations):
    page = reports.sizes_html(equations, "y")
    assert len(equations.path_) > 1 and len(pictures(page)) == 1
    rows = rows_of_tables(page)[1:]
    for (entry, _, shown), row in zip(sizes_of(equations), rows, strict=True):
        assert row[:2] == [str(entry.size), str(entry.n_numbers)]
        assert (row[-1] == "this page") == shown


KINDS_OF_ERRORS = {
    "squared error": ProxyTreeRegressor(random_state=0, size="balanced"),
    "share of wrong predictions": fabinterp.RuleMixtureClassifier(
        n_init=1, n_perturbations=4, random_state=0
    ),
    "log loss": fabinterp.PiecewiseLinearClassifier(max_depth=1, random_state=0),
}


@pytest.mark.parametrize("kind", cases(KINDS_OF_ERRORS))
def test_each_size_is_measured_on_rows_held_out(kind, labels, numbers):
    X, y = numbers if kind == "squared error" else labels
    X = X.iloc[:, :2]
    X_out, y_out = X[2::3], y[2::3].to_numpy()
    model = KINDS_OF_ERRORS[kind].fit(X[::3], y[::3])
    told = words_of(reports.sizes_html(model, "y", (X_out, y_out))).replace("\u00a0", " ")
    assert f"the {len(y_out)} rows held out" in told and len(model.path_) > 1
    for _, other, _ in sizes_of(model):
        if kind == "squared error":
            losses = (other.predict(X_out) - y_out) ** 2
        elif kind == "log loss":
            at = [list(model.classes_).index(label) for label in y_out]
            losses = -np.log(other.predict_proba(X_out)[np.arange(len(at)), at])
        else:
            losses = other.predict(X_out) != y_out
        mean, se = np.mean(losses), np.std(losses) / np.sqrt(len(losses))
        if kind == "squared error":
            mean, se = np.sqrt(mean), se / (2 * np.sqrt(mean))
        error = f"{reports.significant_text(mean)} ± {reports.significant_text(se)}"
        assert f" {error} " in told
    assert "held out" not in words_of(reports.sizes_html(model, "y"))


def test_numbers_in_money_are_read_without_exponents():
    """Errors, intervals, means and gaps; thousands stay on one line."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = 400_000 * (X[:, 0] > 0.5) + 200_000 + rng.normal(0, 60_000, 300)
    out = X[200:], y[200:]
    forest = RandomForestRegressor(10, random_state=0).fit(X[:200], y[:200])
    model = fabinterp.RuleMixtureRegressor(forest, n_init=1, n_perturbations=4, random_state=0)
    page = report(model.fit(X[:200], y[:200]), X[:200], y[:200], held_out=out)
    shown = re.sub("<details>.*?</details>", "", page, flags=re.S)
    assert not re.findall(r"\de\+\d", words_of(re.sub("<style.*?</style>", "", shown)))
    rmse = np.sqrt(np.mean((model.predict(out[0]) - out[1]) ** 2))
    assert f"<b>{rmse / 1000:.1f}".replace(".", "\u00a0") in page


def test_how_often_intervals_hold_is_told_of_each_half(snapshot):
    """Of prices whose spread grows with them: more below, less above."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"area": rng.uniform(20, 120, 900)})
    y = 10 * X["area"] * np.exp(rng.normal(0, 0.35, 900))
    model = fabinterp.PiecewiseLinearRegressor(max_depth=0, random_state=0).fit(X[:450], y[:450])
    out = X[450:], y[450:]
    low, high = model.predict_interval(out[0], 0.9).T
    holds = (low <= out[1]) & (out[1] <= high)
    upper = model.predict(out[0]) > np.median(model.predict(out[0]))
    told = reports.coverage_text(model.rules_, *out, 0.9)
    snapshot("coverage", told)
    shares = [reports.percent_text(np.mean(each)) for each in (holds, holds[~upper], holds[upper])]
    assert re.findall(r"of ([\d.]+ %)", told) == shares
    assert holds[~upper].mean() > 0.93 and holds[upper].mean() < 0.87
    assert low.min() == 0.0 < high.min()
    page = report(model, X[:450], y[:450], held_out=out, level=0.9)
    assert told in words_of(page) and "predict_interval" not in report(model, X[:450], y[:450])
    tree = ProxyTreeRegressor(size=3, random_state=0).fit(X, y)
    assert reports.coverage_text(tree.rules_, *out, 0.9) == ""


def test_a_part_has_one_word_on_a_page(labels, tree, mixture):
    X, y = labels
    told = {}
    for shown in (tree, mixture):
        words = words_of(report(shown, X[::2], y[::2], held_out=(X[1::2], y[1::2])))
        told[shown] = words[words.index("rows and columns") : words.index("The model describes")]
    assert "4 leaves" in told[tree]
    assert not re.findall(r"\brules?\b", told[tree])
    assert not re.findall(r"\b(?:leaf|leaves)\b", told[mixture])


@pytest.mark.parametrize("share", [True, False])
def test_calibration_is_what_was_seen(share):
    rng = np.random.default_rng(0)
    predicted = rng.random(2000)
    observed = rng.random(2000) < predicted if share else predicted + rng.normal(0, 0.1, 2000)
    across, up, low, high = reports.calibration(predicted, observed, 10, 0.95, share)
    parts = np.sort(predicted).reshape(10, 200)
    assert np.allclose(across, parts.mean(axis=1), atol=2e-3)
    part = reports.calibration_bins(predicted, 10)
    assert np.allclose(up, [observed[part == b].mean() for b in range(10)])
    assert np.mean((low <= across) & (across <= high)) >= 0.8
    few = rng.choice([0.1, 0.7], 300)
    assert len(np.unique(reports.calibration_bins(few))) == 2  # a part for each leaf
    assert len(reports.calibration(np.ones(3), np.ones(3, bool))[0]) == 1


def test_calibration_is_drawn_of_any_model(labels, numbers, tree):
    X, y = labels
    ax = reports.plot_calibration(tree, X, y)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["red", "rosé", "white"]
    lines = [line for line in ax.lines if str(line.get_gid()).startswith("calibration")]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}
    assert len(lines) == len(looks) == 3 == len({marker for _, marker, _ in looks})
    ax = reports.plot_calibration(tree.rules_, X, y, label="red")
    (line,) = [line for line in ax.lines if line.get_gid() == "calibration0"]
    share = tree.predict_proba(X)[:, 0]
    assert np.allclose(line.get_xdata(), np.unique(share))
    assert np.allclose(
        line.get_ydata(), [np.mean(y[share == p] == "red") for p in np.unique(share)]
    )
    X, y = numbers
    ax = reports.plot_calibration(LinearRegression().fit(X, y), X, y, n_bins=4)
    assert ax.get_xlabel() == "predicted" and len(ax.lines[0].get_xdata()) == 4
    with pytest.raises(ValueError, match="label must be one of the classes"):
        reports.plot_calibration(tree, *labels, label="green")
    with pytest.raises(ValueError, match="y must have shape .* like the rows of X, got"):
        reports.plot_calibration(tree, labels[0], labels[1][:3])
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        reports.plot_calibration(tree, *labels, level=2)
    with pytest.raises(TypeError, match="model must be fitted and have predict"):
        reports.plot_calibration(3, *labels)


def test_a_y_that_says_nothing_is_not_drawn(labels, numbers, tree):
    X, y = labels
    for model in (tree, tree.rules_, RandomForestClassifier(5).fit(X, y)):
        with pytest.raises(
            ValueError, match="y must hold labels among 'red', 'rosé', 'white', got"
        ):
            reports.plot_calibration(model, X, np.where(y == "red", "a", "b"))
        with pytest.raises(ValueError, match="y must hold labels among"):
            reports.plot_calibration(model, X, np.full(len(y), np.nan))
    X, y = numbers
    line = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="y must be finite, got"):
        reports.plot_calibration(line, X, np.full(len(y), np.nan))
    with pytest.raises(ValueError, match="y must hold numbers, got 'a'"):
        reports.plot_calibration(line, X, np.full(len(y), "a"))


def test_where_rules_and_model_part_is_said_in_words(numbers, labels):
    X, y = numbers
    black = LinearRegression().fit(X, y)
    proxy = ProxyTreeRegressor(black, size=3, random_state=0).fit(X, y)
    words = words_of(report(proxy, X, y))
    gap = np.abs(proxy.predict(X) - black.predict(X))
    told = f"the median difference is {np.median(gap):.3g}, the largest {gap.max():.3g}"
    assert told in words
    worst = int(gap.argmax())
    told = f"{proxy.predict(X)[worst]:.4g} (leaf {proxy.rules_.apply(X)[worst] + 1})"
    assert f"{told} {black.predict(X)[worst]:.4g}" in words
    X, y = labels
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    proxy = ProxyTreeClassifier(forest, size=3, random_state=0).fit(X, y)
    words = words_of(report(proxy, X, y))
    apart = int(np.sum(proxy.predict(X) != forest.predict(X)))
    assert f"differ at {apart} of 178 rows of the table" in words


def test_only_what_rules_were_made_from_is_called_so(labels, snapshot):
    X, y = labels
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    piped = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    grown = ProxyTreeClassifier(size=3, random_state=0).fit(X, y)
    proxy = ProxyTreeClassifier(forest, size=3, random_state=0).fit(X, y)
    told = []
    for model, reference in ((grown, forest), (grown, piped), (proxy, forest)):
        assert reports.is_made_for(model, reference) == (model is proxy)
        page = report(model, X, y, reference=reference)
        told.append(f"{lead_of(page)}\n{origin_of(page)}")
    snapshot("beside_a_model", "\n".join(told))


@pytest.mark.parametrize("target", ["observed", "ensemble"])
def test_what_the_answers_were_fitted_to_is_said_once(labels, target, snapshot):
    X, y = labels
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    model = fabinterp.RuleMixtureClassifier(
        forest, target=target, n_init=1, n_perturbations=2, random_state=0
    ).fit(X, y)
    snapshot(f"origin_of_rules_fitted_to_{target}", origin_of(report(model, X, y)))


def test_the_picture_of_regions_says_which_rows_stand_on_another_colour(snapshot):
    X = np.stack(np.meshgrid(*[[0.0, 1.0, 2.0]] * 3), axis=-1).reshape(-1, 3)
    columns = read_columns(X)
    low = [(Split((f,), 1.5), False) for f in range(3)]
    rules = RuleSet(
        (Rule(tuple(low), Leaf(5.0)), Rule((low[0],), Leaf(1.0)), Rule((low[1],), Leaf(2.0)),
         Rule((low[2],), Leaf(4.0)), Rule((), Leaf(3.0))), columns, ordered=True)  # fmt: skip
    said = reports.plane_words(rules, X)
    a, b = reports.select_plane(rules, X)
    rest = np.ones((len(X), 3))
    rest[:, [a, b]] = X[:, [a, b]]
    differs = np.mean(rules.predict(rest) != rules.predict(X))
    assert 0 < differs < 1 and f"{100 * differs:.1f} % of the 27 rows drawn" in said
    region = rules.apply(rest)
    for r in range(5):
        wrong = (rules.predict(rest) != rules.predict(X))[region == r]
        told = f"rule {r + 1}: {wrong.sum()} of {len(wrong)}"
        assert (told in said) == (2 * wrong.sum() > len(wrong))
    assert said in html.unescape(report(rules, X))
    # a rule that holds nowhere but at the median of all three: its colour covers three rows
    middle = [(Split((f,), cut), cut < 1) for f in range(3) for cut in (0.5, 1.5)]
    one = RuleSet((Rule(tuple(middle), Leaf(9.0)), Rule((), Leaf(2.0))), columns, ordered=True)
    told = reports.plane_words(one, X)
    assert told.endswith(" 2 of 3")
    snapshot("rows_on_another_colour", f"{said}\n{told}")
    flat = RuleSet((Rule((low[0], low[1]), Leaf(5.0)), Rule((), Leaf(3.0))), columns, ordered=True)
    assert reports.plane_words(flat, X) == "" and "rows drawn" not in report(flat, X)


def test_rows_have_the_names_of_the_frame(labels):
    X, y = labels
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    proxy = ProxyTreeClassifier(forest, size=3, random_state=0).fit(X, y)
    assert "row (from 0)" in words_of(report(proxy, X, y))
    named = X.set_axis([f"C{i:04d}" for i in range(len(X))])
    words = words_of(report(proxy, named, y))
    apart = np.flatnonzero(proxy.predict(X) != forest.predict(X))
    assert "row (by index)" in words and any(f"C{i:04d}" in words for i in apart)


def test_the_page_says_how_to_use_the_model(labels, tree):
    X, y = labels
    text = report(tree, X, y)
    code = html.unescape(
        re.search(r"without any package</summary><p>.*?</p><pre>(.*?)</pre>", text, re.S)[1]
    )
    space = {}
    exec(code, space)
    for i in range(0, 178, 20):
        row = {name: float(value) for name, value in X.iloc[i].items()}
        assert space["predict"](row) == tree.predict(X.iloc[[i]])[0]
    assert "SELECT" in text


@pytest.mark.usefixtures("drawn")
def test_pictures_have_the_colours_of_the_page(labels, tree):
    X, y = labels
    for svg in pictures(report(tree, X, y)):
        assert not re.search("(?:fill|stroke): #(?:000000|ffffff)", svg)


def test_rules_and_trees_without_an_estimator(labels, tree):
    X, y = labels
    for said in (tree.rules_, tree.tree_):
        words = words_of(report(said, X, y, code="make it so <b>"))
        assert "make it so <b>" in words
    text = report(tree.tree_, X, y)
    said = html.unescape(
        re.search(r"from_json\(text\) reads it.</p><pre>(.*?)</pre>", text, re.S)[1]
    )
    assert Tree.from_json(
        said
    ) == tree.tree_ and "It is not known whether the model was fitted" in words_of(text)
    one = RuleSet((Rule((), Leaf((0.2, 0.3, 0.5))),), read_columns(X), ("red", "white", "rosé"))
    assert "One prediction for all rows" in words_of(report(one, X, y))


@pytest.mark.usefixtures("drawn")
def test_the_same_page_again_and_in_a_notebook(labels, tree):
    X, y = labels
    page = report(tree, X, y, title="<b>Wine</b>")
    assert page == report(tree, X, y, title="<b>Wine</b>") and isinstance(page, str)
    frame = Parsed(page._repr_html_())
    assert frame.tags == ["iframe"] and dict(frame.attributes)["srcdoc"] == page
    assert dict(frame.attributes)["sandbox"] == ""
    assert "<title>&lt;b&gt;Wine&lt;/b&gt;</title>" in page


def test_one_row_has_no_interval(numbers, equations):
    X, y = numbers
    found = reports.regression_intervals(y[:1].to_numpy(), equations.predict(X[:1]))
    assert np.isfinite(found[0][0]) and np.isnan(found[1:]).all()
    words = words_of(report(equations, X, y, held_out=(X[:1], y[:1])))
    assert "1 row held out" in words and "1 rows" not in words and "R²" in words
    assert "nan to nan" not in words


def test_what_is_explained_is_measured_against_y_too(labels):
    X, y = labels
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    model = fabinterp.RuleMixtureClassifier(forest, max_rules=3, n_init=1, random_state=0)
    found = reports.evaluate_model(
        model.fit(X, y), model.rules_, X, y, None, None, 0.95, 0
    ).estimates
    name = "RandomForestClassifier"
    by_name = {f.metric: f.value for f in found}
    assert by_name[f"error rate of {name}"] == np.mean(forest.predict(X) != y)
    agreed = np.mean(forest.predict(X) == model.predict(X))
    assert by_name[f"agreement with {name}"] == pytest.approx(agreed)


@pytest.mark.usefixtures("drawn")
def test_no_figure_is_left_open(labels, tree):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    report(tree, *labels)
    assert plt.get_fignums() == before


# Refusals, one line each


REFUSED = [
    {"y": [1, 2]}, {"y": ["?"] * 178}, {"path": "nowhere/page.html"}, {"path": "."}, {"level": 1.0},
    {"held_out": np.zeros(3)}, {"reference": 3}, {"model": LinearRegression()},
    {"model": fabinterp.RuleMixtureClassifier()}, {"model": "rules"},
]  # fmt: skip


def test_refused_in_one_line(numbers, labels, tree, equations, tmp_path, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    X, y = labels
    given = [{"model": tree, "X": X, "y": y, **options} for options in REFUSED]
    forest = fabinterp.MetaTreeClassifier(n_trees=3, max_depth=2, random_state=0).fit(X, y)
    given += [
        {"model": equations, "X": numbers[0], "y": ["a"] * 200},
        {"model": equations, "X": numbers[0], "y": numbers[1] * np.nan},
        {"model": forest, "X": X, "y": y},
        {"model": tree, "X": X.rename(columns={"ash": "Ash"}), "y": y},
    ]
    lines = []
    for options in given:
        with pytest.raises((ValueError, TypeError)) as error:
            report(**options)
        assert "\n" not in str(error.value)
        lines.append(f"{type(error.value).__name__}: {error.value}")
    snapshot("refused", "\n".join(lines))
    assert not list(tmp_path.iterdir())


# Hostile names, in a browser


def hostile_table(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, len(HOSTILE))), columns=HOSTILE)
    X["label </td>"] = pd.Categorical(rng.choice(["<b>red & 名</b>", "blue 🙂", "x" * 120], n))
    X.iloc[::9, 5] = np.nan
    score = (
        X.iloc[:, 0]
        + 2 * (X.iloc[:, 2] > 0)
        + X.iloc[:, 4]
        + (X.iloc[:, 7] == "x" * 120)
        + 0.5 * X.iloc[:, 3]
    )
    target = "<h1>target</h1> 🙂 " + "t" * 80
    labels = np.where(score > 1, "<i>yes</i> שלום", "no $y$ " + "z" * 100)
    return X, pd.Series(labels, name=target), score.rename(target)


@pytest.fixture(scope="module")
def hostile_pages(tmp_path_factory):
    """Pages of a list, a tree and equations about a hostile table."""
    folder = tmp_path_factory.mktemp("pages")
    X, y, score = hostile_table()
    conditions = [((Split((0,), -0.17), True), (Split((2,), 0.0), True), (Split((4,), -0.5), False)),
                  ((Split((7,), categories=(0, 2)), True), (Split((5,), 0.1, missing=True), True)), ()]  # fmt: skip
    leaves = [Leaf((0.9, 0.1)), Leaf((0.2, 0.8)), Leaf((0.6, 0.4))]
    rules = RuleSet(tuple(map(Rule, conditions, leaves)), read_columns(X), ("<i>yes</i> שלום", "no $y$ " + "z" * 100),
                    target=y.name).measure(X, y)  # fmt: skip
    plain = X.drop(columns=HOSTILE[5])
    models = {"list": (rules, X, y), "tree": (ProxyTreeClassifier(size=5, random_state=0).fit(X, y), X, y),
              "equations": (fabinterp.PiecewiseLinearRegressor(max_depth=0, random_state=0).fit(plain, score), plain,
                            score)}  # fmt: skip
    for name, (model, table, target) in models.items():
        report(
            model, table, target, folder / f"{name}.html", title='"><script>window.hit=3</script>'
        )
    return folder


def test_hostile_names_are_text(hostile_pages):
    for path in hostile_pages.iterdir():
        text = path.read_text(encoding="utf-8")
        parsed = Parsed(text)
        assert not {"script", "i"} & set(parsed.tags)
        assert parsed.tags.count("h1") == 1 and not [
            name for name, _ in parsed.attributes if name.startswith("on")
        ]
        words = words_of(text)
        for name in HOSTILE[:5]:
            assert name in words
        for svg in pictures(text):
            assert "<script" not in svg and "onerror=window" not in re.sub(r">[^<]*<", "><", svg)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_pages_in_a_browser(hostile_pages):
    need("chromium", "playwright")
    with chromium() as browser:
        complaints = []
        asked = []
        for path in sorted(hostile_pages.iterdir()):
            grounds = {}
            for scheme, wide in (("light", 1200), ("dark", 1200), ("light", 400), ("dark", 400)):
                size = {"width": wide, "height": 800}
                context = browser.new_context(color_scheme=scheme, viewport=size, offline=True)
                tab = context.new_page()
                tab.on("console", lambda message: complaints.append(message.text))
                tab.on("pageerror", lambda error: complaints.append(str(error)))
                tab.on("dialog", lambda dialog: complaints.append(dialog.message))
                tab.on("request", lambda request: asked.append(request.url))
                tab.goto(path.as_uri())
                tab.evaluate(
                    "document.querySelectorAll('details').forEach(each => each.open = true)"
                )
                assert tab.evaluate("document.documentElement.scrollWidth") <= wide
                out = """[...document.querySelectorAll('body *')].filter(each => !each.closest('.tree, .picture') &&
                    each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80))"""
                assert tab.evaluate(out) == []
                assert tab.evaluate("typeof window.hit") == "undefined"
                colours = "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
                ink = "getComputedStyle(document.querySelector('.picture text')).fill"
                grounds[scheme, wide] = (*tab.evaluate(colours), tab.evaluate(ink))
                context.close()
            assert grounds["light", 1200][1] != grounds["dark", 1200][1] == grounds["dark", 400][1]
            assert all(colour == ink for colour, _, ink in grounds.values())
        printed = browser.new_page(color_scheme="dark")
        printed.goto(path.as_uri())
        printed.emulate_media(media="print", color_scheme="dark")
        assert (
            printed.evaluate(
                "getComputedStyle(document.documentElement).getPropertyValue('--ground')"
            )
            == "#fff"
        )
    assert not complaints
    assert all(url.startswith(("file://", "data:image/png")) for url in asked)


def test_rules_of_explain_are_held_against_their_model_by_name(tmp_path, snapshot):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc"))
    y = pd.Series(np.where(X.a + X.b > 0, "yes", "no"), name="kind")
    settings = {"max_rules": 3, "n_init": 1, "n_perturbations": 2, "random_state": 0}
    forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X, y)
    line = LogisticRegression().fit(X, y)
    found = fabinterp.explain(forest, X, y, **settings)
    found.save(tmp_path / "rules.json")
    rules = fabinterp.load_rules(tmp_path / "rules.json")
    others = X[200:], y[200:]
    pages = {"found": report(found, X[:200], y[:200], held_out=others)}
    for name, model in (("kept", forest), ("kept_beside_another", line)):
        pages[name] = report(rules, X[:200], y[:200], held_out=others, reference=model)
        # where they part: the forest has trees to look into
        has_part = reports.largest_difference_html(rules, rules, X, reference=model) != ""
        assert has_part == (model is forest)
    for name, page in pages.items():
        parts = [lead_of(page), section_of(page, "Predictions"), origin_of(page)]
        snapshot(f"rules_of_explain_{name}", "\n".join(parts))
    of_line = fabinterp.explain(line, X, y, max_rules=3, random_state=0)
    of_line.save(tmp_path / "rules.json")
    rules = fabinterp.load_rules(tmp_path / "rules.json")
    snapshot("number_after_a_class_of_explain", reports.class_number_words(rules, rules))


def test_who_chose_the_size_is_said(equations, snapshot):
    entries = [entry for entry, _, _ in sizes_of(equations)]
    takes = {word: choose_by_error(entries, word) for word in ("small", "balanced", "accurate")}
    (shown,) = [at for at, (_, _, is_shown) in enumerate(sizes_of(equations)) if is_shown]
    assert takes["balanced"] == shown
    told = [reports.chosen_text(entries, at) for at in range(len(entries))]
    for word, at in takes.items():
        assert all(f"{word}: {entries[at].size} ({entries[at].n_numbers})" in line for line in told)
    snapshot("who_chose_the_size", "\n".join(told))
    assert told[shown] in words_of(reports.sizes_html(equations, "y"))


def test_where_both_differ_most_often_is_a_rate():
    """Of many rows few may differ; the rule that is named first has the largest share."""
    X = np.repeat([0.0, 1.0], [90, 10])[:, None]
    conditions = ((Split((0,), 0.5), False),)
    leaves = Leaf((0.9, 0.1)), Leaf((0.3, 0.7))
    rules = RuleSet(
        (Rule(conditions, leaves[0]), Rule((), leaves[1])), read_columns(X), ("no", "yes")
    )
    explained = np.concatenate([np.arange(90) < 9, np.arange(10) > 3]).astype(int)
    told = words_of(reports.differences_html(rules, X, explained, "the model"))
    apart = "rows of the table (13 %): 4 of 10 rows of rule 2, 9 of 90 rows of rule 1."
    assert apart in told and "the largest probability by the rules" in told


def test_draws_of_classes_have_no_probabilities_for_some_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    shares = rng.dirichlet([2.0, 2.0], size=(6, 80))
    found = fabinterp.explain(shares, X, classes=["no", "yes"], held_out=0, random_state=0)
    assert "the largest probability by the rules" in words_of(report(found, X))


def test_who_picked_a_size_of_rules_is_said(mixture, snapshot):
    entries = [entry for entry, _, _ in sizes_of(mixture)]
    told = [reports.chosen_text(entries, at) for at in range(len(entries))]
    size = len(mixture.rules_.rules)
    least = min(range(len(entries)), key=lambda at: entries[at].criterion)
    assert entries[least].size == size
    assert all(f"{size} (" in line for at, line in enumerate(told) if at != least)
    snapshot("who_picked_a_size_of_rules", "\n".join(told))
    assert told[least] in words_of(reports.sizes_html(mixture, "y"))


def test_a_reference_that_rules_cannot_be_laid_over_is_reported_all_the_same():
    """Equations, tilted questions, a class that it lacks: beside it, without where both part."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    y = 2 * X.a + X.b
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    kind = np.where(X.a > 0, "yes", "no")
    more = np.where(X.b > 1, "maybe", kind)
    of_two = RandomForestClassifier(5, random_state=0).fit(X, kind)
    settings = {"max_rules": 3, "n_init": 1, "n_perturbations": 2, "random_state": 0}
    mixture = fabinterp.RuleMixtureClassifier(**settings).fit(X, more)
    oblique = {"max_leaves": 2, "random_state": 0}
    for model, reference, target in (
        (fabinterp.PiecewiseLinearRegressor(max_depth=0, random_state=0).fit(X, y), forest, y),
        (fabinterp.ObliqueAdditiveRegressor(max_depth=1, **oblique).fit(X, y), forest, y),
        (mixture.rules_, of_two, more),
    ):
        assert reports.ensemble_beside(model, reports.as_ruleset(model), reference) is None
        told = words_of(report(model, X, target, reference=reference))
        assert f"agreement with {type(reference).__name__}" in told
