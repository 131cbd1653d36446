"""A forest behind scalers, imputers and encoders is read in the caller's columns and predicts the same."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from fabinterp.forests.pipelines import (
    LARGEST_FLOAT,
    StepError,
    float_at,
    float_rank,
    last_refusal,
    unwrap_model,
)
from fabinterp.forests.reading import ensemble_thresholds, read_ensemble
from fabinterp.rules.core import read_columns

pd = pytest.importorskip("pandas")
warnings.filterwarnings("ignore", "Skipping features without any observed values")

rng = np.random.default_rng(0)
N = 300
FULL = pd.DataFrame(
    {
        "income": np.round(rng.lognormal(8, 1, N), 2),
        "age": rng.integers(18, 90, N).astype(float),
        "month": rng.integers(1, 13, N).astype(float),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], N)),
        "owns": rng.random(N) < 0.5,
    }
)
GAPS = FULL.copy()
for name in ("income", "age", "colour"):
    GAPS.loc[rng.random(N) < 0.15, name] = np.nan
NUMBER = (
    np.log(FULL.income)
    + (FULL.age > 40) * FULL.owns
    + FULL.colour.isin(["red", "grey"])
    + FULL.month.isin([3, 7])
).to_numpy()
LABEL = np.array(["low", "middle", "high"])[np.digitize(NUMBER, [8.5, 9.5])]
NUMERIC = ["income", "age", "month"]


def forest(**settings):
    return RandomForestClassifier(12, random_state=0, **settings)


def trees():
    return RandomForestRegressor(12, random_state=0)


def columns(*parts, **settings):
    return make_column_transformer(*parts, **settings)


def log_of_all():
    return FunctionTransformer(np.log1p)


def onehot(**settings):
    return OneHotEncoder(sparse_output=False, **settings)


PIPELINES = {
    "standard": (lambda: make_pipeline(StandardScaler(), forest()), FULL[NUMERIC]),
    "standard, no mean": (
        lambda: make_pipeline(StandardScaler(with_mean=False), trees()),
        FULL[NUMERIC],
    ),
    "min and max, clipped": (
        lambda: make_pipeline(MinMaxScaler((-3, 0.1), clip=True), trees()),
        FULL[NUMERIC],
    ),
    "largest": (lambda: make_pipeline(MaxAbsScaler(), ExtraTreesClassifier(9)), FULL[NUMERIC]),
    "robust": (lambda: make_pipeline(RobustScaler(), AdaBoostClassifier()), FULL[NUMERIC]),
    "array": (
        lambda: make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=20)),
        FULL[NUMERIC].to_numpy(),
    ),
    "quantiles": (
        lambda: make_pipeline(QuantileTransformer(n_quantiles=50), forest()),
        FULL[NUMERIC],
    ),
    "normal quantiles": (
        lambda: make_pipeline(
            QuantileTransformer(n_quantiles=50, output_distribution="normal"), forest()
        ),
        FULL[NUMERIC],
    ),
    "powers": (lambda: make_pipeline(PowerTransformer(), forest()), FULL[NUMERIC]),
    "box-cox": (lambda: make_pipeline(PowerTransformer("box-cox"), forest()), FULL[NUMERIC]),
    "logarithm": (lambda: make_pipeline(log_of_all(), StandardScaler(), forest()), FULL[NUMERIC]),
    "turned": (
        lambda: make_pipeline(FunctionTransformer(np.negative), MinMaxScaler(), forest()),
        GAPS[NUMERIC],
    ),
    "gaps kept": (lambda: make_pipeline(StandardScaler(), forest()), GAPS[NUMERIC]),
    "gaps filled": (
        lambda: make_pipeline(SimpleImputer(), StandardScaler(), forest()),
        GAPS[NUMERIC],
    ),
    "gaps filled with 0 and told": (
        lambda: make_pipeline(
            SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True),
            StandardScaler(),
            trees(),
        ),
        GAPS[NUMERIC],
    ),
    "empty columns": (
        lambda: make_pipeline(SimpleImputer(add_indicator=True), forest()),
        GAPS[NUMERIC].assign(none=np.nan)[["none", *NUMERIC]],
    ),
    "selected": (
        lambda: make_pipeline(StandardScaler(), VarianceThreshold(), SelectKBest(k=2), forest()),
        FULL[NUMERIC],
    ),
    "framed": (
        lambda: make_pipeline(StandardScaler(), SelectKBest(k=2), forest()).set_output(
            transform="pandas"
        ),
        FULL[NUMERIC],
    ),
    "passed through": (
        lambda: Pipeline([("a", "passthrough"), ("b", None), ("c", forest())]),
        FULL[NUMERIC],
    ),
    "nested": (
        lambda: make_pipeline(make_pipeline(SimpleImputer(), MaxAbsScaler()), forest()),
        GAPS[NUMERIC],
    ),
    "one-hot": (
        lambda: make_pipeline(
            columns((OneHotEncoder(), ["colour", "owns"]), remainder="passthrough"), forest()
        ),
        FULL,
    ),
    "one-hot, some dropped": (
        lambda: make_pipeline(
            columns(
                (onehot(drop="if_binary"), ["owns"]),
                (onehot(drop="first"), ["colour"]),
                ("passthrough", ["age"]),
            ),
            trees(),
        ),
        FULL,
    ),
    "one-hot, gaps are labels": (
        lambda: make_pipeline(
            columns((onehot(handle_unknown="ignore"), ["colour"]), remainder=StandardScaler()),
            forest(),
        ),
        GAPS,
    ),
    "one-hot, rare ones together": (
        lambda: make_pipeline(
            onehot(handle_unknown="infrequent_if_exist", max_categories=3), forest()
        ),
        GAPS[["colour", "month"]],
    ),
    "one-hot of numbers": (lambda: make_pipeline(onehot(), forest()), FULL[["month", "owns"]]),
    "usual": (
        lambda: make_pipeline(
            columns(
                (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), NUMERIC),
                (
                    make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
                    make_column_selector(dtype_exclude=float),
                ),
            ),
            forest(),
        ),
        GAPS.assign(colour=GAPS.colour.astype(object)),
    ),
    "ordinal": (
        lambda: make_pipeline(
            columns((OrdinalEncoder(), ["colour", "month"]), remainder="drop"), trees()
        ),
        GAPS,
    ),
    "ordinal, in another order": (
        lambda: make_pipeline(
            OrdinalEncoder(categories=[["red", "blue", "grey", "green"]]), trees()
        ),
        FULL[["colour"]],
    ),
    "ordinal, then categories": (
        lambda: make_pipeline(
            columns(
                (
                    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                    ["colour", "month"],
                ),
                remainder="passthrough",
            ),
            HistGradientBoostingClassifier(max_iter=10, categorical_features=[0, 1]),
        ),
        GAPS,
    ),
    "targets": (
        lambda: make_pipeline(columns((TargetEncoder(), ["colour", "month"])), trees()),
        GAPS,
    ),
    "targets of classes": (
        lambda: make_pipeline(columns((TargetEncoder(), ["colour", "month"])), forest()),
        GAPS,
    ),
    "labels passed through": (
        lambda: make_pipeline(
            columns((StandardScaler(), ["age"]), remainder="passthrough").set_output(
                transform="pandas"
            ),
            HistGradientBoostingRegressor(max_iter=10, categorical_features="from_dtype"),
        ),
        GAPS,
    ),
    "search": (
        lambda: GridSearchCV(
            make_pipeline(StandardScaler(), forest()),
            {"randomforestclassifier__max_depth": [2, 4]},
            cv=2,
        ),
        FULL[NUMERIC],
    ),
}


def fitted(model, X):
    regress = "Regressor" in type(unwrap_model(model)[1]).__name__
    if hasattr(model, "param_grid"):
        regress = False
    return model.fit(X, NUMBER if regress else LABEL)


def gap(ensemble, model, X):
    """The largest difference of predictions, of numbers or of probabilities."""
    ask = "predict" if ensemble.classes is None else "predict_proba"
    return np.abs(getattr(ensemble, ask)(X) - getattr(model, ask)(X)).max()


def hard_rows(X, ensemble, seed=0):
    """Rows at the thresholds and one float beside them, and rows with values changed places."""
    draw = np.random.default_rng(seed)
    frame = X if hasattr(X, "columns") else pd.DataFrame(X)
    rows = pd.concat([frame] * 4, ignore_index=True)
    for j, cuts in enumerate(ensemble_thresholds(ensemble)):
        known = rows.iloc[:, j].to_numpy()
        mixed = draw.permutation(len(rows))
        values = rows.iloc[mixed, j].reset_index(drop=True)
        # values between those of training are no categories: encoders would refuse them
        if len(cuts) and known.dtype == float and frame.columns[j] not in ("month", "age"):
            tie = draw.choice(cuts, len(rows))
            side = draw.integers(-1, 2, len(rows))
            toward = np.where(side == 1, np.inf, np.where(side == 0, tie, -np.inf))
            tie = np.nextafter(tie, toward)
            values = values.where(draw.random(len(rows)) < 0.5, tie)
        rows[frame.columns[j]] = values
    return rows if hasattr(X, "columns") else rows.to_numpy()


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_is_read_in_the_columns_of_its_table(name):
    make, X = PIPELINES[name]
    model = fitted(make(), X)
    ensemble = read_ensemble(model, read_columns(X))
    assert ensemble.columns == read_columns(X)
    assert gap(ensemble, model, X) < 1e-12
    rows = hard_rows(X, ensemble)
    assert gap(ensemble, model, rows) < 1e-12
    assert (ensemble.predict(X) == model.predict(X)).mean() > 0.99 or ensemble.classes is None
    alone = read_ensemble(model)
    assert alone.columns.names == read_columns(X).names
    assert gap(alone, model, rows) < 1e-12


BOOSTERS = {
    "xgboost": ("xgboost", "XGBClassifier", {"n_estimators": 10, "n_jobs": 1}),
    "lightgbm": ("lightgbm", "LGBMClassifier", {"n_estimators": 10, "n_jobs": 1, "verbose": -1}),
    "catboost": (
        "catboost",
        "CatBoostClassifier",
        {"iterations": 10, "verbose": 0, "allow_writing_files": False, "thread_count": 1},
    ),
}


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("library", BOOSTERS)
def test_boosting_of_other_libraries_behind_a_pipeline(library, framed):
    module, kind, settings = BOOSTERS[library]
    booster = getattr(pytest.importorskip(module), kind)(**settings)
    prepared = columns(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["income"]),
        (onehot(handle_unknown="ignore"), ["colour"]),
        (OrdinalEncoder(), ["month"]),
        remainder=RobustScaler(),
    )
    if framed:
        prepared.set_output(transform="pandas")
    model = make_pipeline(prepared, booster)
    y = np.unique(LABEL, return_inverse=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(GAPS.drop(columns="owns"), y)
        X = GAPS.drop(columns="owns")
        ensemble = read_ensemble(model, read_columns(X))
        assert gap(ensemble, model, X) < 1e-6
        assert gap(ensemble, model, hard_rows(X, ensemble)) < 1e-6


def test_labels_never_seen_and_gaps_never_seen():
    X = FULL[["colour", "age"]]
    elsewhere = GAPS[["colour", "age"]].copy()
    elsewhere["colour"] = elsewhere["colour"].cat.set_categories(
        ["teal", "grey", "blue", "red", "green"]
    )
    elsewhere.loc[::5, "colour"] = "teal"
    for encoder in (
        onehot(handle_unknown="ignore"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99),
        TargetEncoder(),
    ):
        model = make_pipeline(columns((encoder, ["colour"]), (SimpleImputer(), ["age"])), trees())
        model.fit(X, NUMBER)
        ensemble = read_ensemble(model, read_columns(elsewhere))
        assert gap(ensemble, model, elsewhere) < 1e-12


class Doubled(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        return 2 * np.asarray(X)


STEPS_IN_THE_WAY = {
    "PCA": PCA(2),
    "PolynomialFeatures": PolynomialFeatures(2),
    "KNNImputer": KNNImputer(),
    "KBinsDiscretizer": KBinsDiscretizer(encode="ordinal", strategy="uniform"),
    "Doubled": Doubled(),
    "absolute is not known to be monotone": FunctionTransformer(np.abs),
    "fills -1": SimpleImputer(missing_values=-1),
    "sets of numbers": OneHotEncoder(),
}


@pytest.mark.parametrize("why", STEPS_IN_THE_WAY)
def test_a_step_that_cannot_be_undone_is_named_in_one_line(why):
    X = FULL[NUMERIC] + (0.5 if why == "sets of numbers" else 0)
    model = make_pipeline(StandardScaler(), STEPS_IN_THE_WAY[why], forest())
    if why in ("sets of numbers", "fills -1"):
        model = make_pipeline(STEPS_IN_THE_WAY[why], forest())
    model.fit(X, LABEL)
    with pytest.raises(StepError, match=why) as caught:
        read_ensemble(model, read_columns(X))
    step = STEPS_IN_THE_WAY[why]
    assert str(caught.value).startswith(
        f"estimator={type(step).__name__}: this step cannot be undone"
    )
    assert "\n" not in str(caught.value)


def test_a_step_that_no_question_is_about_is_in_nobodys_way():
    parted = columns((PCA(1), ["income", "age"]), (StandardScaler(), ["month"]))
    model = make_pipeline(parted, RandomForestRegressor(5, random_state=0))
    X = FULL.assign(income=1.0, age=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X.month)
    assert gap(read_ensemble(model, read_columns(X)), model, X) == 0


def test_what_is_unwrapped():
    plain = forest().fit(FULL[NUMERIC], LABEL)
    pipeline = make_pipeline("passthrough", StandardScaler(), FrozenEstimator(plain))
    steps, model = unwrap_model(pipeline)
    assert model is plain and [type(step) for step in steps] == [StandardScaler]
    assert unwrap_model(plain) == ([], plain) and unwrap_model("model.json") == ([], "model.json")
    with pytest.raises(ValueError, match="estimator=LogisticRegression: supported are"):
        read_ensemble(
            make_pipeline(StandardScaler(), LogisticRegression()).fit(FULL[NUMERIC], LABEL)
        )
    with pytest.raises(ValueError, match="estimator=StandardScaler: it is not fitted"):
        read_ensemble(make_pipeline(StandardScaler(), forest()))


def test_other_columns_are_refused_by_name():
    model = make_pipeline(StandardScaler(), forest()).fit(FULL[NUMERIC], LABEL)
    for X, message in [
        (FULL[NUMERIC[::-1]], "columns: the model expects column 'income' where 'month' was given"),
        (FULL[NUMERIC[:2]], "columns: the model was fitted on 3 columns, got 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_ensemble(model, read_columns(X))
    encoded = make_pipeline(onehot(), forest()).fit(FULL[["colour"]], LABEL)
    with pytest.raises(ValueError, match="holds categories in the model, numbers in the table"):
        read_ensemble(encoded, read_columns(pd.DataFrame({"colour": [1.0, 2.0]})))


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=2, max_size=30))
def test_the_place_of_a_float_is_its_order(values):
    x = np.array(values)
    rank = float_rank(x)
    assert np.array_equal(float_at(rank), x + 0.0)
    assert np.array_equal(np.argsort(rank, kind="stable"), np.argsort(x, kind="stable"))
    after = np.nextafter(x, np.inf)
    near = np.isfinite(after)
    assert np.array_equal(float_rank(after[near]), rank[near] + 1)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(-10, 10), st.booleans())
@examples(60)
def test_a_cut_behind_a_scaler_is_found_to_the_last_bit(mean, scale, b, falls):
    def scaled(x):
        return (-1.0 if falls else 1.0) * ((x - mean) / scale)

    with np.errstate(over="ignore"):
        cut = last_refusal(lambda x: (scaled(x) > b) != falls, -LARGEST_FLOAT, LARGEST_FLOAT, 1)[0]
        for x in (cut, mean + scale * b, mean - scale * b):
            for _ in range(3):
                assert (scaled(x) > b) == ((x > cut) != falls)
                x = np.nextafter(x, np.inf)
    assert last_refusal(lambda x: x > np.inf, -1.0, 1.0, 1) == np.inf
    assert last_refusal(lambda x: x == x, -1.0, 1.0, 1) == -np.inf


def test_one_row_of_a_forest_by_hand():
    """A stump behind scaler and imputer: the cut, the side of the gap, the set of the dummy."""
    X = pd.DataFrame({"dose": [1.0, 2.0, np.nan, 9.0, 10.0], "kind": list("abaab")})
    prepared = columns((make_pipeline(SimpleImputer(), StandardScaler()), ["dose"]))
    stump = make_pipeline(prepared, RandomForestRegressor(1, max_depth=1, bootstrap=False))
    tree = read_ensemble(stump.fit(X, [0, 0, 0, 1, 1]), read_columns(X)).trees[0]
    split = tree.splits[0]
    assert split.features == (0,) and 5.5 < split.threshold < 9 and not split.missing
    tree = read_ensemble(stump.fit(X, [0, 0, 1, 1, 1]), read_columns(X)).trees[0]
    assert tree.splits[0].missing and 2 < tree.splits[0].threshold < 5.5
    dummies = make_pipeline(columns((onehot(), ["kind"])), clone(stump[-1]))
    tree = read_ensemble(dummies.fit(X, [0, 1, 0, 0, 1]), read_columns(X)).trees[0]
    assert tree.splits[0].categories in ((0,), (1,))
    assert np.array_equal(tree.predict(X), [0, 1, 0, 0, 1])


def test_xgboost_takes_the_zeros_of_sparse_dummies_as_missing():
    xgb = pytest.importorskip("xgboost")
    y = np.unique(LABEL, return_inverse=True)[1]
    X = FULL[["colour", "month"]].assign(none=0.0)
    for remainder, refused in (("drop", False), ("passthrough", True)):
        prepared = columns(
            (OneHotEncoder(), ["colour", "month"]), remainder=remainder, sparse_threshold=1.0
        )
        model = make_pipeline(prepared, xgb.XGBClassifier(n_estimators=10, n_jobs=1))
        if refused:
            X = X.assign(none=np.random.default_rng(0).poisson(0.7, N) * (y + 1.0))
            with pytest.raises(StepError, match="zeros of a sparse table"):
                read_ensemble(model.fit(X, y), read_columns(X))
        else:
            ensemble = read_ensemble(model.fit(X, y), read_columns(X))
            assert gap(ensemble, model, X) < 1e-6
