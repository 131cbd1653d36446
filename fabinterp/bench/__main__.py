"""`python -m fabinterp.bench` measures the tables of the papers."""

from fabinterp.bench.runner import run_bench

run_bench()
