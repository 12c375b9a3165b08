"""Definitions in revisions of a git repository, read through `git` itself: nothing is checked out.

`REV:path` has the form of `git show`: any name of a commit, and a path relative to the repository root, or to the
working directory if it starts with `./`. The repository is the one of the working directory.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

from kwire.errors import OptionError

MAX_BLOB_BYTES = 8 << 20
"""Maximum size of a file; Kafka's definitions have up to 30 KB."""


def read_revision(source: str) -> tuple[list[tuple[str, str]], bool]:
    """Read the definitions at `REV:path`: ([(name for errors, text), ...], whether path is a file).

    Raises OptionError if git, the repository, the revision or the path is missing.
    """
    rev, path = _split(source)
    commit = _commit(rev)
    output = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:{path}")
    if output is None:
        raise OptionError(
            f"{source}: no such path in {rev}; paths are relative to the repository root, or start with ./"
        )
    object_id = output.decode().strip()
    if (_git("cat-file", "-t", object_id) or b"").strip() == b"blob":
        return [(source, text) for _, text in _texts([(object_id, source)])], True
    listed = _git("ls-tree", "-r", "-z", "--full-tree", object_id) or b""
    blobs: list[tuple[str, str]] = []
    for line in listed.decode("utf-8", "surrogateescape").split("\0"):
        mode, _, rest = line.partition(" ")
        if mode.startswith("100") and rest.endswith(".json"):  # neither links nor other repositories
            blob, _, name = rest.partition(" ")[2].partition("\t")
            blobs.append((blob, f"{rev}:{path.rstrip('/')}/{name}" if path.strip("./") else f"{rev}:{name}"))
    return list(_texts(blobs)), False


def read_past_revisions(source: str) -> list[tuple[str, str]]:
    """Read all past states, up to REV, of the definitions at or below path: [(name, text), ...], newest first.

    Raises OptionError like read_revision, and for a shallow clone, whose history is incomplete.
    """
    rev, path = _split(source)
    commit = _commit(rev)
    if (_git("rev-parse", "--is-shallow-repository") or b"").strip() == b"true":
        raise OptionError(f"{source}: the history of a shallow clone is incomplete; run git fetch --unshallow")
    below = f":(literal){path}" if path.startswith("./") else f":(top,literal){path}"
    arguments = ("--format=%h", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AM", "-z")
    log = _git("log", *arguments, commit, "--", below)
    blobs: dict[str, str] = {}
    at, parts = "", iter((log or b"").decode("utf-8", "surrogateescape").split("\0"))
    for part in parts:
        line = part.lstrip("\n")
        if not line.startswith(":"):
            at = line or at
            continue
        _, mode, _, blob, _ = line[1:].split(" ")
        name = next(parts)
        if mode.startswith("100") and name.endswith(".json"):
            blobs.setdefault(blob, f"{at}:{name}")
    if not blobs:
        raise OptionError(f"{source}: no definition in the history of {path}")
    return list(_texts(list(blobs.items())))


def _split(source: str) -> tuple[str, str]:
    rev, _, path = source.partition(":")
    if not rev:
        raise OptionError(f"{source}: revision missing before the colon, such as HEAD{source}")
    return rev, path


def _commit(rev: str) -> str:
    output = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
    if output is None:
        raise OptionError(f"unknown revision {rev!r} in this git repository")
    return output.decode().strip()


def _texts(blobs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each (object id, name). Raises OptionError for a large file or invalid UTF-8."""
    if not blobs:
        return
    out = _git("cat-file", "--batch", given="".join(f"{blob}\n" for blob, _ in blobs).encode()) or b""
    pos = 0
    for blob, name in blobs:
        end = out.index(b"\n", pos)
        header = out[pos:end].split(b" ")
        if len(header) != 3 or header[1] != b"blob":
            raise OptionError(f"{name}: git has no object {blob}")
        size, pos = int(header[2]), end + 1
        if size > MAX_BLOB_BYTES:
            raise OptionError(f"{name}: {size} bytes is too large for a definition; the maximum is {MAX_BLOB_BYTES}")
        try:
            yield name, out[pos : pos + size].decode()
        except UnicodeDecodeError as error:
            raise OptionError(f"{name}: not valid UTF-8: {error.reason} at byte {error.start}") from error
        pos += size + 1


def _git(*arguments: str, given: bytes | None = None) -> bytes | None:
    """Run git and return its output, None if it fails. Raises OptionError without git or a repository."""
    try:
        done = subprocess.run(["git", *arguments], input=given, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise OptionError("REV:path needs git; install it") from error
    if done.returncode == 0:
        return done.stdout
    if b"not a git repository" in done.stderr:
        raise OptionError("REV:path needs a git repository, and the working directory is not in one")
    if b"dubious ownership" in done.stderr:
        raise OptionError(done.stderr.decode(errors="replace").strip().splitlines()[0])
    return None
