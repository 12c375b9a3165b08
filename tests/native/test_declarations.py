"""`native.h` declares Python's stable ABI by hand; Python's own headers, where they are installed, agree with it.

The compiler compares them: a function that is declared in two ways is an error, and so is a structure of another size
or with fields at other offsets.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from kwire.native.build import C_SOURCES

[HEADER] = (path for path in C_SOURCES if path.name == "native.h")
INCLUDES = Path(sysconfig.get_path("include"))
OURS = HEADER.read_text().partition("/* Of module.c */")[0]
DECLARATION = re.compile(r"^(?:extern )?(?!typedef|static|struct|enum|#|/| |\})[\w ]+[ *].*;$", re.MULTILINE)
STRUCT = re.compile(r"typedef struct \{\n(.*?)\n\} (\w+);", re.DOTALL)
CONSTANT = re.compile(r"(\w+) = ([^,;}]+)")
# Names that Python's headers have for the same thing: every object is a PyObject here.
SAME = """
#define _typeobject _object
#define PyCFunction OfPython
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#define PYTHON_DATA extern
#undef PyCFunction
#undef PyCFunction_NewEx
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *const *, Py_ssize_t);
"""

pytestmark = pytest.mark.skipif(not (INCLUDES / "Python.h").exists(), reason="Python's headers are not installed")


def program(header: str) -> str:
    """Return C that compiles only if a header agrees with Python's."""
    lines = [SAME]
    lines += [line for line in DECLARATION.findall(header) if "_Type" not in line.partition("(")[0]]
    for fields, name in STRUCT.findall(header):
        lines.append(f"struct Our{name} {{\n{fields}\n}};")
        lines.append(f'_Static_assert(sizeof(struct Our{name}) == sizeof({name}), "size of {name}");')
        if name != "PyMethodDef":
            outer = re.sub(r"struct \{.*?\} (\w+);", r"void *\1;", fields, flags=re.DOTALL)
            for field in re.findall(r"[ *](\w+)(?=[,;])", outer):
                same = f"offsetof(struct Our{name}, {field}) == offsetof({name}, {field})"
                lines.append(f'_Static_assert({same}, "{name}.{field}");')
    for body in re.findall(r"^enum \{(.*?)\};", header, re.MULTILINE | re.DOTALL):
        for name, value in CONSTANT.findall(body):
            lines.append(f'_Static_assert(({name}) == ({value}), "{name}");')
    return "\n".join(lines)


def compiled(source: str, folder: Path) -> str:
    """Return the compiler's errors."""
    path = folder / "declarations.c"
    path.write_text(source)
    compiler = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    command = [*compiler, "-fsyntax-only", f"-I{INCLUDES}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def test_pythons_headers_agree(tmp_path: Path) -> None:
    source = program(OURS)
    assert source.count("(") > 150
    assert compiled(source, tmp_path) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("PyObject *PyList_New(Py_ssize_t);", "PyObject *PyList_New(int);"),
        ("int PyObject_IsTrue(PyObject *);", "void PyObject_IsTrue(PyObject *);"),
        ("METH_FASTCALL = 0x80", "METH_FASTCALL = 0x40"),
        ("    Py_ssize_t offset;\n    int flags;", "    int flags;\n    Py_ssize_t offset;"),
        ("    int readonly, ndim;", "    int ndim, readonly;"),
    ],
)
def test_a_wrong_declaration_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    assert right in OURS
    assert "error:" in compiled(program(OURS.replace(right, wrong)), tmp_path)
