"""Upper limits of requirements: why each is there, and whether the newest release on the index still needs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
STILL_NEEDED = {
    "typer": """
sys.modules["pydantic"] = None
import typer
app = typer.Typer()
@app.command()
def main(number: int = 1) -> None: ...
try:
    app(["--number", "2"], standalone_mode=False)
except ImportError as error:
    sys.exit("pydantic" not in str(error))
sys.exit("a command runs without pydantic")
""",
}
"""Programs that end with 0 where the reason of a limit still stands in a release beyond it. A limit without a program
stands for tested releases: the first release beyond it has to be tested."""


def requirements() -> Iterator[Requirement]:
    """Return what kwire and its extras require of others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for words in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from (each for each in map(Requirement, words) if each.name != "kwire")


def limited() -> dict[str, Requirement]:
    """Return the requirements with an upper limit."""
    return {
        each.name: each
        for each in requirements()
        if any(one.operator in ("<", "<=", "~=", "==") for one in each.specifier)
    }


def test_each_limit_has_its_reason_beside_it() -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.scripts]")[0].splitlines()
    for name, requirement in limited().items():
        (line,) = [each for each in lines if re.search(rf'"{re.escape(name)}[\[<>=~]', each) and "<" in each]
        assert len(line.partition("#")[2].split()) > 3, f"{requirement}: pyproject.toml does not say why"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(limited()))
def test_the_newest_release_is_allowed_or_still_not_fit(name: str, tmp_path: Path) -> None:
    requirement = limited()[name]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), name]
    subprocess.run(pip, check=True, timeout=300)
    (metadata,) = tmp_path.glob("*.dist-info")
    newest = Version(metadata.name.removesuffix(".dist-info").rpartition("-")[2])
    if newest in requirement.specifier:
        return  # the limit keeps nothing away
    assert name in STILL_NEEDED, f"{requirement}: {newest} is out; run the tests of its extra with it, and raise it"
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{STILL_NEEDED[name]}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{requirement}: its reason is gone in {newest}; remove it\n{done.stderr}"
