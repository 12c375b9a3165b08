"""Compile all kernels into the extension module `_kernels`.

    python -m kwire.native.build [--target TARGET ... | --target all]

numba translates each exported kernel to LLVM's language once, for no processor in particular; LLVM compiles that for
every level of the processors of each target; zig, which has the C library of every target, compiles the C sources, and
links.
Equal sources and compilers give equal bytes. Needs numba and ziglang (`pip install kwire[jit]`); takes half a minute.
A module that was built from the same sources is not built again.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kwire.native import EXPORTS, WRITABLE
from kwire.native.c_headers import headers

__all__ = ["TARGETS", "Target", "build", "folder_of", "host_target", "sources_digest"]

PACKAGE = Path(__file__).parent.parent
FILE_NAME = "_kernels.abi3.so"
KERNEL_MODULES = tuple(dict.fromkeys(EXPORTS.values()))
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
    "module.c",
    "batch_scan.c",
    "checksums.c",
    "record_columns.c",
    "key_hashes.c",
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
    "json_reading.c",
)
SIGNATURES = PACKAGE / "native" / "_kernels.pyi"
COVERAGE = PACKAGE / "native" / "coverage.c"
C_SOURCES = tuple(PACKAGE / "native" / name for name in C_FILES)

X86_CRC = """
declare i64 @llvm.x86.sse42.crc32.64.64(i64, i64)
declare i32 @llvm.x86.sse42.crc32.32.8(i32, i8)
define i64 @kwire_crc32c_word(i64 %crc, i64 %word) alwaysinline {
  %sum = call i64 @llvm.x86.sse42.crc32.64.64(i64 %crc, i64 %word)
  ret i64 %sum
}
define i32 @kwire_crc32c_byte(i32 %crc, i8 %byte) alwaysinline {
  %sum = call i32 @llvm.x86.sse42.crc32.32.8(i32 %crc, i8 %byte)
  ret i32 %sum
}
"""
ARM_CRC = """
declare i32 @llvm.aarch64.crc32cx(i32, i64)
declare i32 @llvm.aarch64.crc32cb(i32, i32)
define i64 @kwire_crc32c_word(i64 %crc, i64 %word) alwaysinline {
  %low = trunc i64 %crc to i32
  %sum = call i32 @llvm.aarch64.crc32cx(i32 %low, i64 %word)
  %wide = zext i32 %sum to i64
  ret i64 %wide
}
define i32 @kwire_crc32c_byte(i32 %crc, i8 %byte) alwaysinline {
  %wide = zext i8 %byte to i32
  %sum = call i32 @llvm.aarch64.crc32cb(i32 %crc, i32 %wide)
  ret i32 %sum
}
"""
NO_CRC = """
define i64 @kwire_crc32c_word(i64 %crc, i64 %word) alwaysinline {
  ret i64 0
}
define i32 @kwire_crc32c_byte(i32 %crc, i8 %byte) alwaysinline {
  ret i32 0
}
"""
"""For processors without the instruction: kernels that need it are not called (HAS_CRC32C)."""


@dataclass(frozen=True)
class Level:
    """Code for one level of a target's processors: LLVM's name of the processor and features beyond it."""

    name: str
    processor: str
    features: str


@dataclass(frozen=True)
class Target:
    """A platform. levels: the most demanding first. zig: its target name. wheel: the wheel's platform tag."""

    triple: str
    zig: str
    wheel: str
    levels: tuple[Level, ...]
    crc: str


X86_LEVELS = (Level("x86-64-v3", "x86-64-v3", "+crc32"), Level("x86-64-v2", "x86-64-v2", "+crc32"))
TARGETS = {
    "linux-x86_64": Target(
        "x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", X86_LEVELS, X86_CRC
    ),
    "linux-aarch64": Target(
        "aarch64-unknown-linux-gnu",
        "aarch64-linux-gnu.2.17",
        "manylinux_2_17_aarch64",
        (Level("armv8-a", "generic", "+crc"),),
        ARM_CRC,
    ),
    "macos-arm64": Target(
        "arm64-apple-macosx11.0.0",
        "aarch64-macos.11.0",
        "macosx_11_0_arm64",
        (Level("apple-m1", "apple-m1", ""),),
        ARM_CRC,
    ),
}


def host_target() -> str | None:
    """Return the key in TARGETS of this machine, None if it has none."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if sys.platform == "darwin":
        return "macos-arm64" if machine == "aarch64" else None
    name = f"linux-{machine}"
    return name if sys.platform == "linux" and name in TARGETS else None


THIS_MACHINE = "native"


def this_machine() -> Target:
    """Return a target for a machine that TARGETS lacks, as LLVM and zig see it."""
    import llvmlite.binding as llvm

    triple = str(llvm.get_process_triple())
    if triple.startswith("x86_64"):
        return Target(triple, "native", "", X86_LEVELS, X86_CRC)
    features, crc = str(llvm.get_host_cpu_features().flatten()), NO_CRC
    if triple.startswith(("aarch64", "arm64")):
        features, crc = f"{features},+crc", ARM_CRC
    return Target(triple, "native", "", (Level("native", str(llvm.get_host_cpu_name()), features),), crc)


def folder_of(name: str) -> Path:
    """Return the folder of a target's module: the package for this machine, else one in the checkout's `build`."""
    if name in (host_target(), THIS_MACHINE):
        return PACKAGE / "native"
    return PACKAGE.parents[1] / "build" / "kernels" / name


def sources_digest() -> str:
    """Hash the sources, all modules of kwire that those of numba import, generated headers, and what compiles them."""
    from importlib.metadata import version

    found: dict[str, bytes] = {}
    names = [*KERNEL_MODULES, "kwire.wire.kernels.intrinsics", "kwire.native.build"]
    while names:
        path = PACKAGE.joinpath(*names.pop().split(".")[1:]).with_suffix(".py")
        if path.exists() and (key := str(path.relative_to(PACKAGE))) not in found:
            found[key] = path.read_bytes()
            names += re.findall(r"^from (kwire[\w.]*) import", found[key].decode(), re.MULTILINE)
    found |= {path.name: path.read_bytes() for path in (*C_SOURCES, COVERAGE, SIGNATURES)}
    found |= {name: text.encode() for name, text in headers().items()}
    digest = hashlib.sha256("".join(version(name) for name in ("numba", "llvmlite", "ziglang")).encode())
    for key in sorted(found):
        digest.update(key.encode() + found[key])
    return digest.hexdigest()


def build(folders: Mapping[str, Path], sanitize: bool = False) -> list[Path]:
    """Build the modules of targets, each in its folder, unless they are up to date. Returns their paths.

    sanitize: compile the C sources with the system's compiler and its sanitizers of addresses and undefined behaviour;
    the code counts its steps (coverage.c).
    The process that loads the module has to load the first of them before (tests/fuzz/sanitized.py).
    """
    digest = sources_digest()
    paths = {name: folder / FILE_NAME for name, folder in folders.items()}
    stale = {
        name: this_machine() if name == THIS_MACHINE else TARGETS[name]
        for name, path in paths.items()
        if not path.exists() or digest.encode() not in path.read_bytes()
    }
    if not stale:
        return list(paths.values())
    print(f"Compiling the kernels for {', '.join(stale)} (half a minute)", file=sys.stderr)
    # Names of numba count what a process has compiled, and the order of its code follows that of sets of strings.
    os.environ["PYTHONHASHSEED"] = "0"
    with (
        tempfile.TemporaryDirectory(prefix="kwire-kernels-") as scratch,
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        parts = list(pool.map(translate, [KERNEL_MODULES] if KERNEL_MODULES else []))
        exports = [export for _, exports in parts for export in exports]
        of_numba = {export.name for export in exports}
        bitcode = [part for part, _ in parts]
        compiled = {
            name: [
                pool.submit(compile_level, bitcode, target, index) for index in range(len(target.levels) * len(parts))
            ]
            for name, target in stale.items()
        }
        for name, target in stale.items():
            library = link(
                target,
                exports_header(exports, [each for each in kernels() if each.name not in of_numba], target, digest),
                [each.result() for each in compiled[name]],
                Path(scratch, name),
                sanitize,
            )
            staged = paths[name].with_suffix(f".{os.getpid()}")
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(library)
            staged.chmod(0o755)
            staged.replace(paths[name])
    return list(paths.values())


# numba: Python to LLVM's language


@dataclass(frozen=True)
class Export:
    """An exported kernel: the kinds of its parameters and results, as in module.c."""

    name: str
    parameters: str
    results: str


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


def signature(function: Callable[..., object]) -> tuple[list[str], list[str]]:
    """Return the names of the types of parameters and of results of an exported kernel."""
    types: dict[str, str] = dict(function.__annotations__)
    returned = types.pop("return")
    results = re.findall(r"int|bool", returned)
    return list(types.values()), results


def kernels() -> list[Export]:
    """Return all kernels: the functions that `_kernels.pyi` declares below "Kernels"."""
    text = SIGNATURES.read_text(encoding="utf-8").partition("\n# Kernels\n")[2]
    found = []
    for each in ast.parse(text).body:
        if not isinstance(each, ast.FunctionDef) or each.returns is None:
            raise SyntaxError(f"{SIGNATURES}: expected signatures of functions, got {ast.unparse(each)}")
        types = [ast.unparse(argument.annotation) for argument in each.args.posonlyargs if argument.annotation]
        results = re.findall(r"int|bool", ast.unparse(each.returns))
        kinds = "".join(parameter_kind(name) for name in types)
        found.append(Export(each.name, kinds, "".join(RESULT_KINDS[kind] for kind in results)))
    return found


def translate(modules: tuple[str, ...]) -> tuple[bytes, list[Export]]:
    """Translate the exported kernels of modules; returns LLVM bitcode and the exports.

    Runs in a separate process: numba reads its settings when it is imported, and its names count what it compiled.
    """
    # The code is for no processor in particular: LLVM optimizes it for each level later.
    os.environ.update(
        NUMBA_OPT="0",
        NUMBA_CPU_NAME="generic",
        NUMBA_CPU_FEATURES="",
        NUMBA_LOOP_VECTORIZE="0",
        NUMBA_SLP_VECTORIZE="0",
        KWIRE_KERNEL="0",
    )
    from kwire.wire.kernels import compiler

    compiler.start_compiling()
    import llvmlite.binding as llvm

    for name in ("kwire_crc32c_word", "kwire_crc32c_byte"):  # numba links the code, which is never run
        llvm.add_symbol(name, 1)
    merged: Any = None
    exports = []
    for name in (name for name, module in EXPORTS.items() if module in modules):
        function: Any = getattr(importlib.import_module(EXPORTS[name]), name)
        parameters, results = signature(function.py_func)
        kinds = "".join(parameter_kind(name) for name in parameters)
        exports.append(Export(name, kinds, "".join(RESULT_KINDS[kind] for kind in results)))
        part = llvm.parse_assembly(_kernel_code(name, function, parameters, len(results)))
        for each in [*part.functions, *part.global_variables]:
            if not each.is_declaration and each.name != f"kwire_{name}":
                each.linkage = "internal"
        if merged is None:
            merged = part
        else:
            merged.link_in(part)
    return merged.as_bitcode(), exports


def _kernel_code(name: str, function: Callable[..., object], parameters: list[str], results: int) -> str:
    """Return the LLVM code of `void kwire_NAME(const int64_t *arguments, int64_t *results)` and all that it calls."""
    import numba as library

    numba: Any = library  # its annotations are for callers of compiled functions
    types = numba.types
    numbers = {"Bytes": types.uint8, "Int32s": types.int32, "UInt32s": types.uint32}
    numbers |= {"Int64s": types.int64, "Int64Table": types.int64, "UInt64s": types.uint64, "UInt64Table": types.uint64}
    given, typed, passed = [], [], []
    for i, parameter in enumerate(parameters):
        kind = parameter.removeprefix(WRITABLE)
        given.append(f"a{i}")
        if kind == "int":
            typed.append(types.int64)
            passed.append(f"a{i}")
            continue
        sizes = [f"a{i}_{j}" for j in range(DIMENSIONS[PARAMETER_KINDS[kind]])]
        given += sizes
        typed += [types.CPointer(numbers[kind]), *[types.int64] * len(sizes)]
        passed.append(f"carray(a{i}, ({', '.join(sizes)},))")
    call = f"kernel({', '.join(passed)})"
    stores = {0: f"    {call}\n", 1: f"    results[0] = {call}\n"}.get(
        results, f"    found = {call}\n" + "".join(f"    results[{i}] = found[{i}]\n" for i in range(results))
    )
    scope: dict[str, Any] = {"kernel": function, "carray": numba.carray}
    exec(f"def entry({', '.join([*given, 'results'])}):\n{stores}    return 0\n", scope)
    takes = [*typed, types.CPointer(types.int64)]
    compiled = numba.njit(types.int64(*takes), error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        scope["entry"]
    )
    (result,) = compiled.overloads.values()
    # numba's convention: a status, the results and the exception by pointer, then the arguments
    loads, words = [], []
    for i, kind in enumerate(takes[:-1]):
        loads.append(f"  %p{i} = getelementptr i64, ptr %arguments, i64 {i}\n  %w{i} = load i64, ptr %p{i}\n")
        if isinstance(kind, types.CPointer):
            loads.append(f"  %v{i} = inttoptr i64 %w{i} to ptr\n")
            words.append(f"ptr %v{i}")
        else:
            words.append(f"i64 %w{i}")
    text = _without_owners(_without_addresses(str(result.library._final_module)))
    entry = result.fndesc.llvm_func_name
    return (
        f"{text}\ndefine void @kwire_{name}(ptr %arguments, ptr %results) {{\n"
        "  %code = alloca i64\n  %exception = alloca ptr\n"
        f"{''.join(loads)}  call i32 @{_quoted(entry)}(ptr %code, ptr %exception, {', '.join(words)}, ptr %results)\n"
        "  ret void\n}\n"
    )


def _without_owners(text: str) -> str:
    """Remove the counting of references to the owners of arrays: those of kernels have none.

    numba calls these functions for each use of an array, also of a constant one.
    """
    return re.sub(
        r"^define [^\n]* @(NRT_(?:inc|dec)ref)\(.*?^}$",
        r"define internal void @\1(ptr %owner) alwaysinline {\n  ret void\n}",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def _without_addresses(text: str) -> str:
    """Remove the addresses of Python objects, which differ in every process; numba loads them and never uses them."""
    numbers: dict[str, int] = {}
    prefix = "numba.dynamic.globals."
    text = re.sub(
        rf"{re.escape(prefix)}(\w+)", lambda found: f"{prefix}{numbers.setdefault(found[1], len(numbers))}", text
    )
    return re.sub(rf"(?m)^(@{re.escape(prefix)}.*)inttoptr \(i64 \d+ to ptr\)", r"\1null", text)


def _quoted(name: str) -> str:
    """Return a name as LLVM's language has it after the @."""
    return name if re.fullmatch(r"[\w.$]+", name) else f'"{name}"'


# LLVM: to machine code, with zig for C and the linker


def compile_level(bitcode: list[bytes], target: Target, index: int) -> bytes:
    """Compile the kernels for one level of a target; returns an object file whose functions are kwire_NAME_INDEX."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    level = target.levels[index]
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=level.processor, features=level.features, opt=3, reloc="pic", codemodel="default"
    )
    module = llvm.parse_bitcode(bitcode[0])
    for part in bitcode[1:]:
        module.link_in(llvm.parse_bitcode(part))
    module.link_in(llvm.parse_assembly(target.crc))
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", str(module))
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration:
            if re.fullmatch(r"kwire_(?!crc32c_)\w+", each.name):
                each.name, each.visibility = f"{each.name}_{index}", "hidden"
            else:
                each.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def exports_header(of_numba: list[Export], of_c: list[Export], target: Target, digest: str) -> str:
    """Return exports.h for module.c: the table of exports. Kernels in C are the same code at every level."""
    exports = [*of_numba, *of_c]
    functions = {each.name: [f"kwire_{each.name}_{i}" for i in range(len(target.levels))] for each in of_numba}
    functions |= {each.name: [f"kwire_{each.name}"] * len(target.levels) for each in of_c}
    levels = range(len(target.levels))
    level_names = "".join(f'"{level.name}", ' for level in target.levels)
    lines = [f"enum {{ EXPORT_COUNT = {len(exports)} }};"]
    lines += [f'#define SOURCES "{digest}"', f"static const char *const level_names[] = {{{level_names}0}};"]
    lines += [
        f"void {code}(const int64_t *, int64_t *);" for codes in functions.values() for code in dict.fromkeys(codes)
    ]
    words = [sum(1 + DIMENSIONS[kind.lower()] for kind in export.parameters) for export in exports]
    arrays = [sum(kind != "i" for kind in export.parameters) for export in exports]
    most = {"WORDS": max(words), "ARRAYS": max(arrays), "RESULTS": max(len(export.results) for export in exports)}
    lines += [f"enum {{ MOST_{name} = {value} }};" for name, value in (most | {"LEVELS": len(levels)}).items()]
    lines.append("static Export exports[] = {")
    for export in exports:
        code = ", ".join(functions[export.name])
        lines.append(f'    {{"{export.name}", "{export.parameters}", "{export.results}", {{{code}}}}},')
    return "\n".join([*lines, "};", ""])


def link(target: Target, header: str, objects: list[bytes], scratch: Path, sanitize: bool) -> bytes:
    """Compile the C sources, and link them with the code of every level. Raises CalledProcessError."""
    scratch.mkdir()
    for path in C_SOURCES:
        (scratch / path.name).write_bytes(path.read_bytes())
    (scratch / "exports.h").write_text(header)
    for name, text in headers().items():
        (scratch / name).write_text(text)
    inputs = [path.name for path in C_SOURCES if path.suffix == ".c"]
    for index, code in enumerate(objects):
        inputs.append(f"level{index}.o")
        (scratch / inputs[-1]).write_bytes(code)
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    options = ["-O2", "-g0", "-s", "-fno-sanitize=all"]
    options += ["-Wl,-undefined,dynamic_lookup"] if "apple" in target.triple else ["-Wl,--build-id=none"]
    if sanitize:
        compiler = [os.environ.get("CC", "cc")]
        options = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        options.append("-fsanitize-coverage=trace-pc")
        inputs.append(str(COVERAGE))
    options += ["-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Werror"]
    subprocess.run(
        [*compiler, *options, "-o", FILE_NAME, *inputs],
        check=True,
        cwd=scratch,
        env={**os.environ, "ZIG_LOCAL_CACHE_DIR": str(scratch / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(scratch / "zig")},
    )
    return (scratch / FILE_NAME).read_bytes()


def main() -> None:
    """Build the modules of the targets given, by default of this machine, and print their paths."""
    parser = argparse.ArgumentParser(prog="python -m kwire.native.build", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--target", action="append", choices=[*TARGETS, "all"], help="platform, repeatable (default: this machine)"
    )
    names = parser.parse_args().target or [host_target() or THIS_MACHINE]
    if missing := [name for name in ("numba", "ziglang") if find_spec(name) is None]:
        sys.exit(f"{', '.join(missing)}: not installed; pip install 'kwire[jit]'")
    for path in build({name: folder_of(name) for name in (TARGETS if "all" in names else names)}):
        print(path)


if __name__ == "__main__":
    main()
