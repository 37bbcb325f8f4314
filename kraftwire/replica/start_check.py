"""Whether a node would start with its directories, found out without changing them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kraftwire.errors import KraftwireError, StorageError
from kraftwire.log.files import Files, InUseError
from kraftwire.log.meta_properties import read_meta_properties
from kraftwire.log.names import LOCK_FILE, META_PROPERTIES_FILE, join
from kraftwire.log.trial import TrialFiles
from kraftwire.replica.storage import Directories, Storage

_LOG = logging.getLogger("kraftwire.log")


@dataclass(frozen=True, slots=True)
class StartCheck:
    """The result of a start on trial: the repairs before it, and the reason if it is refused."""

    refusal: str | None
    repairs: tuple[str, ...]


class _Repairs(logging.Handler):
    """Collects what the log package says about repairs."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.texts = texts

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def refusal_of(folder: str, files: Files) -> str | None:
    """Return why a node does not start on a log directory, judged by its meta.properties.

    None if it starts, and where a process uses the directory: then nothing can be said.
    """
    try:
        meta = read_meta_properties(files, join(folder, META_PROPERTIES_FILE))
    except StorageError as error:
        return str(error)
    directories = Directories(node_id=meta.node_id if meta else 0, metadata=folder)
    return None if is_in_use(directories, files) else check_start(directories, files).refusal


def check_start(directories: Directories, files: Files) -> StartCheck:
    """Open a node's directories as its start does; every change stays in memory.

    Order: no process uses the directories, see `is_in_use`.
    """
    repairs: list[str] = []
    refusal = None
    try:
        with opened_on_trial(directories, files, repairs) as storage:
            storage.stored_state()
    except KraftwireError as error:
        refusal = str(error)
    return StartCheck(refusal, tuple(repairs))


@contextmanager
def opened_on_trial(
    directories: Directories, files: Files, repairs: list[str]
) -> Iterator[Storage]:
    """Open a node's directories without a lock and without a change on disk.

    What a start would repair is added to `repairs`. Raises: UsageError and StorageError as
    `Storage.open`.
    """
    trial, handler = TrialFiles(files), _Repairs(repairs)
    propagates, _LOG.propagate = _LOG.propagate, False
    _LOG.addHandler(handler)
    try:
        storage = Storage.open(replace(directories, is_self_formatted=False), trial)
        try:
            yield storage
        finally:
            storage.close()
    finally:
        _LOG.removeHandler(handler)
        _LOG.propagate = propagates
        trial.close()


def is_in_use(directories: Directories, files: Files) -> bool:
    """Whether another process has locked one of the directories; makes no lock file."""
    for directory in directories.all:
        path = join(directory, LOCK_FILE)
        if files.exists(path):
            try:
                files.lock(path).close()
            except InUseError:
                return True
            except StorageError:
                continue  # such as a lock file that must not be written to
    return False
