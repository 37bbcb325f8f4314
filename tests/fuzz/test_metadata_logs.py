"""Metadata logs of any records in any order, for everything that reads such a log.

Kafka stores values that no one expects, and takes them from any client. No reader may fail at one,
and JSON has to stay JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli import main as cli
from kraftwire.controller.image import IncompleteImageError, MetadataImage
from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import build_columns
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from kraftwire.story.metadata.files import read_files
from kraftwire.story.metadata.rows import SUBJECTS, rows
from tests.fuzz.outcome import seed
from tests.support.messages.random_messages import SEED_VARIABLE
from tests.support.metadata.odd import odd_log

_LOGS, _RECORDS = 40, 60


@contextmanager
def _naming(number: int) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"{SEED_VARIABLE}={number} makes this log the first one")
        raise


def _logs(folder: Path) -> Iterator[tuple[Path, bytes]]:
    first = seed()
    directory = folder / "__cluster_metadata-0"
    directory.mkdir()
    for number in range(first, first + _LOGS):
        data = odd_log(number, _RECORDS)
        (directory / f"{0:020d}.log").write_bytes(data)
        with _naming(number):
            yield directory, data


def _no_constant(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@pytest.mark.parametrize(
    "command",
    [
        "metadata show DIR",
        "metadata show --json DIR",
        "metadata diff DIR@10 DIR",
        "metadata diff --json DIR@30 DIR",
        "story raft DIR",
        "story raft --json DIR",
        "decode DIR",
        "decode -v DIR",
        "decode --format jsonl DIR",
        "records DIR",
        "stats DIR",
    ],
)
def test_every_command_shows_any_log(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With an exit code of its own; JSON can be read."""
    shown = 0
    for directory, _ in _logs(tmp_path):
        capsys.readouterr()
        assert cli.main([word.replace("DIR", str(directory)) for word in command.split()]) in (
            (2,) if "diff" in command else (0, 3)
        )
        lines = capsys.readouterr().out.splitlines()
        shown += len(lines)
        if "json" in command:
            for line in [" ".join(lines)] if "story" in command else lines:
                json.loads(line, parse_constant=_no_constant)
    assert shown >= _LOGS


def test_the_logs_have_entities_of_every_kind(tmp_path: Path) -> None:
    """Readers that see next to nothing find nothing."""
    found: Counter[str] = Counter()
    for directory, _ in _logs(tmp_path):
        found.update(row.type for row in rows(read_files([directory]), SUBJECTS))
    assert set(found) >= {
        "AccessControlEntryRecord",
        "ClientQuotaRecord",
        "ConfigRecord",
        "DelegationTokenRecord",
        "FeatureLevelRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
        "UserScramCredentialRecord",
        "ZkMigrationStateRecord",
    }
    assert min(found.values()) >= 3, found


def test_a_node_replays_any_log(tmp_path: Path) -> None:
    """What it cannot apply is a problem; what it could apply can be written and read again."""
    frozen = 0
    for _, data in _logs(tmp_path):
        image = MetadataImage()
        for batch in read_batches(data):
            assert isinstance(batch, RecordBatch)
            image.replay(batch)
        assert image.next_offset >= _RECORDS
        assert image.problem
        image.problem, image.transaction_offset = "", -1
        try:
            values = list(image.freeze())
        except (IncompleteImageError, WireError):
            continue
        frozen += 1
        batch = RecordBatch(build_columns([0] * len(values), [None] * len(values), values))
        again = MetadataImage.load(OffsetAndEpoch(image.next_offset, 1), [batch])
        assert again.features == image.features
    assert frozen > 2


def test_a_subject_that_cannot_be_shown_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of this software is one line, after all that can be shown."""

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a fault")

    directory, _ = next(_logs(tmp_path))
    capsys.readouterr()
    for command in ("show DIR", "show --json DIR", "diff DIR@10 DIR"):
        with monkeypatch.context() as patched:
            words = [word.replace("DIR", str(directory)) for word in command.split()]
            cli.main(["metadata", *words])
            whole = capsys.readouterr()
            patched.setitem(SUBJECTS, "brokers", (fail,))
            assert cli.main(["metadata", *words]) == (2 if "diff" in command else 1)
            partly = capsys.readouterr()
        assert "brokers cannot be shown: ZeroDivisionError: a fault" in partly.err
        lines = partly.out.splitlines()
        assert set(lines) < set(whole.out.splitlines())
        assert lines[-1] == whole.out.splitlines()[-1]
