"""A Kerberos realm of MIT's KDC, in a folder of the test and on a free port of loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType

import pytest
from tools.kafka import Unavailable, free_port

from tests.waiting import HANG_S, until

__all__ = ["REALM", "Realm", "need_gssapi"]

REALM = "KWIRE.TEST"
SKEW_S = 1
"""Tolerance of clocks; MIT's default of five minutes accepts tickets that long after they have expired."""
INSTALL = "is not installed; on Debian or Ubuntu: apt-get install krb5-kdc krb5-admin-server krb5-user"


def need_gssapi() -> None:
    """Raise Unavailable without the package gssapi."""
    try:
        import gssapi  # noqa: F401
    except ImportError:
        raise Unavailable("gssapi: apt-get install gcc libkrb5-dev, then pip install gssapi") from None


class Realm:
    """A realm, as a context manager. While it is open, this process and its children use its krb5.conf.

    keytab: of the principals that were added.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.config, self.keytab = folder / "krb5.conf", folder / "all.keytab"
        self._process: subprocess.Popen[bytes] | None = None
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Realm:
        server = program("krb5kdc")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" dns_canonicalize_hostname = false\n rdns = false\n clockskew = {SKEW_S}\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        listen = f"127.0.0.1:{self.port}"
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {listen}\n kdc_tcp_listen = {listen}\n[realms]\n {REALM} = {{\n"
            f"  database_name = {self.folder}/principal\n  key_stash_file = {self.folder}/stash\n }}\n"
        )
        self._patch.setenv("KRB5_CONFIG", str(self.config))
        self._patch.setenv("KRB5_KDC_PROFILE", str(self.folder / "kdc.conf"))
        self._patch.setenv("KRB5CCNAME", f"FILE:{self.folder}/no.cache")
        self._patch.setenv("KRB5RCACHENAME", f"file2:{self.folder}/replays")
        run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        with (self.folder / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen([server, "-n", "-r", REALM], stdout=log, stderr=log)
        until(self._is_up, "the KDC did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=HANG_S)
        self._patch.undo()

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "kdc.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def add(self, *principals: str) -> None:
        """Create principals, with their keys in the keytab."""
        for principal in principals:
            run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
            run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {self.keytab} {principal}")

    def log_in(self, principal: str, *, life_s: int = 3600) -> str:
        """Return a cache with a ticket-granting ticket."""
        cache = f"FILE:{self.folder}/{principal.replace('/', '_')}.{life_s}.cache"
        run("kinit", "-k", "-t", str(self.keytab), "-l", f"{life_s}s", "-c", cache, principal)
        return cache


def program(name: str) -> str:
    """Return the path of one of MIT's programs. Raises Unavailable."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
    if found is None:
        raise Unavailable(f"{name} {INSTALL}")
    return found


def run(name: str, *arguments: str) -> str:
    """Run one of MIT's programs and return its output."""
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
