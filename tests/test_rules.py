"""What is shown is what predicts: every form of a `RuleSet` or `Tree` predicts the same, row by row."""

import html
import json
import math
import pickle
import re
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.doors import by_python, by_sql
from shared.effort import examples

from fabinterp.rules.core import (
    Columns,
    Curve,
    Leaf,
    LogitLink,
    Rule,
    SoftmaxLink,
    Split,
    as_pandas,
    class_scores,
    decode,
    encode,
    leaf_values,
    match_conditions,
    merge_conditions,
    read_columns,
)
from fabinterp.rules.digits import shortest_number
from fabinterp.rules.json_format import parts_to_json
from fabinterp.rules.ruleset import RuleSet, Tree, load_rules
from fabinterp.rules.text import answer_text

inf = math.inf
nan = math.nan
COLUMNS = Columns(
    ("a", "b", "colour", "smoker"),
    (None, None, ("red", "green", "blue", "grey", "pink"), (False, True)),
)
NUMERIC = (0, 1)
LABELLED = (2, 3)
# Thresholds and data share these numbers, so that rows often lie exactly on a threshold.
TIES = (-3.0, -0.1, 0.0, 0.1, 0.3, 1.5, 2.0, 1e-9, 12345.678)
NEAR = tuple(
    f(t)
    for t in TIES
    for f in (
        lambda t: t,
        lambda t: float(np.nextafter(t, inf)),
        lambda t: float(np.nextafter(t, -inf)),
        lambda t: 2 * t,
    )
)
VALUES = NEAR + (nan, nan, 1e308, -1e308, 1e300)


# --------------------------------------------------------------------------------------------------
# random objects
def splits(oblique=True):
    axis = st.builds(
        Split, st.sampled_from([(0,), (1,)]), st.sampled_from(TIES + (inf,)), missing=st.booleans()
    )
    sets = st.one_of(
        st.builds(
            lambda c, m: Split((2,), categories=tuple(c), missing=m),
            st.sets(st.integers(0, 4)),
            st.booleans(),
        ),
        st.builds(
            lambda c, m: Split((3,), categories=tuple(c), missing=m),
            st.sets(st.integers(0, 1)),
            st.booleans(),
        ),
    )
    # What a forest trained on codes asks.
    coded = st.builds(
        Split,
        st.sampled_from([(2,), (3,)]),
        st.sampled_from((-0.5, 0.5, 1.0, 3.5)),
        missing=st.booleans(),
    )
    number = st.sampled_from((-2.0, -1.0, 0.1, 1.0, 10.0))
    slanted = st.builds(
        lambda f, t, c, m: Split(f, t, c[: len(f)], missing=m),
        st.sampled_from([(0, 1), (1, 0), (0, 2), (0,)]),
        st.sampled_from(TIES + (inf,)),
        st.tuples(number, number),
        st.booleans(),
    )
    return st.one_of(axis, sets, coded, slanted) if oblique else st.one_of(axis, sets, coded)


def leaves(linear=True):
    constant = st.builds(Leaf, st.sampled_from(TIES))
    bounds = st.sampled_from([(-inf, inf), (-1.0, inf), (-inf, 2.5), (-1.0, 2.5)])
    sloped = st.builds(
        lambda v, f, c, b: Leaf(v, f, (c, 0.5)[: len(f)], *b),
        st.sampled_from(TIES),
        st.sampled_from([(0,), (0, 1), (1, 3)]),
        st.sampled_from((-2.0, 0.1, 1.0)),
        bounds,
    )
    return st.one_of(constant, constant, sloped) if linear else constant


PROBS = st.tuples(*[st.sampled_from((0.0, 0.25, 0.5, 1.0))] * 3).map(Leaf)
WEIGHTS = st.sampled_from((-2.0, -0.5, 0.0, 0.1, 1.0, 200.0))


@st.composite
def scored(draw, n_classes):
    """A leaf with a link, and bounds perhaps, for two classes or more; now and then plain probabilities."""
    used = draw(st.sampled_from([(0,), (1,), (0, 1), (1, 3)]))
    bounds = draw(st.sampled_from([(-inf, inf), (-1.0, inf), (-inf, 2.5), (-4.0, 4.0), (0.5, 3.0)]))
    if n_classes == 2 and draw(st.booleans()):
        return Leaf(
            draw(st.sampled_from(TIES)), used, tuple(draw(WEIGHTS) for _ in used), *bounds, "logit"
        )
    if draw(st.integers(0, 3)) == 0:
        return Leaf(
            draw(st.sampled_from([(0.5, 0.25, 0.25), (0.0, 0.5, 0.5), (0.25, 0.25, 0.5)]))[
                :n_classes
            ]
        )
    numbers = st.tuples(*[WEIGHTS] * n_classes)
    return Leaf(draw(numbers), used, tuple(draw(numbers) for _ in used), *bounds, "softmax")


@st.composite
def rule_sets(draw, oblique=True, linear=True, classes=None, columns=COLUMNS, leaf=None):
    if leaf is None:
        leaf = PROBS if classes else leaves(linear)
    conditions = st.lists(st.tuples(splits(oblique), st.booleans()), min_size=1, max_size=5).map(
        tuple
    )
    rules = tuple(Rule(c, draw(leaf)) for c in draw(st.lists(conditions, max_size=5)))
    if draw(st.booleans()) or not rules:
        rules += (Rule((), draw(leaf)),)
    return RuleSet(rules, columns, classes, target="risk")


@st.composite
def trees(draw, classes=None):
    """A random tree of up to seven questions."""
    asked = [None]
    yes = [-1]
    no = [-1]
    said = [0]
    leaf = PROBS if classes else leaves()
    for _ in range(draw(st.integers(0, 7))):
        k = draw(st.sampled_from([k for k, s in enumerate(asked) if s is None]))
        asked[k], yes[k], no[k] = draw(splits()), len(asked), len(asked) + 1
        asked = asked + [None] * 2
        yes = yes + [-1] * 2
        no = no + [-1] * 2
        said = said + [0] * 2
    return Tree(
        asked, yes, no, [draw(leaf) if s is None else None for s in asked], COLUMNS, classes
    )


def random_table(seed, n=60):
    """A frame with ties, gaps, huge numbers and labels never seen."""
    rng = np.random.default_rng(seed)
    labels = np.array(["red", "green", "blue", "grey", "pink", "mars", None], dtype=object)
    return pd.DataFrame(
        {
            "a": rng.choice(VALUES, n),
            "b": rng.choice(VALUES, n),
            "colour": rng.choice(labels, n),
            "smoker": rng.choice(np.array([True, False, None], dtype=object), n),
        }
    )


SEEDS = st.integers(0, 10**6)


# ------------------------------------------------------------------------------------------------
# ways to one prediction
def one_by_one(said, X, method="predict"):
    """The answers to a frame; where some row has none, row by row, None for the error."""
    ask = getattr(said, method)
    try:
        return ask(X).tolist()
    except ValueError:
        out = []
        Z = encode(X, said.columns)
        for z in Z:
            try:
                out.append(ask(z[None]).tolist()[0])
            except ValueError:
                out.append(None)
        return out


@examples(150)
@given(rule_sets(), SEEDS)
def test_numbers_are_the_same_through_every_door(rules, seed):
    X = random_table(seed)
    expected = one_by_one(rules, X)
    assert one_by_one(RuleSet.from_json(rules.to_json()), X) == expected
    assert by_python(rules, X) == expected
    assert by_sql(rules, X)[0] == expected
    kept = [
        (merge_conditions(r.conditions), r.leaf)
        for r in rules.rules
        if merge_conditions(r.conditions) is not None
    ]
    stop = next((k + 1 for k, (c, _) in enumerate(kept) if not c), len(kept))
    if stop:
        assert one_by_one(RuleSet(tuple(Rule(*k) for k in kept[:stop]), COLUMNS), X) == expected


@examples(100)
@given(rule_sets(classes=("no", "it's", 'a "third"')), SEEDS)
def test_labels_and_probabilities_are_the_same_through_every_door(rules, seed):
    X = random_table(seed)
    expected = one_by_one(rules, X)
    proba = one_by_one(rules, X, "predict_proba")
    assert by_python(rules, X) == expected
    assert [p and list(p.values()) for p in by_python(rules, X, proba=True)] == proba
    rows, names = by_sql(rules, X, proba=True, keep=("colour",))
    assert names == ["colour", "risk", "p_no", "p_it's", 'p_a "third"']
    assert [row[1] for row in rows] == expected
    assert [None if row[2] is None else list(row[2:]) for row in rows] == proba
    back = RuleSet.from_json(rules.to_json())
    assert back == rules and one_by_one(back, X) == expected


TWO = ("no", "it's")
THREE = ("no", "it's", 'a "third"')
SCORED = st.sampled_from([TWO, THREE]).flatmap(lambda c: rule_sets(classes=c, leaf=scored(len(c))))


def moderate(X):
    """A table without the numbers whose sums overflow."""
    return X.assign(**{name: X[name].where(~(X[name].abs() > 1e200), 0.25) for name in ("a", "b")})


def all_close(found, expected, **options):
    """Whether two lists of probabilities agree, None where there are none."""
    assert [p is None for p in found] == [p is None for p in expected]
    told = [(p, q) for p, q in zip(found, expected, strict=True) if p is not None]
    return not told or np.allclose(*zip(*told, strict=True), **options)


@examples(60)
@given(SCORED, SEEDS)
def test_classes_by_equations_are_the_same_through_every_door(rules, seed):
    for X in (random_table(seed, 25), moderate(random_table(seed, 25))):
        expected = one_by_one(rules, X)
        back = RuleSet.from_json(rules.to_json())
        assert by_python(rules, X) == expected == by_sql(rules, X)[0]
        assert back == rules and hash(back) == hash(rules) and one_by_one(back, X) == expected
        proba = one_by_one(rules, X, "predict_proba")
        by_dict = [p and list(p.values()) for p in by_python(rules, X, proba=True)]
        assert all_close(by_dict, proba, rtol=1e-12, atol=0)
        for label, p in zip(expected, proba, strict=True):
            assert label is None or p[rules.classes.index(label)] >= max(p) * (1 - 1e-12)
    rows, names = by_sql(rules, X, proba=True)
    assert names == ["risk", *(f"p_{label}" for label in rules.classes)]
    assert [row[0] for row in rows] == expected
    assert all_close(
        [None if row[1] is None else list(row[1:]) for row in rows], proba, rtol=1e-12, atol=0
    )


@examples(100)
@given(scored(3), SEEDS)
def test_probabilities_by_their_definition(leaf, seed):
    Z = encode(moderate(random_table(seed)), COLUMNS)
    Z = Z[~np.isnan(Z).any(axis=1)]
    rules = RuleSet((Rule((), leaf),), COLUMNS, THREE)
    proba = rules.predict_proba(Z)
    assert (
        proba.shape == (len(Z), 3)
        and np.allclose(proba.sum(axis=1), 1)
        and (leaf.link is None or (proba > 0).all())
    )
    for z, p in zip(Z, proba, strict=True):
        if leaf.link:
            g = [
                min(
                    max(
                        v + sum(c * z[f] for f, c in zip(leaf.features, coef, strict=True)),
                        leaf.lower,
                    ),
                    leaf.upper,
                )
                for v, coef in leaf.linear_parts
            ]
            wide = [Decimal(s - max(g)).exp() for s in g]
            assert np.allclose(p, [float(e / sum(wide)) for e in wide], rtol=1e-9, atol=1e-300)
        else:
            assert tuple(p) == leaf.value


def test_scores_decide_and_the_first_of_equals_wins():
    columns = read_columns(np.zeros((1, 1)))
    two = RuleSet((Rule((), Leaf(0.0, (0,), (1.0,), link="logit")),), columns, ("a", "b"))
    x = np.array([[0.0], [1e-30], [-1e-30], [50.0], [1e6], [-1e6]])
    assert two.predict(x).tolist() == ["a", "b", "a", "b", "b", "a"]
    assert (
        two.predict_proba(x)[:4, 1].tolist() == [0.5, 0.5, 0.5, 1.0]
        and (two.predict_proba(x) > 0).all()
    )
    three = RuleSet(
        (Rule((), Leaf((0.0, 0.0, 1.0), (0,), ((1.0, 1.0, 0.0),), link="softmax")),),
        columns,
        (7, 8, 9),
    )
    assert three.predict([[5.0], [1.0], [0.0]]).tolist() == [7, 7, 9]
    bound = RuleSet((Rule((), Leaf(0.0, (0,), (1.0,), 0.25, 2.0, "logit")),), columns, ("a", "b"))
    assert bound.predict(x).tolist() == ["b"] * 6  # a score kept above 0 cannot say no
    wild = RuleSet(
        (Rule((), Leaf((0.0, 0.0, 0.0), (0,), ((4.0, 9.0, -1.0),), link="softmax")),),
        columns,
        (7, 8, 9),
    )
    assert wild.predict([[1e308]]).tolist() == [7]
    assert wild.predict_proba([[1e308]]).round(9).tolist() == [[0.5, 0.5, 0.0]]


def test_a_score_without_features_is_plain_probabilities():
    leaf = Leaf(math.log(3.0), link="logit")
    assert leaf.link is None and leaf == Leaf(leaf.value) and np.allclose(leaf.value, (0.25, 0.75))
    assert np.allclose(
        Leaf((0.0, 99.0, 0.0), upper=math.log(2.0), link="softmax").value, (0.25, 0.5, 0.25)
    )
    assert Leaf(9.0, lower=-1.0, upper=0.0, link="logit") == Leaf((0.5, 0.5))
    assert str(RuleSet((Rule((), leaf),), COLUMNS, TWO)) == "always  then it's (0.75)"


def test_text_of_classes_by_equations():
    steep = Leaf(0.31, (0, 1), (1.2, -0.00342), link="logit")
    kept = Leaf((0.5, 0.0, -1.0), (0,), ((-1.0, 0.0, 2.0),), -3, 3, "softmax")
    asked = ((Split((0,), 5), True),)
    two = RuleSet(
        (Rule(asked, steep), Rule((), Leaf(0.0, (1,), (-2.0,), -4, link="logit"))), COLUMNS, TWO
    )
    three = RuleSet((Rule(asked, kept), Rule((), Leaf((0.5, 0.25, 0.25)))), COLUMNS, THREE)
    assert [re.sub(" +", " ", line) for line in str(two).splitlines()] == [
        "if a > 5 then it's if 0.31 + 1.2·a - 0.00342·b > 0, else no",
        "otherwise then it's if -2·b > 0, else no; the sum at least -4",
        "where a sum decides, P(it's) = 1 / (1 + exp(-sum))",
    ]
    first, last, note = (re.sub(" +", " ", line) for line in str(three).splitlines())
    assert first == (
        "if a > 5 then the largest of (each clipped to [-3, 3]) "
        'no: 0.5 - a; it\'s: 0; "a \\"third\\"": -1 + 2·a'
    )
    assert last == "otherwise then no (0.5)" and note.startswith(
        "where sums compete, P(class) = exp(its sum) /"
    )
    assert two.to_frame()["prediction"].tolist() == [
        "it's if 0.31 + 1.2·a - 0.00342·b > 0, else no",
        "it's if -2·b > 0, else no; the sum at least -4",
    ]
    assert three.to_frame()["prediction"].tolist()[1] == "no"
    parts = (
        (Split((0,), 5.0), None, None),
        [1, -1, -1],
        [2, -1, -1],
        (None, kept, Leaf((0.0, 0.0, 1.0))),
    )
    tree = Tree(*parts, COLUMNS, THREE)
    assert len(str(tree).splitlines()) == 4 and "P(class)" in str(tree).splitlines()[-1]
    for said in (two, three, tree):
        page = Tags()
        page.feed(said._repr_html_())
        assert page.tags <= TAGS and "exp(" in page.text
        assert type(said).from_json(said.to_json()) == said


@examples(100)
@given(st.data(), st.sampled_from([None, TWO, ("u", "v", "w")]), SEEDS)
def test_an_equation_read_aloud_is_the_one_that_predicts(data, classes, seed):
    some = scored(len(classes)) if classes else leaves()
    leaf = data.draw(
        some.filter(lambda leaf: leaf.features and leaf.value != 12345.678)
    )  # the text has four digits
    X = moderate(random_table(seed)).dropna()
    rules = RuleSet((Rule((), leaf),), COLUMNS, classes)
    text = re.sub(r"\((\S+) if smoker\)", r"\1*smoker", answer_text(rules, 0)).replace("·", "*")
    kept = re.compile(
        r"(?:, |; the sum | \(each )(?:clipped to \[(\S+), (\S+)\]|at least (\S+?)|at most (\S+?))"
        r"(?:\)|$)"
    )
    low, high, least, most = kept.search(text).groups() if kept.search(text) else [None] * 4
    text = kept.sub("", text)

    def number(equation, row):
        said = eval(equation, {"__builtins__": {}}, row)
        return min(max(said, float(low or least or -inf)), float(high or most or inf))

    spoken = []
    for row in X.assign(smoker=X["smoker"].astype(float)).drop(columns="colour").to_dict("records"):
        if classes is None:
            spoken.append(number(text, row))
        elif leaf.link == "logit":
            spoken.append(classes[number(text.split(" if ")[1].split(" > ")[0], row) > 0])
        else:
            sums = [
                number(part.split(": ")[1], row)
                for part in text.removeprefix("the largest of ").split("; ")
            ]
            spoken.append(classes[sums.index(max(sums))])
    assert spoken == rules.predict(X).tolist()


def test_trees_answer_classes_by_equations():
    kept = Leaf(1.0, (0,), (-0.5,), link="logit")
    plain_leaf = Leaf((0.25, 0.75))
    tree = Tree(
        (Split((0,), 1.5), None, None),
        [1, -1, -1],
        [2, -1, -1],
        (None, kept, plain_leaf),
        COLUMNS,
        TWO,
    )
    X = random_table(0)
    X["a"] = X["a"].fillna(-9.0)
    assert (
        tree.predict(X).tolist()
        == tree.rules().predict(X).tolist()
        == one_by_one(Tree.from_json(tree.to_json()), X)
    )
    assert np.array_equal(tree.predict_proba(X), tree.rules().predict_proba(X))
    assert set(tree.predict(X)) == set(TWO) and pickle.loads(pickle.dumps(tree)) == tree
    measured = tree.rules().measure(X, tree.predict(X))
    assert measured.fidelity == 1.0 and sum(r.support for r in measured.rules) == len(X)


def test_json_from_before_there_were_links():
    rules = RuleSet((Rule((), Leaf(1.0, (0,), (0.5,))),), COLUMNS)
    told = json.loads(rules.to_json())
    assert "link" not in told["rules"][0]["leaf"] and RuleSet.from_dict(told) == rules
    linked = RuleSet((Rule((), Leaf(1.0, (0,), (0.5,), link="logit")),), COLUMNS, TWO)
    assert json.loads(linked.to_json())["rules"][0]["leaf"]["link"] == "logit"


# -------------------------------------------------------------------------------------------------------------
# curves
FLOATS = st.one_of(WEIGHTS, st.floats(-100, 100).map(lambda x: round(x, 6)), st.floats(-1e3, 1e3))


@st.composite
def curves(draw, feature, n_classes=0, columns=COLUMNS, numbers=FLOATS, powers=(1, 4)):
    """A curve of up to five pieces, one per label over labels; each number a tuple with classes."""
    labels = columns.categories[feature]
    places = st.one_of(st.sampled_from(TIES), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
    breaks = sorted(draw(st.sets(places, min_size=2, max_size=6)))
    if labels is not None:
        breaks = [code - 0.5 for code in range(len(labels) + 1)]
    entry = st.tuples(*[numbers] * n_classes) if n_classes else numbers
    n_powers = 1 if labels is not None else draw(st.integers(*powers))
    return Curve(
        feature, breaks, [[draw(entry) for _ in range(n_powers)] for _ in breaks[1:]], draw(entry)
    )


@st.composite
def curved(draw, n_classes=None, columns=COLUMNS, linear=True):
    """A leaf with one curve or more; a score for two classes, scores for more."""
    link = (
        None
        if n_classes is None
        else "logit"
        if n_classes == 2 and draw(st.booleans())
        else "softmax"
    )
    many = n_classes if link == "softmax" else 0
    entry = st.tuples(*[FLOATS] * many) if many else FLOATS
    features = draw(
        st.lists(st.integers(0, len(columns.names) - 1), min_size=1, max_size=3, unique=True)
    )
    straight = draw(st.sampled_from([(), (), (0,), (0, 1)])) if linear else ()
    bounds = draw(st.sampled_from([(-inf, inf), (-inf, inf), (-1.0, inf), (-4.0, 4.0)]))
    return Leaf(
        draw(entry),
        straight,
        tuple(draw(entry) for _ in straight),
        *bounds,
        link,
        tuple(draw(curves(f, many, columns)) for f in features),
    )


def exactly(curve, x):
    """Equation (rules.7) for one value, in fractions and with powers."""
    if math.isnan(x):
        return Fraction(curve.missing)
    b = [Fraction(b) for b in curve.breaks]
    x = Fraction(x)
    x = min(max(x, b[0]), b[-1])
    k = max(k for k in range(len(curve.coef)) if b[k] <= x)
    u = (x - b[k]) / (b[k + 1] - b[k])
    return sum((Fraction(c) * u**p for p, c in enumerate(curve.coef[k])), Fraction(0))


@examples(150)
@given(curves(0), st.integers(2, 3), SEEDS)
def test_a_curve_by_its_definition(curve, n_classes, seed):
    rng = np.random.default_rng(seed)
    b = np.array(curve.breaks)
    x = np.concatenate(
        [
            rng.choice(VALUES, 20),
            b,
            np.nextafter(b, inf),
            np.nextafter(b, -inf),
            [1e12, -1e12, nan],
            rng.uniform(b[0] - 1, b[-1] + 1, 20),
        ]
    )
    found = curve(x)
    size = max(abs(c) for piece in curve.coef for c in piece)
    assert np.allclose(
        found, [float(exactly(curve, v)) for v in x.tolist()], rtol=1e-12, atol=1e-13 * size
    )
    assert (found[x < b[0]] == curve.coef[0][0]).all() and (
        found[np.isnan(x)] == curve.missing
    ).all()
    assert (found[x >= b[-1]] == curve(b[-1:])).all() and len(curve(x[:0])) == 0
    many = Curve(
        0,
        b,
        [[tuple(c * k for k in range(n_classes)) for c in piece] for piece in curve.coef],
        tuple(curve.missing * k for k in range(n_classes)),
    )
    for k in range(n_classes):
        assert np.array_equal(many(x)[:, k], many.part(k)(x)) and np.array_equal(
            many.part(1)(x), found
        )
    assert (
        many.n_classes == n_classes
        and curve.n_classes == 0
        and many(x).shape == (len(x), n_classes)
    )


def test_a_curve_holds_a_spline_of_scipy():
    from scipy.interpolate import BSpline, PPoly

    rng = np.random.default_rng(1)
    spline = BSpline(np.r_[[0.0] * 3, 0.0, 0.1, 2.5, 3.0, 7.0, [7.0] * 3], rng.normal(size=7), 3)
    pieces = PPoly.from_spline(spline)
    b = pieces.x[3:-3]
    coef = pieces.c[::-1, 3:-3] * np.diff(b) ** np.arange(4)[:, None]
    x = np.r_[rng.uniform(0, 7, 200), b]
    assert np.allclose(Curve(0, b, coef.T)(x), spline(x), rtol=1e-12, atol=1e-12)


def sizes(rules, Z):
    """How large the terms of the equation that answers are, per row: rounding is relative to it."""
    found = np.ones(len(Z))
    for n, r in enumerate(rules.apply(Z)):
        leaf = rules.rules[r].leaf
        found[n] += np.abs(leaf.value).max() + sum(
            np.abs(c).sum() for curve in leaf.curves for c in curve.coef
        )
        found[n] += sum(
            np.abs(c).max() * abs(np.nan_to_num(Z[n, f]))
            for f, c in zip(leaf.features, map(np.array, leaf.coef), strict=True)
        )
    return found


def breaks_of(rules, feature):
    """The breaks of all curves over a feature, and where curves are constant."""
    said = [curve for rule in rules.rules for curve in rule.leaf.curves if curve.feature == feature]
    return [b for curve in said for b in curve.breaks] + [1e12, -1e12, nan]


@examples(150)
@given(rule_sets(leaf=st.one_of(curved(), curved(linear=False), leaves())), SEEDS)
def test_curves_answer_the_same_through_every_door(rules, seed):
    rng = np.random.default_rng(seed)
    X = random_table(seed, 40)
    X = pd.concat(
        [X, X.assign(a=rng.choice(breaks_of(rules, 0), 40), b=rng.choice(breaks_of(rules, 1), 40))]
    )
    X = moderate(X.reset_index(drop=True))
    expected = one_by_one(rules, X)
    back = RuleSet.from_json(rules.to_json())
    assert back == rules and hash(back) == hash(rules) and one_by_one(back, X) == expected
    assert by_python(rules, X) == expected
    found = by_sql(rules, X)[0]
    assert [v is None for v in found] == [v is None for v in expected]
    for size, v, w in zip(sizes(rules, encode(X, COLUMNS)), found, expected, strict=True):
        assert v is None or abs(v - w) <= 1e-12 * max(abs(w), size)


def gap(rules, Z):
    """How far the best score is ahead of the second, per row, nan where nothing answers."""
    found = np.full(len(Z), nan)
    chosen = rules.apply(Z)
    for n, r in enumerate(chosen):
        if (
            r >= 0
            and rules.rules[r].leaf.has_equation
            and not np.isnan(Z[n, list(rules.rules[r].leaf.features)]).any()
        ):
            scores = np.sort(class_scores(rules.rules[r].leaf, Z[[n]], rules.columns)[0])
            found[n] = scores[-1] - scores[-2]
    return found


@examples(80)
@given(
    st.sampled_from([TWO, THREE]).flatmap(
        lambda c: rule_sets(classes=c, leaf=st.one_of(curved(len(c)), scored(len(c))))
    ),
    SEEDS,
)
def test_curves_of_classes_answer_the_same_through_every_door(rules, seed):
    rng = np.random.default_rng(seed)
    X = moderate(random_table(seed, 20).assign(a=rng.choice(breaks_of(rules, 0), 20)))
    expected = one_by_one(rules, X)
    proba = one_by_one(rules, X, "predict_proba")
    back = RuleSet.from_json(rules.to_json())
    assert back == rules and one_by_one(back, X) == expected == by_python(rules, X)
    by_dict = [p and list(p.values()) for p in by_python(rules, X, proba=True)]
    assert all_close(by_dict, proba, rtol=1e-12, atol=0)
    rows, _ = by_sql(rules, X, proba=True)
    scale = sizes(rules, encode(X, COLUMNS))
    close = (
        gap(rules, encode(X, COLUMNS)) < 1e-12 * scale
    )  # a tie to the last digits may fall either way in a database
    assert [row[0] for row, near in zip(rows, close, strict=True) if not near] == [
        label for label, near in zip(expected, close, strict=True) if not near
    ]
    for row, p, size in zip(rows, proba, scale, strict=True):
        assert (row[1] is None) == (p is None)
        assert p is None or np.allclose(row[1:], p, rtol=1e-12 * max(size, 10), atol=0)


@examples(60)
@given(curved(3), SEEDS)
def test_curves_of_classes_by_their_definition(leaf, seed):
    Z = encode(moderate(random_table(seed)), COLUMNS)
    Z = Z[~np.isnan(Z[:, list(leaf.features)]).any(axis=1)]
    found = leaf_values(leaf, Z, COLUMNS)
    for k, (value, coef, parts) in enumerate(leaf.equations):
        linear = value + Z[:, leaf.features] @ np.array(coef)
        bent = sum(
            np.array([float(exactly(curve, x)) for x in Z[:, curve.feature].tolist()])
            for curve in parts
        )
        scale = 1e-12 * sizes(RuleSet((Rule((), leaf),), COLUMNS, THREE), Z)
        assert (np.abs(found[:, k] - np.clip(linear + bent, leaf.lower, leaf.upper)) <= scale).all()


def straight(values):
    """The pieces of a curve through values at its breaks."""
    return [(a, b - a) for a, b in zip(values, values[1:], strict=False)]


def test_text_of_curves():
    bent = Curve(0, (0, 0.2, 1), straight([-1.25, 0.5, 0.0]), 0.25)
    steps = Curve(0, (0, 1, 2), ((1,), (-2,)))
    home = Curve(2, np.arange(6) - 0.5, [(0.5,), (-1,), (0,), (2,), (0.125,)])
    flat = Curve(1, (0, 1), ((0.0, 0.0),))
    columns = Columns(COLUMNS.names, COLUMNS.categories, (True, True, False, False))
    rules = RuleSet(
        (
            Rule(((Split((0,), 0.1), True),), Leaf(1.9, (1,), (-2,), 0, 9, curves=(bent, home))),
            Rule(((Split((1,), 5), True),), Leaf(0, curves=(steps, flat))),
            Rule((), Leaf(3.0, curves=(flat,))),
        ),
        columns,
    )
    assert [re.sub(" +", " ", line) for line in str(rules).splitlines()] == [
        "if a > 0.1 then 1.9 - 2·b + s1(a) + s1(colour), clipped to [0, 9]",
        "else if b > 5 then s2(a)",
        "otherwise then 3",
        "s1(a): 0.1 → -0.375, 0.2 → 0.5, 1 → 0, missing → 0.25 (straight between, constant outside)",
        "s1(colour): red → 0.5, green → -1, blue → 0, grey → 2, pink → 0.125",
        "s2(a): below 1 → 1, from 1 → -2, missing → 0",
    ]
    assert rules.to_frame()["prediction"].tolist() == [
        "1.9 - 2·b + s1(a) + s1(colour), clipped to [0, 9]",
        "s2(a)",
        "3",
    ]
    assert answer_text(rules, 1) == "s(a)" and rules.n_conditions == 2
    tree = Tree(
        (Split((0,), 0.1), None, None),
        [2, -1, -1],
        [1, -1, -1],
        (None, rules.rules[1].leaf, rules.rules[0].leaf),
        columns,
    )
    assert str(tree).splitlines() == [
        "y",
        "├─ a ≤ 0.1 or missing: s1(a)",
        "└─ a > 0.1: 1.9 - 2·b + s2(a) + s2(colour), clipped to [0, 9]",
        "s1(a): everywhere → 1, missing → 0",
        "s2(a): 0.1 → -0.375, 0.2 → 0.5, 1 → 0, missing → 0.25 (straight between, constant outside)",
        "s2(colour): red → 0.5, green → -1, blue → 0, grey → 2, pink → 0.125",
    ]
    assert [line for line in str(tree.rules()).splitlines() if line[0] == "s"] == str(
        tree
    ).splitlines()[3:]
    assert Tree.from_json(tree.to_json()) == tree == pickle.loads(pickle.dumps(tree))
    for said in (rules, tree):
        page = Tags()
        page.feed(said._repr_html_())
        assert (
            page.tags <= TAGS | {"svg", "polyline"}
            and "svg" in page.tags
            and "-0.375, 0.2 → 0.5" in page.text
        )


@pytest.mark.parametrize("values", [(0.0, 50.0, -25.0), (0.001, 0.002, 0.0)])
def test_the_picture_of_a_curve_fills_its_box(values):
    leaf = Leaf(1.0, curves=(Curve(0, (0, 1, 2), straight(values)),))
    page = RuleSet((Rule((), leaf),), COLUMNS).to_html()
    *_, points = re.findall(r'<polyline points="([^"]+)"', page)
    heights = [float(pair.split(",")[1]) for pair in points.split()]
    assert (min(heights), max(heights)) == (2, 18)


def test_text_of_curves_of_classes():
    many = Curve(0, (0, 1), [((1.0, 0.0, -0.5), (0.5, 0.0, 1.0))], (0.0, 0.0, 2.0))
    rules = RuleSet(
        (Rule((), Leaf((0.5, 1.0, 0.0), link="softmax", curves=(many,))),), COLUMNS, THREE
    )
    assert str(rules).splitlines()[:3] == [
        'always  then the largest of no: 0.5 + s1(a); it\'s: 1; "a \\"third\\"": s1(a)',
        "s1(a) of no: 0 → 1, 1 → 1.5, missing → 0 (straight between, constant outside)",
        's1(a) of "a \\"third\\"": 0 → -0.5, 1 → 0.5, missing → 2 (straight between, constant outside)',
    ]
    two = RuleSet((Rule((), Leaf(0.5, link="logit", curves=(many.part(2),))),), COLUMNS, TWO)
    assert str(two).splitlines()[0] == "always  then it's if 0.5 + s1(a) > 0, else no"


@examples(60)
@given(st.lists(st.integers(-300, 300), min_size=2, max_size=6, unique=True), st.data(), SEEDS)
def test_straight_curves_read_aloud_are_those_that_predict(places, data, seed):
    breaks = sorted(p / 4 for p in places)  # up to four digits
    values, missing = (
        [v / 4 for v in data.draw(st.lists(st.integers(-99, 99), min_size=n, max_size=n))]
        for n in (len(breaks), 1)
    )
    home = [v / 4 for v in data.draw(st.lists(st.integers(-99, 99), min_size=5, max_size=5))]
    leaf = Leaf(
        1.5,
        curves=(
            Curve(0, breaks, straight(values), missing[0]),
            Curve(2, np.arange(6) - 0.5, [(v,) for v in home]),
        ),
    )
    rules = RuleSet((Rule((), leaf),), COLUMNS)
    X = random_table(seed)
    told = [line.split(": ")[1].split(" (")[0] for line in str(rules).splitlines() if ": " in line]
    spoken = np.full(len(X), 1.5)
    for line in told:
        pairs = dict(part.split(" → ") for part in line.split(", "))
        if "red" in pairs:
            spoken += [float(pairs.get(label, pairs["missing"])) for label in X["colour"]]
        else:
            other = float(pairs.pop("missing"))
            said = np.interp(X["a"], [float(b) for b in pairs], [float(v) for v in pairs.values()])
            spoken += np.where(X["a"].isna(), other, said)
    assert np.allclose(spoken, rules.predict(X), rtol=0, atol=1e-9)


def test_json_from_before_there_were_curves():
    rules = RuleSet((Rule((), Leaf(1.0, curves=(Curve(0, (0, 1), ((1, 2),)),))),), COLUMNS)
    told = json.loads(rules.to_json())
    assert told["rules"][0]["leaf"].pop("curves") == [
        {"feature": 0, "breaks": [0, 1], "coef": [[1, 2]], "missing": 0}
    ]
    assert RuleSet.from_dict(told) == RuleSet((Rule((), Leaf(1.0)),), COLUMNS)
    assert "curves" not in RuleSet.from_dict(told).to_json()


def test_curves_that_cannot_be_right_are_refused():
    fine = Curve(0, (0, 1), ((1.0,),))
    many = Curve(0, (0, 1), (((1.0, 2.0),),))
    assert many.missing == (0.0, 0.0) and Curve(0, (0, 1), (((1.0, 2.0),),), (3, 4)).missing == (
        3.0,
        4.0,
    )
    columns = read_columns(np.zeros((1, 1)))
    cases = [
        (lambda: Curve(0, (0,), ()), "breaks must be two or more"),
        (lambda: Curve(0, (0, 0), ((1.0,),)), "breaks must be two or more"),
        (lambda: Curve(0, (0, nan), ((1.0,),)), "breaks must be two or more"),
        (lambda: Curve(0, (0, inf), ((1.0,),)), "breaks must be two or more"),
        (lambda: Curve(0, (-1e308, 1e308), ((1.0,),)), "breaks must be two or more"),
        (lambda: Curve(0, (0, 1, 2), ((1.0,),)), r"one tuple per piece \(2\)"),
        (lambda: Curve(0, (0, 1, 2), ((1.0,), (1.0, 2.0))), "all of equal length"),
        (lambda: Curve(0, (0, 1), ((),)), "one tuple per piece"),
        (lambda: Curve(0, (0, 1), (1.0,)), "one tuple per piece"),
        (lambda: Curve(0, (0, 1), ((nan,),)), "must be finite"),
        (lambda: Curve(0, (0, 1), ((1.0,),), inf), "must be finite"),
        (lambda: Curve(0, (0, 1), (((1.0, inf),),)), "must be finite"),
        (lambda: Curve(0, (0, 1), ((1.0, (1.0, 2.0)),)), "numbers, or one per class"),
        (lambda: Curve(0, (0, 1), ((1.0,),), (1.0, 2.0)), "numbers, or one per class"),
        (lambda: Leaf(1.0, curves=(fine, fine)), "curves must be of different features"),
        (lambda: Leaf(1.0, curves=(many,)), "return one number"),
        (lambda: Leaf(1.0, link="logit", curves=(many,)), "return one number"),
        (
            lambda: Leaf((1.0, 2.0, 3.0), link="softmax", curves=(many,)),
            "return 3 numbers, one per class",
        ),
        (lambda: Leaf((0.5, 0.5), curves=(many,)), "features and curves must be empty"),
        (
            lambda: RuleSet((Rule((), Leaf(1.0, curves=(Curve(1, (0, 1), ((1.0,),)),))),), columns),
            r"positions from 0 to 0",
        ),
        (
            lambda: RuleSet((Rule((), Leaf(1.0, curves=(fine,))),), columns, ("a", "b")),
            "one probability per class",
        ),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def asks(phrase, row):
    """An interpreter of one printed phrase, written against the grammar and not against the package."""
    phrase = phrase.removeprefix("(").removesuffix(")")
    if phrase == "never":
        return False
    phrase, or_missing = re.sub(r" or missing$", "", phrase), phrase.endswith(" or missing")
    if m := re.fullmatch(r"(\w+) is (not )?missing", phrase):
        return pd.isna(row[m[1]]) != bool(m[2])
    name = re.search(r"(?<![\w.+-])(a|b|colour|smoker)(?!\w)", phrase)[1]
    value = row[name]
    if pd.isna(value):
        return or_missing
    if m := re.fullmatch(r"\w+ (is not|is|∈|∉) (.*)", phrase):
        found = str(value) in m[2].strip("{}").split(", ")
        return found == (m[1] in ("is", "∈"))
    if m := re.fullmatch(r"(not )?(\w+)", phrase):
        return value != bool(m[1])
    if m := re.fullmatch(r"(\S+) < \w+ ≤ (\S+)", phrase):
        return float(m[1]) < value <= float(m[2])
    m = re.fullmatch(r"\w+ ([>≤]) (\S+)", phrase)
    return value > float(m[2]) if m[1] == ">" else value <= float(m[2])


def read_aloud(text, row):
    """Which line of a printed rule set answers a row; -1 where none does."""
    for r, line in enumerate(text.splitlines()):
        said = re.fullmatch(r"(if|else if|otherwise|always)\s+(.*?)\s*then .*", line)
        if not said[2] or all(asks(phrase, row) for phrase in said[2].split(" and ")):
            return r
    return -1


def lines_of_page(page):
    """The rules of a page as the lines of a text."""
    rows = page.split("<tbody>")[1].split("</tr>")[:-1]
    cells = [re.sub("<[^>]*>", "", row.replace("</td>", "\n")).splitlines() for row in rows]
    return "\n".join(
        html.unescape(f"{head} {said} then {answer}") for head, said, answer, *_ in cells
    )


@examples(150)
@given(rule_sets(oblique=False), SEEDS)
def test_the_printed_text_selects_the_same_rule(rules, seed):
    X = random_table(seed)
    X["colour"] = X["colour"].where(
        X["colour"] != "mars", None
    )  # a text calls a label never seen missing
    text = rules.to_text()
    assert len(text.splitlines()) == len(rules.rules)
    spoken = [read_aloud(text, row) for row in X.to_dict("records")]
    assert spoken == rules.apply(X).tolist()


@examples(60)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=4), SEEDS)
def test_thresholds_are_printed_to_the_last_digit(thresholds, seed):
    rules = RuleSet(tuple(Rule(((Split((0,), t), True),), Leaf(1.0)) for t in thresholds), COLUMNS)
    with np.errstate(over="ignore"):
        near = [
            float(np.nextafter(t, end)) for t in thresholds for end in (-1e308, 1e308)
        ] + thresholds
    X = random_table(seed, len(near)).assign(a=near)
    for text in (rules.to_text(), lines_of_page(rules.to_html())):
        assert [read_aloud(text, row) for row in X.to_dict("records")] == rules.apply(X).tolist()


def test_text_reads_as_it_should():
    rules = RuleSet(
        (
            Rule(((Split((0,), 30), True), (Split((2,), categories=(0, 2)), True)), Leaf(0.83)),
            Rule(
                ((Split((0,), 0.7), False), (Split((0,), 0.2), True)),
                Leaf(1.5, (0,), (-0.25,), 0, 50),
            ),
            Rule(
                ((Split((2,), categories=(4,)), False), (Split((1,), inf, missing=True), True)),
                Leaf(2),
            ),
            Rule(((Split((0,), 5), True), (Split((0,), 4), False)), Leaf(3)),
            Rule((), Leaf(0.4)),
        ),
        COLUMNS,
    )
    assert [re.sub(" +", " ", line) for line in str(rules).splitlines()] == [
        "if a > 30 and colour ∈ {red, blue} then 0.83",
        "else if 0.2 < a ≤ 0.7 then 1.5 - 0.25·a, clipped to [0, 50]",
        "else if (colour is not pink or missing) and b is missing then 2",
        "else if never then 3",
        "otherwise then 0.4",
    ]
    assert len({line.index(" then ") for line in str(rules).splitlines()}) == 1
    assert repr(rules) == str(rules) and rules.n_conditions == 5
    assert str(RuleSet(rules.rules[-1:], COLUMNS)) == "always  then 0.4"
    told = RuleSet(rules.rules, Columns(COLUMNS.names, COLUMNS.categories, (False,) * 4))
    assert "or missing" not in str(told) and "b is missing" in str(told)
    disjoint = RuleSet(rules.rules, COLUMNS, ordered=False)
    assert [line.split()[0] for line in str(disjoint).splitlines()] == ["if"] * 4 + ["otherwise"]


# ------------------------------------------------------------------------------------------------------------
# merging
@examples(200)
@given(st.lists(st.tuples(splits(), st.booleans()), max_size=7).map(tuple), SEEDS, st.booleans())
def test_merging_keeps_the_rows_and_is_done_once(conditions, seed, known):
    Z = encode(random_table(seed), COLUMNS)
    merged = merge_conditions(conditions, COLUMNS if known else None)
    held = match_conditions(conditions, Z)
    if merged is None:
        assert not held.any()
        return
    assert (match_conditions(merged, Z) == held).all()
    assert merge_conditions(merged, COLUMNS if known else None) == merged
    directions = [(s.features, s.coef) for s, _ in conditions]
    assert len(merged) <= 2 * len(set(directions))


def test_an_empty_region_is_flagged():
    over = (Split((0,), 5.0), True)
    under = (Split((0,), 5.0), False)
    assert merge_conditions((over, under)) is None
    gap = Split((0,), 5.0, missing=True)
    assert merge_conditions(((gap, True), (Split((0,), 5.0), False))) == (
        (Split((0,), inf, missing=True), True),
    )
    assert (
        merge_conditions(
            ((Split((2,), categories=(0,)), True), (Split((2,), categories=(1,)), True))
        )
        is None
    )
    every = Split((2,), categories=(0, 1, 2, 3, 4))
    assert (
        merge_conditions(((every, False), (Split((2,), inf, missing=True), False)), COLUMNS) is None
    )
    assert merge_conditions(()) == ()
    assert RuleSet((Rule((over, under), Leaf(1.0)),), COLUMNS).apply(np.zeros((2, 4))).tolist() == [
        -1,
        -1,
    ]


# --------------------------------------------------------------------------------------------------------------
# trees
@examples(150)
@given(st.one_of(trees(), trees(classes=(3, 1, 2))), SEEDS)
def test_a_tree_its_rules_and_its_json_agree(tree, seed):
    X = random_table(seed)
    rules = tree.rules()
    back = Tree.from_json(tree.to_json())
    expected = one_by_one(tree, X)
    assert one_by_one(rules, X) == expected and one_by_one(back, X) == expected
    assert back == tree and hash(back) == hash(tree)
    assert (rules.matches(X).sum(axis=1) == 1).all() and not rules.ordered
    node = tree.apply(X)
    passed = tree.decision_path(X).toarray().astype(bool)
    assert all(tree.splits[k] is None for k in node)
    assert passed[np.arange(len(X)), node].all() and passed[:, 0].all()
    assert (passed.sum(axis=1) <= tree.depth + 1).all()
    assert (passed[:, [s is None for s in tree.splits]].sum(axis=1) == 1).all()
    lines = [line for line in tree.to_text().splitlines() if not line.startswith("code of ")]
    assert len(lines) == len(tree.splits) == 2 * tree.n_leaves - 1
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_a_scikit_learn_tree_read_by_hand():
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    iris = load_iris(as_frame=True)
    X = iris.data.astype(np.float32).astype(float)
    y = iris.target_names[iris.target]
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    t = model.tree_
    tree = Tree(
        [Split((j,), b) if j >= 0 else None for j, b in zip(t.feature, t.threshold, strict=True)],
        t.children_right,
        t.children_left,
        [Leaf(p[0]) if j < 0 else None for j, p in zip(t.feature, t.value, strict=True)],
        read_columns(X),
        model.classes_,
    )
    assert (tree.predict(X) == model.predict(X)).all()
    assert np.array_equal(tree.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(tree.apply(X), model.tree_.apply(X.to_numpy(np.float32)))
    assert (tree.n_leaves, tree.depth) == (model.get_n_leaves(), model.get_depth())
    assert np.array_equal(
        tree.decision_path(X).toarray(), t.decision_path(X.to_numpy(np.float32)).toarray()
    )


# -----------------------------------------------------------------------------------------------------------
# shortest
def digits_of(x):
    """How many significant digits a float needs, by its decimal form."""
    return len("".join(map(str, Decimal(repr(x)).as_tuple().digits)).strip("0"))


@examples(200)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_shortest_lies_in_its_interval(a, b):
    if a != b:
        low = min(a, b)
        high = max(a, b)
        found = shortest_number(low, high)
        assert (
            low <= found < high
            and digits_of(found) <= digits_of(low)
            and not math.copysign(1, found) < 0 == found
        )


@examples(60)
@given(st.integers(-999, 999), st.integers(1, 999), st.integers(-4, 4))
def test_shortest_has_the_fewest_digits(low, gap, exponent):
    low, high = float(f"{low}e{exponent}"), float(f"{low + gap}e{exponent}")
    found = shortest_number(low, high)
    fewer = [
        float(f"{sign}{m}e{e}")
        for k in [digits_of(found) - 1]
        if k > 0
        for m in range(10 ** (k - 1), 10**k)
        for e in range(-7, 8)
        for sign in "+-"
    ]
    assert not any(low <= number < high for number in fewer)


def test_shortest_examples_and_errors():
    found = [
        shortest_number(*ends)
        for ends in [(0.13, 0.78), (-3, 8), (0, 5), (99, 101), (1, 2), (-2, -1)]
    ]
    assert found == [0.5, 0.0, 0.0, 100.0, 1.0, -2.0]
    assert shortest_number(1.0, 1.0) == 1.0
    for low, high in [(2.0, 1.0), (-inf, 1.0), (nan, 1.0)]:
        with pytest.raises(ValueError, match="low and high must be finite numbers with low"):
            shortest_number(low, high)


# ------------------------------------------------------------------------------------------------------
# hostile names
HOSTILE = (
    "<script>alert('x')</script>",
    "quote \" and '",
    "line\nbreak\r\u2028next",
    "n" * 300,
    "😀 naïve ñ",
    "גיל",
    "\u202eevil",
    "",
    "; DROP TABLE t; --",
    "tab\tand\x07bell",
    "{name}",
    "%s",
    "a\\n",
    "select",
)


TAGS = {
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "b",
    "div",
    "ul",
    "li",
    "details",
    "summary",
}


class Tags(HTMLParser):
    """Collects the tags of a page and its text."""

    def __init__(self):
        super().__init__()
        self.tags = set()
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("labelled", [False, True])
def test_hostile_names_stay_names(labelled):
    d = len(HOSTILE)
    columns = Columns(HOSTILE, (HOSTILE if labelled else None,) * d)
    one = [
        Split((j,), categories=(j, (j + 1) % d)) if labelled else Split((j,), 0.5) for j in range(d)
    ]
    rules = RuleSet(
        tuple(
            Rule(((one[j], True), (one[j - 1], j % 2 > 0)), Leaf(np.eye(d)[j])) for j in range(d)
        ),
        columns,
        HOSTILE,
        target=HOSTILE[0],
    )
    tree = Tree(
        (one[0], None, None),
        [1, -1, -1],
        [2, -1, -1],
        (None, Leaf(np.eye(d)[1]), Leaf(np.eye(d)[2])),
        columns,
        HOSTILE,
        target=HOSTILE[2],
    )
    for said in (rules, tree):
        page = Tags()
        page.feed(said._repr_html_())
        assert page.tags <= TAGS
        assert type(said).from_json(said.to_json()) == said
        said.to_text().encode()
    assert len(rules.to_text().splitlines()) == d and len(tree.to_text().splitlines()) == 3
    assert (
        not any(c in rules.to_text() for c in "\u202e\x07\t\r\u2028") and "\\n" in rules.to_text()
    )
    rng = np.random.default_rng(0)
    values = (
        np.array(HOSTILE, dtype=object)[rng.integers(d, size=(50, d))]
        if labelled
        else rng.random((50, d))
    )
    X = pd.DataFrame(values, columns=HOSTILE)
    expected = one_by_one(rules, X)
    assert len(set(expected)) > 2
    assert by_python(rules, X) == expected
    assert by_sql(rules, X, table='t"; --')[0] == expected


@pytest.mark.parametrize("labelled", [False, True])
def test_hostile_names_stay_names_beside_curves(labelled):
    d = len(HOSTILE)
    rng = np.random.default_rng(2)
    columns = Columns(HOSTILE, (HOSTILE if labelled else None,) * d)
    breaks = np.arange(d + 1) - 0.5 if labelled else (0, 0.25, 1)
    pieces = len(breaks) - 1
    powers = 1 if labelled else 3

    def curve(j, shape=()):
        return Curve(
            j,
            breaks,
            rng.normal(size=(pieces, powers, *shape)).round(3),
            rng.normal(size=shape).round(3),
        )

    numbers = RuleSet(
        tuple(
            Rule(((Split((j,), 0.5), True),), Leaf(0.5, curves=(curve(j), curve(j - 1 or d - 1))))
            for j in range(2, d)
        )
        + (Rule((), Leaf(1.0, curves=(curve(0),))),),
        columns,
    )
    chosen = RuleSet(
        (
            Rule(
                (),
                Leaf(
                    (0.1, 0.2, 0.3), link="softmax", curves=tuple(curve(j, (3,)) for j in range(d))
                ),
            ),
        ),
        columns,
        HOSTILE[:3],
        target=HOSTILE[1],
    )
    values = (
        np.array(HOSTILE, dtype=object)[rng.integers(d, size=(50, d))]
        if labelled
        else rng.random((50, d))
    )
    X = pd.DataFrame(values, columns=HOSTILE)
    for said in (numbers, chosen):
        expected = one_by_one(said, X)
        assert RuleSet.from_json(said.to_json()) == said and len(set(expected)) > 2
        assert by_python(said, X) == expected and by_sql(said, X, table='t"; --')[0] == expected
        page = Tags()
        page.feed(said._repr_html_())
        assert page.tags <= TAGS | {"svg", "polyline"}
        assert not any(c in said.to_text() for c in "\u202e\x07\t\r\u2028")


@examples(100)
@given(st.text(max_size=8), st.text(max_size=8), st.floats(0, 1))
def test_any_name_and_label_survives(name, label, x):
    columns = Columns((name, name + "2"), (None, (label, label + "!")))
    first = Rule(((Split((0,), 0.5), True), (Split((1,), categories=(0,)), True)), Leaf(1.0))
    rules = RuleSet((first, Rule((), Leaf(0.0))), columns, target=name)
    X = pd.DataFrame({name: [x, x, nan], name + "2": [label, label + "!", label]})
    expected = [float(x > 0.5), 0.0, 0.0]
    assert rules.predict(X).tolist() == expected and RuleSet.from_json(rules.to_json()) == rules
    assert by_python(rules, X) == expected
    assert len(rules.to_text().splitlines()) == 2
    page = Tags()
    page.feed(rules._repr_html_())
    assert page.tags <= TAGS
    storable = not any("\ud800" <= c <= "\udfff" for c in name + label)
    if "\0" in name + label:
        with pytest.raises(ValueError, match="NUL"):
            rules.to_sql("t")
    elif storable and name.lower() != (name + "2").lower():
        assert by_sql(rules, X)[0] == expected


def test_a_python_name_must_be_a_name():
    with pytest.raises(ValueError, match="name must be a valid Python identifier"):
        RuleSet((Rule((), Leaf(1.0)),), COLUMNS).to_python(name="f(x): import os #")


# ---------------------------------------------------------------------------------------------------
# tables and codes
def test_columns_of_every_dtype():
    frame = pd.DataFrame(
        {
            "f": [1.5, nan, 2.0],
            "i": [1, 2, 3],
            "I": pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, True],
            "B": pd.array([True, None, False], dtype="boolean"),
            "s": ["y", "x", None],
            "S": pd.array(["y", None, "x"], dtype="string"),
            "o": pd.Series([3, "x", True], dtype=object),
            "n": pd.Series([3, None, 2.5], dtype=object),
            "c": pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"]),
            "k": pd.Categorical([7, 5, 7]),
            "cut": pd.cut([1, 5, 9], [0, 4, 10]),
            "void": pd.Series([None] * 3, dtype=object),
        }
    )
    columns = read_columns(frame)
    assert dict(zip(columns.names, columns.categories, strict=True)) == {
        "f": None,
        "i": None,
        "I": None,
        "b": (False, True),
        "B": (False, True),
        "s": ("x", "y"),
        "S": ("x", "y"),
        "o": (True, 3, "x"),
        "n": None,
        "c": ("lo", "mid", "hi"),
        "k": (5, 7),
        "cut": ("(0, 4]", "(4, 10]"),
        "void": None,
    }
    assert columns.missing == (
        True,
        False,
        True,
        False,
        True,
        True,
        True,
        False,
        True,
        True,
        False,
        False,
        True,
    )
    Z = encode(frame, columns)
    expected = np.array(
        [
            [1.5, 1, 1, 1, 1, 1, 1, 1, 3, 0, 1, 0, nan],
            [nan, 2, nan, 0, nan, 0, nan, 2, nan, 2, 0, 1, nan],
            [2.0, 3, 3, 1, 0, nan, 0, 0, 2.5, nan, 1, 1, nan],
        ]
    )
    assert Z.dtype == np.float64 and np.array_equal(Z, expected, equal_nan=True)
    back = decode(Z, columns)
    assert read_columns(back).categories[:7] == columns.categories[:7] and back["b"].dtype == bool
    assert np.array_equal(encode(back, columns), Z, equal_nan=True)
    assert all(
        type(label) in (bool, int, str)
        for labels in columns.categories
        if labels
        for label in labels
    )
    assert Columns(**json.loads(json.dumps(parts_to_json(columns)))).names == columns.names


@examples(50)
@given(SEEDS)
def test_encode_and_decode_undo_each_other(seed):
    Z = encode(random_table(seed), COLUMNS)
    again = encode(decode(Z, COLUMNS), COLUMNS)
    assert np.array_equal(again, Z, equal_nan=True)
    assert encode(Z, COLUMNS) is Z


def test_encode_copies_nothing_that_is_float64():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(10, 3)))
    assert np.shares_memory(encode(X, read_columns(X)), X.to_numpy())
    A = np.ones((4, 3), dtype=np.float32)
    assert encode(A, read_columns(A)).dtype == np.float64


def test_tables_that_do_not_fit_are_refused_in_one_line():
    frame = pd.DataFrame({f"c{j}": [1.0, 2.0] for j in range(9)})
    columns = read_columns(frame)
    cases = [
        (lambda: encode(frame[["c0", *frame.columns[:-1]]], columns), "no columns 'c8'"),
        (lambda: encode(frame[["c0", *frame.columns]], columns), "another order or twice"),
        (
            lambda: encode(frame.drop(columns=["c3", "c4"]), columns),
            "no columns 'c3', 'c4'; expected .* and 4 more",
        ),
        (lambda: encode(frame.assign(new=1), columns), "unknown columns 'new'; expected"),
        (
            lambda: encode(frame.rename(columns=lambda c: c + "\n" * 200), columns),
            "unknown columns .* and 4 more",
        ),
        (lambda: encode(frame.to_numpy()[:, :4], columns), r"shape \(n, 9\), got \(2, 4\)"),
        (lambda: encode(np.ones(9), columns), r"got \(9,\)"),
        (lambda: encode(frame.assign(c2="word"), columns), "numbers in column 'c2'.*word"),
        (
            lambda: encode(frame.assign(c2=pd.Timestamp("2020-01-01")), columns),
            "column 'c2', got dtype datetime64",
        ),
        (
            lambda: read_columns(frame.assign(when=pd.Timestamp("2020-01-01"))),
            r"column 'when' of dtype datetime64.*\(X\['when'\] - X\['when'\]\.min\(\)\)\.dt\.days",
        ),
        (lambda: read_columns(frame.assign(z=1j)), "column 'z' of dtype complex"),
        (lambda: read_columns(frame.assign(bag=[[1], [2]])), "other objects in column 'bag'"),
        (
            lambda: read_columns(pd.concat([frame, frame], axis=1)),
            "names of columns must differ.* and 4 more repeatedly",
        ),
        (lambda: read_columns(np.ones(3)), "2 dimensions, got 1"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_rows_as_a_frame_or_encoded_answer_alike():
    X = random_table(3)
    rules = RuleSet(
        (Rule(((Split((2,), categories=(0, 3)), True),), Leaf(1.0)), Rule((), Leaf(2.0))), COLUMNS
    )
    assert (rules.predict(X) == rules.predict(encode(X, COLUMNS))).all() and len(
        rules.predict(X.iloc[:0])
    ) == 0
    assert (rules.predict(X[X.columns[::-1]]) == rules.predict(X)).all()


def test_a_frame_of_another_library_is_read():
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    X = random_table(3)
    table = pyarrow.Table.from_pandas(X)
    assert as_pandas(table).equals(as_pandas(as_pandas(table))) and as_pandas(X) is X
    columns = read_columns(table)
    assert columns.names == tuple(X.columns) and columns.categories[2] is not None
    assert np.array_equal(encode(table, columns), encode(X, columns), equal_nan=True)


def test_another_library_without_narwhals_is_refused_in_one_line(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(
        ValueError, match=r"narwhals is not installed, got pyarrow\.lib\.Table; pass X\.to_pandas"
    ):
        read_columns(pyarrow.table({"a": [1.0, 2.0]}))


def test_float32_rows_are_compared_as_they_are():
    split = Split((0,), 0.1)
    x = np.array([[0.1]], dtype=np.float32)
    assert float(x[0, 0]) > 0.1 and split(x)[0]


# ----------------------------------------------------------------------------------------------------
# measures, frame
@examples(100)
@given(rule_sets(linear=False), SEEDS)
def test_measures_by_their_definitions(rules, seed):
    rules = RuleSet(rules.rules if rules.default else rules.rules + (Rule((), Leaf(0.1)),), COLUMNS)
    X = random_table(seed)
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 3, len(X)).astype(float)
    reference = rng.normal(size=len(X))
    if w.sum() == 0:
        return
    measured = rules.measure(X, reference, w)
    predicted = rules.predict(X)
    chosen = rules.apply(X)
    held = rules.matches(X)
    held[:, -1] = ~held[:, :-1].any(axis=1)
    assert np.isclose(rules.overlap(X), held.sum(axis=1).mean())
    for r, rule in enumerate(measured.rules):
        assert rule.support == w[chosen == r].sum() and np.isclose(
            rule.coverage, w @ held[:, r] / w.sum()
        )
        assert math.isnan(rule.fidelity) == (rule.support == 0)
    centre = np.average(reference, weights=w)
    r2 = 1 - np.sum(w * (predicted - reference) ** 2) / np.sum(w * (reference - centre) ** 2)
    assert np.isclose(measured.fidelity, r2)
    repeated = X.loc[np.repeat(np.arange(len(X)), w.astype(int))]
    again = rules.measure(repeated, np.repeat(reference, w.astype(int)))
    for a, b in zip(again.rules, measured.rules, strict=True):
        assert np.allclose(
            [a.support, a.coverage, a.fidelity], [b.support, b.coverage, b.fidelity], equal_nan=True
        )
    assert (
        RuleSet.from_json(measured.to_json()) == measured
        and (measured.predict(X) == predicted).all()
    )


def test_fidelity_of_labels_and_of_a_constant_reference():
    first = Rule(((Split((0,), 0.0), True),), Leaf((0.0, 1.0)))
    rules = RuleSet((first, Rule((), Leaf((1.0, 0.0)))), read_columns([[0.0]]), ("n", "y"))
    X = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    assert [r.fidelity for r in rules.measure(X, np.array(["y", "n", "n", "n"])).rules] == [
        0.5,
        1.0,
    ]
    numbers = RuleSet((Rule((), Leaf(2.0)),), read_columns(X))
    assert (
        numbers.measure(X, np.full(4, 2.0)).fidelity == 1.0
        and numbers.measure(X, np.full(4, 3.0)).fidelity == 0.0
    )
    with pytest.raises(ValueError, match="reference and sample_weight must have shape"):
        numbers.measure(X, np.ones(3))


def test_frame_and_get_rules():
    first = Rule(((Split((0,), 1.0), True),), Leaf(2.0), 10, 0.5, 0.9)
    rules = RuleSet((first, Rule((), Leaf(9.0, upper=3.0))), COLUMNS)
    frame = rules.to_frame()
    assert list(frame.columns) == ["rule", "prediction", "support", "coverage", "fidelity"]
    assert frame["rule"].tolist() == ["a > 1", "otherwise"] and frame["prediction"].tolist() == [
        2.0,
        3.0,
    ]
    assert frame.equals(rules.get_rules()) and frame["support"].isna().tolist() == [False, True]
    labelled = RuleSet((Rule((), Leaf((0.2, 0.8))),), COLUMNS, np.array([4, 7])).to_frame()
    assert labelled["prediction"].tolist() == [7] and labelled["rule"].tolist() == ["always"]


# ---------------------------------------------------------------------------------------------------------
# JSON, checks
def test_json_is_strict_and_versioned():
    first = Rule(((Split((0,), inf, missing=True), True),), Leaf(1.0, lower=-5))
    rules = RuleSet((first, Rule((), Leaf(0.1 + 0.2))), COLUMNS)

    def refuse(word):
        raise AssertionError(word)

    d = json.loads(rules.to_json(indent=1), parse_constant=refuse)
    assert d["format"] == "fabinterp" and d["version"] == 1 and RuleSet.from_dict(d) == rules
    for change, words in [
        ({"version": 2}, "version"),
        ({"kind": "tree"}, "kind"),
        ({"format": "x"}, "format"),
    ]:
        with pytest.raises(ValueError, match=words):
            RuleSet.from_dict(d | change)
    with pytest.raises(ValueError, match="must have an entry 'rules'"):
        RuleSet.from_dict({k: v for k, v in d.items() if k != "rules"})
    with pytest.raises(ValueError, match=r"must be an object, got \[\]"):
        RuleSet.from_json("[]")


def test_classes_keep_their_type():
    leaf = Leaf((0.1, 0.9))
    columns = read_columns(np.zeros((1, 1)))
    for classes, dtype in [
        ((0, 1), "i"),
        (("a", "b"), "U"),
        ((False, True), "b"),
        ((0.5, 1.5), "f"),
        ((0, "b"), "O"),
    ]:
        for given_as in (classes, np.array(classes, dtype=object)):
            rules = RuleSet((Rule((), leaf),), columns, given_as)
            answer = rules.predict(np.zeros((2, 1)))
            assert answer.dtype.kind == dtype and answer.tolist() == [classes[1]] * 2
            assert RuleSet.from_json(rules.to_json()) == rules and type(rules.classes[0]) is type(
                classes[0]
            )


def test_what_cannot_be_right_is_refused():
    columns = read_columns(np.zeros((1, 2)))
    default = Rule((), Leaf(1.0))
    positive = Rule(((Split((0,)), True),), Leaf(1.0))
    sloped = Rule((), Leaf(1.0, (1,), (2.0,)))
    cases = [
        (
            lambda: RuleSet((default, default), columns),
            "no rule without conditions except the last",
        ),
        (
            lambda: RuleSet((Rule(((Split((2,)), True),), Leaf(1.0)),), columns),
            "features must be column positions from 0 to 1",
        ),
        (lambda: RuleSet((Rule((), Leaf((0.5, 0.5))),), columns), "classes must be given"),
        (lambda: RuleSet((default,), columns, ("a", "b")), "one probability per class"),
        (
            lambda: RuleSet((default,), columns).predict_proba(np.zeros((1, 2))),
            "predict_proba is only for models of classes",
        ),
        (lambda: RuleSet((positive,), columns).predict(np.zeros((3, 2))), "got 3 others"),
        (
            lambda: RuleSet((sloped,), columns).predict(np.array([[0, nan]])),
            "numbers in 'x1' for an equation",
        ),
        (lambda: Split((0, 1), 1.0), "one number per feature"),
        (lambda: Split((), 1.0, ()), "one number per feature"),
        (lambda: Split((0,), nan), "must be numbers"),
        (lambda: Split((0, 1), 0.0, (1.0, 1.0), categories=(1,)), "need one feature"),
        (lambda: Leaf(1.0, (0,)), "one number per feature"),
        (lambda: Leaf(nan), "must be finite"),
        (lambda: Leaf(1.0, lower=2.0, upper=1.0), "lower must not exceed upper"),
        (lambda: Leaf((0.5, 0.5), (0,), (1.0,)), "must be empty"),
        (
            lambda: Leaf(0.5, (0,), (1.0,), link="probit"),
            "link must be one of None, 'logit', 'softmax', got 'probit'",
        ),
        (
            lambda: Leaf((0.5, 0.5), (0,), (1.0,), link="logit"),
            "value must hold one number with link 'logit'",
        ),
        (
            lambda: Leaf(0.5, (0,), (1.0,), link="softmax"),
            "one number per class with link 'softmax', got 0.5",
        ),
        (
            lambda: Leaf((0.5, 0.5), (0,), (1.0,), link="softmax"),
            "one number per feature and class",
        ),
        (
            lambda: Leaf((0.5, 0.5), (0,), ((1.0, 2.0, 3.0),), link="softmax"),
            "one number per feature and class",
        ),
        (lambda: Leaf(0.5, (0,), ((1.0, 2.0),), link="logit"), "one number per feature"),
        (lambda: Leaf((0.5, 0.5), (0,), ((1.0, nan),), link="softmax"), "must be finite"),
        (lambda: Leaf((0.5, inf), link="softmax"), "must be finite"),
        (
            lambda: RuleSet((Rule((), Leaf(1.0, (0,), (1.0,), link="logit")),), columns),
            "classes must be given",
        ),
        (
            lambda: RuleSet((Rule((), Leaf(1.0, (0,), (1.0,), link="logit")),), columns, "abc"),
            "one score per class",
        ),
        (
            lambda: RuleSet(
                (Rule((), Leaf((0, 1), (0,), ((1, 2),), link="softmax")),), columns, "abc"
            ),
            "one score",
        ),
        (lambda: RuleSet((sloped,), columns, ("a", "b")), "one probability per class"),
        (
            lambda: Tree((Split((0,)), None), [1, -1], [-1, -1], (None, Leaf(1.0)), columns),
            "a node number at every split",
        ),
        (
            lambda: Tree((None,), [-1], [-1], (None,), columns),
            "a Leaf at each node without a split",
        ),
        (lambda: Tree((), [], [], (), columns), "at least the root"),
        (lambda: Columns(("a",), (None, None)), "one entry per column"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_equal_whoever_built_it():
    a = Split((np.int64(0),), np.float32(0.5), (np.float64(1.0),), missing=np.bool_(True))
    assert a == Split((0,), 0.5, missing=True) and hash(a) == hash(Split((0,), 0.5, missing=True))
    assert Split((0,), -0.0).threshold.hex() == (0.0).hex()
    assert Rule((), Leaf(1.0), np.float64(nan)) == Rule((), Leaf(1.0))
    assert Split((2,), categories=[3, 1, 1]) == Split((2,), categories=(1, 3))


# What a person does with rules


def many_labels(n=1000, chosen=364):
    """Return a rule about a column of n labels, and otherwise another."""
    columns = Columns(["home"], [[f"town {k:03d}" for k in range(n)]])
    inside = Split((0,), categories=tuple(range(chosen)))
    return RuleSet((Rule(((inside, True),), Leaf(1.0)), Rule((), Leaf(2.0))), columns)


def test_long_lists_of_labels_are_cut_in_text_and_unfold_in_html():
    rules = many_labels()
    assert "town 011, … (364 of 1000 labels)}" in str(rules) and len(str(rules)) < 400
    page = Tags()
    page.feed(rules.to_html())
    assert {"details", "summary"} <= page.tags and "town 363" in page.text
    assert "town 363" in rules.to_sql("t")


@pytest.mark.parametrize(
    ("n", "end"), [(12, "town 010 10, town 011 11"), (13, "town 010 10, town 011 11, …")]
)
def test_codes_of_at_most_twelve_labels_are_all_listed(n, end):
    rules = RuleSet((Rule((), Leaf(1.0, (0,), (2.0,))),), many_labels(n, 1).columns)
    assert str(rules).splitlines()[-1].endswith(end)


def test_names_keep_letters_of_all_languages():
    names = "Größe", "年齢", "👩\u200d🌾", "two\nlines"
    columns = Columns(names, (None,) * 4, (False,) * 4)
    rules = [Rule(((Split((j,), 1.0), True),), Leaf(0.0)) for j in range(4)]
    lines = str(RuleSet((*rules, Rule((), Leaf(1.0))), columns)).splitlines()
    shown = [*names[:3], r"two\nlines"]
    assert all(f"{name} > 1" in line for name, line in zip(shown, lines, strict=False))


def test_a_threshold_of_zero_has_no_sign():
    rules = RuleSet((Rule(((Split((0,), -0.0), True),), Leaf(1.0)), Rule((), Leaf(2.0))), COLUMNS)
    assert "-0" not in str(rules) + rules.to_sql("t") + rules.to_json()


def test_bounds_of_a_leaf_may_be_equal():
    leaf = Leaf(1.0, (0,), (2.0,), lower=3.0, upper=3.0)
    rules = RuleSet((Rule((), leaf),), Columns(("a",), (None,)))
    assert rules.predict([[0.0], [5.0]]).tolist() == [3.0, 3.0]


def test_a_row_that_lacks_one_of_two_numbers_gets_the_mean():
    line = Leaf(1.0, (0, 1), (2.0, 3.0), mean=7.0)
    rules = RuleSet((Rule((), line),), Columns(("a", "b"), (None, None), (False, False)))
    rows = [[1.0, 1.0], [nan, 1.0], [1.0, nan], [nan, nan]]
    with pytest.warns(UserWarning, match="equations of 3 rows"):
        assert rules.predict(rows).tolist() == [6.0, 7.0, 7.0, 7.0]


def test_a_column_of_truth_values_is_a_phrase():
    rules = RuleSet(
        (
            Rule(((Split((3,), 0.5), True), (Split((0, 3), 2.0, (1.0, -1.5)), False)), Leaf(1.0)),
            Rule(((Split((3,), 0.5), False),), Leaf(2.0, (0, 3), (1.0, 0.25))),
        ),
        replace(COLUMNS, missing=(False,) * 4),
    )
    assert [re.sub(" +", " ", line) for line in str(rules).splitlines()] == [
        "if smoker and a - (1.5 if smoker) ≤ 2 then 1",
        "else if not smoker then 2 + a + (0.25 if smoker)",
    ]


def test_a_branch_names_only_labels_that_are_still_possible():
    splits = (Split((2,), categories=(0, 1)), Split((2,), categories=(1, 4)), None, None, None)
    leaves = (None, None, Leaf(1.0), Leaf(2.0), Leaf(3.0))
    columns = replace(COLUMNS, missing=(False,) * 4)
    tree = Tree(splits, [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], leaves, columns)
    assert str(tree).splitlines() == [
        "y",
        "├─ colour ∈ {blue, grey, pink}: 1",
        "└─ colour ∈ {red, green}",
        "   ├─ colour is red: 3",
        "   └─ colour is green: 2",
    ]


def test_a_rule_set_is_a_sequence_of_its_rules():
    rules = many_labels(5, 2)
    assert len(rules) == 2 and list(rules) == list(rules.rules)
    assert rules[-1] is rules.rules[-1] and rules[:1] == [rules.rules[0]]


@pytest.mark.parametrize("classes", [None, THREE])
def test_what_is_saved_is_loaded_and_predicts(tmp_path, classes):
    leaf = Leaf(1.0) if classes is None else Leaf((0.25, 0.5, 0.25))
    rules = RuleSet((Rule((), leaf),), COLUMNS, classes, target="risk", target_std=2.0)
    tree = Tree((None,), [-1], [-1], (leaf,), COLUMNS, classes)
    Z = np.zeros((3, 4))
    for kept in (rules, tree):
        kept.save(tmp_path / "kept.json")
        found = load_rules(tmp_path / "kept.json")
        assert found == kept and type(found) is type(kept)
        assert found.predict(Z).tolist() == kept.predict(Z).tolist()
        assert found.target == kept.target and found.target_std == pytest.approx(
            kept.target_std, nan_ok=True
        )
        if classes is None:
            with pytest.raises(AttributeError, match="classes_ exists only for models of classes"):
                _ = found.classes_
        else:
            assert tuple(found.classes_) == classes


def test_a_file_that_holds_no_rules_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"kind": "forest"}')
    with pytest.raises(ValueError, match=r"other\.json: model must have an entry 'format'"):
        load_rules(path)
    path.write_text("import os")
    with pytest.raises(
        ValueError, match=r"path must name a JSON file written by `save`, got other\.json"
    ):
        load_rules(path)


def test_a_tree_is_written_as_a_rule_set_is():
    splits = (Split((0,), 1.5), None, None)
    tree = Tree(splits, [1, -1, -1], [2, -1, -1], (None, Leaf(1.0), Leaf(2.0)), COLUMNS)
    rules = tree.rules()
    assert tree.to_frame().equals(rules.to_frame())
    assert tree.to_sql("t") == rules.to_sql("t") and tree.to_python() == rules.to_python()
    assert tree.n_conditions == rules.n_conditions and "<ul" in tree.to_html()
    assert tree.measure(np.zeros((3, 4))) == rules.measure(np.zeros((3, 4)))


def test_a_table_in_a_schema():
    """Parts are quoted one by one, a name with dots as one; what is neither is refused by name."""
    columns = Columns(("a",), (None,), (False,))
    rules = RuleSet((Rule((), Leaf(1.0)),), columns)
    last = {
        "plots": '"plots"',
        "of.2024": '"of.2024"',
        ("farm", 'a"b'): '"farm"."a""b"',
        ("x", "farm", "plots"): '"x"."farm"."plots"',
    }
    for table, text in last.items():
        assert rules.to_sql(table).endswith(f"\nFROM {text}")
    for table in ("", None, 3, (), ("farm", ""), ("farm", None)):
        with pytest.raises(ValueError, match="table must be a name or its parts"):
            rules.to_sql(table)
    assert rules.to_sql("plots", keep="price") == rules.to_sql("plots", keep=["price"])


@pytest.mark.parametrize("bound, text", [
    (500001.0, "500001"), (12.345, "12.345"), (123456.7, "123456.7"), (1234567.8, "1235000"),
    (1 / 3, "0"), (0.0, "0"), (-500001.0, "-500001"),
])  # fmt: skip
def test_a_bound_of_a_few_digits_is_printed_as_it_predicts(bound, text):
    """Of a table with prices the largest is not rounded; a long number is, within the tolerance."""
    columns = Columns(("a",), (None,), (False,), ranges=((0.0, 1e6),))
    leaf = Leaf(0.0, (0,), (10.0,), lower=-1e7, upper=bound)
    rules = RuleSet((Rule((), leaf),), columns, target_std=1e6)
    assert f"clipped to [-10000000, {text}]" in str(rules)


@pytest.mark.parametrize(
    "link, kind, value, coef",
    [
        ("logit", LogitLink, -0.5, (1.0, -2.0)),
        ("softmax", SoftmaxLink, (0.1, -0.4, 0.3), ((1.0, 0.0, -1.0), (0.5, 2.0, -1.0))),
    ],
)
def test_conditions_of_a_class_hold_where_its_score_is_largest(link, kind, value, coef):
    leaf = Leaf(value, (0, 1), coef, link=link)
    assert type(leaf.link_function) is kind
    Z = np.random.default_rng(0).normal(size=(200, 2))
    scores = class_scores(leaf, Z, read_columns(Z))
    for c in range(scores.shape[1]):
        met = [split(Z) == side for split, side in leaf.link_function.conditions(leaf, c)]
        assert np.array_equal(np.all(met, axis=0), scores.argmax(axis=1) == c)
