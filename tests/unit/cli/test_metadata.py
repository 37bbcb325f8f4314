"""`kraftwire metadata`: arguments, tables, JSON lines and exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.wire.message import Message
from tests.support.metadata.files import SOUND, write_segment, write_snapshot

GOLDEN = "tests/golden/logs/controller"
EVERYTHING: list[Message] = [
    *SOUND,
    ConfigRecord(resource_type=4, resource_name="3", name="ssl.key.password", value="hush-hush"),
    ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name="alice")], key="request", value=12.5
    ),
    UserScramCredentialRecord(
        name="alice", mechanism=2, salt=b"hush-hush", stored_key=b"hush-hush", iterations=8192
    ),
    AccessControlEntryRecord(
        id=b"1" * 16, resource_type=2, resource_name="or", pattern_type=4, principal="User:alice",
        host="*", operation=3, permission_type=2,
    ),
    DelegationTokenRecord(owner="User:alice", requester="User:alice", token_id="token-1"),
    ProducerIdsRecord(broker_id=3, broker_epoch=2, next_producer_id=1000),
]  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command; returns exit code, output and errors."""
    code = cli.main(["metadata", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log directory with an entity of each kind."""
    write_segment(tmp_path / "data" / "__cluster_metadata-0", EVERYTHING)
    return tmp_path / "data"


def test_tables_fit_80_columns_and_hide_secrets(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every subject is there, and no password is."""
    code, out, _ = run(capsys, "show", log)
    assert code == 0
    for words in (
        "metadata.version     27       0",
        "3  fenced      2       1",
        "orders-0   3          -1  3    3              3",
        "broker 3  ssl.key.password  [redacted]       4",
        "user alice  request   12.5       5",
        "alice  SCRAM-SHA-512        8192       6",
        "User:alice  *     deny READ  TOPIC or*       7",
        "token-1  User:alice  none      1970-01-01T00:00:00.000Z       8",
        "1000       3             2       9",
    ):
        assert words in out
    assert "hush" not in out
    assert max(map(len, out.splitlines()[1:])) <= 80


def test_json_has_a_line_for_each_entity(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line is about the log; fields are those of the schemas."""
    code, out, _ = run(capsys, "show", log, "topics", "users", "--json")
    head, topic, partition, user = map(json.loads, out.splitlines())
    assert code == 0
    assert (head["subject"], head["offset"], head["isComplete"]) == ("log", 9, True)
    assert (topic["type"], topic["data"]["name"]) == ("TopicRecord", "orders")
    assert (partition["topic"], partition["lastChangedOffset"]) == ("orders", 3)
    assert partition["data"]["isr"] == [3]
    assert user["data"]["storedKey"] == "[redacted]"
    assert "aHVzaC1odXNo" not in out


def test_a_real_log_at_an_offset(capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka's own: from offset 0 as it was, and from a snapshot as it is."""
    code, out, _ = run(capsys, "show", GOLDEN, "topics", "--at", 200, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert lines[0]["snapshot"] is None
    assert all(line["isExact"] for line in lines[1:])
    code, out, _ = run(capsys, "show", GOLDEN, "voters", "--json")
    head, *voters = map(json.loads, out.splitlines())
    assert head["snapshot"] == {"offset": 1156, "epoch": 4}
    assert [each["data"]["voterId"] for each in voters] == [1, 2, 3]


def test_a_log_that_lacks_records_has_an_exit_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script must not take a part for the whole."""
    path = write_segment(tmp_path / "__cluster_metadata-0", SOUND[1:2], 100)
    code, out, _ = run(capsys, "show", path)
    assert code == 3
    assert "missing: offsets 0 to 99" in out
    assert "Brokers" in out
    assert run(capsys, "diff", path, path)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show"], "name the files of a log, or --bootstrap-controller"),
        (["show", GOLDEN, "--bootstrap-controller", "h:1"], "or --bootstrap-controller"),
        (["show", GOLDEN, "bokers"], "bokers: no such file or folder, and no subject"),
        (["show", GOLDEN, "--at", "5000"], "there is no offset 5000"),
        (["diff", GOLDEN, GOLDEN, "bokers"], "there is no subject 'bokers'"),
    ],
)
def test_wrong_usage(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line and exit code 2."""
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert words in err


def test_diff_has_the_exit_codes_of_diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 the same, 1 different, 2 trouble; a snapshot is compared with the log before it."""
    folder = tmp_path / "__cluster_metadata-0"
    write_segment(folder, EVERYTHING)
    snapshot = write_snapshot(tmp_path / "snapshot", EVERYTHING, 10)
    assert run(capsys, "diff", folder, snapshot) == (0, "", "")
    code, out, _ = run(capsys, "diff", f"{folder}@3", folder)
    assert code == 1
    assert out.splitlines()[0] == "+ config broker 3 ssl.key.password"
    assert run(capsys, "diff", f"{folder}@3", folder, "topics") == (0, "", "")
    assert run(capsys, "diff", f"{folder}@3", folder, "-q") == (1, "", "")
    code, out, _ = run(capsys, "diff", f"{folder}@3", folder, "--json", "quotas")
    assert json.loads(out)["change"] == "added"
    code, _, err = run(capsys, "diff", folder, tmp_path / "nowhere")
    assert code == 2
    assert "no such file" in err


def test_quotas_are_shown_as_kafka_prints_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka takes numbers that are none from any client; the tables after them are shown, too."""
    texts = {
        "plain": (1000.0, "1000.0"), "nan": (math.nan, "NaN"), "inf": (math.inf, "Infinity"),
        "low": (-math.inf, "-Infinity"), "tiny": (5e-324, "4.9E-324"), "huge": (1.7e308, "1.7E308"),
        "zero": (-0.0, "-0.0"), "share": (12.5, "12.5"),
    }  # fmt: skip
    quotas = [
        ClientQuotaRecord(
            entity=[EntityData(entity_type="user", entity_name=name)], key="rate", value=value
        )
        for name, (value, _) in texts.items()
    ]
    folder = tmp_path / "__cluster_metadata-0"
    write_segment(folder, [*SOUND, *quotas, ProducerIdsRecord(next_producer_id=7)])
    code, out, _ = run(capsys, "show", folder)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    for name, (_, text) in texts.items():
        assert ["user", name, "rate", text] in [line[:4] for line in lines]
    assert "Producer ids" in out
    code, out, _ = run(capsys, "show", folder, "--json", "quotas")
    assert [json.loads(line)["data"]["value"] for line in out.splitlines()[2:4]] == [
        "Infinity", "-Infinity",
    ]  # fmt: skip
    assert run(capsys, "diff", folder, folder)[:2] == (0, "")
    assert cli.main(["story", "raft", str(folder)]) == 0
    assert "user nan rate=NaN" in capsys.readouterr().out
