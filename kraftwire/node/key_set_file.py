"""The key set of an identity provider in a file, which another program keeps up to date.

A new version counts from the next login on; one that cannot be read is reported, and the old one
stays.
"""

from __future__ import annotations

import os

from kraftwire.errors import UsageError
from kraftwire.node.logs import log
from kraftwire.security.jwks import KeySet, TokenChecks
from kraftwire.security.oauth import BearerToken
from kraftwire.small_files import read_small_file


class KeySetFile:
    """A file with a key set. Raises: UsageError if it cannot be read at first."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = self._file_version()
        self._keys = self._read()

    def validate(self, token: str, checks: TokenChecks, now_ms: int) -> BearerToken:
        """Return the verified claims of a token, by the newest key set. Raises: TokenError."""
        return self._current().validate(token, checks, now_ms)

    def _current(self) -> KeySet:
        version = self._file_version()
        if version != self._version:
            self._version = version
            try:
                self._keys = self._read()
                log("info", "key-set", file=self._path, keys=len(self._keys))
            except UsageError as error:
                log("error", "key-set-kept", file=self._path, problem=error)
        return self._keys

    def _file_version(self) -> tuple[int, int, int]:
        """Return inode, size and time of the file, which change with its content."""
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            return (0, 0, 0)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> KeySet:
        try:
            return KeySet(read_small_file(self._path))
        except OSError as error:
            raise UsageError(f"{self._path}: {error.strerror or error}") from error
        except UsageError as error:
            raise UsageError(f"{self._path}: {error}") from None
