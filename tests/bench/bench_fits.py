"""The five fits at one size each, beside the pass over the data that is the floor; not in the default run.

    pytest tests/bench/bench_*.py --benchmark-autosave
    pytest tests/bench/bench_*.py --benchmark-compare --benchmark-compare-fail=min:20%

The first keeps what was measured in `.benchmarks`, the second fails if one got slower.
Needs pytest-benchmark (in the extra `bench`). Processor time, so that other programs hardly count.
"""

import time

import pytest

from fabinterp.bench.cost import BASE, TASKS

pytestmark = pytest.mark.benchmark(timer=time.process_time)
SMALL = {**{method: {**knobs, "n": 1000} for method, knobs in BASE.items() if method != "step"},
         "rules": {"n": 1000, "d": 10, "L": 10, "K": 5, "depth": 4, "restarts": 2, "shakes": 10}}  # fmt: skip


@pytest.mark.parametrize("method", SMALL)
def test_fit(benchmark, method):
    task = TASKS[method](**SMALL[method])
    benchmark.extra_info["knobs"] = SMALL[method]
    benchmark.pedantic(task.call, rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("method", SMALL)
def test_predict(benchmark, method):
    task = TASKS[method](**SMALL[method])
    model = task.call()
    answers = benchmark.pedantic(model.predict, args=(task.X,), rounds=20, warmup_rounds=2)
    assert len(answers) == len(task.X)


def test_pass_over_the_data(benchmark):
    X = TASKS["proxy"](**SMALL["proxy"]).X
    benchmark.pedantic(X.sum, rounds=50, iterations=100)
