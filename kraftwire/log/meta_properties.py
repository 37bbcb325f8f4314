"""The file that assigns a directory to a node and a cluster.

Layout: a Java properties file with `version` 1, `cluster.id`, `node.id`, `directory.id`; other keys
are kept. Version 0 was written before KRaft and is refused.

Source: Kafka's `MetaProperties` and `PropertiesUtils`; rule R-START-1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.errors import StorageError, UsageError, WireError
from kraftwire.log.files import Files, replace_file
from kraftwire.properties_file import escape_property, parse_properties
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_from_text, uuid_to_text

_VERSION = "1"
_OWN = ("version", "cluster.id", "node.id", "directory.id")
_NODE_ID_MAX = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The contents of the file.

    `cluster_id` is None until the cluster has one (Kafka's own tools require it); `directory_id` is
    zero if an older Kafka formatted the directory.
    """

    cluster_id: str | None
    node_id: int
    directory_id: bytes = ZERO_UUID
    extra: Mapping[str, str] = field(default_factory=dict)


def read_meta_properties(files: Files, path: str) -> MetaProperties | None:
    """Return the contents of the file; None if it is missing, so that the directory is unformatted.

    Raises: StorageError for a file that another version wrote or that lacks a value.
    """
    if not files.exists(path):
        return None
    try:
        entries = parse_properties(files.read_bytes(path).decode("latin-1"), path)
    except UsageError as error:
        raise StorageError(str(error).removeprefix(f"{path}:"), file=path) from error
    values = {entry.key: entry.value for entry in entries}
    version = values.get("version")
    if version != _VERSION:
        found = "no version" if version is None else f"version {version}"
        hint = ", which Kafka wrote before KRaft" if version == "0" else ""
        raise StorageError(f"expected version {_VERSION}, found {found}{hint}", file=path)
    return MetaProperties(
        cluster_id=values.get("cluster.id"),
        node_id=_node_id(values.get("node.id"), path),
        directory_id=_directory_id(values.get("directory.id"), path),
        extra={key: value for key, value in values.items() if key not in _OWN},
    )


def _node_id(text: str | None, path: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text or "") and text else -1
    if not 0 <= number <= _NODE_ID_MAX:
        raise StorageError(f"expected a number for node.id, found {text!r}", file=path)
    return number


def _directory_id(text: str | None, path: str) -> bytes:
    if text is None:
        return ZERO_UUID
    try:
        uuid = uuid_from_text(text)
    except WireError:
        uuid = ZERO_UUID
    if uuid == ZERO_UUID:
        raise StorageError(f"expected a uuid for directory.id, found {text!r}", file=path)
    return uuid


def write_meta_properties(
    files: Files, path: str, properties: MetaProperties, comment: str = ""
) -> None:
    """Replace the file, durably (D8). Kafka's `comment` is the date. Raises: StorageError.
    """
    # The order in which Java's Properties writes these keys.
    values = {"node.id": str(properties.node_id)}
    if properties.directory_id != ZERO_UUID:
        values["directory.id"] = uuid_to_text(properties.directory_id)
    values["version"] = _VERSION
    if properties.cluster_id is not None:
        values["cluster.id"] = properties.cluster_id
    values.update(properties.extra)
    lines = ["#", f"#{comment}"] if comment else []
    for key, value in values.items():
        lines.append(f"{escape_property(key, is_key=True)}={escape_property(value)}")
    content = "\n".join([*lines, ""]).encode("latin-1")
    replace_file(files, path, content)
