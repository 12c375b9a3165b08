"""Code generation: message classes as Python source, for Kafka's definitions and users' own."""

from kwire.codegen.classes import message_source, module_name
from kwire.codegen.package import catalogue_files, package_errors, package_files, stale_files, write_files

__all__ = [
    "catalogue_files",
    "message_source",
    "module_name",
    "package_errors",
    "package_files",
    "stale_files",
    "write_files",
]
