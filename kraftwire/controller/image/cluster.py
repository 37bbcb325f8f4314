"""Registered brokers and controllers, as the node uses them.

Source: Kafka's `BrokerRegistration`, `ControllerRegistration` and `ClusterDelta`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftwire.messages.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.protocol.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """A registered controller. `features` are (lowest, highest) supported level by name."""

    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]

    @staticmethod
    def of(record: RegisterControllerRecord) -> ControllerImage:
        """Build the image from a record."""
        return ControllerImage(
            record.controller_id,
            record.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port) for e in record.end_points),
            _ranges(record.features),
        )


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker.

    `offset` is that of its registration's record, which its heartbeats must have passed before it
    is unfenced; for a broker from a snapshot, the last offset that the snapshot covers.
    """

    id: int
    epoch: int
    offset: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    @staticmethod
    def of(record: RegisterBrokerRecord, offset: int) -> BrokerImage:
        """Build the image of a broker that registered at an offset."""
        cordoned = record.cordoned_log_dirs
        return BrokerImage(
            record.broker_id,
            record.broker_epoch,
            offset,
            record.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port) for e in record.end_points),
            _ranges(record.features),
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
            None if cordoned is None else tuple(cordoned),
        )

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the address of a listener, None if the broker has none of that name."""
        return next((e for e in self.endpoints if e.listener == listener), None)


def change_broker(record: RegisterBrokerRecord, change: BrokerRegistrationChangeRecord) -> None:
    """Apply a change to a broker's registration."""
    if change.fenced:
        record.fenced = change.fenced > 0
    if change.in_controlled_shutdown:
        record.in_controlled_shutdown = change.in_controlled_shutdown > 0
    if change.log_dirs:
        record.log_dirs = change.log_dirs
    if change.cordoned_log_dirs is not None:
        record.cordoned_log_dirs = change.cordoned_log_dirs


def _ranges(
    features: list[BrokerFeature] | list[ControllerFeature],
) -> dict[str, tuple[int, int]]:
    return {f.name: (f.min_supported_version, f.max_supported_version) for f in features}
