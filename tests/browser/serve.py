"""Jupyter's servers on a folder of demos, and Chromium to look at them."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

from shared.needs import PATIENCE

# Chromium without a sandbox, a graphics card or calls home
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@contextmanager
def server(module, folder, *options):
    """The address of `python -m module folder` on a free port; all that it writes goes beneath the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    env.pop("MPLBACKEND", None)  # a kernel shows its figures itself
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
                 "IPYTHONDIR"):  # fmt: skip
        env[name] = str(folder / ".jupyter" / name.lower())
        os.makedirs(env[name], exist_ok=True)
    command = [
        sys.executable,
        "-m",
        module,
        "--no-browser",
        f"--port={port}",
        *options,
        str(folder),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, env=env, cwd=folder, **pipes)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if re.search(rf"http://(127\.0\.0\.1|localhost):{port}", line):
                break
        else:
            raise RuntimeError("".join(said))
        threading.Thread(
            target=process.stdout.read, daemon=True
        ).start()  # a full pipe would stop the server
        yield f"http://localhost:{port}/"
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def chromium():
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        yield browser
        browser.close()
