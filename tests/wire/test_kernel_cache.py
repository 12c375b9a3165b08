"""Compiled kernels in processes that cannot write to the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.kafka import Unavailable

import kwire

KERNEL = """
from numba import njit
@njit(cache=True)
def twice(n):
    return n + n
"""
# Imports the package's kernel as a worker does; prints the cache folder and how often numba found or missed a kernel.
WORKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from kwire.wire.kernel_cache import prepare_kernel_cache
prepare_kernel_cache(Path(sys.argv[1]) / "package")
assert "numba" not in sys.modules
from package.kernels.twice import twice
twice(21)
print(os.environ.get("NUMBA_CACHE_DIR", "-"))
print(sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    kernels = tmp_path / "src" / "package" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "twice.py").write_text(KERNEL)
    return tmp_path / "src"


def work(package: Path, home: Path, **environment: str) -> tuple[str, str]:
    """(NUMBA_CACHE_DIR or "-", "hits misses") of one worker process."""
    home.mkdir(exist_ok=True)
    # Modes do not stop root, so root gives up the right to pass over them.
    alone = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []
    if alone and not shutil.which("setpriv"):
        raise Unavailable("setpriv is not installed; on Debian or Ubuntu: apt-get install util-linux")
    shown = subprocess.run(
        [*alone, sys.executable, "-c", WORKER, str(package)],
        env={"HOME": str(home), "TMPDIR": str(home), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    return shown[0], shown[1]


def make_read_only(package: Path) -> None:
    kernels = package / "package" / "kernels"
    for folder in (kernels / "__pycache__", kernels):
        if folder.exists():
            folder.chmod(0o555)


def test_a_writable_package_keeps_its_kernels_beside_the_sources(package: Path, tmp_path: Path) -> None:
    assert work(package, tmp_path / "home") == ("-", "0 1")
    assert work(package, tmp_path / "home") == ("-", "1 0")


def test_the_users_own_setting_wins(package: Path, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    assert work(package, tmp_path / "home", NUMBA_CACHE_DIR=own) == (own, "0 1")


def test_an_unwritable_package_is_compiled_once_into_a_private_folder(package: Path, tmp_path: Path) -> None:
    make_read_only(package)
    cache = str(tmp_path / "home" / ".cache" / "kwire" / "kernels")
    assert work(package, tmp_path / "home") == (cache, "0 1")
    assert work(package, tmp_path / "home") == (cache, "1 0")


def test_kernels_shipped_with_a_read_only_package_are_used(package: Path, tmp_path: Path) -> None:
    assert work(package, tmp_path / "builder") == ("-", "0 1")
    make_read_only(package)
    assert work(package, tmp_path / "home") == (str(tmp_path / "home" / ".cache" / "kwire" / "kernels"), "1 0")


def test_a_home_that_cannot_be_written_gives_way_to_the_temporary_directory(package: Path, tmp_path: Path) -> None:
    assert work(package, tmp_path / "builder") == ("-", "0 1")
    make_read_only(package)
    (tmp_path / "home").mkdir(mode=0o555)
    (tmp_path / "tmp").mkdir()
    folder = str(tmp_path / "tmp" / f"kwire-kernels-{os.getuid()}")
    assert work(package, tmp_path / "home", TMPDIR=str(tmp_path / "tmp")) == (folder, "1 0")


def test_a_folder_that_others_may_write_to_is_not_trusted(package: Path, tmp_path: Path) -> None:
    make_read_only(package)
    planted = tmp_path / "home" / ".cache" / "kwire" / "kernels"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    assert work(package, tmp_path / "home")[0] == str(tmp_path / "home" / f"kwire-kernels-{os.getuid()}")


def test_commands_and_readers_work_from_an_installation_that_is_not_writable(
    tmp_path: Path, kafka_logs: dict[str, Path]
) -> None:
    source = Path(kwire.__file__).parent
    installed = tmp_path / "site" / "kwire"
    shutil.copytree(source, installed)
    folders = [path for path in installed.rglob("*") if path.is_dir()]
    (tmp_path / "home").mkdir(mode=0o555)
    for folder in folders:
        folder.chmod(0o555)
    alone = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []
    if alone and not shutil.which("setpriv"):
        pytest.skip("as root this needs setpriv (util-linux)")
    (tmp_path / "tmp").mkdir()
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PATH": "/usr/bin:/bin"}
    environment["PYTHONPATH"] = str(tmp_path / "site")
    log = kafka_logs["modern"] / "data" / "compacted-0"
    try:
        shown = subprocess.run(
            [*alone, sys.executable, "-m", "kwire.cli", "log", "verify", str(log)],
            env=environment,
            capture_output=True,
            text=True,
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert "Traceback" not in shown.stderr, shown.stderr
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert list((tmp_path / "tmp").glob(f"kwire-kernels-{os.getuid()}/*/*.nbi")), "kernels were copied there"
