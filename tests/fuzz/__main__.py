"""`./dev fuzz [WORD ...] [--inputs N] [--seed N] [--sanitize]`: long fuzz runs; the suite has short ones.

Each fuzzer runs in a separate process, because guarded ones die at the first access outside a buffer. A finding prints
the input or the seed that reproduces it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tests.fuzz.sanitized import sanitized_environment

# Inputs of a long run, about an hour for messages and some minutes for each of the others on one core.
FUZZERS = {
    "messages": ("messages", (), 10_000_000),
    "messages-guarded": ("guarded_messages", (), 500_000),
    "columns-guarded": ("guarded_columns", (), 500_000),
    "encodings": ("encodings", (), 2_000_000),
    "records": ("records", (), 200_000),
    "records-guarded": ("records", (True,), 50_000),
    "record-writing": ("record_writing", (), 50_000),
    "avro": ("avro", (), 500_000),
    "avro-guarded": ("avro", (True,), 100_000),
    "json": ("json_values", (), 500_000),
    "json-guarded": ("json_values", (True,), 100_000),
    "protobuf": ("protobuf", (), 500_000),
    "protobuf-guarded": ("protobuf", (True,), 100_000),
    "protobuf-json-writing": ("value_writing", (), 100_000),
    "protobuf-json-writing-guarded": ("value_writing", (True,), 50_000),
    "record-writing-guarded": ("record_writing", (True,), 20_000),
    "cleaning": ("cleaning", (), 200_000),
    "cleaning-guarded": ("cleaning", (True,), 100_000),
}
SANITIZED = {"guided": ("guided", (), 1_000_000)}
"""Only with --sanitize: it counts the steps through the code."""


def main() -> int:
    """Run the fuzzers whose name contains one of the words, all without words; exit code 1 on a finding."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help=f"of {', '.join(FUZZERS | SANITIZED)} (with --sanitize)"
    )
    parser.add_argument("--inputs", type=int, help="inputs for each fuzzer")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="to repeat a run")
    parser.add_argument("--sanitize", action="store_true", help="C code checks every access; needs gcc or clang")
    asked = parser.parse_args()
    fuzzers = FUZZERS | (SANITIZED if asked.sanitize else {})
    chosen = [name for name in fuzzers if not asked.words or any(word in name for word in asked.words)]
    if not chosen:
        parser.error(f"no fuzzer matches {' '.join(asked.words)}; there are {', '.join(FUZZERS | SANITIZED)}")
    environment = sanitized_environment() if asked.sanitize else None
    failed = 0
    for name in chosen:
        module, arguments, usual = fuzzers[name]
        call = ", ".join(map(repr, (asked.inputs or usual, asked.seed, *arguments)))
        print(f"# {name}: run({call})", flush=True)
        program = f"from tests.fuzz.{module} import run; run({call})"
        failed |= subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
