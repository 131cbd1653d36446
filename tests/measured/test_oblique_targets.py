"""The promised accuracy, size and speed of oblique-treed additive models, on part of what `bench.wang` measures.

Run with `--measure -s`. The tables are read from the folder FABINTERP_DATA; one that is not there
is skipped by name. The bounds are those promised, without room; all ten folds of tables up to SMALL
rows, two of the larger ones. A promise that is not kept stands as it was made and is marked as
missed, with what the stored lines say; when it is kept the mark fails and has to go.
"""

from functools import cache

import numpy as np
import pytest
from frame import NBS
from shared.needs import need_data

from fabinterp.bench.datasets import catalogue_entry
from fabinterp.bench.runner import UnavailableError, latest, read_lines
from fabinterp.bench.wang import (
    BINARY,
    DIAL,
    FEW,
    REGRESSION,
    TABLE_3,
    TABLE_4,
    UNITS,
    fold_row,
    oblique_recovery_row,
)

pytestmark = pytest.mark.measure

SMALL = 2500
EBM_IS_SLOW = ("parkinsons", "cod_rna")  # minutes a fit: beside EBM, one fold of these
SEEDS = range(10)
ROWS = {name: catalogue_entry(name).rows for name in (*REGRESSION, *BINARY)}
OURS_4 = TABLE_4["OT-SpAM"]


def printed_error(name):
    """(error, the paper's ±) of OT-SpAM, the error of classes in % of wrong labels."""
    if name in BINARY:
        return 100 - OURS_4[name].value, OURS_4[name].deviation
    said = TABLE_3["OT-SpAM"][name]
    return said.value * UNITS.get(name, 1), said.deviation * UNITS.get(name, 1)


PAPER = {name: printed_error(name) for name in ROWS}
BOUNDS = {
    "kin8nm": 0.125,
    "parkinsons": 2.6,
    "stock": 0.95,
    "comp_activ": 2.6,
    "eeg_eye_state": 100 - 80,
    "fourclass": 100 - 99,
    "splice": 100 - 94.5,
}
HAIR = 1e-9  # 100 − 87.1 is not 12.9 in floating point
STORED = NBS / "results" / "planes.jsonl"


def missed(reason):
    """The mark of a promise that is not kept."""
    return pytest.mark.xfail(reason=reason, strict=True)


def stored_errors(method):
    """{table: errors of the folds that are stored}."""
    found = {}
    for line in latest(read_lines(STORED)).values():
        if line["key"]["method"] == method and line["key"]["data"] in ROWS:
            found.setdefault(line["key"]["data"], []).append(line["error"])
    return found


def wins_of(errors):
    """The tables whose error, {table: error}, is no larger than the paper's."""
    return {name for name, e in errors.items() if e <= PAPER[name][0] + HAIR * (name in BINARY)}


@cache
def fit(name, method, fold):
    """One line of the table."""
    need_data(name)
    try:
        return fold_row(name, method, fold)
    except UnavailableError as why:
        pytest.skip(str(why))


def fits(name, method, most=10):
    """The lines of the folds that are run here."""
    return [fit(name, method, fold) for fold in range(min(most, 10 if ROWS[name] <= SMALL else 2))]


def mean(name, method, what, most=10):
    """The mean over the folds."""
    return float(np.mean([line[what] for line in fits(name, method, most)]))


@cache
def recovery(seed):
    """The paper's simulation, one seed."""
    return oblique_recovery_row(5000, "oblique", seed)


# The simulation of section 5


def test_the_simulated_tree_is_found_with_all_its_features():
    rows = [recovery(seed) for seed in SEEDS]
    print(
        "\n"
        + "\n".join(
            f"seed {seed}: exact {r['exact']}, RMSE {r['error']:.3f}, experts {r['experts']}, "
            f"{r['cpu']:.1f} s"
            for seed, r in zip(SEEDS, rows)
        )
    )
    assert sum(r["exact"] and r["error"] <= 0.4 for r in rows) >= 9


def test_a_simulated_fit_takes_at_most_three_seconds():
    assert max(recovery(seed)["cpu"] for seed in SEEDS) <= 3  # of one thread, whatever else runs


# Tables 3 and 4


MISSED_RMSE = {"auto_mpg": "2.83 over the ten folds that are stored, 2.79 in the paper"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=missed(MISSED_RMSE[n]) if n in MISSED_RMSE else ()) for n in REGRESSION],
)
def test_rmse_is_that_of_the_paper_or_less(name):
    error = mean(name, "oblique", "error")
    print(
        f"\n{name}: RMSE {error:.4g}, paper {PAPER[name][0]:.4g}, experts {mean(name, 'oblique', 'experts'):.1f}, "
        f"features {mean(name, 'oblique', 'features'):.2f}"
    )
    assert error <= PAPER[name][0]


@pytest.mark.parametrize("name", BINARY)
def test_accuracy_is_within_the_deviation_of_the_paper(name):
    error = mean(name, "oblique", "error")
    print(
        f"\n{name}: accuracy {100 - error:.2f}, paper {OURS_4[name].value} ± {OURS_4[name].deviation}, "
        f"experts {mean(name, 'oblique', 'experts'):.1f}, features {mean(name, 'oblique', 'features'):.2f}"
    )
    assert error <= sum(PAPER[name]) + HAIR


def test_what_stands_of_the_twenty_four_tables_at_one_price():
    """Not what was promised: what the stored lines say, ten folds a table."""
    errors = stored_errors("oblique")
    assert {len(folds) for folds in errors.values()} == {10} and len(errors) == 24
    means = {name: np.mean(folds) for name, folds in errors.items()}
    assert set(ROWS) - wins_of(means) == {
        "auto_mpg",
        "banana",
        "australian",
        "pima_diabetes",
        "titanic",
        "svmguide1",
    }
    within = {n for n, e in means.items() if e <= sum(PAPER[n]) + HAIR}
    assert within == set(ROWS)


@missed("18 of 24 in the stored lines, which the test above names; auto_mpg is one of them")
def test_at_least_twenty_tables_of_twenty_four():
    wins = wins_of({name: mean(name, "oblique", "error") for name in ROWS})
    print(f"\n{len(wins)} of 24; not {', '.join(sorted(set(ROWS) - wins))}")
    assert len(wins) >= 20
    assert set(REGRESSION) <= wins


@missed("17 of 24 in the stored lines, on one to four folds a table")
def test_at_least_twenty_one_tables_at_the_size_that_folds_choose():
    errors = stored_errors(DIAL[0])
    wins = wins_of({name: np.mean(folds) for name, folds in errors.items()})
    print(f"\n{len(wins)} of {len(errors)}; not {', '.join(sorted(set(errors) - wins))}")
    assert min(len(errors.get(name, [])) for name in ROWS) >= FEW
    assert len(wins) >= 21


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_single_tables(name):
    error = mean(name, "oblique", "error")
    print(f"\n{name}: error {error:.4g}, bound {BOUNDS[name]:.4g}")
    assert error <= BOUNDS[name] + HAIR * (name in BINARY)


def test_six_experts_on_average():
    experts = {name: mean(name, "oblique", "experts") for name in ROWS}
    print(f"\n{np.mean(list(experts.values())):.2f} experts: {experts}")
    assert np.mean(list(experts.values())) <= 6


def test_seconds():
    seconds = {
        name: [line["cpu"] for line in fits(name, "oblique")] for name in ROWS
    }  # of one thread
    print(
        "\n"
        + "\n".join(
            f"{name}: median {np.median(s):.1f} s, longest {max(s):.1f} s"
            for name, s in seconds.items()
        )
    )
    assert np.median([np.median(s) for s in seconds.values()]) <= 10
    assert max(max(s) for s in seconds.values()) <= 60


# Peers on the same folds


def test_no_worse_than_ebm_with_fewer_terms():
    most = {name: 1 if name in EBM_IS_SLOW else 10 for name in ROWS}
    lines = {
        name: {
            method: {
                what: mean(name, method, what, most[name])
                for what in ("error", "features", "terms", "cpu")
            }
            for method in ("oblique", "ebm")
        }
        for name in ROWS
    }
    print(
        "\n"
        + "\n".join(
            f"{name}: "
            + "; ".join(
                f"{m} " + " ".join(f"{k} {v:.4g}" for k, v in line.items())
                for m, line in both.items()
            )
            for name, both in lines.items()
        )
    )
    as_good = {
        name
        for name, both in lines.items()
        if both["oblique"]["error"] <= both["ebm"]["error"] + HAIR
    }
    # terms that add up to one answer: those of one expert against those of the one additive model
    smaller = {
        name
        for name, both in lines.items()
        if both["oblique"]["features"] < both["ebm"]["features"]
    }
    print(f"as good {len(as_good)}, fewer terms {len(smaller)}, both {len(as_good & smaller)}")
    assert len(as_good & smaller) >= 16


@pytest.mark.parametrize("peer", ["pygam", "piecewise"])
def test_other_peers_are_shown_and_lose_more_often_than_not(peer):
    wins = 0
    for name in ROWS:
        ours, theirs = (mean(name, method, "error") for method in ("oblique", peer))
        seconds = [mean(name, method, "cpu") for method in ("oblique", peer)]
        wins += ours <= theirs + HAIR
        print(
            f"\n{name}: error {ours:.4g}, {peer} {theirs:.4g}; seconds {seconds[0]:.1f}, {seconds[1]:.1f}",
            end="",
        )
    print(f"\n{wins} of 24")
    assert wins > 12
