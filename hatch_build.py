"""Wheels with the compiled kernels, and a README whose links work where it is shown: hatchling calls this.

KWIRE_WHEEL_TARGET selects the platform: a target of `kwire.native.build`, or `any` for a wheel without compiled code.
The default is this machine's platform. An editable install has no wheel: `python -m kwire.native.build` puts the
module into the checkout.

`repository` of pyproject.toml is the address of the published repository, to which project URLs and links then lead.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "KWIRE_WHEEL_TARGET"
WITHOUT_CODE = "any"


class Kernels(BuildHookInterface[Any]):
    """Compiles the kernels of the wheel's platform, puts them into the wheel, and names the platform in its tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the install is editable or the wheel is for any platform."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        os.environ.setdefault("KWIRE_KERNEL", "0")  # what is about to be compiled is not missing
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


class Readme(MetadataHookInterface):
    """Sets the README, and the project's URLs if the repository is published."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        repository, tag = self.config["repository"].rstrip("/"), f"v{metadata['version']}"
        text = with_links(Path(self.root, "README.md").read_text("utf-8"), repository and f"{repository}/blob/{tag}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = (
            {}
            if not repository
            else {
                "Documentation": f"{repository}/blob/{tag}/docs/quickstart.md",
                "Source": repository,
                "Changes": f"{repository}/blob/{tag}/CHANGELOG.md",
            }
        )


def with_links(text: str, base: str) -> str:
    """Return Markdown with links below a base URL in place of relative ones; without one, with the names of the files.

    Package indexes show the text where no other file of the repository is.
    """
    link = re.compile(r"\[([^]\[]+)\]\((?![a-z]+:|#)([^)\s]+)\)")
    if base:
        return link.sub(rf"[\1]({base}/\2)", text)
    return link.sub(lambda found: f"{found[1]} (`{found[2].partition('#')[0]}`)", text)
