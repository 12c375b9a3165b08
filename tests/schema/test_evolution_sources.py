"""Files, directories, jars and git revisions as sources of definitions, and how their messages are matched."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.schema.writing import common, field, message, request, tagged

from kwire.errors import OptionError, SchemaError
from kwire.schema.evolution import Located, compare_sources, read_history, read_source

A, B = field(name="A"), field(name="B")
Write = Callable[..., Path]


RELEASES = Path(__file__).parents[2] / "definitions"


@pytest.mark.requirement("S482-21", "S482-22", "S482-97")
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_every_request_and_response_of_kafka_has_a_flexible_version(release: str) -> None:
    """Except for two APIs: SaslHandshake and OffsetDelete."""
    rigid = {
        name
        for name, definition in read_source(str(RELEASES / f"kafka-{release}")).definitions.items()
        if definition.message.kind in ("request", "response") and definition.message.valid
        if definition.message.valid.highest not in definition.message.flexible
    }
    apis = ("SaslHandshake", "OffsetDelete")
    assert rigid == {f"{api}{kind}" for api in apis for kind in ("Request", "Response")}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Function that writes definitions: write("old", Order=text) -> a directory with Order.json."""

    def written(directory: str, **texts: str) -> Path:
        folder = tmp_path / directory
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(text)
        return folder

    return written


class Repository:
    """A git repository in a directory, with a commit for each state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        # Nobody's own settings: a signing key or a template there would decide about this test.
        nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
        done = subprocess.run(
            ["git", *who, *arguments],
            cwd=self.path,
            env=os.environ | nobody,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, **texts: str | None) -> str:
        """Write or delete definitions/NAME.json, commit, and return the commit's id."""
        folder = self.path / "definitions"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            path = folder / f"{name}.json"
            path.unlink() if text is None else path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "state")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    return made


def found(old: Path | str, new: Path | str, **options: object) -> list[tuple[str, str]]:
    """Return (rule, location) of every finding, notes in lower case."""
    located = compare_sources(read_source(str(old)), read_source(str(new)), **options)  # type: ignore[arg-type]
    return [(_rule(item), item.finding.where) for item in located]


def _rule(item: Located) -> str:
    return item.finding.rule if item.finding.kind == "violation" else item.finding.rule.lower()


def test_two_files_are_compared_regardless_of_their_names(write: Write) -> None:
    old = write("old", first=message(A, B)) / "first.json"
    new = write("new", second=message(A)) / "second.json"
    assert found(old, new) == [("V-23", "Order.B")]


def test_a_directory_is_matched_by_message_name(write: Write) -> None:
    old = write("old", x=message(A), y=message(A, name="Bill"), gone=message(A, name="Gone"))
    new = write("new", a=message(A, B), b=message(A, name="Bill"), c=message(A, name="New"))
    assert found(old, new) == [("V-04", "Gone"), ("v-20", "New"), ("V-21", "Order.B")]
    (new / "package.json").write_text('{"name": "not a definition"}')
    assert len(found(old, new)) == 3


def test_a_file_is_compared_only_with_its_message_in_a_directory(write: Write) -> None:
    many = write("many", x=message(A), y=message(A, name="Bill"))
    one = write("one", x=message(A, B))
    assert found(many, one / "x.json") == [("V-21", "Order.B")]
    assert found(one / "x.json", many) == [("V-23", "Order.B")]


@pytest.mark.requirement("V-10", "V-01")
def test_a_message_with_another_name_under_the_same_key_was_renamed(write: Write) -> None:
    old = write("old", x=request(A, B))
    new = write("new", x=request(A, name="PurchaseRequest"))
    assert found(old, new) == [("V-10", "PurchaseRequest"), ("V-23", "PurchaseRequest.B")]
    new = write("other", x=request(A, name="PurchaseRequest", apiKey=9001))
    assert found(old, new) == [("V-04", "OrderRequest"), ("v-20", "PurchaseRequest")]


@pytest.mark.requirement("V-47")
def test_a_response_is_unstable_if_its_request_is(write: Write) -> None:
    response = {"type": "response", "name": "OrderResponse", "apiKey": 9000}
    new = write("new", q=request(A), r=message(A, field(name="B", versions="3+"), **response))
    unstable = write("unstable", q=request(A, latestVersionUnstable=True), r=message(A, **response))
    assert found(unstable, new) == []
    assert found(write("stable", q=request(A), r=message(A, **response)), new) == [("V-21", "OrderResponse.B")]


@pytest.mark.requirement("V-56")
def test_different_versions_of_a_request_and_its_response_are_noted_once(write: Write) -> None:
    response = {"type": "response", "name": "OrderResponse", "apiKey": 9000}
    old = write("old", q=request(A), r=message(A, **response))
    new = write("new", q=request(A), r=message(A, **(response | {"validVersions": "0-4"})))
    assert found(old, new) == [("v-56", "OrderRequest")]
    assert found(new, new) == []


def test_an_unreleased_message_may_be_removed(write: Write) -> None:
    never = request(A, name="DraftRequest", apiKey=9002, validVersions="0", latestVersionUnstable=True)
    old, new = write("old", x=message(A), y=never), write("new", x=message(A))
    assert found(old, new) == [("v-22", "DraftRequest")]


def test_definitions_are_read_from_jars(tmp_path: Path, write: Write) -> None:
    jar = tmp_path / "some-1.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("common/message/Order.json", "// prose\n" + message(A, flexibleVersions=None))
        archive.writestr("META-INF/other.json", "{}")
    assert found(jar, jar) == []
    assert found(jar, write("new", x=message(A, B, flexibleVersions="none"))) == [("V-21", "Order.B")]


def test_an_invalid_jar_is_reported(tmp_path: Path) -> None:
    jar = tmp_path / "broken.jar"
    jar.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(SchemaError, match=r"broken\.jar: neither a directory nor a readable jar"):
        read_source(str(jar))


def test_a_finding_has_the_line_of_its_field(write: Write) -> None:
    shared = [common("Item", A, B)]
    old = write("old", x=message(field("[]Item", "Items"), A, commonStructs=shared))
    text = message(field("[]Item", "Items"), commonStructs=[common("Item", A | {"default": "1"}, B)])
    new = write("new", x=text)
    located = compare_sources(read_source(str(old)), read_source(str(new)))
    lines = text.splitlines()
    assert [item.finding.where for item in located] == ["Order.A", "Order.Items.A"]
    assert located[0].line == 1  # gone, so the message is where it would be
    assert lines[located[1].line - 1].strip() == "{"
    assert '"A"' in lines[located[1].line]
    assert {item.file for item in located} == {str(new / "x.json")}


# git


def test_a_revision_of_a_repository_is_read_without_a_checkout(repository: Repository) -> None:
    first = repository.commit(Order=message(A, B), Bill=message(A, name="Bill"))
    repository.commit(Order=message(A), Bill=None)
    assert found(f"{first}:definitions", "HEAD:definitions") == [("V-04", "Bill"), ("V-23", "Order.B")]
    assert found("HEAD~1:definitions/Order.json", "definitions/Order.json") == [("V-23", "Order.B")]
    assert found("HEAD:definitions", "definitions") == []
    located = compare_sources(read_source("HEAD~1:definitions"), read_source("HEAD:definitions"))
    assert [item.file for item in located] == ["HEAD~1:definitions/Bill.json", "HEAD:definitions/Order.json"]


def test_paths_are_relative_to_the_repository_or_the_working_directory(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(Order=message(A))
    monkeypatch.chdir(repository.path / "definitions")
    assert set(read_source("HEAD:definitions").definitions) == {"Order"}
    assert set(read_source("HEAD:./Order.json").definitions) == {"Order"}
    assert set(read_source("HEAD:./").definitions) == {"Order"}
    assert set(read_source("HEAD:").definitions) == {"Order"}
    assert [text.name for text in read_history(["HEAD:./"])["Order"]] == ["Order"]


def test_a_symlink_in_a_revision_is_not_a_definition(repository: Repository) -> None:
    (repository.path / "definitions").mkdir()
    (repository.path / "definitions" / "Link.json").symlink_to("Order.json")
    repository.commit(Order=message(A))
    assert set(read_source("HEAD:definitions").definitions) == {"Order"}


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("nosuch:definitions", "unknown revision 'nosuch'"),
        ("HEAD~9:definitions", "unknown revision 'HEAD~9'"),
        ("--help:definitions", "unknown revision '--help'"),
        ("HEAD:nothing", "no such path in HEAD"),
        (":definitions", "revision missing"),
        ("nowhere", "nowhere: no such file, directory, jar or REV:path"),
        ("HEAD:empty", "no definitions found"),
    ],
)
def test_a_missing_source_is_reported(repository: Repository, source: str, what: str) -> None:
    (repository.path / "empty").mkdir()
    (repository.path / "empty" / "note.txt").write_text("nothing")
    repository.commit(Order=message(A))
    with pytest.raises(OptionError, match=what):
        read_source(source)


def test_a_revision_outside_a_repository_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(OptionError, match="needs a git repository"):
        read_source("HEAD:definitions")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="needs git; install it"):
        read_source("HEAD:definitions")


def test_invalid_utf_8_is_reported(repository: Repository) -> None:
    repository.commit(Order=message(A))
    (repository.path / "definitions" / "Order.json").write_bytes(b'{"validVersions": "\xff"}')
    repository.git("commit", "-q", "-a", "-m", "broken")
    with pytest.raises(OptionError, match="not valid UTF-8"):
        read_source("HEAD:definitions")
    with pytest.raises(SchemaError, match="not valid UTF-8"):
        read_source("definitions")


# History


@pytest.mark.requirement("V-43", "S482-51", "SDEF-67")
def test_a_tag_reserved_long_ago_is_found_in_the_history_of_a_path(repository: Repository) -> None:
    repository.commit(Order=message(A, tagged(0)))
    repository.commit(Order=message(A))
    repository.commit(Other=message(A, name="Other"))
    other = repository.path / "definitions" / "Order.json"
    other.write_text(message(A, tagged(0, name="Reused", type="string")))
    old, new = "HEAD:definitions", "definitions"
    assert found(old, new) == [("v-40", "Order.Reused")]
    located = compare_sources(read_source(old), read_source(new), history=read_history(["HEAD:definitions"]))
    [violation] = [item.finding for item in located if item.finding.kind == "violation"]
    assert violation.rule == "V-43"
    assert "tag 0 was used by Tagged0 (int32) in" in violation.message
    assert violation.message.endswith("definitions/Order.json")


@pytest.mark.requirement("V-43")
def test_history_can_be_directories_of_older_releases(write: Write) -> None:
    first = write("1.0", x=message(A, tagged(0)))
    old, new = write("2.0", x=message(A)), write("3.0", x=message(A, tagged(0, type="string")))
    history = read_history([str(first)])
    assert found(old, new, history=history) == [("V-43", "Order.Tagged0"), ("v-40", "Order.Tagged0")]
    assert found(old, new, history=read_history([str(old)])) == [("v-40", "Order.Tagged0")]


@pytest.mark.requirement("V-43")
def test_an_invalid_earlier_state_still_reserves_its_tags(repository: Repository) -> None:
    repository.commit(Order=message(A, tagged(0), tagged(2)))  # a gap between tags: no definition (E-27)
    repository.commit(Order=message(A))
    tags = {field.tag for made in read_history(["HEAD:definitions"])["Order"] for field in made.struct.fields}
    assert tags == {None, 0, 2}


def test_a_shallow_history_is_rejected(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(Order=message(A, tagged(0)))
    repository.commit(Order=message(A))
    with pytest.raises(OptionError, match="no definition in the history"):
        read_history(["HEAD:nothing"])
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", "shallow")
    monkeypatch.chdir(repository.path / "shallow")
    with pytest.raises(OptionError, match="shallow"):
        read_history(["HEAD:definitions"])


def test_all_errors_of_a_source_are_reported(write: Write) -> None:
    wrong = {"x": message(A, tagged(3)), "y": message(field("nosuch"), name="Bill")}
    broken = write("broken", **wrong, z=message(A, name="Fine"))
    with pytest.raises(ExceptionGroup) as group:
        read_source(str(broken))
    assert {error.rule for error in group.value.exceptions if isinstance(error, SchemaError)} == {"E-27", "E-10"}


def test_two_definitions_of_the_same_name_are_an_error(write: Write) -> None:
    twice = write("twice", x=message(A), y=message(A))
    with pytest.raises(ExceptionGroup) as group:
        read_source(str(twice))
    assert "name is already used by" in str(group.value.exceptions[0])
