"""Wheels with the compiled kernels: hatchling calls this when it builds one.

KWIRE_WHEEL_TARGET selects the platform: a target of `kwire.native.build`, or `any` for a wheel without compiled code.
The default is this machine's platform. An editable install has no wheel: `python -m kwire.native.build` puts the
module into the checkout.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "KWIRE_WHEEL_TARGET"
WITHOUT_CODE = "any"


class Kernels(BuildHookInterface[Any]):
    """Compiles the kernels of the wheel's platform, puts them into the wheel, and names the platform in its tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the install is editable or the wheel is for any platform."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        from kwire.native.build import TARGETS, build, folder_of, host_target

        name = os.environ.get(VARIABLE) or host_target() or WITHOUT_CODE
        if name == WITHOUT_CODE:
            return
        if name not in TARGETS:
            raise ValueError(f"{VARIABLE}={name}: expected one of {', '.join(TARGETS)}, {WITHOUT_CODE}")
        (path,) = build({name: folder_of(name)})
        build_data["force_include"][str(path)] = f"kwire/native/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{TARGETS[name].wheel}"
