"""What a stranger does first: installs the package into an empty environment, and types what the README says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from frame import NBS, ROOT, copy_tree, oldest, settings

LIMIT = 1200  # seconds after which a command is stopped


def blocks(text, language):
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def run(*words, folder, ok=True):
    """Run a program in a folder, without what this process is told about Python; return what it printed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env.pop("FABINTERP_DATA", None)
    env |= {"MPLBACKEND": "agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0 or not ok, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def install(environment, *words):
    """Install into an environment; skip where no package index can be reached."""
    said = run(
        environment / "bin" / "pip", "install", "--quiet", *words, folder=environment, ok=False
    )
    if re.search("No matching distribution|NewConnectionError|Temporary failure", said):
        pytest.skip(f"pip finds no packages here: {said.splitlines()[-1]}")
    assert "ERROR" not in said, said[-4000:]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the built wheel and what that requires, and the wheel."""
    folder = tmp_path_factory.mktemp("stranger")
    tree = copy_tree(folder / "tree")
    run(sys.executable, "-m", "venv", folder / "env", folder=folder)
    install(folder / "env", "build")
    run(
        folder / "env" / "bin" / "python",
        "-m",
        "build",
        "--wheel",
        "-o",
        folder,
        tree,
        folder=folder,
    )
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--clear", folder / "env", folder=folder)
    install(folder / "env", wheel)
    return folder / "env", wheel


def homes(path):
    """Write the table that the README's command reads."""
    rng = np.random.default_rng(0)
    area = rng.uniform(20, 120, 200)
    rent = 300 + 8 * area + rng.normal(0, 40, 200)
    np.savetxt(path, np.c_[area, rent], "%.1f", ",", header="area,rent", comments="")


@pytest.mark.slow
@pytest.mark.xdist_group("environment")
def test_the_readme_in_an_empty_environment(environment, tmp_path):
    """All commands and blocks run after the first install line."""
    bin = environment[0] / "bin"
    frames = run(bin / "pip", "list", folder=tmp_path)
    assert not re.search("^(pyarrow|xgboost|lightgbm) ", frames, re.M)
    text = (ROOT / "README.md").read_text()
    homes(tmp_path / "homes.csv")
    lines = [
        line.split("#")[0].split() for block in blocks(text, "sh") for line in block.splitlines()
    ]
    line = next(words for words in lines if words[:2] == ["pip", "install"])
    install(environment[0], line[2].strip("'").replace(".", str(environment[1]), 1))
    commands = [words for words in lines if words[:1] == ["fabinterp"]]
    assert ["fabinterp", "demo"] in commands and len(commands) > 1
    for words in commands:
        assert "rules for" in run(bin / words[0], *words[1:], folder=tmp_path)
    assert (tmp_path / "rules.html").exists() and (tmp_path / "fabinterp-demo.html").exists()
    code = "\n".join(blocks(text, "python"))
    said = run(bin / "python", "-c", code, folder=tmp_path)
    assert "otherwise" in said and "SELECT" in said
    assert run(bin / "python", "-m", "fabinterp", "--version", folder=tmp_path).startswith(
        "fabinterp"
    )


PAGES = ("rules/00_core", "models/09_bikes", "bench/11_sizes")


@pytest.mark.slow
@pytest.mark.xdist_group("environment")
def test_copied_pages_with_the_wheel(environment, tmp_path):
    """A plain page, one whose table is missing, and one that reads what was measured."""
    env, wheel = environment
    install(env, f"{wheel}[parquet]", "jinja2", "tqdm")
    nbs = shutil.copytree(NBS, tmp_path / "nbs")
    for page in PAGES:
        path = nbs / f"{page}.ipynb"
        cells = nbformat.read(path, 4).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        path.with_suffix(".ipy").write_text("\n".join(code), encoding="utf-8")
        run(env / "bin" / "python", "-m", "IPython", f"{path.stem}.ipy", folder=path.parent)


def test_oldest_versions_are_those_of_settings(tmp_path):
    path = Path(tmp_path / "settings.ini")
    path.write_text(
        "[DEFAULT]\nrequirements = numpy>=1.26 scipy\nx_requirements = dask[array]>=2025.1,<9 y==1.0\n"
    )
    assert oldest.constraints(path) == ["dask==2025.1.*", "numpy==1.26.*"]
    names = [line.split("==")[0] for line in oldest.constraints()]
    required = re.findall(r"([\w-]+)>=", settings()["requirements"])
    assert set(required) <= set(names)
