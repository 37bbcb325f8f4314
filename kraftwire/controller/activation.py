"""The records that a new active controller writes before all others.

Rules: C-ACT-3, C-ACT-4, C-ACT-5. Source: Kafka's `ActivationRecordsGenerator`; KAFKA-20839.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS
from kraftwire.controller.image import MetadataImage
from kraftwire.controller.step import VersionedRecord, config_record
from kraftwire.controller.versions import ELR_VERSION, METADATA_VERSION, WITH_TRANSACTIONS
from kraftwire.messages.abort_transaction_record import AbortTransactionRecord
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.protocol.config_resources import BROKER_RESOURCE


def activate(
    image: MetadataImage,
    bootstrap: Sequence[VersionedRecord],
    own_configs: Mapping[str, str],
    min_isr: str = "1",
) -> list[VersionedRecord]:
    """Return the records that a new active controller writes before all others.

    `own_configs` are configurations of all brokers that this software keeps in a log: those that
    the log lacks are written. `min_isr` is min.insync.replicas of the controller's file. An open
    transaction is aborted; an image without metadata.version gets the bootstrap records in a
    separate transaction, independent of what an earlier attempt wrote (KAFKA-20839).
    """
    records: list[VersionedRecord] = []
    if image.transaction_offset >= 0:
        reason = "a new controller cannot continue it"
        records.append((AbortTransactionRecord(reason=reason), 0))
    configs = image.configs.get((BROKER_RESOURCE, ""), {})
    more = [
        config_record(BROKER_RESOURCE, "", name, value)
        for name, value in own_configs.items()
        if name not in configs
    ]
    if image.metadata_version is not None:
        return records + more
    levels = _levels(bootstrap)
    if levels.get(ELR_VERSION) and MIN_INSYNC_REPLICAS not in configs:
        more.insert(0, config_record(BROKER_RESOURCE, "", MIN_INSYNC_REPLICAS, min_isr))
    inner = [*bootstrap, *more]
    if levels.get(METADATA_VERSION, 0) >= WITH_TRANSACTIONS:
        begin = BeginTransactionRecord(name="Bootstrap records")
        inner = [(begin, 0), *inner, (EndTransactionRecord(), 0)]
    return records + inner


def _levels(bootstrap: Sequence[VersionedRecord]) -> dict[str, int]:
    records = (record for record, _ in bootstrap)
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}
