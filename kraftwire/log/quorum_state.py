"""The file with an epoch's leader and this replica's vote.

It is one line of JSON. Version 0 goes with kraft.version 0: it names the voters and loses the
directory id of the vote; version 1 goes with kraft.version 1. -1 stands for none.

A second line holds the CRC-32C of the first: a flipped bit in a number would read as another vote.
Kafka reads only the first line and writes no second one. It writes the file at each start, so a
file without a checksum also shows that another implementation used the directory last.

Source: Kafka's `FileQuorumStateStore` and `QuorumStateData`; rules R-ID-9 and R-ID-10.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kraftwire.errors import StorageError
from kraftwire.log.files import Files, replace_file
from kraftwire.records.crc import crc32c
from kraftwire.wire.fast import ZERO_UUID

_LOG = logging.getLogger(__name__)

_NOBODY = -1
_INT32_MAX = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The leader of an epoch and this replica's vote in it.

    `leader_id` and `voted_id` are -1 for none; the zero uuid means no directory id.
    """

    epoch: int = 0
    leader_id: int = _NOBODY
    voted_id: int = _NOBODY
    voted_directory_id: bytes = ZERO_UUID


class QuorumStateFile:
    """The quorum-state file of a replicated log's directory."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def read(self) -> QuorumState | None:
        """Return what was written last, None if nothing ever was.

        Raises: StorageError for a file that cannot be read: without it a replica could vote twice
        in an epoch (KAFKA-15412).
        """
        lines = self._lines()
        if lines is None:
            return None
        line = lines[0]
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._bad("one line of JSON", f"{line[:60]!r}") from error
        if not isinstance(data, dict):
            raise self._bad("a JSON object", f"{line[:60]!r}")
        version = data.get("data_version")
        if type(version) is not int or version not in (0, 1):
            raise self._bad("data_version 0 or 1", repr(version))
        directory_id = self._uuid(data, "votedDirectoryId") if version else ZERO_UUID
        return QuorumState(
            epoch=self._number(data, "leaderEpoch", 0),
            leader_id=self._number(data, "leaderId", _NOBODY),
            voted_id=self._number(data, "votedId", _NOBODY),
            voted_directory_id=directory_id,
        )

    def voter_ids(self) -> tuple[int, ...]:
        """Return the ids of the voters that a file of version 0 names, else none.

        Raises: StorageError as `read`.
        """
        if self.read() is None:
            return ()
        lines = self._lines()
        assert lines is not None
        named = json.loads(lines[0]).get("currentVoters") or ()
        try:
            ids = tuple(int(one["voterId"]) for one in named)
        except (KeyError, TypeError, ValueError) as error:
            raise self._bad("ids of voters for currentVoters", repr(named)[:60]) from error
        return ids

    def write(self, state: QuorumState, kraft_version: int, voters: Iterable[int]) -> None:
        """Replace the file; durable on return (D1).

        `voters` are the ids of the current voters, which only version 0 holds. Raises:
        StorageError.
        """
        self._replace(_line(state, kraft_version, voters))

    @property
    def is_foreign(self) -> bool:
        """Whether another implementation wrote the file last. Raises: StorageError as `read`."""
        lines = self._lines()
        return lines is not None and not lines[1]

    def adopt(self) -> None:
        """Add the checksum to another implementation's file, durably. Raises: StorageError."""
        if self.is_foreign:
            lines = self._lines()
            assert lines is not None
            _LOG.info("%s: written by another implementation, now with a checksum", self.path)
            self._replace(lines[0])

    def _lines(self) -> tuple[bytes, bytes] | None:
        """Return the first line and its checksum, which other implementations omit."""
        if not self._files.exists(self.path):
            return None
        line, _, rest = self._files.read_bytes(self.path).partition(b"\n")
        if rest and rest != checksum_line(line):
            expected, found = checksum_line(line).decode(), repr(rest[:40].decode("latin-1"))
            raise self._bad(f"{expected!r} in the second line", f"{found}, so the file is damaged")
        return line, rest

    def _replace(self, line: bytes) -> None:
        replace_file(self._files, self.path, line + b"\n" + checksum_line(line))

    def _number(self, data: dict[str, Any], key: str, least: int) -> int:
        value = data.get(key)
        if type(value) is not int or not least <= value <= _INT32_MAX:
            raise self._bad(f"a number from {least} for {key}", repr(value))
        return value

    def _uuid(self, data: dict[str, Any], key: str) -> bytes:
        text = data.get(key)
        if isinstance(text, str) and len(text) == 22:
            try:
                return base64.b64decode(text.encode() + b"==", b"-_", validate=True)
            except (binascii.Error, UnicodeError):
                pass
        raise self._bad(f"22 characters of base64 for {key}", repr(text))

    def _bad(self, expected: str, found: str) -> StorageError:
        return StorageError(
            f"expected {expected}, found {found}; this replica may have voted, and must not forget "
            "for whom: restore the file, or let the replica rejoin the quorum with a new "
            "directory",
            file=self.path,
            position=0,
        )


def checksum_line(line: bytes) -> bytes:
    """Return the second line for a first one."""
    return b"crc32c %08x" % crc32c(line)


def _line(state: QuorumState, kraft_version: int, voters: Iterable[int]) -> bytes:
    data: dict[str, Any]
    if kraft_version == 0:
        data = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    else:
        data = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": base64.urlsafe_b64encode(state.voted_directory_id)[:22].decode(),
            "data_version": 1,
        }
    return json.dumps(data, separators=(",", ":")).encode()
