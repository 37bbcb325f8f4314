"""The findings of `kraftwire storage info` in a node's directories.

Source: Kafka's `StorageTool`; the texts are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kraftwire.errors import StorageError
from kraftwire.log.files import Files
from kraftwire.log.format import FormatNode
from kraftwire.log.meta_properties import MetaProperties, read_meta_properties
from kraftwire.log.names import META_PROPERTIES_FILE, join
from kraftwire.log.unowned_log import unowned_log
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_to_text


@dataclass(slots=True)
class _Findings:
    directories: list[str] = field(default_factory=list)
    properties: list[MetaProperties] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def storage_info(
    files: Files, node: FormatNode, log_problems: Callable[[], Iterable[str]] = tuple
) -> tuple[list[str], bool]:
    """Describe the directories: returns the lines to print, and whether there was no problem.

    `log_problems` returns what is wrong with the metadata log in directories that are formatted for
    the node: why it would not start, or would not lead.
    """
    found = _Findings()
    for directory in node.all_directories:
        _inspect_directory(files, directory, found)
    for other in found.properties[1:]:
        first = found.properties[0]
        if other.cluster_id != first.cluster_id:
            found.problems.append("Mismatched cluster IDs between storage directories.")
        elif other.node_id != first.node_id:
            found.problems.append("Mismatched node IDs between storage directories.")
    if found.properties and not found.problems:
        found.problems += log_problems()
    lines = _listing("Found log directory:", "Found log directories:", found.directories)
    if found.properties:
        lines += [f"Found metadata: {_metadata_text(found.properties[0])}", ""]
    lines += _listing("Found problem:", "Found problems:", found.problems)
    return lines, not found.problems


def _inspect_directory(files: Files, directory: str, found: _Findings) -> None:
    if not files.exists(directory):
        found.problems.append(f"{directory} does not exist")
        return
    try:
        files.listdir(directory)
    except StorageError:
        found.problems.append(f"{directory} is not a directory")
        return
    found.directories.append(directory)
    path = join(directory, META_PROPERTIES_FILE)
    try:
        properties = read_meta_properties(files, path)
    except StorageError as error:
        found.problems.append(f"Error loading {error}")
        return
    if properties is None:
        log = unowned_log(files, directory)
        found.problems.append(log or f"{directory} is not formatted.")
    else:
        found.properties.append(properties)


def _listing(one: str, several: str, items: list[str]) -> list[str]:
    if not items:
        return []
    return [one if len(items) == 1 else several, *(f"  {item}" for item in items), ""]


def _metadata_text(properties: MetaProperties) -> str:
    values = {"node.id": str(properties.node_id), "version": "1", **properties.extra}
    if properties.cluster_id is not None:
        values["cluster.id"] = properties.cluster_id
    if properties.directory_id != ZERO_UUID:
        values["directory.id"] = uuid_to_text(properties.directory_id)
    return "{" + ", ".join(f"{key}={value}" for key, value in sorted(values.items())) + "}"
