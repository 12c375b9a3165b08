"""Model -> Python source of message classes; runs when kwire is built and for users' own definitions."""

from kwire.codegen.classes import message_source, module_name
from kwire.codegen.package import catalogue_files, package_files, stale_files, write_files

__all__ = ["catalogue_files", "message_source", "module_name", "package_files", "stale_files", "write_files"]
