"""Writes the golden messages of tests/golden/vectors with Kafka's own serializer, or checks them.

    python -m tests.support.messages.write_vectors [--check]

Every message is written again from its JSON, by the newest release that has its version. A version
that no file has gets three messages with random values, in the file of its release: a new release
in `maven.py` adds a file and changes none. Needs Java, and Maven for the jars.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.support.kafka.java import JavaPeer
from tests.support.kafka.maven import KAFKA, OLD_CLIENTS, Release
from tests.support.messages.vectors import FOLDER, canonical, current_names

_MESSAGES_EACH = 3

Row = dict[str, Any]


def main() -> int:
    """Write the files, or with --check only compare them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Golden messages of Kafka's own serializer.")
    help_text = "write nothing; exit code 1 if a file differs"
    parser.add_argument("--check", action="store_true", help=help_text)
    is_check = parser.parse_args().check
    with ExitStack() as stack:
        releases = (KAFKA, OLD_CLIENTS)
        peers = [stack.enter_context(JavaPeer(release)) for release in releases]
        texts = vector_files(FOLDER, dict(zip(map(file_name, releases), peers, strict=True)))
    differing = [name for name, text in texts.items() if text != _text(FOLDER / name)]
    for name, text in texts.items():
        state = "different" if name in differing else "the same"
        print(f"{name}: {len(text.splitlines())} messages, {state}")
    if not is_check:
        for name in differing:
            (FOLDER / name).write_bytes(gzip.compress(texts[name].encode(), mtime=0))
    return int(is_check and bool(differing))


def file_name(release: Release) -> str:
    """The file that gets the messages of a release which no file has yet."""
    suffix = "-older-versions" if release == OLD_CLIENTS else ""
    return f"kafka-{release.version}{suffix}.jsonl.gz"


def vector_files(folder: Path, peers: Mapping[str, JavaPeer]) -> dict[str, str]:
    """The text of each file as it should be, by its name.

    `peers` are Kafka's serializers by the files that get new messages, the newest release first.
    """
    versions = {name: peer.message_versions() for name, peer in peers.items()}
    files = {path.name: _rows(path) for path in sorted(folder.glob("*.jsonl.gz"))}
    known = {(row["name"], row["version"]) for rows in files.values() for row in rows}
    for name, peer in peers.items():
        made = list(_random_rows(peer, versions[name], known))
        known |= {(row["name"], row["version"]) for row in made}
        if made:
            files[name] = files.get(name, []) + made
    # A version that no release here has any more keeps its bytes.
    for rows in files.values():
        todo = list(range(len(rows)))
        for name, peer in peers.items():
            has = versions[name]
            mine = [at for at in todo if rows[at]["version"] in has.get(rows[at]["name"], ())]
            for at, row in zip(mine, _written(peer, [rows[at] for at in mine]), strict=True):
                rows[at] = row
            todo = sorted({*todo} - {*mine})
    return {name: "".join(map(_line, rows)) for name, rows in files.items()}


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.exists() else ""


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in _text(path).splitlines()]


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def _random_rows(
    peer: JavaPeer, versions: Mapping[str, range], known: set[tuple[str, int]]
) -> Iterator[Row]:
    """Messages with random values in the versions that are not known; their bytes come later."""
    wanted = [
        {"name": name, "version": version, "seed": crc32(f"{name}/{version}/{number}".encode())}
        for name in sorted(versions)
        for version in versions[name]
        for number in range(_MESSAGES_EACH)
        if (name, version) not in known
    ]
    answers = peer.ask({"op": "random", "unknownTags": False, **each} for each in wanted)
    for each, answer in zip(wanted, answers, strict=True):
        yield {"name": each["name"], "version": each["version"], "json": answer["json"]}


def _written(peer: JavaPeer, rows: list[Row]) -> Iterator[Row]:
    """The rows with the bytes that the release writes for their JSON, and what it prints for these.

    Raises: AssertionError for a message that it refuses.
    """
    kept = [{key: row[key] for key in ("name", "version", "json")} for row in rows]
    asked = [{**each, "json": current_names(**each)} for each in kept]
    answers = peer.ask({"op": "write", **each} for each in asked)
    for row, each, answer in zip(kept, asked, answers, strict=True):
        assert "hex" in answer, f"{each}: {answer}"
        is_same = canonical(answer["json"]) == canonical(each["json"])
        yield {**row, "hex": answer["hex"], **({} if is_same else {"printed": answer["json"]})}


if __name__ == "__main__":
    sys.exit(main())
