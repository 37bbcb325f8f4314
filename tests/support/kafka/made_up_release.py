"""Jars of a made-up Kafka release, where programs look for those that Maven fetched.

``python -m tests.support.kafka.made_up_release 9.9.9`` writes jars of the releases that
``schemas/SOURCE.json`` names, with the schemas of this project, and of the new one. That one has
what releases change: Vote has one version more, Heartbeat has a field under another name, the
metadata log has one type of record more, and a class that our Java programs import has moved.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

from kraftwire import messages
from kraftwire.testing.cluster.kafka import release_of_nodes
from tests.support.kafka.java_sources import imported_classes
from tests.support.kafka.maven import CACHE, KAFKA

_SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"
_VOTE = ('"validVersions": "0-2"', '"validVersions": "0-3"')
_CHANGES = {
    "VoteRequest.json": _VOTE,
    "VoteResponse.json": _VOTE,
    "HeartbeatRequest.json": ('"GenerationId"', '"GenerationIdOrMemberEpoch"'),
}
_RECORD = "FridayRecord"
_MOVED = "Exit"


def write_jars(release: str) -> None:
    """Write the jars of all releases, the new one last."""
    texts = {path.name: path.read_text("utf-8") for path in _SCHEMAS.rglob("*.json")}
    releases = json.loads(texts.pop("SOURCE.json"))["releases"]
    jars = {jar: list(entries) for old in releases for jar, entries in old["jars"].items()}
    # Kafka has some messages in files of another name.
    found = {_name(entry) for entries in jars.values() for entry in entries}
    newest = releases[0]["release"]
    metadata = jars[f"kafka-metadata-{newest}.jar"]
    metadata += [f"common/metadata/{name}" for name in texts.keys() - found]
    for jar, entries in jars.items():
        _write(_jar(jar), {entry: texts.get(_name(entry), "") for entry in entries})
    for name, (old, new) in _CHANGES.items():
        assert texts[name].count(old) == 1, f"{name}: {old}"
        texts[name] = texts[name].replace(old, new)
    texts[f"{_RECORD}.json"] = _record()
    metadata.append(f"common/metadata/{_RECORD}.json")
    for jar in releases[0]["jars"]:
        changed = {entry: texts.get(_name(entry), "") for entry in jars[jar]}
        _write(_jar(jar.replace(newest, release)), changed)
    _write_classes(release)


def _write_classes(release: str) -> None:
    """What a node of the release needs: one jar, whose classes are empty."""
    nodes = release_of_nodes(release, KAFKA.artifacts[-1])
    classes = (
        f"org.apache.kafka.made.up.{_MOVED}" if name.endswith(f".{_MOVED}") else name
        for name in imported_classes()
    )
    entries = {f"{name.replace('.', '/')}.class": " " for name in classes}
    _write(CACHE / nodes.name / f"kafka-clients-{release}.jar", entries)
    (CACHE / nodes.name / nodes.marker).touch()


def _record() -> str:
    facts = {"type": "metadata", "name": _RECORD, "validVersions": "0", "flexibleVersions": "0+"}
    return json.dumps({"apiKey": max(messages.METADATA_RECORDS) + 1, **facts, "fields": []})


def _jar(name: str) -> Path:
    return CACHE / "kafka-jars" / name


def _name(entry: str) -> str:
    return entry.rpartition("/")[2]


def _write(jar: Path, entries: dict[str, str]) -> None:
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for entry, text in entries.items():
            if text:
                archive.writestr(entry, text)


if __name__ == "__main__":
    write_jars(sys.argv[1])
