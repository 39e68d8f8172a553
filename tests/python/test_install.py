# SPDX-License-Identifier: Apache-2.0
"""The package is installed by pip into an environment of its own."""

import os
import subprocess
import sys

from support import ROOT

import netio_daq as netio


def test_pip_installs_the_package(tmp_path):
    python = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", tmp_path], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-build-isolation"]
    done = subprocess.run([*pip, ROOT], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    program = "import netio_daq, sys; print(netio_daq.__version__, netio_daq.__file__)"
    shown = subprocess.run([python, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path)
    version, file = shown.stdout.split()
    assert version == netio.__version__ and file.startswith(str(tmp_path)), shown.stderr
    assert (tmp_path / file).with_name("py.typed").exists()
