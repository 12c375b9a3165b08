"""Passwords in URLs, which messages must not show. Standard library only."""

from __future__ import annotations

import re

__all__ = ["holds_password", "without_user"]

PASSWORD = re.compile(r"://[^/?#]*:[^/?#]*@")
USER = re.compile(r"://[^/?#]*@")


def holds_password(text: str) -> bool:
    """Return whether a URL in a text holds a password, also of one in another (`zip://*::sftp://u:p@host/file`).

    Never raises, also where urllib does: for half a pair of brackets.
    """
    return PASSWORD.search(text) is not None


def without_user(url: str) -> str:
    """Return a URL without user name and password."""
    return USER.sub("://", url, count=1)
