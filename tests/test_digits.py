"""The printed text is the model: a reader with a pencil finds what `predict` answers."""

import numpy as np
import pandas as pd
import pytest
from shared.estimators import SETTINGS
from shared.reader import read_classes, read_numbers
from sklearn.datasets import load_diabetes, load_iris

from fabinterp.rules.digits import SCORE_TOLERANCE

NUMBERS = [setting for setting in SETTINGS if not setting.is_classifier]
CLASSES = [setting for setting in SETTINGS if setting.is_classifier]
named = {"ids": lambda setting: setting.name}


def table(numbers_only, n=300, seed=0):
    """Draw a frame without gaps, and a number that depends on each kind of column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "year": rng.integers(2005, 2021, n).astype(float),
            "dose": rng.normal(size=n),
            "size": np.exp(rng.normal(size=n)).round(3),
        }
    )
    t = 0.2 * (frame["year"] - 2012) + frame["dose"] - np.minimum(frame["size"], 2.0)
    if not numbers_only:
        frame["owns"] = rng.random(n) < 0.4
        frame["home"] = rng.choice(["north", "east", "south"], n)
        t = t + frame["owns"] + 2.0 * (frame["home"] == "east")
    return frame, t + 0.3 * rng.normal(size=n)


def texts(model):
    """Return what is printed of a model, without the models that are averages over many trees."""
    found = [getattr(model, name, None) for name in ("rules_", "tree_")]
    return [str(one) for one in found if one is not None]


def assert_numbers_are_read(model, frame, y):
    """Each text gives `predict`, to within half a percent of the standard deviation of y."""
    for text in texts(model):
        told, stated = read_numbers(text, frame)
        assert np.abs(told - model.predict(frame)).max() <= 0.005 * np.std(y) + stated, text


def assert_classes_are_read(model, frame):
    """Each text gives the class of `predict`, but where the scores are nearer than the text is true."""
    for text in texts(model):
        told, margins, stated = read_classes(text, frame)
        differs = told != model.predict(frame).astype(str)
        assert (margins[differs] <= 2 * (SCORE_TOLERANCE + stated)).all(), text


@pytest.mark.parametrize("scale", ["1e-9", "1", "1e6 ± 1", "1e12"])
@pytest.mark.parametrize("setting", NUMBERS, **named)
def test_a_reader_finds_the_numbers(setting, scale):
    frame, t = table(setting.numbers_only)
    y = 1e6 + t / t.abs().max() if "±" in scale else float(scale) * t
    assert_numbers_are_read(setting.fresh().fit(frame, y), frame, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("setting", CLASSES, **named)
def test_a_reader_finds_the_classes(setting, n_classes):
    frame, t = table(setting.numbers_only)
    y = np.array(["low", "mid", "high"])[pd.qcut(t, n_classes, labels=False)]
    assert_classes_are_read(setting.fresh().fit(frame, y), frame)


@pytest.mark.parametrize("setting", NUMBERS, **named)
def test_a_reader_finds_the_numbers_of_a_real_table(setting):
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    assert_numbers_are_read(setting.fresh().fit(frame, y), frame, y)


@pytest.mark.parametrize("setting", CLASSES, **named)
def test_a_reader_finds_the_classes_of_a_real_table(setting):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    frame.columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    assert_classes_are_read(setting.fresh().fit(frame, y), frame)
