# `make demo` and `make test` need python3 and make, nothing else: each builds .venv if it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
NB ?= $(shell find nbs -name '*.ipynb' -not -path '*/.*' -not -path '*/_*' | sort)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test slow measure mutants oldest export run format lint docs dist clean

demo: .venv/.run          ## train a forest, print its rules, write fabinterp-demo.html
	@$(BIN)/fabinterp demo --force

# What is built for one group of tests is built once: tests of a group stay together, all others go where there is room.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup

test: .venv/.dev          ## the quick tier, one summary; ARGS='-k rules' narrows it
	@$(PYTEST) $(ARGS)

slow: .venv/.dev          ## the slow tier: notebooks, site, browser, bench, all estimators, all examples of the properties
	@$(PYTEST) --slow $(ARGS)

measure: .venv/.bench     ## what needs the data folder FABINTERP_DATA, the peers, hours or a clock
	@$(BIN)/python -m pytest --measure $(ARGS)

mutants: .venv/.dev       ## one-line mutants of the core, and the tests that kill them
	@$(BIN)/python tests/frame/mutants.py $(ARGS)

oldest:                   ## the quick tests with the oldest versions that settings.ini allows, in .oldest
	@test -x .oldest/bin/python || $(PYTHON) -m venv .oldest
	@$(PYTHON) tests/frame/oldest.py > .oldest/constraints.txt
	@.oldest/bin/python -m pip install --quiet --constraint .oldest/constraints.txt -e '.[dev]'
	@.oldest/bin/python -m pytest -n auto --dist loadgroup $(ARGS)

export: .venv/.dev        ## notebooks to modules, notebooks cleaned, README written
	@env -u IN_TEST $(BIN)/python tests/frame/notebooks.py export

run: .venv/.dev           ## execute notebooks and keep their outputs; NB=nbs/fab/01_foba.ipynb for one
	@$(BIN)/python tests/frame/notebooks.py run $(NB)

format: .venv/.dev        ## notebooks and tests laid out by ruff
	@$(BIN)/ruff check --select I --fix --quiet tests nbs setup.py
	@$(BIN)/ruff format fabinterp tests setup.py nbs

lint: .venv/.dev          ## layout, ruff, and all that is read and not run: pages, imports, export, budgets
	@$(BIN)/ruff check fabinterp tests setup.py nbs
	@$(BIN)/ruff format --check fabinterp tests setup.py nbs
	@$(BIN)/python tests/frame/lint.py

docs: .venv/.dev          ## the pages as plain HTML in _docs, checked (needs pandoc and chromium)
	@$(BIN)/python tests/frame/docs.py --out _docs

dist: .venv/.dev
	@$(BIN)/python -m build

clean:
	rm -rf .venv .oldest build dist _docs _proc *.egg-info .pytest_cache .ruff_cache .hypothesis fabinterp-demo.html

# The stamps: what is installed in .venv is as new as the files that say what belongs there.
METADATA := settings.ini setup.py pyproject.toml fabinterp/_kernels.pyx
# The versions that CI and developers have; without them: make test CONSTRAINTS=/dev/null
CONSTRAINTS ?= tests/constraints.txt

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 11) and "fabinterp needs Python 3.11 or newer; $(PYTHON) is %d.%d (choose another with make PYTHON=...)" % v)'
	@echo "Building .venv (once)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/.run: $(METADATA) | .venv/bin/python
	@$(BIN)/python -m pip install --quiet -e .
	@touch $@

.venv/.dev: $(METADATA) $(CONSTRAINTS) | .venv/bin/python
	@$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) -e '.[dev]'
	@touch .venv/.run $@

.venv/.bench: .venv/.dev
	@$(BIN)/python -m pip install --quiet -e '.[dev,bench]'
	@touch $@
