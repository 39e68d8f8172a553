# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package netio_daq with CMake (docs/python.md):

    pip install --no-build-isolation .

NETIO_BUILD_DIR names an existing build tree that is used instead of build-python/.
"""

import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
FOLDER = "build-python"  # not setuptools' build/, which is the tree of ./dev build


class Build(build_ext):
    def build_extension(self, extension):
        tree = os.environ.get("NETIO_BUILD_DIR")
        if not tree:
            tree = ROOT / FOLDER / "cmake"
            options = ["NETIO_BUILD_APPS=OFF", "NETIO_BUILD_TESTS=OFF", "NETIO_INSTALL=OFF"]
            options += ["NETIO_BUILD_PYTHON=ON", "NETIO_PYTHON_REQUIRED=ON"]
            options += ["CMAKE_BUILD_TYPE=RelWithDebInfo", f"Python_EXECUTABLE={sys.executable}"]
            subprocess.run(["cmake", "-S", ROOT, "-B", tree, *(f"-D{each}" for each in options)], check=True)
        jobs = str(len(os.sched_getaffinity(0)))
        subprocess.run(["cmake", "--build", tree, "--target", "netio_python", "-j", jobs], check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(pathlib.Path(tree, "python", "netio_daq", target.name)), str(target))


(ROOT / FOLDER).mkdir(exist_ok=True)
numbers = re.findall(r"#define NETIO_VERSION_[A-Z]+ (\d+)", (ROOT / "netio/base/version.hpp").read_text())
setup(
    version=".".join(numbers),
    packages=["netio_daq"],
    package_dir={"": "python"},
    package_data={"netio_daq": ["*.pyi", "py.typed"]},
    ext_modules=[Extension("netio_daq._core", [])],
    cmdclass={"build_ext": Build},
    options={"build": {"build_base": f"{FOLDER}/setuptools"}, "egg_info": {"egg_base": FOLDER}},
    zip_safe=False,
)
