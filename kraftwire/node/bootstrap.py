"""The first records of a new cluster: those of bootstrap.checkpoint, or the default ones.

Formatting a directory writes that file, and the first active controller appends its records to the
log. Without the file only metadata.version is finalized: groups, transactions and everything else
that has a feature do not exist here.

Source: Kafka's `BootstrapDirectory`.
"""

from __future__ import annotations

from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import StorageError, WireError
from kraftwire.log.files import LocalFiles
from kraftwire.log.names import BOOTSTRAP_FILE, join
from kraftwire.log.uuids import random_uuid
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form."""
    return uuid_to_text(random_uuid())


def read_bootstrap(log_dir: str) -> list[VersionedRecord]:
    """Read the bootstrap records of a directory; without the file, return the default ones.

    Raises: StorageError for a file that cannot be read.
    """
    files, path = LocalFiles(), join(log_dir, BOOTSTRAP_FILE)
    if not files.exists(path):
        level = SUPPORTED_FEATURES[METADATA_VERSION][1]
        return [(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)]
    try:
        return _read_records(files.read_bytes(path))
    except WireError as error:
        raise StorageError(f"not bootstrap records: {error}", file=path) from error


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
