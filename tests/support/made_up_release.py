"""Jars of a made-up Kafka release, where an import looks for those that Maven fetched.

``python -m tests.support.made_up_release 9.9.9`` writes jars of the releases that
``schemas/SOURCE.json`` names, with the schemas of this project, and of the new one, in which Vote
has one version more.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_SCHEMAS = _ROOT / "schemas"
_CACHE = _ROOT / ".cache" / "kafka-jars"


def write_jars(release: str) -> None:
    """Write the jars of all releases, the new one last."""
    texts = {path.name: path.read_text("utf-8") for path in _SCHEMAS.rglob("*.json")}
    releases = json.loads(texts.pop("SOURCE.json"))["releases"]
    jars = {jar: list(entries) for old in releases for jar, entries in old["jars"].items()}
    # Kafka has some messages in files of another name.
    found = {_name(entry) for entries in jars.values() for entry in entries}
    jars[f"kafka-metadata-{releases[0]['release']}.jar"] += [
        f"common/metadata/{name}" for name in texts.keys() - found
    ]
    _CACHE.mkdir(parents=True, exist_ok=True)
    for jar, entries in jars.items():
        _write(jar, entries, texts)
    for name in ("VoteRequest.json", "VoteResponse.json"):
        texts[name] = texts[name].replace('"validVersions": "0-2"', '"validVersions": "0-3"')
    for jar in releases[0]["jars"]:
        _write(jar.replace(releases[0]["release"], release), jars[jar], texts)


def _name(entry: str) -> str:
    return entry.rpartition("/")[2]


def _write(jar: str, entries: list[str], texts: dict[str, str]) -> None:
    with zipfile.ZipFile(_CACHE / jar, "w") as archive:
        for entry in entries:
            if _name(entry) in texts:
                archive.writestr(entry, texts[_name(entry)])


if __name__ == "__main__":
    write_jars(sys.argv[1])
