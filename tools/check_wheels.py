"""Check what of the wheels in a folder cannot be run on one machine, and print their sizes and digests.

    python tools/check_wheels.py FOLDER

The compiled module may use Python's stable ABI of 3.11 (abi3info lists it) and a few functions of the C library, of
a version that the platform tag promises. macOS on ARM loads no code without a signature. lief reads the files.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import abi3info
import lief
from abi3info.models import PyVersion
from packaging.utils import parse_wheel_filename

MODULE, WINDOWS_MODULE = "kwire/native/_kernels.abi3.so", "kwire/native/_kernels.pyd"
EXPORT = "PyInit__kernels"
LIBC = {"bcmp", "getauxval", "memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strlen"}
SYSTEM = {"__bzero", "__memcpy_chk", "bzero"}
"""macOS: what Apple's headers and compiler use for memcpy and memset, in every release."""
LOADER = {"dyld_stub_binder"}
"""macOS: binds the other functions when they are first called."""
LINKER = {"__dso_handle", "_mh_dylib_header"}
"""macOS: defined in every library."""
STARTUP = {"_CRT_INIT", "__mingw_module_is_dll", "atexit"}
"""Windows: defined in every library that MinGW links."""
WINDOWS_LIBRARIES = re.compile(r"kernel32\.dll|api-ms-win-crt-[\w-]+\.dll")
"""Every Windows 10 has them."""
MACOS = {"macosx_11_0_arm64": "ARM64", "macosx_11_0_x86_64": "X86_64"}


def stable_abi() -> set[str]:
    """Return the names of Python's stable ABI that 3.11 has."""
    entries = [*abi3info.FUNCTIONS.values(), *abi3info.DATAS.values()]
    return {entry.symbol.name for entry in entries if entry.added <= PyVersion(3, 11)}


def problems(path: Path) -> Iterator[str]:
    """Check one wheel."""
    *_, tags = parse_wheel_filename(path.name)
    with zipfile.ZipFile(path) as wheel:
        libraries = [name for name in wheel.namelist() if name.endswith((".so", ".dylib", ".pyd"))]
        (tag,) = tags
        module = WINDOWS_MODULE if tag.platform.startswith("win") else MODULE
        code = wheel.read(module) if module in libraries else b""
    if tag.platform == "any":
        if libraries or str(tag) != "py3-none-any":
            yield f"a wheel for any platform has {libraries} and the tag {tag}"
        return
    if libraries != [module] or (tag.interpreter, tag.abi) != ("cp311", "abi3"):
        yield f"expected {module} and the tag cp311-abi3, found {libraries} and {tag}"
        return
    binary = lief.parse(code)
    if isinstance(binary, lief.ELF.Binary):
        yield from elf_problems(binary, tag.platform)
    elif isinstance(binary, lief.MachO.Binary):
        yield from macho_problems(binary, tag.platform)
    elif isinstance(binary, lief.PE.Binary):
        yield from pe_problems(binary, tag.platform)
    else:
        yield f"{module}: neither ELF nor Mach-O nor PE"


def symbol_problems(used: set[str], exported: set[str]) -> Iterator[str]:
    """Check the names of what a module uses and defines."""
    if unknown := used - stable_abi() - LIBC - SYSTEM - LOADER:
        yield f"uses {sorted(unknown)}: neither in the stable ABI of Python 3.11 nor expected of the C library"
    if exported - LINKER != {EXPORT}:
        yield f"exports {sorted(exported)}, expected {EXPORT}"


def elf_problems(binary: lief.ELF.Binary, platform: str) -> Iterator[str]:
    """Check a module for Linux: manylinux_2_17_x86_64 promises glibc 2.17, musllinux_1_1_x86_64 musl 1.1."""
    named = [symbol for symbol in binary.dynamic_symbols if symbol.name]
    yield from symbol_problems(
        {str(each.name) for each in named if each.shndx == 0}, {str(each.name) for each in named if each.shndx != 0}
    )
    expected = re.fullmatch(r"(many|musl)linux_[12]_(\d+)_(\w+)", platform)
    if expected is None or binary.header.machine_type.name.lower() != expected[3]:
        yield f"code for {binary.header.machine_type.name}, platform tag {platform}"
    elif set(binary.libraries) - {library := "libc.so.6" if expected[1] == "many" else "libc.so"}:
        yield f"needs {binary.libraries}, expected no library but {library}"
    else:  # musl has no versions of its functions
        for required in binary.symbols_version_requirement:
            for version in (str(each.name) for each in required.get_auxiliary_symbols()):
                found = re.fullmatch(r"GLIBC_2\.(\d+)(\.\d+)?", version)
                if found is None or expected[1] == "musl" or int(found[1]) > int(expected[2]):
                    yield f"needs {version}, platform tag {platform}"


def macho_problems(binary: lief.MachO.Binary, platform: str) -> Iterator[str]:
    """Check a module for macOS: macosx_11_0_arm64 promises version 11.0."""
    yield from symbol_problems(
        {str(each.name).removeprefix("_") for each in binary.imported_symbols},
        {str(each.name).removeprefix("_") for each in binary.exported_symbols},
    )
    least = list(binary.build_version.minos[:2]) if binary.build_version else None
    if binary.header.cpu_type.name != MACOS.get(platform) or least != [11, 0]:
        yield f"code for {binary.header.cpu_type.name} and macOS {least}, platform tag {platform}"
    if set(names := [str(each.name) for each in binary.libraries]) != {Path(MODULE).name, "/usr/lib/libSystem.B.dylib"}:
        yield f"loads {names}, expected its own name and libSystem"
    if MACOS.get(platform) == "ARM64" and not binary.has_code_signature:
        yield "has no code signature, which arm64 requires"


def pe_problems(binary: lief.PE.Binary, platform: str) -> Iterator[str]:
    """Check a module for Windows: Python's functions are those of python3.dll, which has the stable ABI alone."""
    used = {str(library.name).lower(): {str(each.name) for each in library.entries} for library in binary.imports}
    exports = binary.get_export()
    exported = {str(each.name) for each in exports.entries} if exports else set()
    yield from symbol_problems(used.pop("python3.dll", set()), exported - STARTUP)
    if others := [name for name in used if not WINDOWS_LIBRARIES.fullmatch(name)]:
        yield f"needs {others}, expected kernel32 and the C library"
    if platform != "win_amd64" or binary.header.machine.name != "AMD64":
        yield f"code for {binary.header.machine.name}, platform tag {platform}"


def main() -> None:
    """Check all wheels of a folder."""
    lief.logging.disable()
    failed = False
    for path in sorted(Path(sys.argv[1]).glob("*.whl")):
        content = path.read_bytes()
        print(f"{path.name}  {len(content)} bytes  sha256 {hashlib.sha256(content).hexdigest()}")
        for problem in problems(path):
            failed = True
            print(f"{path.name}: {problem}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
