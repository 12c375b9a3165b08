"""Check and build what a release publishes: `./dev release VERSION [--dry-run]`. RELEASING.md says what it does.

dist/release gets the packages, an SBOM, the section of the changelog, and digests. Nothing is uploaded: the next step
is printed. --dry-run makes the checks that build nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from tools import readme

ROOT = Path(__file__).parents[1]
NO_ADDRESS = (
    "pyproject.toml: repository is empty, so this cannot be published yet: links, reports of vulnerabilities and"
    " attestations lead there; set it, commit, and run this again"
)


def main() -> None:
    """Check, build, and say what is next."""
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__)
    parser.add_argument("version", type=lambda text: text.removeprefix("v"), help="or its tag: 0.2.0 or v0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="only the checks that build nothing")
    given = parser.parse_args()
    published = repository(ROOT)
    stop(
        [
            *tree_problems(ROOT, given.version),
            *version_problems(ROOT, given.version),
            *address_problems(published, os.environ),
        ]
    )
    if given.dry_run:
        say(f"{given.version} can be built: ./dev release {given.version}" if published else NO_ADDRESS)
        return
    commit = git(ROOT, "rev-parse", "HEAD")
    folder = build(given.version)
    stop(moved_problems(ROOT, commit))
    say(f"{folder.relative_to(ROOT)} is complete and checked")
    if not published:
        say(NO_ADDRESS)
        return
    tag = f"v{given.version}"
    say(f"next: git tag -s {tag} -m {tag} && git push origin {tag}")
    say(f"{published}/actions then builds the same wheels, attests and uploads them (.github/workflows/release.yml)")


def say(text: str) -> None:
    """Print a line of progress, in order with the output of commands."""
    print(f"release: {text}", flush=True)


def stop(problems: list[str]) -> None:
    """End with an error if there are problems."""
    if problems:
        sys.exit("".join(f"release: {each}\n" for each in problems).rstrip())


def settings(root: Path) -> dict[str, object]:
    """Return what pyproject.toml says."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def repository(root: Path) -> str:
    """Return the address of the published repository, empty if there is none."""
    found: str = settings(root)["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]  # type: ignore[index]
    return found.rstrip("/")


def address_problems(published: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Check in a workflow, which uploads what is built, that the packages name the forge where it runs."""
    if "GITHUB_REPOSITORY" in environ:
        forge = f"{environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{environ['GITHUB_REPOSITORY']}"
        if published != forge:
            yield f"pyproject.toml: repository has to be {forge}, where this workflow runs, found {published!r}"


def tree_problems(root: Path, version: str) -> Iterator[str]:
    """Check that what is released is what is committed, under a new tag."""
    if changed := git(root, "status", "--porcelain"):
        yield f"{root}: changes that are not committed; commit or remove them:\n{changed}"
    tagged = git(root, "tag", "--list", "--format=%(*objectname) %(objectname)", f"v{version}").split()
    if tagged and git(root, "rev-parse", "HEAD") not in tagged:
        yield f"tag v{version} exists already, at another commit; a version is released once"


def moved_problems(root: Path, commit: str) -> list[str]:
    """Check after the build that the sources are those that were checked at its beginning: it takes a while."""
    if git(root, "rev-parse", "HEAD") == commit and not git(root, "status", "--porcelain"):
        return []
    return [f"{root}: not {commit} as at the beginning any more, so what was built is of no commit; run this again"]


def git(root: Path, *words: str) -> str:
    """Return the output of a git command, without white space at its end."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def version_problems(root: Path, version: str) -> Iterator[str]:
    """Check that every place has this version, and that the changelog says what it is."""
    source = (root / "src" / "kwire" / "__init__.py").read_text("utf-8")
    stated = {
        "pyproject.toml, version": settings(root)["project"]["version"],  # type: ignore[index]
        "src/kwire/__init__.py, __version__": "".join(re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE)),
    }
    for place, found in stated.items():
        if found != version:
            yield f"{place}: expected {version}, found {found}"
    sections = changelog(root)
    newest = next(iter(sections), "no section")
    if newest != version:
        yield f"CHANGELOG.md: the newest section has to be {version}, found {newest}"
    elif not sections[version]:
        yield f"CHANGELOG.md: section {version} is empty"


def changelog(root: Path) -> dict[str, str]:
    """Return the text of each section of the changelog, newest first."""
    parts = re.split(r"^## (.*)\n", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def build(version: str) -> Path:
    """Make everything; return its folder."""
    for words in (["check"], ["docs", "--build"], ["wheel"]):
        say("./dev " + " ".join(words))
        command([str(ROOT / "dev"), *words])
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    stop([f"{path.name}: expected version {version}" for path in wheels if str(version_of(path)) != version])
    folder = ROOT / "dist" / "release"
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for path in wheels:
        shutil.copy2(path, packages)
    try_source(packages)
    supported = {str(tag) for tag in sys_tags()}
    runnable = [path for path in wheels if supported & {str(tag) for tag in parse_wheel_filename(path.name)[3]}]
    stop([] if runnable else ["none of the wheels runs on this machine; release on another one"])
    for path in runnable:
        say(f"{path.name}: a fresh install, and the examples of the README")
        try_wheel(path, folder / f"kwire-{version}.cdx.json")
    for path in wheels:
        if path not in runnable:
            say(f"{path.name}: checked, but it does not run on this machine")
    (folder / "NOTES.md").write_text(changelog(ROOT)[version] + "\n", "utf-8")
    write_digests(folder)
    return folder


def try_source(packages: Path) -> None:
    """Build the source distribution, and a wheel of it in an empty environment, which has the bytes of the other."""
    command([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(packages)])
    (source,) = packages.glob("*.tar.gz")
    say(f"{source.name}: {source.stat().st_size / 1e6:.1f} MB; a wheel of it, built in an empty environment")
    with tempfile.TemporaryDirectory() as folder:
        words = ["wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(source)]
        command([sys.executable, "-m", "pip", *words])
        (built,) = Path(folder).glob("*.whl")
        same = built.read_bytes() == (packages / built.name).read_bytes()
    stop([] if same else [f"{built.name}: the wheel of the source distribution is not the wheel of the checkout"])


def version_of(wheel: Path) -> object:
    """Return the version in the name of a wheel."""
    return parse_wheel_filename(wheel.name)[1]


def try_wheel(wheel: Path, sbom: Path) -> None:
    """Install a wheel with what it asks for, list that in an SBOM, and run the README's examples."""
    environment = ROOT / "build" / "release" / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    command([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    python = environment / "bin" / "python"
    install(python, [str(wheel)])
    words = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--output-reproducible"]
    command([str(Path(sys.executable).parent / "cyclonedx-py"), "environment", *words, "-o", str(sbom), str(python)])
    install(python, of_the_wheel(readme.requirements(), wheel))
    with tempfile.TemporaryDirectory() as folder:  # elsewhere, or pytest takes this project's settings
        for example, seconds in readme.run_all(python, Path(folder)):
            say(f"{seconds:.1f} s  {example.heading}")


def of_the_wheel(requirements: list[str], wheel: Path) -> list[str]:
    """Return requirements with a wheel in place of kwire from an index, with the same extras."""
    found = []
    for each in requirements:
        requirement = Requirement(each)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        found.append(f"{wheel}{extras}" if requirement.name == "kwire" else each)
    return found


def install(python: Path, requirements: list[str]) -> None:
    """Install from the index into an environment that has no pip."""
    if shutil.which("uv"):
        command(["uv", "pip", "install", "--quiet", "--python", str(python), *requirements])
    else:
        command([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *requirements])


def command(words: list[str]) -> None:
    """Run a command that prints by itself; a failure ends the release."""
    if code := subprocess.run(words, cwd=ROOT, check=False).returncode:
        stop([f"exit code {code} of {' '.join(words)}"])


def write_digests(folder: Path) -> None:
    """Write SHA256SUMS, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n" for path in files
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    try:
        main()
    except readme.ExampleFailed as failed:
        stop([str(failed)])
