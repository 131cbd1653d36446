"""Damaged model files: of this package and of other libraries, from a seed."""

import copy
import json
import re

import numpy as np

from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split
from fabinterp.rules.ruleset import RuleSet, Tree

COLUMNS = Columns(("u", "v", "c"), (None, None, ("red", "blue")), ranges=[(0, 1)] * 3)


def tree_dict():
    """A tree of three leaves: a number, a line and a curve."""
    curve = Curve(1, (0.0, 1.0, 2.0), ((0.0, 1.0), (1.0, 0.0)))
    leaves = (None, None, Leaf(1.0), Leaf(2.0, (0,), (3.0,)), Leaf(0.0, curves=(curve,)))
    splits = (Split((0,), 0.5), Split((2,), categories=(1,)), None, None, None)
    yes, no = [1, 3, -1, -1, -1], [2, 4, -1, -1, -1]
    return json.loads(Tree(splits, yes, no, leaves, COLUMNS).to_json())


def rules_dict():
    """A list of two rules with classes."""
    first = Rule(((Split((0,), 0.5), True),), Leaf((0.9, 0.1)), 3.0, 0.5, 1.0, (0.8, 1.0))
    return json.loads(RuleSet((first, Rule((), Leaf((0.2, 0.8)))), COLUMNS, ("a", "b")).to_json())


def chain_dict(depth):
    """A tree in which every split has a leaf and the next split."""
    nodes = range(2 * depth + 1)
    leaf = json.loads(Tree((None,), [-1], [-1], (Leaf(1.0),), COLUMNS).to_json())["leaves"][0]
    inner = [k % 2 == 0 and k < 2 * depth for k in nodes]
    return tree_dict() | {
        "splits": [tree_dict()["splits"][0] if i else None for i in inner],
        "leaves": [None if i else leaf for i in inner],
        "yes": [k + 1 if i else -1 for k, i in zip(nodes, inner, strict=True)],
        "no": [k + 2 if i else -1 for k, i in zip(nodes, inner, strict=True)],
    }


def _changed(d, *path, to):
    """A copy of nested lists and dicts with another value at a path."""
    d = copy.deepcopy(d)
    part = d
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = to
    return d


def own_files():
    """Texts of damaged models of this package, by name; each must be rejected."""
    tree, rules = tree_dict(), rules_dict()
    size = {"size": 1, "n_numbers": 1}
    changes = {
        "own child": (tree, "yes", 0, 0),
        "two parents": (tree, "yes", 0, 3),
        "child beyond": (tree, "no", 0, 99),
        "child 1e30": (tree, "yes", 0, 10**30),
        "child 2.7": (tree, "yes", 0, 2.7),
        "negative child": (tree, "no", 0, -5),
        "no leaves": (tree, "leaves", None),
        "leaves missing": (tree, "leaves", []),
        "kind list": (tree, "kind", ["tree"]),
        "columns null": (tree, "columns", None),
        "target null": (tree, "target", None),
        "target with a lone surrogate": (tree, "target", "\ud800"),
        "newer version": (tree, "version", 2),
        "version text": (tree, "version", "1"),
        "other format": (tree, "format", "other"),
        "feature beyond": (tree, "splits", 0, "features", [9]),
        "feature text": (tree, "splits", 0, "features", ["u"]),
        "code beyond": (tree, "splits", 1, "categories", [7]),
        "missing text": (tree, "splits", 0, "missing", "no"),
        "threshold list": (tree, "splits", 0, "threshold", [0.5]),
        "threshold of 400 digits": (tree, "splits", 0, "threshold", 10**400),
        "names repeated": (tree, "columns", "names", ["u", "u", "c"]),
        "names too few": (tree, "columns", "names", ["u"]),
        "categories text": (tree, "columns", "categories", 2, "red"),
        "ranges of one end": (tree, "columns", "ranges", [[0], [0], [0]]),
        "value text": (tree, "leaves", 2, "value", "1"),
        "coef too many": (tree, "leaves", 3, "coef", [1.0, 2.0]),
        "breaks descend": (tree, "leaves", 4, "curves", 0, "breaks", [2.0, 1.0, 0.0]),
        "degree 100 000": (tree, "leaves", 4, "curves", 0, "coef", [[0.0] * 100_001] * 2),
        "coef nested": (tree, "leaves", 4, "curves", 0, "coef", [[[[0.0]]], [[[0.0]]]]),
        "sizes of text": (tree, "sizes", ["a"]),
        "size without a number": (tree, "sizes", [size | {"size": None}]),
        "size of a damaged model": (tree, "sizes", [size, size | {"model": {"yes": [0] * 5}}]),
        "source text": (tree, "source", "me"),
        "source with a list": (tree, "source", {"command": []}),
        "notes of the fit damaged": (tree, "source", {"notes": [1]}),
        "no rules": (rules, "rules", []),
        "side text": (rules, "rules", 0, "conditions", 0, 1, "no"),
        "condition without a side": (rules, "rules", 0, "conditions", 0, [None]),
        "default first": (rules, "rules", 0, "conditions", []),
        "interval of one end": (rules, "rules", 0, "interval", [0.1]),
        "support text": (rules, "rules", 0, "support", "3"),
        "classes too few": (rules, "classes", ["a"]),
        "no classes": (rules, "classes", []),
        "classes of lists": (rules, "classes", [["a"], ["b"]]),
        "ordered 1": (rules, "ordered", 1),
    }
    texts = {
        name: json.dumps(_changed(d, *path, to=to)) for name, (d, *path, to) in changes.items()
    }
    whole = json.dumps(tree)
    texts |= {
        "cut": whole[: len(whole) // 2],
        "empty": "",
        "a list": "[]",
        "nested 100 000 deep": '{"x":' + "[" * 100_000 + "]" * 100_000 + "}",
        "chain of 5000": json.dumps(chain_dict(5000)),
        "Infinity": whole.replace('"threshold": 0.5', '"threshold": Infinity'),
        "int of 5000 digits": whole.replace('"threshold": 0.5', '"threshold": ' + "9" * 5000),
    }
    return texts


def random_file(rng):
    """The text of a tree or of rules with one random value replaced by another."""
    d = tree_dict() if rng.random() < 0.5 else rules_dict()
    part = d
    while True:
        keys = list(part) if isinstance(part, dict) else range(len(part))
        key = keys[rng.integers(len(keys))]
        deeper = isinstance(part[key], (dict, list)) and len(part[key])
        if not deeper or rng.random() < 0.2:
            break
        part = part[key]
    junk = [None, -1, 0, 7, 2.5, 1e308, 10**400, "x", "inf", True, [], {}, [[]], [0, "a"]]
    part[key] = junk[rng.integers(len(junk))]
    return json.dumps(d)


def _two_trees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X[:, 0] + (X[:, 1] > 0)


def xgboost_files():
    """Texts of damaged XGBoost models, by name."""
    import xgboost as xgb

    model = xgb.XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1).fit(*_two_trees())
    saved = json.loads(model.get_booster().save_raw("json").decode())
    inner = ("learner", "gradient_booster", "model")
    tree = (*inner, "trees", 1)
    param = ("learner", "learner_model_param")
    first = saved["learner"]["gradient_booster"]["model"]["trees"][1]
    m = len(first["left_children"])
    changes = {
        "cycle": (*tree, "left_children", [0] * m),
        "negative child": (*tree, "right_children", 0, -7),
        "child beyond": (*tree, "right_children", 0, 10**6),
        "child 1e30": (*tree, "right_children", 0, 10**30),
        "child 1.5": (*tree, "left_children", 0, 1.5),
        "negative feature": (*tree, "split_indices", 0, -2),
        "feature beyond": (*tree, "split_indices", 0, 99),
        "nan at a leaf": (*tree, "split_conditions", [None] * m),
        "too few nodes": (*tree, "split_conditions", []),
        "no node": (*tree, "left_children", []),
        "1e10 columns": (*param, "num_feature", "10000000000"),
        "1e9 classes": (*param, "num_class", "1000000000"),
        "base score nan": (*param, "base_score", "nan"),
        "base score nested": (*param, "base_score", "[" * 100_000),
        "tree of output -1": (*inner, "tree_info", [0, -1]),
        "tree of output 9": (*inner, "tree_info", [0, 9]),
        "trees null": (*inner, "trees", None),
    }
    return {
        name: json.dumps(_changed(saved, *path, to=to)) for name, (*path, to) in changes.items()
    }


def lightgbm_files():
    """Texts of damaged LightGBM models, by name."""
    import lightgbm as lgb

    model = lgb.LGBMRegressor(
        n_estimators=2, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1
    )
    booster = model.fit(*_two_trees()).booster_
    text = booster.model_to_string()

    def line(name, numbers):
        return re.sub(rf"^{name}=.*$", f"{name}={numbers}", text, flags=re.MULTILINE)

    texts = {
        "cycle": line("left_child", "0 0 0"),
        "child beyond": line("right_child", "99 -2 -3"),
        "child text": line("right_child", "a b c"),
        "negative feature": line("split_feature", "-1 0 0"),
        "feature beyond": line("split_feature", "0 0 77"),
        "nan value": line("leaf_value", "nan 1 2 3"),
        "one leaf more": line("leaf_value", "1 2 3 4 5"),
        "nan threshold": line("threshold", "nan nan nan"),
        "set that is not there": line("decision_type", "1 1 1"),
        "1e9 trees each turn": line("num_tree_per_iteration", "1000000000"),
        "no tree each turn": line("num_tree_per_iteration", "0"),
        "no names": line("feature_names", ""),
        "half": text[: text.index("right_child")],
    }
    return texts


def catboost_files():
    """Texts of damaged CatBoost models, by name, of a model with two splits a tree."""
    split = {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}
    feature = {"feature_index": 0, "flat_feature_index": 0, "nan_value_treatment": "AsIs"}
    saved = {
        "features_info": {"float_features": [feature]},
        "oblivious_trees": [{"splits": [split, split], "leaf_values": [1.0, 2.0, 3.0, 4.0]}],
        "scale_and_bias": [1.0, [0.5]],
    }
    tree = ("oblivious_trees", 0)
    about = ("features_info", "float_features", 0)
    changes = {
        "flat index 1e10": (*about, "flat_feature_index", 10**10),
        "flat index -1": (*about, "flat_feature_index", -1),
        "flat index text": (*about, "flat_feature_index", "0"),
        "40 splits": (*tree, "splits", [split] * 40),
        "too few values": (*tree, "leaf_values", [1.0, 2.0]),
        "value null": (*tree, "leaf_values", [1.0, 2.0, 3.0, None]),
        "no such feature": (*tree, "splits", 0, "float_feature_index", 5),
        "border text": (*tree, "splits", 0, "border", "x"),
        "scale nan": ("scale_and_bias", [float("nan"), [0.5]]),
        "trees empty": ("oblivious_trees", []),
    }
    return {
        name: json.dumps(_changed(saved, *path, to=to)) for name, (*path, to) in changes.items()
    }
