"""A real KDC of MIT Kerberos on loopback, with its own realm, files and keys.

It needs Debian's krb5-kdc and krb5-admin-server, and the library `gssapi`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftwire.testing.ports import free_ports

REALM = "KAFKA.TEST"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
# Debian puts them where only root looks.
_PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_READY_SECONDS_MAX = 30


class Kdc:
    """A realm; `environment` lets programs find its KDC, Java's among them."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        conf, kdc = folder / "krb5.conf", folder / "kdc.conf"
        place = f"127.0.0.1:{port}"
        conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {place}\n }}\n"
        )
        kdc.write_text(
            f"[kdcdefaults]\n kdc_listen = {place}\n kdc_tcp_listen = {place}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n"
            f"  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n"
            f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
        )
        self.environment = {
            "KRB5_CONFIG": str(conf),
            "KRB5_KDC_PROFILE": str(kdc),
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={conf}",
        }
        self._run("kdb5_util", "create", "-s", "-P", "master-secret", "-r", REALM)

    def keys(self, name: str, *principals: str) -> Path:
        """Make principals with random keys, and a file of these."""
        path = self.folder / f"{name}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def login(self, keys: Path, principal: str, *, seconds: int = 3600) -> Path:
        """Fetch a ticket that is valid for so long into a cache of its own."""
        cache = self.folder / f"cache-{seconds}"
        lifetime = f"{seconds}s"
        self._run("kinit", "-k", "-l", lifetime, "-t", str(keys), "-c", str(cache), principal)
        return cache

    def change_keys(self, principal: str) -> None:
        """Give a principal other keys, so that those of its files are wrong."""
        self._run("kadmin.local", "-q", f"cpw -randkey {principal}")

    def _run(self, *words: str) -> None:
        environment = os.environ | self.environment | {"PATH": _PATH}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    """Run a KDC, which this process and what it starts find meanwhile.

    The test is skipped where its programs or the library are not installed.
    """
    missing = [each for each in _PROGRAMS if shutil.which(each, path=_PATH) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: install krb5-kdc and krb5-admin-server")
    if importlib.util.find_spec("gssapi") is None:
        pytest.skip("the library gssapi is not installed: pip install 'kraftwire[kerberos]'")
    (port,) = free_ports(1)
    kdc = Kdc(folder, port)
    program = shutil.which("krb5kdc", path=_PATH)
    assert program is not None
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen([program, "-n"], env=os.environ | kdc.environment) as process,
    ):
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        try:
            keys = kdc.keys("probe", "probe")
            deadline = time.monotonic() + _READY_SECONDS_MAX
            while True:
                try:
                    kdc.login(keys, "probe")
                    break
                except AssertionError:
                    assert time.monotonic() < deadline, "the KDC does not answer"
                    assert process.poll() is None, "the KDC has ended"
            yield kdc
        finally:
            process.terminate()


def jaas(keys: Path, principal: str) -> str:
    """The JAAS entry of somebody whose keys are in a file, for both ends."""
    options = f'useKeyTab=true storeKey=true keyTab="{keys}" principal="{principal}@{REALM}"'
    return f"{MODULE} {options};"
