"""What `./dev release` refuses, and what it writes beside the wheels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools import readme, release

import kwire

VERSION = kwire.__version__


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that name a version."""
    for name in ("pyproject.toml", "CHANGELOG.md", "src/kwire/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / name, tmp_path / name)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run(["git", *IDENTITY, *words], cwd=tmp_path, check=True)
    return tmp_path


IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")


def problems(root: Path, version: str = VERSION) -> list[str]:
    return [*release.tree_problems(root, version), *release.version_problems(root, version)]


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_the_version_of_this_checkout_is_the_same_everywhere() -> None:
    assert list(release.version_problems(release.ROOT, VERSION)) == []


def test_a_committed_tree_with_one_version_has_no_problem(checkout: Path) -> None:
    assert problems(checkout) == []


def test_changes_that_are_not_committed_are_named(checkout: Path) -> None:
    (checkout / "new.py").touch()
    (found,) = problems(checkout)
    assert "not committed" in found
    assert found.endswith("?? new.py")


def test_sources_that_change_while_they_are_built_are_not_released(checkout: Path) -> None:
    commit = release.git(checkout, "rev-parse", "HEAD")
    assert release.moved_problems(checkout, commit) == []
    (checkout / "new.py").touch()
    (found,) = release.moved_problems(checkout, commit)
    assert f"not {commit} as at the beginning any more" in found
    (checkout / "new.py").unlink()
    subprocess.run(["git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "More"], cwd=checkout, check=True)
    assert len(release.moved_problems(checkout, commit)) == 1


@pytest.mark.parametrize("words", [[], ["-a", "-m", "annotated"]])
def test_a_version_is_released_once(checkout: Path, words: list[str]) -> None:
    subprocess.run(["git", *IDENTITY, "tag", *words, f"v{VERSION}"], cwd=checkout, check=True)
    assert problems(checkout) == []  # the workflow runs at the tag
    subprocess.run(["git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "More"], cwd=checkout, check=True)
    assert problems(checkout) == [f"tag v{VERSION} exists already, at another commit; a version is released once"]


def test_every_place_with_another_version_is_named(checkout: Path) -> None:
    assert problems(checkout, "9.9.9") == [
        f"pyproject.toml, version: expected 9.9.9, found {VERSION}",
        f"src/kwire/__init__.py, __version__: expected 9.9.9, found {VERSION}",
        f"CHANGELOG.md: the newest section has to be 9.9.9, found {VERSION}",
    ]


def test_changes_that_no_version_has_are_not_released(checkout: Path) -> None:
    replace(checkout / "CHANGELOG.md", f"## {VERSION}\n", f"## Unreleased\n- One.\n\n## {VERSION}\n")
    assert list(release.version_problems(checkout, VERSION)) == [
        f"CHANGELOG.md: the newest section has to be {VERSION}, found Unreleased"
    ]


def test_a_version_needs_a_text_in_the_changelog(checkout: Path) -> None:
    replace(checkout / "CHANGELOG.md", f"## {VERSION}\n", f"## {VERSION}\n\n## 0.1.9\n")
    assert list(release.version_problems(checkout, VERSION)) == [f"CHANGELOG.md: section {VERSION} is empty"]


def dry_run(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setattr(release, "ROOT", root)
    monkeypatch.setattr("sys.argv", ["release", VERSION, "--dry-run"])
    release.main()


def test_without_an_address_the_next_step_is_to_set_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    dry_run(monkeypatch, checkout)
    assert "repository is empty, so this cannot be published yet" in capsys.readouterr().out
    replace(checkout / "pyproject.toml", 'repository = ""', 'repository = "https://example.org/kwire/"')
    subprocess.run(["git", *IDENTITY, "commit", "-qam", "Name the address"], cwd=checkout, check=True)
    dry_run(monkeypatch, checkout)
    assert f"{VERSION} can be built" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["", "https://github.com/someone/fork", "https://github.com/kwire/kwire/"])
def test_a_workflow_uploads_only_packages_with_the_address_where_it_runs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    replace(checkout / "pyproject.toml", 'repository = ""', f'repository = "{address}"')
    subprocess.run(["git", *IDENTITY, "commit", "-q", "--allow-empty", "-am", "Name it"], cwd=checkout, check=True)
    monkeypatch.setenv("GITHUB_REPOSITORY", "kwire/kwire")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    if address.endswith("/kwire/kwire/"):
        dry_run(monkeypatch, checkout)
        return
    with pytest.raises(SystemExit, match=r"repository has to be https://github\.com/kwire/kwire, where this workflow"):
        dry_run(monkeypatch, checkout)


def test_digests_are_what_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "a.whl").write_bytes(b"one")
    (tmp_path / "NOTES.md").write_bytes(b"two")
    release.write_digests(tmp_path)
    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True)
    assert checked.stdout.splitlines() == ["NOTES.md: OK", "packages/a.whl: OK"]
    (tmp_path / "packages" / "a.whl").write_bytes(b"One")
    assert subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True).returncode == 1


def test_the_readme_is_tried_with_the_wheel_and_its_extras() -> None:
    asked = readme.requirements()
    assert any(each.startswith("kwire") for each in asked)
    found = release.of_the_wheel(["kwire[spark,cli]", "kwire", "pytest"], Path("dist/kwire-1.whl"))
    assert found == ["dist/kwire-1.whl[cli,spark]", "dist/kwire-1.whl", "pytest"]
