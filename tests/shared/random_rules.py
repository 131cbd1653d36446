"""Random lists of rules about two numbers and a label, of every kind of answer."""

import numpy as np

from fabinterp.rules.core import Columns, Leaf, Rule, Split
from fabinterp.rules.ruleset import RuleSet

COLUMNS = Columns(("u", "v", "c"), (None, None, ("red", "green", "blue")))


def random_leaf(rng, kind):
    """A leaf with a label, a number, or an equation in the two numbers.

    kind: "labels", "numbers", "lines", "logit" or "softmax".
    """
    slopes = tuple(rng.normal(size=2))
    if kind == "numbers":
        return Leaf(float(rng.integers(4)))
    if kind == "lines":
        return (
            Leaf(float(rng.integers(4)), (0, 1), slopes, -2, 5) if rng.random() < 0.5 else Leaf(1.0)
        )
    if kind == "logit" and rng.random() < 0.5:
        return Leaf(0.3 * rng.normal(), (0, 1), slopes, link="logit")
    if kind == "softmax" and rng.random() < 0.5:
        return Leaf(
            tuple(rng.normal(size=3)),
            (0, 1),
            tuple(map(tuple, rng.normal(size=(2, 3)))),
            link="softmax",
        )
    return Leaf(
        tuple(np.eye(2 if kind == "logit" else 3)[rng.integers(2 if kind == "logit" else 3)])
    )


def random_rules(rng, kind, slanted):
    """A list of two to six rules with leaves of this kind; slanted: some conditions are on sums."""

    def condition():
        side = bool(rng.integers(2))
        missing = bool(rng.integers(2))
        which = rng.integers(4 if slanted else 3)
        if which == 2:
            return Split(
                (2,), categories=tuple(rng.permutation(3)[: rng.integers(1, 3)]), missing=missing
            ), side
        if which == 3:
            return Split(
                (0, 1), 0.5 * rng.normal(), tuple(rng.normal(size=2)), missing=missing
            ), side
        return Split((which,), rng.integers(-8, 9) / 10, missing=missing), side

    rules = [Rule(tuple(condition() for _ in range(rng.integers(1, 4))), random_leaf(rng, kind))
             for _ in range(rng.integers(1, 6))]  # fmt: skip
    classes = {"labels": ("a", "b", "c"), "softmax": ("a", "b", "c"), "logit": ("no", "yes")}.get(
        kind
    )
    return RuleSet((*rules, Rule((), random_leaf(rng, kind))), COLUMNS, classes)
