"""The first records of a new cluster: those of the formatted directory, or the default ones.

Formatting a directory writes them, and the first active controller appends them to the log. They
are in the metadata log's checkpoint 0-0 if Kafka 4.4 or later has formatted the directory, else in
bootstrap.checkpoint. Without either only metadata.version is finalized: groups, transactions and
everything else that has a feature do not exist here.

Source: Kafka's `BootstrapMetadata`; `QuorumController.handleLoadBootstrap` of 4.4, read by
``javap``.
"""

from __future__ import annotations

from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import StorageError, WireError
from kraftwire.log.files import LocalFiles
from kraftwire.log.names import BOOTSTRAP_FILE, checkpoint_name, join, partition_directory
from kraftwire.log.uuids import random_uuid
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form."""
    return uuid_to_text(random_uuid())


def read_bootstrap(log_dir: str, topic: str) -> list[VersionedRecord]:
    """Read the bootstrap records of a directory; without any, return the default ones.

    `topic` is the name of the metadata log's. Raises: StorageError for a file that cannot be read.
    """
    files = LocalFiles()
    checkpoint = join(partition_directory(log_dir, topic), checkpoint_name(BOOTSTRAP_SNAPSHOT))
    for path in (checkpoint, join(log_dir, BOOTSTRAP_FILE)):
        try:
            found = _read_records(files.read_bytes(path)) if files.exists(path) else []
        except WireError as error:
            raise StorageError(f"not bootstrap records: {error}", file=path) from error
        if found:
            return found
    level = SUPPORTED_FEATURES[METADATA_VERSION][1]
    return [(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)]


def _read_records(data: bytes) -> list[VersionedRecord]:
    found: list[VersionedRecord] = []
    for batch in read_batches(data):
        if not isinstance(batch, RecordBatch) or batch.is_control:
            continue
        batch.ensure_valid()
        for record in batch.records():
            decoded = decode_metadata(record.value)
            if decoded.message is not None and decoded.version is not None:
                found.append((decoded.message, decoded.version))
    return found
