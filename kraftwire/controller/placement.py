"""Automatic placement of replicas on brokers, spread over racks. Rules: C-PLA.

Source: Kafka's `StripedReplicaPlacer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image import BrokerImage
from kraftwire.errors import ApiError
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode

# So many partitions are one piece of work.
_PIECE_PARTITIONS = 100


@Divided
def place_replicas(
    cluster: Cluster, partitions: int, factor: int, random: Random
) -> Pieces[list[list[int]]]:
    """Return the replicas of new partitions, the preferred leader of each first.

    Leaders are brokers that are not fenced, one after the other; the replicas of a partition are on
    as many racks as there are. Raises: ApiError INVALID_REPLICATION_FACTOR.
    """
    brokers = [broker for broker in cluster.image.brokers.values() if is_usable(cluster, broker)]
    _check_factor(brokers, factor)
    striped = _Racks(brokers, random)
    placed: list[list[int]] = []
    for _ in range(partitions):
        placed.append(striped.next(factor))
        if len(placed) % _PIECE_PARTITIONS == 0:
            yield
    return placed


def is_usable(cluster: Cluster, broker: BrokerImage) -> bool:
    """Return whether a broker takes new replicas: it is not just leaving, and not all of its
    directories are cordoned. One that has left takes them when it is back (C-PLA-1)."""
    return broker.id not in cluster.leaving and has_uncordoned_directories(broker)


def has_uncordoned_directories(broker: BrokerImage) -> bool:
    """Whether a broker has a directory that takes new replicas; one that names none may have."""
    cordoned = broker.cordoned_log_dirs
    return not cordoned or not broker.log_dirs or not {*broker.log_dirs} <= {*cordoned}


def _check_factor(brokers: list[BrokerImage], factor: int) -> None:
    """Check the replication factor in Kafka's order (C-PLA-1)."""
    if factor <= 0:
        raise _placement_error(f"the replication factor is {factor}, not at least 1")
    if all(broker.is_fenced for broker in brokers):
        raise _placement_error("no broker that is not fenced takes new replicas")
    if factor > len(brokers):
        taking = "broker takes" if len(brokers) == 1 else "brokers take"
        text = f"the replication factor is {factor}, but {len(brokers)} {taking} replicas"
        raise _placement_error(text)


def _placement_error(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


class _Ring:
    """Brokers of one rack: each once for an epoch, beginning one further in the next epoch."""

    def __init__(self, ids: Iterable[int], random: Random) -> None:
        self._ids = sorted(ids)
        self._count = len(self._ids)
        self._start = random.randrange(self._count) if self._ids else 0
        self._epoch, self._given = -1, 0

    def next(self, epoch: int) -> int | None:
        """Return the next broker of an epoch, None once all were given (C-PLA-4)."""
        if epoch != self._epoch:
            self._epoch, self._given = epoch, 0
            self._start += 1
        given = self._given
        if given >= self._count:
            return None
        self._given = given + 1
        return self._ids[(self._start + given) % self._count]

    def shuffle(self, random: Random) -> None:
        """Bring the brokers into another order."""
        random.shuffle(self._ids)


class _Racks:
    """The racks with their brokers, in the order in which partitions use them."""

    def __init__(self, brokers: list[BrokerImage], random: Random) -> None:
        names = sorted({broker.rack for broker in brokers}, key=lambda rack: (rack or "", rack))
        self._racks = [
            tuple(
                _Ring(
                    (b.id for b in brokers if b.rack == name and b.is_fenced == is_fenced), random
                )
                for is_fenced in (False, True)
            )
            for name in names
        ]
        self._random = random
        self._unfenced = sum(not broker.is_fenced for broker in brokers)
        self._offset = random.randrange(len(self._racks))
        self._epoch = 0

    def next(self, factor: int) -> list[int]:
        """Return the replicas of the next partition (C-PLA-3)."""
        if self._epoch == self._unfenced > 1:
            self._shuffle()
        racks, epoch = self._racks, self._epoch
        count = len(racks)
        at = self._offset % count
        self._epoch, self._offset = epoch + 1, at + 1
        first = at
        while (leader := racks[first][0].next(epoch)) is None:
            first = (first + 1) % count
        replicas, has_skipped = [leader], False
        while factor > 1:
            unfenced, fenced = racks[at]
            if at != first or has_skipped:
                replica = unfenced.next(epoch)
                replica = fenced.next(epoch) if replica is None else replica
                if replica is not None:
                    replicas.append(replica)
                    factor -= 1
            else:
                has_skipped = True
            at = (at + 1) % count
        return replicas

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for rings in self._racks:
            for ring in rings:
                ring.shuffle(self._random)
        self._epoch = 0
