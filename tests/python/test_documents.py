# SPDX-License-Identifier: Apache-2.0
"""Docstrings, type hints, docs/python.md and the examples."""

import doctest
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import threading

import netio_daq as netio
import numpy
import pytest
from support import LONG, ROOT

PACKAGE = pathlib.Path(netio.__file__).parent


def documented():
    """(name, docstring) of the package, of each public name, and of each public method."""
    yield "netio_daq", netio.__doc__
    for name in netio.__all__:
        value = getattr(netio, name)
        if not callable(value):
            continue
        yield name, value.__doc__
        if inspect.isclass(value) and not issubclass(value, Exception):
            for part in dir(value):
                if not part.startswith("_") and getattr(value, part).__doc__:
                    yield f"{name}.{part}", getattr(value, part).__doc__


@pytest.mark.parametrize("name, text", documented(), ids=lambda value: value if len(value) < 60 else "")
def test_examples_of_docstrings_work(name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    out = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=out.append)
    assert results.failed == 0, "".join(out)


def test_each_public_name_has_an_example():
    texts = dict(documented())
    missing = [name for name, text in texts.items() if "." not in name and ">>>" not in (text or "")]
    assert missing == []


def test_each_function_has_an_example_and_each_property_a_text():
    missing = []
    for name in netio.__all__:
        value = getattr(netio, name)
        if not inspect.isclass(value) or issubclass(value, Exception):
            continue
        for part in dir(value):
            its = inspect.getattr_static(value, part)
            is_function = callable(getattr(value, part)) or isinstance(its, staticmethod)
            if part.startswith("_") or not (is_function or isinstance(its, property)):
                continue
            text = getattr(value, part).__doc__ or ""
            if text.strip() == "" or (is_function and ">>>" not in text):
                missing.append(f"{name}.{part}")
    assert missing == []


def test_each_block_of_the_document_works_alone(tmp_path, monkeypatch):
    """The Python blocks of docs/python.md, each as a program."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), {})


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs the package mypy")
def test_type_hints(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import netio_daq as netio\n"
        "publisher = netio.Publisher('127.0.0.1:0', slow_policy='drop', publish_timeout=1.5)\n"
        "publisher.publish(1, 'a text', timeout=None)\n"
        "reveal_type(netio.Subscriber(publisher.address).receive(1))\n"
        "for message in netio.Subscriber('127.0.0.1:9'):\n"
        "    reveal_type(message.fid)\n"
        "netio.Publisher('127.0.0.1:0', slow_policy='dorp')\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={tmp_path}"]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    own = subprocess.run([*command, "-p", "netio_daq"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert own.returncode == 0, own.stdout + own.stderr
    used = subprocess.run([*command, program], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert re.sub(r"^.*?program.py:", "", used.stdout, flags=re.M).splitlines() == [
        '4: note: Revealed type is "Union[netio_daq._core.Message, None]"',
        '6: note: Revealed type is "builtins.int"',
        '7: error: Argument "slow_policy" to "Publisher" has incompatible type "Literal[\'dorp\']"; '
        "expected \"Literal['block', 'drop', 'newest', 'disconnect']\"  [arg-type]",
    ], used.stdout + used.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs the package mypy")
def test_the_programs_of_the_document_have_right_types(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(), re.M | re.S)
    for number, block in enumerate(blocks):
        (tmp_path / f"block_{number}.py").write_text(block)
    command = [sys.executable, "-m", "mypy", "--check-untyped-defs", f"--cache-dir={tmp_path}", *tmp_path.glob("block_*.py")]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    checked = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_hints_and_module_have_the_same_names():
    """What _core.pyi declares exists, and what exists is declared."""
    source = (PACKAGE / "_core.pyi").read_text()
    declared = set(re.findall(r"^(?:class|def) (\w+)", source, re.M)) - {"_With", "_BytesLike"}
    existing = {name for name in dir(netio._core) if not name.startswith("__")}
    assert declared == existing
    for name in declared:
        value = getattr(netio._core, name)
        if inspect.isclass(value):
            body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", source, re.M | re.S)[0]
            own = set(re.findall(r"^    def (\w+)", body, re.M))
            absent = {part for part in own if not hasattr(value, part)}
            hidden = {part for part in vars(value) if not part.startswith("__")} - own - {"closed", "size", "data"}
            assert (absent, hidden) == (set(), set()), name


def publish(publisher, end):
    publisher.wait_for_subscribers(1, LONG)
    while not end.wait(0.01):
        publisher.publish_batch(numpy.arange(100) % 4, numpy.full(100, 2.5))
    publisher.close()


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the package python3-matplotlib")
def test_the_rate_plot():
    publisher, end = netio.Publisher("127.0.0.1:0"), threading.Event()
    thread = threading.Thread(target=publish, args=[publisher, end])
    thread.start()
    command = [sys.executable, ROOT / "python" / "examples" / "rate_plot.py", publisher.address, "0", "3", "2"]
    try:
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        result = subprocess.run(command, capture_output=True, text=True, timeout=LONG, env=environment)
    finally:
        end.set()
        thread.join()
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="needs the package python3-dask")
def test_dask():
    publisher = netio.Publisher("127.0.0.1:0")

    def publish_all():
        publisher.wait_for_subscribers(1, LONG)
        publisher.publish_batch(numpy.arange(1000) % 4, numpy.arange(1000.0))
        publisher.close()

    thread = threading.Thread(target=publish_all)
    thread.start()
    command = [sys.executable, ROOT / "python" / "examples" / "dask_mean.py", publisher.address, "0", "3"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    thread.join()
    assert result.stdout == "1000 values, mean 499.5\n", result.stderr
