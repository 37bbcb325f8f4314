"""The folder ``schemas/``: reading and writing it, and the file of each message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kraftwire.errors import UsageError
from tools.import_schemas.jars import Release, Upstream
from tools.import_schemas.render import render_schema
from tools.import_schemas.schema import Message, parse_schema

FOLDERS = ("header", "rpc", "control", "metadata", "coordinator", "state")
_SOURCE = "SOURCE.json"
_BY_TYPE = {
    "header": "header",
    "request": "rpc",
    "response": "rpc",
    "coordinator-key": "coordinator",
    "coordinator-value": "coordinator",
}
# Schemas of the unspecific type "data" (or "metadata" outside the metadata log) by their use; one
# that is not listed goes to state/.
_BY_NAME = {
    "ControlRecordTypeSchema": "control",
    "EndTxnMarker": "control",
    "KRaftVersionRecord": "control",
    "LeaderChangeMessage": "control",
    "SnapshotFooterRecord": "control",
    "SnapshotHeaderRecord": "control",
    "VotersRecord": "control",
    "ConsumerProtocolAssignment": "coordinator",
    "ConsumerProtocolSubscription": "coordinator",
    # Sent inside EnvelopeRequest.RequestPrincipal.
    "DefaultPrincipalData": "rpc",
}


def tree_files(union: Mapping[str, Message], releases: Sequence[Release]) -> dict[str, str]:
    """Return every file below ``schemas/`` that the import owns: relative path to text."""
    files = {}
    for name, message in union.items():
        upstream = next(release.schemas[name] for release in releases if name in release.schemas)
        files[f"{_folder(message, upstream)}/{name}.json"] = render_schema(message)
    files[_SOURCE] = _source(releases)
    return dict(sorted(files.items()))


def read_tree(root: Path) -> dict[str, Message]:
    """Return the current messages of ``schemas/``, texts included; empty for a new folder.

    Raises: UsageError if one of the files is broken.
    """
    found = {}
    for path in _owned(root):
        text = path.read_text(encoding="utf-8")
        message = parse_schema(text, str(path), keep_about=True)
        found[message.name] = message
    return found


def read_source(root: Path) -> list[str]:
    """Return the releases of ``schemas/``, newest first; empty for a new folder.

    Raises: UsageError if SOURCE.json is broken.
    """
    return list(read_jars(root))


def read_jars(root: Path) -> dict[str, list[str]]:
    """Release -> names of its jars that ``schemas/`` was made from; empty for a new folder.

    Raises: UsageError if SOURCE.json is broken.
    """
    path = root / _SOURCE
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(each["release"]): [*each["jars"]] for each in data["releases"]}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: expected a list of releases: {error!r}") from error


def changed_files(root: Path, files: Mapping[str, str]) -> list[str]:
    """Return the paths whose text differs from the one on disk, including files to remove."""
    changed = [path for path, text in files.items() if _text(root / path) != text]
    stale = [str(path.relative_to(root)) for path in _owned(root)]
    return sorted([*changed, *(path for path in stale if path not in files)])


def write_tree(root: Path, files: Mapping[str, str]) -> list[str]:
    """Write exactly these files to ``schemas/``; files that the import does not own stay.

    Returns the paths that were written or removed.
    """
    changed = changed_files(root, files)
    for path in changed:
        if path in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(files[path], encoding="utf-8")
        else:
            (root / path).unlink()
    return changed


def _owned(root: Path) -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (root / folder).glob("*.json"))


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _folder(message: Message, upstream: Upstream) -> str:
    if message.name in _BY_NAME:
        return _BY_NAME[message.name]
    if upstream.entry.startswith("common/metadata/"):
        return "metadata"
    return _BY_TYPE.get(message.type, "state")


def _source(releases: Sequence[Release]) -> str:
    listed = []
    for release in releases:
        jars: dict[str, dict[str, str]] = {}
        for upstream in release.schemas.values():
            jars.setdefault(upstream.jar, {})[upstream.entry] = upstream.sha256
        listed.append(
            {
                "release": release.version,
                "jars": {jar: dict(sorted(jars[jar].items())) for jar in sorted(jars)},
            }
        )
    return json.dumps({"releases": listed}, indent=2) + "\n"
