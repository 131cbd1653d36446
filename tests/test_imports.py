"""`import fabinterp` loads little, and public names load their module when they are first used."""

import os
import subprocess
import sys

import pytest
from frame import ROOT
from frame.imports import LAZY, MODULES, dotted
from frame.names import PUBLIC, public

import fabinterp
from fabinterp import plot

# Imports modules, each in a fork of a process that holds what every one of them may load
IMPORTS = """
import importlib, os, sys
import numpy, scipy, sklearn.base
for name in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        importlib.import_module(name)
        print(name, *sys.modules)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


def python(code, *arguments):
    """Run Python code in a process of its own; return what it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout


def test_import_is_light():
    before = "import sys, sklearn.base; before = set(sys.modules); import fabinterp"
    assert not LAZY & set(python(f"{before}; print(*set(sys.modules) - before)").split())


ARRAYS = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.meta_path.insert(0, Without())
import numpy as np
import fabinterp
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
y = X[:, 0] > 0
for name in ("RuleMixture", "ProxyTree", "ProxyLinear", "MetaTree"):
    for kind in ("Classifier", "Regressor"):
        model = getattr(fabinterp, name + kind)().fit(X, y if kind == "Classifier" else X[:, 0])
        assert model.predict(X).shape == (80,)
"""


def test_arrays_are_fitted_without_pandas():
    python(ARRAYS)


@pytest.mark.slow
def test_no_module_loads_what_only_plots_and_frames_need():
    names = [f"fabinterp.{dotted(path)}" for path in MODULES]
    lines = [line.split() for line in python(IMPORTS, *names).splitlines()]
    loaded = {name: set(modules) for name, *modules in lines}
    heavy = LAZY - {"pandas", "pyarrow", "narwhals"}  # scikit-learn loads these if installed
    for name in names:
        assert name in loaded[name]
        assert not heavy & loaded[name], f"{name} loads {heavy & loaded[name]}"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fabinterp.nonsense


def test_public_names_come_from_their_modules():
    for name, module in PUBLIC.items():
        thing = public(name)
        assert thing.__module__ == f"fabinterp.{module}"
        assert thing.__doc__, name


def test_names_at_the_top_are_few():
    assert len(fabinterp.__all__) <= 36  # 32, three classes of options, and `plot`
    assert set(dir(fabinterp)) == {*fabinterp.__all__, "__version__"}
    assert set(dir(plot)) == set(plot.__all__)


def test_older_names_of_plots_are_aliases():
    for name in plot.__all__:
        assert getattr(fabinterp, f"plot_{name}") is getattr(plot, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fabinterp.plot_nonsense
