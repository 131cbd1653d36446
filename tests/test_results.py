"""Results convert in one way: text, HTML, JSON and frames come from the same parts."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from fabinterp import (
    ProxyTreeRegressor,
    disagreement,
    explain,
    explain_local,
    explain_row,
    nearest_change,
)
from fabinterp.rules.html_format import Result


class Count(Result):
    """A result with all three hooks."""

    def _parts(self):
        yield "one & two"
        yield "2 rows", "<table></table>"
        yield "", "<p>three</p>"

    def _table(self):
        return ["n"], [(1,), (2,)]

    def to_dict(self):
        return {"n": 2}


def test_conversions_follow_from_three_hooks():
    count = Count()
    assert count.to_text() == str(count) == repr(count) == "one & two\n2 rows"
    page = "<div>one &amp; two</div><table></table><p>three</p>"
    assert count.to_html() == count._repr_html_() == page
    assert json.loads(count.to_json()) == {"n": 2}
    assert count.to_frame().equals(pd.DataFrame({"n": [1, 2]}))


@pytest.fixture(scope="module")
def results():
    """One result of each kind, by name."""
    X = pd.DataFrame({"<b>u": np.arange(80.0), "<b>v": np.arange(80.0) % 7})
    y = np.where(X["<b>u"] < 40, 1.0, 5.0) + 0.1 * X["<b>v"].to_numpy()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    model = ProxyTreeRegressor(size=4).fit(X, y)
    return {
        "rules": model.rules_,
        "tree": model.tree_,
        "explanation": explain(tree, X, random_state=0),
        "row": explain_row(model, X.iloc[0]),
        "changes": nearest_change(model, X.iloc[0], X),
        "disagreement": disagreement(model, tree, X),
        "local": explain_local(tree, X.iloc[0], X, random_state=0),
        "many_locals": explain_local(tree, X.iloc[:2], X, random_state=0),
    }


NAMES = "rules tree explanation row changes disagreement local many_locals"


@pytest.mark.parametrize("name", NAMES.split())
def test_every_result_converts(results, name):
    result = results[name]
    assert isinstance(result, Result)
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    page = result.to_html()
    assert page == result._repr_html_()
    assert "<b>u" in result.to_text() or "<b>v" in result.to_text()
    assert "&lt;b&gt;" in page and "<b>u" not in page and "<b>v" not in page
    assert len(result.to_frame()) > 0
