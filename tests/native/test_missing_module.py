"""Processes of an installation without the extension module: one warning says why, and how to get it."""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.waiting import HANG_S

import kwire
from kwire import native

USE = "import kwire.plan, kwire.records, kwire.schemas.functions, kwire.log.writing.append_preparation; "
USE += "from kwire import native; print(native.LEVEL)"
COMMAND = "pip install 'kwire[compiler]' && python -m kwire.native.build"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without its module."""
    root = tmp_path_factory.mktemp("plain")
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(kwire.__file__).parent, root / "kwire", ignore=ignored)
    return root


def run(folder: Path, *arguments: str, kernel: str = "1") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "KWIRE_KERNEL": kernel}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)


def test_the_first_import_warns_once(folder: Path) -> None:
    done = run(folder, "-c", USE)
    assert done.stdout == "None\n"
    (line,) = (each for each in done.stderr.splitlines() if "Warning" in each)
    assert "kwire/native/__init__.py" in line
    assert "RuntimeWarning: no compiled code, so plain Python does its work 10 to 100 times slower: none was" in line
    assert line.endswith(f"to compile it: {COMMAND}; to accept it: KWIRE_KERNEL=0")
    assert len(done.stderr.splitlines()) == 2  # Python adds the line of code


def test_a_module_that_cannot_be_loaded_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "kwire", tmp_path / "kwire")
    broken = tmp_path / "kwire/native/_kernels.abi3.so"
    broken.write_bytes(b"for another machine")
    done = run(tmp_path, "-c", USE)
    assert done.stdout == "None\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert str(broken) in done.stderr
    assert COMMAND in done.stderr


def test_free_threaded_python_is_named_as_the_reason(folder: Path) -> None:
    """It has no suffix for modules of the stable ABI, so it finds none; compiling one would not help."""
    free_threaded = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1; "
    done = run(folder, "-c", free_threaded + USE)
    assert done.stdout == "None\n"
    (line,) = (each for each in done.stderr.splitlines() if "Warning" in each)
    assert "times slower: free-threaded Python does not load it; use a Python with the GIL; to accept it: " in line


def test_a_module_of_another_version_is_not_used(tmp_path: Path) -> None:
    """A user's own module, which an upgrade leaves where it is."""
    shutil.copytree(Path(kwire.__file__).parent, tmp_path / "kwire", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "kwire/__init__.py"
    source.write_text(source.read_text().replace(f'"{kwire.__version__}"', '"9.8.7"'))
    done = run(tmp_path, "-c", USE)
    assert done.stdout == "None\n"
    assert f"_kernels.abi3.so was compiled for {kwire.__version__} of kwire, not 9.8.7; to compile it: " in done.stderr
    assert COMMAND in done.stderr


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_in_a_checkout_a_module_is_newer_than_its_sources(tmp_path: Path, seconds: int) -> None:
    """Pulled sources, of other arguments: a call would fail somewhere."""
    package = tmp_path / "src/kwire"
    shutil.copytree(Path(kwire.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").touch()
    module, source = package / "native/_kernels.abi3.so", package / "native/records.c"
    changed = int(time.time())
    os.utime(source, (changed, changed))
    os.utime(module, (changed + seconds, changed + seconds))
    done = run(tmp_path / "src", "-c", USE)
    if seconds >= 0:
        assert (done.stdout, done.stderr) == (f"{native.LEVEL}\n", "")
        return
    assert done.stdout == "None\n"
    (line,) = (each for each in done.stderr.splitlines() if "Warning" in each)
    assert f"times slower: {module} was compiled before its source records.c was changed; to compile it: " in line
    done = run(tmp_path / "src", "-m", "kwire.native.build")
    assert (done.returncode, done.stderr) == (0, "")  # equal sources: nothing is compiled
    done = run(tmp_path / "src", "-c", USE)
    assert (done.stdout, done.stderr) == (f"{native.LEVEL}\n", "")


def test_no_warning_if_plain_python_was_asked_for(folder: Path) -> None:
    done = run(folder, "-W", "error", "-c", USE, kernel="0")
    assert (done.stdout, done.stderr) == ("None\n", "")
    done = run(folder, "-W", "error", "-c", USE)
    assert "RuntimeWarning: no compiled code" in done.stderr
    assert done.returncode == 1
    done = run(folder, "-W", "ignore::RuntimeWarning:kwire.native", "-c", USE)
    assert (done.stdout, done.stderr) == ("None\n", "")


DECODE = """
import pyarrow as pa
from kwire.schemas import Registry, decode_arrow
registry = Registry("schemas")
for topic, payload in (("avro", b"\\x54"), ("protobuf", b"\\0\\x08\\x2a"), ("json", b'{"id": 42}')):
    schema_id = registry.latest(f"{topic}-value").id
    print(decode_arrow(pa.array([b"\\0" + schema_id.to_bytes(4, "big") + payload]), registry, topic=topic).to_pylist())
"""


def test_values_of_every_format_are_decoded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protobuf and JSON asked for their kernels, which are not there."""
    (tmp_path / "schemas").mkdir()
    fields = '"fields": [{"name": "id", "type": "int"}]'
    (tmp_path / "schemas/avro-value.1.1.avsc").write_text(f'{{"type": "record", "name": "R", {fields}}}')
    (tmp_path / "schemas/protobuf-value.1.2.proto").write_text('syntax = "proto3"; message R { int32 id = 1; }')
    text = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    (tmp_path / "schemas/json-value.1.3.schema.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = run(folder, "-c", DECODE, kernel="0")
    assert (done.stdout, done.stderr) == ("[{'id': 42}]\n" * 3, "")


def test_packages_without_kernels_do_not_warn(folder: Path) -> None:
    done = run(folder, "-W", "error", "-c", "import kwire, kwire.wire.varint, kwire.schema; print(kwire.__version__)")
    assert (done.stdout, done.stderr) == (f"{kwire.__version__}\n", "")


def test_commands_warn_in_one_line(folder: Path) -> None:
    done = run(folder, "-m", "kwire.cli", "--version")
    assert done.stdout == f"kwire {kwire.__version__} (kernels: none, plain Python)\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("kwire: no compiled code, so plain Python does its work")
    assert COMMAND in line
    done = run(folder, "-m", "kwire.cli", "--version", kernel="0")
    assert done.stderr == ""


@pytest.mark.slow
def test_the_command_helps_and_does_not_warn(folder: Path, tmp_path: Path) -> None:
    if find_spec("ziglang") is None:
        pytest.skip("needs ziglang")
    shutil.copytree(folder / "kwire", tmp_path / "kwire")
    done = run(tmp_path, "-W", "error", "-m", "kwire.native.build")
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    done = run(tmp_path, "-W", "error", "-c", USE)
    assert done.stdout not in ("", "None\n"), done.stderr
