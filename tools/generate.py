"""Generate files from definitions, tests and handlers: message classes, error codes, pages of docs, option tables.

python tools/generate.py            writes changed files and removes modules of messages that no longer exist
python tools/generate.py --check    writes nothing; lists stale files and exits with 1
"""

from __future__ import annotations

import sys
from pathlib import Path

from kwire.codegen import catalogue_files, write_files
from kwire.codegen.error_codes import error_codes_source
from kwire.schema.catalogue import read_catalogue, release_order

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # `python tools/generate.py` adds only tools/

MESSAGES = ROOT / "src" / "kwire" / "messages"
# The hand-written modules of that package; all others are generated.
HAND_WRITTEN = {"base.py", "json_form.py", "keyed.py", "loaded.py", "registry.py", "runtime.py", "unknown_fields.py"}


def generated() -> dict[str, str]:
    """Return the generated files of kwire.messages, by path below it."""
    definitions = ROOT / "definitions"
    catalogue = read_catalogue(definitions)
    newest = max(definitions.glob("kafka-*"), key=lambda folder: release_order(folder.name))
    errors = (newest / "errors.csv").read_text(encoding="utf-8")
    codes = error_codes_source(errors, newest.name.removeprefix("kafka-"))
    return {**catalogue_files(catalogue), "error_codes.py": codes}


def current() -> dict[str, str]:
    """Return the current files of kwire.messages that are not hand-written."""
    paths = [path for path in (*MESSAGES.glob("*.py"), *MESSAGES.glob("releases/*")) if path.name not in HAND_WRITTEN]
    return {path.relative_to(MESSAGES).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main(arguments: list[str]) -> int:
    """Returns 1 if --check found a difference."""
    check = "--check" in arguments
    files, old = generated(), current()
    stale = sorted(name for name in files.keys() | old.keys() if files.get(name) != old.get(name))
    if check:
        for name in stale:
            print(f"src/kwire/messages/{name}: stale; run ./dev generate", file=sys.stderr)
    else:
        write_files(files, MESSAGES)
        for name in old.keys() - files.keys():
            (MESSAGES / name).unlink()
        print(f"{len(files)} files generated, {len(stale)} changed")
    from tools import (  # these import the generated classes
        apis,
        conformance_page,
        matrix,
        nightly,
        pairs,
        requirements,
        scenarios_page,
        spark_options,
    )

    fresh = requirements.main(check=check)
    if not fresh:
        print("docs/requirements.md: stale; run ./dev generate", file=sys.stderr)
    served = apis.main(check=check)
    if not served:
        print("docs/apis.md: stale; run ./dev generate", file=sys.stderr)
    results = True
    for module in (nightly, pairs, conformance_page, scenarios_page, matrix):
        try:
            text = module.page()
        except matrix.Unjudged as error:
            print(f"docs/{module.PAGE.name}: not written\n{error}", file=sys.stderr)
            results = False
            continue
        if not check:
            module.PAGE.write_text(text, encoding="utf-8")
        elif not module.PAGE.exists() or module.PAGE.read_text(encoding="utf-8") != text:
            print(f"docs/{module.PAGE.name}: stale; run ./dev generate", file=sys.stderr)
            results = False
    pages = spark_options.main(check=check)
    if check:
        for page in pages:
            print(f"docs/{page.name}: stale option table; run ./dev generate", file=sys.stderr)
    return int(not (fresh and served and results) or (check and bool(stale or pages)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
