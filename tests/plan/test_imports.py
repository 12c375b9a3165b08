"""What imports of the codec load."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.waiting import HANG_S


@pytest.mark.parametrize("module", ["kwire.native", "kwire.plan", "kwire.messages", "kwire.protocol"])
def test_imports_leave_the_heavy_libraries_alone(module: str) -> None:
    program = f"""
import sys
import {module}
from kwire.messages import MetadataRequest
assert MetadataRequest.decode(MetadataRequest().encode(version=9), version=9) == MetadataRequest()
print([name for name in ('numpy', 'pyarrow') if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
