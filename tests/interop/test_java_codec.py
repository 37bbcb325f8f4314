"""Our codec against Kafka's own serializer, with fresh random messages in every run.

Kafka's current classes judge every version they have; those of 3.9.2 judge the older versions
that only they still had. A failing run is repeated with the seed that it prints.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from kraftwire import messages
from kraftwire.wire.message import Message
from tests.support.kafka.java import JavaPeer
from tests.support.kafka.java_cases import Case, Judge, check_each
from tests.support.messages.random_messages import random_message
from tests.support.messages.vectors import FOLDER, canonical, vectors
from tests.support.messages.write_vectors import file_name, vector_files


def test_every_message_version_of_kafka_is_ours(kafka: JavaPeer, old_kafka: JavaPeer) -> None:
    """No other test would notice a message or a version that is missing in the schemas."""
    theirs: dict[str, set[int]] = {}
    for peer in (kafka, old_kafka):
        for name, versions in peer.message_versions().items():
            theirs.setdefault(name, set()).update(versions)
    ours = {name: messages.find(name).VERSIONS for name in messages.names()}
    assert {
        name: set(range(versions.low, versions.high + 1)) for name, versions in ours.items()
    } == theirs


def test_kafkas_random_messages_are_read_and_written_as_kafka_does(judge: Judge) -> None:
    """Whatever Kafka writes: the same JSON, no byte left over, and the same bytes again."""
    peer, all_cases = judge
    answers = peer.ask(
        case.ask("random", seed=case.source.getrandbits(62), unknownTags=case.unknown_tags)
        for case in all_cases
    )
    check_each(_check_kafkas_message, zip(all_cases, answers, strict=True))


def _check_kafkas_message(case: Case, answer: dict[str, Any]) -> None:
    assert "error" not in answer, answer
    data = bytes.fromhex(answer["hex"])
    message, end = case.message_class.decode(data, case.version)
    assert canonical(message.to_json(case.version)) == canonical(answer["json"]), answer["hex"]
    assert end == len(data)
    assert message.encode(case.version).hex() == answer["hex"]
    if not case.unknown_tags:
        read = case.message_class.from_json(answer["json"], case.version)
        assert read.encode(case.version).hex() == answer["hex"], answer["json"]


def test_our_random_messages_are_read_and_written_by_kafka(judge: Judge) -> None:
    """Whatever we write: Kafka reads it, prints the same JSON and writes the same bytes."""
    peer, all_cases = judge
    ours = [
        random_message(
            case.message_class, case.version, case.source, unknown_tags=case.unknown_tags
        )
        for case in all_cases
    ]
    encoded = [message.encode(case.version) for case, message in zip(all_cases, ours, strict=True)]
    read = peer.ask(
        case.ask("read", hex=data.hex()) for case, data in zip(all_cases, encoded, strict=True)
    )
    check_each(_check_our_message, zip(all_cases, ours, encoded, read, strict=True))


def _check_our_message(
    case: Case, message: Message, data: bytes, answer: dict[str, Any]
) -> None:
    assert "error" not in answer, f"{answer} {data.hex()}"
    assert canonical(answer["json"]) == canonical(message.to_json(case.version)), data.hex()
    assert (answer["hex"], answer["rest"]) == (data.hex(), 0)
    decoded, end = case.message_class.decode(data, case.version)
    assert (decoded.encode(case.version), end) == (data, len(data))


def test_our_json_is_written_by_kafka_as_we_write_it(judge: Judge) -> None:
    """The JSON form is a separate contract: Kafka's converters must accept it."""
    peer, all_cases = judge
    all_cases = [case for case in all_cases if not case.unknown_tags]
    ours = [
        random_message(case.message_class, case.version, case.source, unknown_tags=False)
        for case in all_cases
    ]
    written = peer.ask(
        case.ask("write", json=message.to_json(case.version))
        for case, message in zip(all_cases, ours, strict=True)
    )
    check_each(_check_our_json, zip(all_cases, ours, written, strict=True))


def _check_our_json(case: Case, message: Message, answer: dict[str, Any]) -> None:
    assert answer.get("hex") == message.encode(case.version).hex(), answer


def test_kafka_agrees_with_the_golden_vectors(kafka: JavaPeer, old_kafka: JavaPeer) -> None:
    """Kafka confirms the files that machines without Java test against."""
    newer = kafka.message_versions()
    for peer, is_newer in ((kafka, True), (old_kafka, False)):
        mine = [
            vector
            for group in vectors().values()
            for vector in group
            if (vector.version in newer.get(vector.name, ())) == is_newer
        ]
        answers = peer.ask(
            {"op": "read", "name": v.name, "version": v.version, "hex": v.data.hex()} for v in mine
        )
        for vector, answer in zip(mine, answers, strict=True):
            expected = {"json": vector.printed, "rest": 0, "hex": vector.data.hex()}
            assert canonical(answer) == canonical(expected), vector


def test_kafka_writes_the_golden_vectors_again(kafka: JavaPeer, old_kafka: JavaPeer) -> None:
    """The program that writes the files must give the same ones, or nobody can add to them."""
    peers = {file_name(peer.release): peer for peer in (kafka, old_kafka)}
    for name, text in vector_files(FOLDER, peers).items():
        assert text == gzip.decompress((FOLDER / name).read_bytes()).decode(), name


def test_versions_without_golden_vectors_get_three(
    tmp_path: Path, kafka: JavaPeer, old_kafka: JavaPeer
) -> None:
    """As a new release of Kafka does: its versions are in no file, and the old file must stay."""
    older, newer = file_name(old_kafka.release), file_name(kafka.release)
    (tmp_path / older).write_bytes((FOLDER / older).read_bytes())
    recorded = (path for path in sorted(FOLDER.glob("*.jsonl.gz")) if path.name != older)
    texts = (gzip.decompress(path.read_bytes()).decode() for path in recorded)
    lines = "".join(texts).splitlines(keepends=True)
    held = [line for line in lines if not line.startswith('{"name":"VoteRequest","version":2,')]
    before = tmp_path / "kafka-4.0.0.jsonl.gz"
    before.write_bytes(gzip.compress("".join(held).encode()))
    files = vector_files(tmp_path, {newer: kafka, older: old_kafka})
    assert files[before.name] == "".join(held)
    made = [json.loads(line) for line in files[newer].splitlines()]
    assert [(row["name"], row["version"]) for row in made] == [("VoteRequest", 2)] * 3
    for row in made:
        message, _ = messages.find("VoteRequest").decode(bytes.fromhex(row["hex"]), 2)
        assert canonical(message.to_json(2)) == canonical(row["json"])
