"""The state files of a log directory that say something of its replica: a column of `files`."""

from __future__ import annotations

import json
from pathlib import Path

from kraftwire.decode.files import FileKind
from kraftwire.decode.files.source import ByteSource
from kraftwire.decode.files.state import parse_state, state_bytes_max
from kraftwire.errors import WireError
from kraftwire.log.files import LocalFiles
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.replica.start_check import refusal_of
from kraftwire.story.raft.table_rows import REFUSAL_KEY

# State files beside a metadata log that name epochs, and the one that names the replica.
REPLICA_STATES = frozenset(
    {FileKind.QUORUM_STATE, FileKind.LEADER_EPOCHS, FileKind.FLUSHED_OFFSET}
)
OWNER_KEYS = ("cluster.id", "node.id", "directory.id")

METADATA_PARTITION = f"{METADATA_TOPIC}-0"


def state_of(source: ByteSource) -> str | None:
    """Return the content of such a file as JSON, None for a file of another kind.

    Of meta.properties only the ids. Raises: WireError if the file cannot be read.
    """
    kind = source.kind
    is_owner = kind is FileKind.META_PROPERTIES
    if not is_owner and kind not in REPLICA_STATES:
        return None
    if source.size > state_bytes_max(kind):
        raise WireError(f"{source.size} bytes are too many for a file of this kind")
    data = parse_state(kind, bytes(source.read(0, source.size))).data
    if is_owner:
        data = {key: data[key] for key in OWNER_KEYS if key in data}
    return json.dumps(data)


def with_refusal(state: str | None, path: Path) -> str | None:
    """Return the state of a meta.properties, with the reason why no node starts beside it.

    There is none where the log directory has no metadata log, or a process uses it.
    """
    if not (path.parent / METADATA_PARTITION).is_dir():
        return state
    refusal = refusal_of(str(path.parent), LocalFiles())
    if refusal is None:
        return state
    return json.dumps({**json.loads(state or "{}"), REFUSAL_KEY: refusal})
