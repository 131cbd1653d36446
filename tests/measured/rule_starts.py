"""What the mixture contributes to the rules: `python tests/measured/rule_starts.py [TABLE ...]`.

For each table it fits rules to a forest of 100 trees on at most 1000 rows: with twenty starts of
the mixture, with one start, and without the regions of the mixture. It prints the error on the
other rows, the number of rules and the processor seconds. The tables are those of `choices.py`.
"""

import sys
import time
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
from choices import CLASSES, table
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split

from fabinterp import RuleMixtureClassifier, RuleMixtureRegressor
from fabinterp.models import ensemble_lists

TABLES = (
    "pima_diabetes titanic boston abalone spambase wine_red kin8nm breast_w concrete stock energy "
    "australian magic04 phoneme ionosphere auto_mpg hypothyroid vowel diabetes breast_cancer"
).split()
VARIANTS = {"20 starts": 20, "1 start": 1, "no regions": 1}


def parts_of(name):
    """Numeric rows to fit and rows to predict: X, X_new, y, y_new."""
    X, y = table(name)
    X, y = pd.get_dummies(X).to_numpy(float), np.asarray(y)
    n = min(1000, int(0.75 * len(y)))
    stratify = y if name in CLASSES else None
    return train_test_split(X, y, train_size=n, random_state=0, stratify=stratify)


def fit_variant(model, variant, X, y):
    """The model fitted as `variant` says, and its processor seconds."""
    boxes = ensemble_lists.component_boxes
    if variant == "no regions":
        boxes = lambda rows, assigned: []  # noqa: E731
    begin = time.process_time()
    with patch.object(ensemble_lists, "component_boxes", boxes), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, time.process_time() - begin


def measure(name):
    """Print a line for each variant on one table."""
    X, X_new, y, y_new = parts_of(name)
    classes = name in CLASSES
    kinds = (
        (RandomForestClassifier, RuleMixtureClassifier)
        if classes
        else (RandomForestRegressor, RuleMixtureRegressor)
    )
    forest = kinds[0](random_state=0).fit(X, y)
    first = None
    for variant, n_init in VARIANTS.items():
        model = kinds[1](forest, n_init=n_init, random_state=0)
        model, seconds = fit_variant(model, variant, X, y)
        predicted = model.predict(X_new)
        first = predicted if first is None else first
        loss = np.mean(predicted != y_new) if classes else np.mean((predicted - y_new) ** 2)
        differ = np.mean(predicted != first)
        print(
            f"{name:14} {variant:10} error {loss:<10.4g} rules {len(model.rules_):2} "
            f"differ {differ:.3f} seconds {seconds:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        measure(name)
