"""Small files that are not small: refused with a bound, before they take memory or a disk."""

from __future__ import annotations

import gzip
import os
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.capture.tls import KeyLog
from kraftwire.decode.files import FileFinding, FileOptions, FileReport, decode_file
from kraftwire.decode.files.source import UNPACKED_FREE, UNPACKED_RATIO
from kraftwire.decode.files.state import ENTRIES_MAX, ODDITIES_MAX
from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.node.bootstrap import read_bootstrap
from kraftwire.node.config import load
from kraftwire.node.key_set_file import KeySetFile
from kraftwire.properties import Properties
from kraftwire.properties_file import read_properties
from kraftwire.security.settings import client_settings
from kraftwire.security.stores import read_key, read_roots
from kraftwire.small_files import SMALL_FILE_BYTES_MAX, read_small_file
from kraftwire.transport.login import login_of
from tests.support.commands.run import run_decode


def _findings(path: Path) -> list[FileFinding]:
    found: list[FileFinding] = []
    list(decode_file(path, FileOptions(), FileReport(found.append)))
    return found


@pytest.mark.parametrize("name", ["meta.properties", "quorum-state", "partition.metadata"])
def test_a_long_state_file_is_not_read(tmp_path: Path, name: str) -> None:
    """Kafka's have a few hundred bytes."""
    path = tmp_path / name
    path.write_bytes(b"version=1\n" + b"x=" + b"y" * SMALL_FILE_BYTES_MAX)
    (finding,) = _findings(path)
    assert (finding.id, finding.size) == ("unreadable-state", path.stat().st_size)
    assert "too many" in finding.detail


@pytest.mark.slow
def test_a_list_has_a_bounded_number_of_entries(tmp_path: Path) -> None:
    """A line of six bytes becomes an object of hundreds."""
    path = tmp_path / "recovery-point-offset-checkpoint"
    lines = b"a 0 0\n" * (ENTRIES_MAX + 1)
    path.write_bytes(b"0\n%d\n" % (ENTRIES_MAX + 1) + lines)
    (finding,) = _findings(path)
    assert finding.id == "unreadable-state"
    assert "at most 200,000 entries" in finding.detail
    path.write_bytes(b"0\n2\n" + b"a 0 0\n" * 2)
    assert _findings(path) == []


def test_findings_of_a_kind_are_folded(tmp_path: Path) -> None:
    """A list that goes back a thousand times is one problem."""
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n1000\n" + b"".join(b"%d 0\n" % (1000 - n) for n in range(1000)))
    found = _findings(path)
    assert len(found) == ODDITIES_MAX + 1
    assert found[-1].detail == f"{999 - ODDITIES_MAX} more of this kind"


@pytest.mark.slow
def test_a_compressed_file_must_not_become_far_more(tmp_path: Path) -> None:
    """A megabyte of zeros takes a kilobyte; the copy would fill the disk."""
    path = tmp_path / "00000000000000000000.log.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(350):
            file.write(bytes(1024 * 1024))
    most = UNPACKED_FREE + UNPACKED_RATIO * path.stat().st_size
    (finding,) = _findings(path)
    assert finding.id == "unreadable-file"
    assert str(most) in finding.detail


def test_entries_of_an_index_that_do_not_fit_are_folded(tmp_path: Path) -> None:
    """Each takes eight bytes, and was two lines of findings."""
    (tmp_path / f"{0:020d}.log").write_bytes(b"")
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(b"".join(struct.pack(">ii", 2000 - n, 2000 - n) for n in range(1000)))
    found = _findings(path)
    kinds = Counter(each.id for each in found)
    assert kinds == {"index-mismatch": ODDITIES_MAX + 1, "not-monotonic": ODDITIES_MAX + 1}
    assert {found[-2].detail, found[-1].detail} == {
        f"{1000 - ODDITIES_MAX} more of this kind",
        f"{999 - ODDITIES_MAX} more of this kind",
    }


def _store(path: str) -> object:
    settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": path}
    return read_roots(Properties.of(settings, "test"))


def _key_store(path: str) -> object:
    settings = {"ssl.keystore.location": path, "ssl.keystore.password": "any"}
    return read_key(Properties.of(settings, "test"))


def _token(path: str) -> object:
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas,
        "sasl.login.callback.handler.class": handler,
        "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
    }
    return login_of(client_settings(Properties.of(settings, "test")))


REFUSED = (OSError, UsageError, StorageError)
READERS: dict[str, Callable[[str], object]] = {
    "any small file": read_small_file,
    "properties": read_properties,
    "a node's configuration": load,
    "trust store": _store,
    "token": _token,
    "key set": KeySetFile,
    "key store": _key_store,
    "key log": KeyLog.read,
    "state file": LocalFiles().read_bytes,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_small_file_that_never_ends_is_refused(reader: str, tmp_path: Path) -> None:
    """Such as a device, given by mistake, or a pipe to which nobody writes."""
    with pytest.raises(REFUSED, match="a device, not a regular file"):
        READERS[reader]("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(REFUSED, match="a pipe, not a regular file"):
        READERS[reader](str(tmp_path / "pipe"))


@pytest.mark.parametrize("reader", [each for each in READERS if each != "key log"])
def test_a_long_file_is_no_small_one(reader: str, tmp_path: Path) -> None:
    """A key log grows with its connections."""
    path = tmp_path / "long"
    path.write_bytes(bytes(SMALL_FILE_BYTES_MAX + 1))
    with pytest.raises(REFUSED, match="longer than 1048576 bytes"):
        READERS[reader](str(path))


@pytest.mark.parametrize("kind", ["auto", "file", "hex", "frames"])
def test_an_input_that_never_ends_is_refused(kind: str) -> None:
    """A pipe ends with its writer; a device may not."""
    found = run_decode("--input", kind, "/dev/zero")
    assert found.code == 1
    assert found.err.startswith("kraftwire: /dev/zero: cannot ")
    assert "a device, not a file or a pipe" in found.err


@pytest.mark.parametrize("reader", READERS)
def test_a_path_with_a_nul_is_refused(reader: str) -> None:
    """No system has such a name; it ended in a traceback."""
    with pytest.raises(REFUSED, match=r"embedded null byte|no URL"):
        READERS[reader]("/dev\0zero")


def _linked(name: str, folder: Path) -> None:
    (folder / name).symlink_to("/dev/zero")


def _pipe(name: str, folder: Path) -> None:
    os.mkfifo(folder / name)


@pytest.mark.parametrize("make", [_linked, _pipe])
def test_what_is_no_file_is_none_of_a_replica(
    make: Callable[[str, Path], None], tmp_path: Path
) -> None:
    """A pipe in the place of a state file kept a command, and a node, waiting for ever."""
    for name in ("quorum-state", "meta.properties", "partition.metadata", "bootstrap.checkpoint"):
        make(name, tmp_path)
    path = str(tmp_path / "quorum-state")
    files = LocalFiles()
    readers: list[Callable[[str], object]] = [files.read_bytes, files.open, files.open_to_read]
    for read in readers:
        with pytest.raises(StorageError, match="not a regular file"):
            read(path)
    with pytest.raises(StorageError, match="not a regular file"):
        read_bootstrap(str(tmp_path), "__cluster_metadata")


def test_a_replica_reads_no_long_state_file(tmp_path: Path) -> None:
    """Its own are small, whoever wrote to the directory."""
    path = tmp_path / "quorum-state"
    path.write_bytes(bytes(SMALL_FILE_BYTES_MAX + 1))
    with pytest.raises(StorageError, match="longer than"):
        LocalFiles().read_bytes(str(path))
    path.write_bytes(bytes(SMALL_FILE_BYTES_MAX))
    assert len(LocalFiles().read_bytes(str(path))) == SMALL_FILE_BYTES_MAX
