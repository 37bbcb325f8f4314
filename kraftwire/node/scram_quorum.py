"""Whether controllers that log in at each other by SCRAM can ever elect a leader.

The credentials are in the log, and nobody can read a log that has no leader: in a new quorum each
controller refuses all others, for ever, and nothing says so (SEC-S37). Such a node does not start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kraftwire.controller.image import DECOY_SECRET_CONFIG
from kraftwire.errors import WireError
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.node.config import NodeConfig
from kraftwire.node.logs import log
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.reader import read_batches
from kraftwire.replica.storage import Storage
from kraftwire.security.decoys import ScramIndex, credential_of

_DECOY_SECRET = BROKER_RESOURCE, "", DECOY_SECRET_CONFIG
_READ_BYTES = 1024 * 1024


@dataclass(slots=True)
class ScramUsers:
    """The SCRAM users of a log, and the secret of the decoys for all other names."""

    scram: ScramIndex = field(default_factory=ScramIndex)
    decoy_secret: str | None = None


def users_before_leader(
    config: NodeConfig, storage: Storage, voter_count: int
) -> ScramUsers | None:
    """Return the users by which controllers log in until it is known what is committed.

    None unless this controller uses SCRAM among others. A voter that lost its disk is no
    voter of its own log: it starts, with a warning. Raises: UsageError for a voter
    whose log has no users.
    """
    client = config.security.client
    mechanism = "" if client is None else client.mechanism or ""
    if not mechanism.startswith("SCRAM-") or not config.is_controller or voter_count == 1:
        return None
    assert client is not None
    users = _users(storage)
    if users.scram:
        return users
    why = f"the credentials for {mechanism} are in the log, and this log has none"
    if voter_count:
        raise client.properties.error(
            client.mechanism_key,
            f"{why}: no controller could log in at another, and there would never be a leader; "
            "use PLAIN, OAUTHBEARER or mutual TLS between controllers",
        )
    log("warning", "no-users", problem=f"{why}: no peer can log in here before it has caught up")
    return None


def _users(storage: Storage) -> ScramUsers:
    """Return the users that snapshot and log leave."""
    found = ScramUsers()
    for batch in _batches(storage):
        try:
            records = [] if batch.is_control else batch.records()
        except WireError:
            continue
        for record in records:
            _apply(found, record.value)
    return found


def _apply(found: ScramUsers, value: bytes | None) -> None:
    try:
        message = decode_metadata(value).message
    except WireError:
        return
    if isinstance(message, UserScramCredentialRecord):
        found.scram.put(message.name, message.mechanism, credential_of(message))
    elif isinstance(message, RemoveUserScramCredentialRecord):
        found.scram.remove(message.name, message.mechanism)
    elif isinstance(message, ConfigRecord) and _key(message) == _DECOY_SECRET:
        found.decoy_secret = message.value


def _key(record: ConfigRecord) -> tuple[int, str, str]:
    return record.resource_type, record.resource_name, record.name


def _batches(storage: Storage) -> Iterable[RecordBatch]:
    newest = storage.snapshots.newest
    if newest is not None:
        with storage.snapshots.reader(newest) as reader:
            yield from reader
    offset, end = storage.log.start_offset, storage.log.end_offset
    while offset < end:
        for batch in read_batches(storage.log.read(offset, _READ_BYTES, end)):
            assert isinstance(batch, RecordBatch)
            yield batch
            offset = batch.last_offset + 1


