"""The registry and the reader's schema that options name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.url_passwords import holds_password

if TYPE_CHECKING:
    from kwire.schemas import Registry
    from kwire.schemas.choice import SchemaChoice

__all__ = ["open_registry", "schema_choice"]


def schema_choice(
    registry: str | None, config_file: str | None, options: Mapping[str, str | None], depth: int | None = None
) -> SchemaChoice | None:
    """Return the choice of --registry, --registry-config, and of options by their names; None without any.

    depth: of --recursive-field-max-depth.
    Raises OptionError, RegistryError; LogError for a topic `_schemas`.
    """
    from kwire.schemas.choice import SchemaChoice

    # wrong usage is reported before the registry is read
    given = {**options, "schema": _schema_of(options["schema"]), "recursive_field_max_depth": depth}
    return SchemaChoice.of_options(open_registry(registry, config_file), given)


def open_registry(registry: str | None, config_file: str | None) -> Registry | None:
    """Open the registry of --registry with the settings of a file. Messages never contain a value of it.

    Raises OptionError, RegistryError; LogError for a topic `_schemas`.
    """
    if registry is None:
        if config_file is not None:
            raise OptionError("--registry-config: requires --registry")
        return None
    from kwire.cli.client_configs import read_properties
    from kwire.schemas import Registry, choice
    from kwire.schemas.http import HttpSettings

    if holds_password(registry):
        raise OptionError("--registry: secrets on a command line are visible to others; use --registry-config")
    if config_file is None:
        return choice.open_registry(registry)
    return Registry(registry, **HttpSettings.from_text(read_properties(config_file)))


def _schema_of(schema: str | None) -> str | int | None:
    """Return the reader's schema of --schema: latest, union, an id, or the text in a file. Raises OptionError."""
    if schema is None or schema in ("latest", "union"):
        return schema
    if schema.isdecimal():
        return int(schema)
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise OptionError(f"--schema: expected latest, union, an id or a file; '{schema}': {what}") from None
