"""The kernels on processors that this machine does not have, emulated by qemu, and as plain Python: equal results.

x86-64 runs the Python of the tests. ARM runs Debian's, with wheels for it: below build/arm64, made on the first run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.interop import installed
from tools.kafka import Unavailable, need

from kwire.native.build import build, folder_of, host_target

ROOT = Path(__file__).parents[2]
ARM_ROOT = ROOT / "build" / "arm64"
QEMU = "qemu-user"
TIMEOUT_S = 840
"""Emulated code is 10 to 30 times slower."""
RESULTS = ["-m", "tests.interop.processor_results"]

pytestmark = pytest.mark.slow
on_x86 = pytest.mark.skipif(host_target() != "linux-x86_64", reason="emulates this machine's Python on other x86-64")


@pytest.fixture(scope="module")
def expected() -> Mapping[str, object]:
    """Return the results of this processor."""
    return run_results([sys.executable])


def run_results(python: list[str], **environment: str) -> Mapping[str, Any]:
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return installed.results(installed.run([*python, *RESULTS], cwd=ROOT, env=variables, timeout=TIMEOUT_S))


def test_plain_python_gives_equal_results(expected: Mapping[str, Any]) -> None:
    found = run_results([sys.executable], KWIRE_KERNEL="0")
    assert (found["level"], found["crc32c"]) == (None, False)
    assert found["results"] == expected["results"]


def x86(model: str) -> list[str]:
    return [need("qemu-x86_64", QEMU), "-cpu", model, sys.executable]


@on_x86
@pytest.mark.parametrize("model", ["Nehalem", "Haswell"])
def test_x86_processors_give_equal_results(model: str, expected: Mapping[str, Any]) -> None:
    # OpenBLAS uses AVX on an emulated Nehalem unless it is named
    found = run_results(x86(model), OPENBLAS_CORETYPE=model)
    assert (found["level"], found["crc32c"]) == ("x86-64", True)
    assert found["results"] == expected["results"]


@on_x86
def test_an_x86_processor_without_the_crc_instruction_runs_compiled_code() -> None:
    program = """
import sys
from kwire import native
from kwire.cli.__main__ import main
from kwire.messages import ApiVersionsRequest as Request
request = Request(client_software_name="kwire")
print(native.HAS_CRC32C)
print(Request.decode(request.encode(version=3), version=3) == request)
print("numpy" in sys.modules)  # its own baseline is x86-64-v2
sys.argv = ["kwire", "--version"]
main()
"""
    printed = installed.run([*x86("core2duo"), "-c", program], cwd=ROOT, timeout=TIMEOUT_S).splitlines()
    assert printed[:3] == ["False", "True", "False"]
    assert printed[3].endswith("(kernels: x86-64)")


DEBIAN_PACKAGES = [
    *("libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1", "liblzma5", "libpython3.11-minimal"),
    *("libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6", "libuuid1", "python3.11-minimal", "zlib1g"),
]
WHEELS = ("cramjam", "fsspec", "google-crc32c", "isal", "msgspec", "numpy", "pyarrow", "rich", "typer")


def fetch(words: list[str], **options: Any) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, **options)
    if done.returncode != 0:
        raise Unavailable(f"{words[0]} could not fetch Python 3.11 for ARM: {done.stderr[-300:]}")


@pytest.fixture(scope="module")
def run_on_arm(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Mapping[str, Any]]:
    """Return a function that runs the program in a Python for aarch64, with these options of qemu."""
    qemu = need("qemu-aarch64", QEMU)
    if not ARM_ROOT.exists():
        staging = tmp_path_factory.mktemp("arm64")
        fetch_debian(staging / "root", staging / "apt")
        fetch_wheels(staging / "site")
        shutil.rmtree(staging / "apt")
        shutil.copytree(staging, ARM_ROOT, symlinks=True)
    (module,) = build({"linux-aarch64": folder_of("linux-aarch64")})
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(module, source / "kwire" / "native")
    root = ARM_ROOT / "root"
    python = ["-L", str(root), str(root / "usr" / "bin" / "python3.11")]
    return lambda *options: run_results([qemu, *options, *python], PYTHONPATH=f"{source}:{ARM_ROOT / 'site'}")


def fetch_debian(root: Path, apt: Path) -> None:
    """Unpack Debian's Python for aarch64, with lists of packages apart from this system's."""
    need("apt-get", "apt")
    (apt / "lists" / "partial").mkdir(parents=True)
    (apt / "cache" / "archives" / "partial").mkdir(parents=True)
    (apt / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
    }
    command = ["apt-get", "-qq", *[f"-o{name}={value}" for name, value in options.items()]]
    fetch([*command, "update"])
    fetch([*command, "download", *DEBIAN_PACKAGES], cwd=apt)
    for package in apt.glob("*.deb"):
        installed.run(["dpkg-deb", "-x", str(package), str(root)])


def fetch_wheels(site: Path) -> None:
    """Install the versions of this environment that have wheels for aarch64."""
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    words = ["--quiet", "--target", str(site), "--only-binary=:all:", "--python-version=3.11", *platforms]
    pinned = [f"{name}=={version(name)}" for name in WHEELS]
    fetch([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *words, *pinned])


@pytest.mark.parametrize("model", ["cortex-a53", "max"])
def test_arm_processors_give_equal_results(
    model: str, run_on_arm: Callable[..., Mapping[str, Any]], expected: Mapping[str, Any]
) -> None:
    found = run_on_arm("-cpu", model)
    assert (found["level"], found["crc32c"]) == ("armv8-a", True)
    assert found["results"] == expected["results"]


def test_an_arm_processor_without_crc_instructions_gives_equal_results(
    run_on_arm: Callable[..., Mapping[str, Any]], expected: Mapping[str, Any], tmp_path: Path
) -> None:
    """qemu has no such model, so the C library reports none of the optional instructions."""
    source, library = tmp_path / "no_features.c", tmp_path / "no_features.so"
    source.write_text("unsigned long getauxval(unsigned long kind) { return 0; }\n")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu", "-shared", "-o"]
    variables = {name: str(tmp_path / "zig") for name in ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR")}
    installed.run([*command, str(library), str(source)], env={**os.environ, **variables}, timeout=TIMEOUT_S)
    found = run_on_arm("-E", f"LD_PRELOAD={library}")
    assert (found["level"], found["crc32c"]) == ("armv8-a", False)
    assert found["results"] == expected["results"]
