"""kwire as installed by users: a wheel in a separate environment without the checkout.

build_wheel          what `pip` would get
make_environment     a new virtual environment: the wheel as pip installs it, and links to those distributions that
                     the wheel requires. Undeclared dependencies are missing; nothing is downloaded
spark_home           Spark as PySpark brings it, in a folder whose `work` and `logs` may be written to
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path, **variables: str) -> Path:
    """Build the wheel of this checkout in a folder. variables: of the environment."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    run(command, cwd=ROOT, env={**os.environ, **variables}, timeout=600)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(
    folder: Path, wheel: Path | None, *requirements: str, extras: Collection[str] = (), compiled: bool = True
) -> Path:
    """Create a virtual environment and return its python.

    wheel: the wheel to install, None for none. requirements: other distributions with their dependencies, such as
    `pyspark[connect]`. extras: those of the wheel.
    compiled: whether pip compiles the modules, which takes ten seconds.
    """
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    python = folder / "bin" / "python"
    packages = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    needed = [*requirements]
    if wheel is not None:
        words = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
        words += [] if compiled else ["--no-compile"]
        run([sys.executable, "-m", "pip", "--python", str(python), *words])
        (information,) = packages.glob("kwire-*.dist-info")
        needed += wanted(Distribution.at(information), extras)
    link(closure(needed).values(), packages)
    return python


def wanted(of: Distribution, extras: Collection[str]) -> Iterator[str]:
    """Return the requirements of an installed distribution, with those of its extras."""
    for line in of.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield line


def closure(requirements: Collection[str]) -> dict[str, Distribution]:
    """Return the installed distributions that these require, transitively. Fails on a version conflict."""
    found: dict[str, Distribution] = {}
    todo, seen = [Requirement(line) for line in requirements], set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in seen:
            continue
        seen.add((name, frozenset(requirement.extras)))
        if name == "kwire":  # an extra of others
            todo += [Requirement(line) for line in wanted(distribution(name), requirement.extras)]
            continue
        found[name] = distribution(name)
        assert requirement.specifier.contains(found[name].version, prereleases=True), requirement
        todo += [Requirement(line) for line in wanted(found[name], requirement.extras)]
    return found


def link(distributions: Collection[Distribution], packages: Path) -> None:
    """Link the files of distributions; a folder of a single distribution is one link."""
    owners: dict[PurePosixPath, set[str]] = {}
    places: dict[PurePosixPath, Path] = {}
    for each in distributions:
        for file in each.files or ():
            path = PurePosixPath(file)
            if path.parts[0] == ".." or path.suffix == ".pyc":
                continue
            for part in (path, *path.parents):
                owners.setdefault(part, set()).add(each.name)
                places[part] = Path(str(each.locate_file("")), *part.parts)
    top = PurePosixPath()
    for part in sorted(owners, key=lambda path: len(path.parts)):
        if part == top:
            continue
        shared = len(owners[part]) > 1
        if shared and places[part].is_dir():
            (packages / part).mkdir()
        elif part.parent == top or len(owners[part.parent]) > 1:
            (packages / part).symlink_to(places[part])


def spark_home(folder: Path) -> Path:
    """Create a SPARK_HOME with the scripts and jars of the installed PySpark."""
    import pyspark

    folder.mkdir()
    for name in ("bin", "jars", "python", "sbin"):
        (folder / name).symlink_to(Path(pyspark.__file__).parent / name)
    return folder


def environment(python: Path, home: Path, **more: str) -> dict[str, str]:
    """Return environment variables without a reference to the checkout, and with a separate home directory."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "TZ") if name in os.environ}
    home.mkdir(exist_ok=True)
    return kept | {
        "PATH": os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(home),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **more,
    }


def as_others() -> list[str]:
    """Return a command prefix under which file modes apply, since root ignores them."""
    if os.getuid() != 0:
        return []
    found = shutil.which("setpriv")
    return [found, "--bounding-set=-dac_override"] if found else []


def make_read_only(folder: Path) -> None:
    """Make a folder read-only, like the layers of an image."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(path.stat().st_mode & ~0o222)


def make_writable(folder: Path) -> None:
    """Make a folder writable again, so that it can be removed."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def run(words: list[str], *, timeout: float = 120, **more: object) -> str:
    """Run a command and return its output; fail with its errors."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return str(done.stdout)


def results(printed: str) -> Mapping[str, object]:
    """Return the JSON object in the last line of a program's output."""
    return json.loads(printed.splitlines()[-1])  # type: ignore[no-any-return]
