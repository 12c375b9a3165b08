"""The conda recipe and the container image: they ask for what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OTHER_NAMES = {"isal": "python-isal"}
"""Libraries that conda-forge names otherwise."""


def listed(name: str) -> list[str]:
    """Return the requirements of a list of the recipe, written as in pyproject.toml."""
    text = (PACKAGING / "conda" / "recipe.yaml").read_text("utf-8")
    found = re.search(rf"^  {name}:.*\n((?:    - .*\n)+)", text, re.MULTILINE)
    assert found
    return sorted(line.strip(" -").replace(" ", "") for line in found[1].splitlines())


def as_conda(requirements: list[str]) -> list[str]:
    parts = [re.fullmatch(r"([\w-]+)(.*)", each) for each in requirements]
    return sorted(OTHER_NAMES.get(part[1], part[1]) + part[2] for part in parts if part)


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_the_project() -> None:
    text = (PACKAGING / "conda" / "recipe.yaml").read_text("utf-8")
    assert f'version: "{PROJECT["version"]}"' in text
    assert listed("run") == sorted([*as_conda(PROJECT["dependencies"]), f"python{PROJECT['requires-python']}"])
    extras = PROJECT["optional-dependencies"]
    assert listed("run_constraints") == as_conda([*extras["cli"], *extras["arrow"]])
    assert f"kwire = {PROJECT['scripts']['kwire']}" in text
    assert PROJECT["description"] in text


def test_the_image_runs_without_root_and_gets_nothing_but_wheels() -> None:
    text = (PACKAGING / "Containerfile").read_text("utf-8")
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)
    assert len(stages) == 3
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", stages[-1], re.MULTILINE)  # a number: runAsNonRoot reads it
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert (ROOT / ".containerignore").read_text("utf-8").splitlines() == ["*", "!dist/*.whl"]
