"""Compile the C sources into the extension module `_kernels`.

    python -m kwire.native.build [--target TARGET ... | --target all]

zig has a C compiler, a linker and the C library of every target. Equal sources and compilers give equal bytes. Needs
ziglang (`pip install kwire[compiler]`). What was built from the same sources is not built again.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kwire import __version__
from kwire.native.c_headers import headers

__all__ = ["TARGETS", "Target", "build", "folder_of", "host_target", "sources_digest"]

PACKAGE = Path(__file__).parent.parent
C_FILES = (
    "native.h",
    "messages.h",
    "columns.h",
    "kernels.h",
    "cursor.h",
    "record.h",
    "message.h",
    "checksums.h",
    "record_columns.h",
    "plan_reading.h",
    "utf8.h",
    "json_text.h",
    "values_writing.h",
    "module.c",
    "batch_scan.c",
    "checksums.c",
    "record_columns.c",
    "key_hashes.c",
    "value_prefixes.c",
    "section_scan.c",
    "message_columns.c",
    "encoding.c",
    "cleaning.c",
    "messages.c",
    "messages_writing.c",
    "codec.c",
    "records.c",
    "columns.c",
    "avro_reading.c",
    "avro_writing.c",
    "protobuf_reading.c",
    "protobuf_writing.c",
    "json_reading.c",
    "json_writing.c",
)
SIGNATURES = PACKAGE / "native" / "_kernels.pyi"
COVERAGE = PACKAGE / "native" / "coverage.c"
C_SOURCES = tuple(PACKAGE / "native" / name for name in C_FILES)

WRITABLE = "Writable"
"""How the names of the types of parameters begin that a kernel writes to (`kwire.native.arrays`)."""


@dataclass(frozen=True)
class Target:
    """A platform. zig: its target name. wheel: the wheel's platform tag. processors: those that the code is for."""

    zig: str
    wheel: str
    processors: str

    @property
    def file(self) -> str:
        """The name of the module: Windows loads no other ending."""
        is_windows = "windows" in self.zig or (self.zig == "native" and sys.platform == "win32")
        return "_kernels.pyd" if is_windows else "_kernels.abi3.so"


TARGETS = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", "x86-64"),
    "linux-aarch64": Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", "armv8-a"),
    "musllinux-x86_64": Target("x86_64-linux-musl", "musllinux_1_1_x86_64", "x86-64"),
    "musllinux-aarch64": Target("aarch64-linux-musl", "musllinux_1_1_aarch64", "armv8-a"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", "x86-64"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", "apple-m1"),
    "windows-x86_64": Target("x86_64-windows-gnu", "win_amd64", "x86-64"),
}


def host_target() -> str | None:
    """Return the key in TARGETS of this machine, None if it has none."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if sys.platform == "linux":
        system = "linux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    else:
        system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    name = f"{system}-{'arm64' if (system, machine) == ('macos', 'aarch64') else machine}"
    return name if name in TARGETS else None


THIS_MACHINE = "native"
"""A machine that TARGETS lacks, as zig sees it."""


def folder_of(name: str) -> Path:
    """Return the folder of a target's module: the package for this machine, else one in the checkout's `build`."""
    if name in (host_target(), THIS_MACHINE):
        return PACKAGE / "native"
    return PACKAGE.parents[1] / "build" / "kernels" / name


def sources_digest() -> str:
    """Hash the sources, the generated headers, and what compiles them."""
    from importlib.metadata import version

    sources = {path.name: path.read_bytes() for path in (*C_SOURCES, COVERAGE, SIGNATURES, Path(__file__))}
    sources |= {name: text.encode() for name, text in headers().items()}
    digest = hashlib.sha256(f"{__version__} {version('ziglang')}".encode())
    for key in sorted(sources):
        digest.update(key.encode() + sources[key])
    return digest.hexdigest()


def build(folders: Mapping[str, Path], sanitize: bool = False) -> list[Path]:
    """Build the modules of targets, each in its folder, unless they are up to date. Returns their paths.

    sanitize: compile the C sources with the system's compiler and its sanitizers of addresses and undefined behaviour;
    the code counts its steps (coverage.c).
    The process that loads the module has to load the first of them before (tests/fuzz/sanitized.py).
    """
    digest = sources_digest()
    targets = {name: TARGETS.get(name) or Target("native", "", platform.machine()) for name in folders}
    paths = {name: folder / targets[name].file for name, folder in folders.items()}
    stale = {
        name: path for name, path in paths.items() if not path.exists() or digest.encode() not in path.read_bytes()
    }
    if stale:
        print(f"Compiling the kernels for {', '.join(stale)}", file=sys.stderr)
    for name, path in stale.items():
        target = targets[name]
        with tempfile.TemporaryDirectory(prefix="kwire-kernels-") as scratch:
            library = link(target, exports_header(target, digest), Path(scratch), sanitize)
        staged = path.with_suffix(f".{os.getpid()}")
        staged.parent.mkdir(parents=True, exist_ok=True)
        staged.write_bytes(library)
        staged.chmod(0o755)
        staged.replace(path)
    for path in paths.values():
        with suppress(PermissionError):
            path.touch()  # equal sources may have a later date, as after a switch of branches and back
    return list(paths.values())


@dataclass(frozen=True)
class Export:
    """An exported kernel: the kinds of its parameters and results, as in module.c; whether it keeps the GIL."""

    name: str
    parameters: str
    results: str
    is_brief: bool


PARAMETER_KINDS = {
    "int": "i",
    "Bytes": "b",
    "Int32s": "w",
    "UInt32s": "w",
    "Int64s": "q",
    "UInt64s": "q",
    "Int64Table": "t",
    "UInt64Table": "t",
}
RESULT_KINDS = {"int": "i", "bool": "?"}
DIMENSIONS = {"i": 0, "b": 1, "w": 1, "q": 1, "t": 2}


def parameter_kind(name: str) -> str:
    """Return the kind of a parameter's type: a capital letter if the kernel writes to it."""
    plain = name.removeprefix(WRITABLE)
    return PARAMETER_KINDS[plain] if plain == name else PARAMETER_KINDS[plain].upper()


def kernels() -> list[Export]:
    """Return all kernels: the functions that `_kernels.pyi` declares below "Kernels" and "Brief kernels"."""
    text = SIGNATURES.read_text(encoding="utf-8").partition("\n# Kernels\n")[2]
    first_brief = text.partition("\n# Brief kernels\n")[0].count("\n") + 1
    exports = []
    for each in ast.parse(text).body:
        if not isinstance(each, ast.FunctionDef) or each.returns is None:
            raise SyntaxError(f"{SIGNATURES}: expected signatures of functions, got {ast.unparse(each)}")
        types = [ast.unparse(argument.annotation) for argument in each.args.posonlyargs if argument.annotation]
        results = re.findall(r"int|bool", ast.unparse(each.returns))
        kinds = "".join(parameter_kind(name) for name in types)
        kinds_of_results = "".join(RESULT_KINDS[kind] for kind in results)
        exports.append(Export(each.name, kinds, kinds_of_results, each.lineno > first_brief))
    return exports


def exports_header(target: Target, digest: str) -> str:
    """Return exports.h for module.c: the table of kernels, and what it was made for and of."""
    exports = kernels()
    words = [sum(1 + DIMENSIONS[kind.lower()] for kind in export.parameters) for export in exports]
    arrays = [sum(kind != "i" for kind in export.parameters) for export in exports]
    most = {"WORDS": max(words), "ARRAYS": max(arrays), "RESULTS": max(len(export.results) for export in exports)}
    lines = [f"enum {{ EXPORT_COUNT = {len(exports)} }};"]
    lines += [f'#define SOURCES "{digest}"', f'#define VERSION "{__version__}"']
    lines.append(f'#define PROCESSORS "{target.processors}"')
    lines += [f"enum {{ MOST_{name} = {value} }};" for name, value in most.items()]
    lines += [f"void kwire_{export.name}(const int64_t *, int64_t *);" for export in exports]
    lines.append("static Export exports[] = {")
    for each in exports:
        lines.append(
            f'    {{"{each.name}", "{each.parameters}", "{each.results}", {each.is_brief:d}, kwire_{each.name}}},'
        )
    return "\n".join([*lines, "};", ""])


def link(target: Target, header: str, scratch: Path, sanitize: bool) -> bytes:
    """Compile and link the C sources. Raises CalledProcessError."""
    for path in C_SOURCES:
        (scratch / path.name).write_bytes(path.read_bytes())
    (scratch / "exports.h").write_text(header)
    for name, text in headers().items():
        (scratch / name).write_text(text)
    inputs = [path.name for path in C_SOURCES if path.suffix == ".c"]
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    options = ["-O2", "-g0", "-s", "-fno-sanitize=all"]
    is_macos = "macos" in target.zig or (target.zig == "native" and sys.platform == "darwin")
    if target.file.endswith(".pyd"):
        inputs.append(import_library(scratch))
    else:
        options += ["-Wl,-undefined,dynamic_lookup"] if is_macos else ["-Wl,--build-id=none"]
    if sanitize:
        compiler = [os.environ.get("CC", "cc")]
        options = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        options.append("-fsanitize-coverage=trace-pc")
        inputs.append(str(COVERAGE))
    options += ["-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Werror"]
    run([*compiler, *options, "-o", target.file, *inputs], scratch)
    return (scratch / target.file).read_bytes()


def import_library(scratch: Path) -> str:
    """Write the library that says what python3.dll has of what native.h declares, and return its name."""
    text = (PACKAGE / "native" / "native.h").read_text(encoding="utf-8").partition("\n/* Of module.c */")[0]
    data = re.findall(r"\b_?Py\w+(?=[,;])", "".join(re.findall(r"^PYTHON_DATA .*;", text, re.MULTILINE)))
    functions = re.findall(
        r"\b_?Py\w+(?=\((?!\*))", "".join(re.findall(r"^(?!static|typedef)\w.*\);$", text, re.MULTILINE))
    )
    lines = ["LIBRARY python3.dll", "EXPORTS", *functions, *(f"{name} DATA" for name in data)]
    (scratch / "python3.def").write_text("\n".join([*lines, ""]))
    words = [sys.executable, "-m", "ziglang", "dlltool", "-m", "i386:x86-64", "-d", "python3.def", "-l", "python3.lib"]
    run(words, scratch)
    return "python3.lib"


def run(words: list[str], scratch: Path) -> None:
    """Run zig in a folder. Raises CalledProcessError.

    A checkout keeps what zig compiles of each platform's C library, which takes longer than the kernels.
    """
    cache, checkout = str(scratch / "zig"), PACKAGE.parents[1]
    libraries = str(checkout / "build" / "zig") if (checkout / "pyproject.toml").exists() else cache
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": cache, "ZIG_GLOBAL_CACHE_DIR": libraries}
    subprocess.run(words, check=True, cwd=scratch, env=environment)


def main() -> None:
    """Build the modules of the targets given, by default of this machine, and print their paths."""
    parser = argparse.ArgumentParser(prog="python -m kwire.native.build", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, "all"], help="platform, repeatable (default: this machine)"
    )
    names = parser.parse_args().target or [host_target() or THIS_MACHINE]
    if find_spec("ziglang") is None:
        sys.exit("ziglang: not installed; pip install 'kwire[compiler]'")
    for path in build({name: folder_of(name) for name in (TARGETS if "all" in names else names)}):
        print(path)


if __name__ == "__main__":
    main()
