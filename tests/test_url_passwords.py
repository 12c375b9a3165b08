"""Passwords in URLs are found, and left out of messages."""

from __future__ import annotations

import pytest

from kwire.url_passwords import holds_password, without_user


@pytest.mark.parametrize(
    ("text", "has_one", "shown"),
    [
        ("http://h:8081/a:b@c", False, "http://h:8081/a:b@c"),
        ("http://ann@h", False, "http://h"),
        ("http://ann:@h", True, "http://h"),
        ("http://ann:s@cr:t@h/x@y", True, "http://h/x@y"),
        ("http://ann:s3cret@[h", True, "http://[h"),
        ("http://[::1]:80?q=a:b@c", False, "http://[::1]:80?q=a:b@c"),
        ("zip://*::sftp://u:p@h/file", True, "zip://*::sftp://h/file"),
        ("/folder/a:b@c", False, "/folder/a:b@c"),
    ],
)
def test_passwords_are_found_also_in_invalid_urls(text: str, has_one: bool, shown: str) -> None:
    assert (holds_password(text), without_user(text)) == (has_one, shown)
