"""How many partitions a user or a client may create and delete: controller_mutation_rate.

Each entity with a rate has a bucket of tokens, which starts full and refills with time. Rule:
C-QUO-1. Source: Kafka's `ControllerMutationQuotaManager` and `TokenBucket`, KIP-599.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.controller.image import MetadataImage
from kraftwire.errors import ApiError
from kraftwire.protocol.error_codes import ErrorCode

_KEY = "controller_mutation_rate"
_USER, _CLIENT_ID = "user", "client-id"

# A rate for all clients gives a bucket to each name that a client makes up.
BUCKETS_MAX = 10_000

# An entity: user and client id, either empty where it does not count.
_Owner = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Tokens at a time, in milliseconds since the epoch. `most` fit in; `rate` come per second."""

    tokens: float
    at_ms: int
    rate: float
    most: float

    def later(self, now_ms: int) -> _Bucket:
        """Return the bucket at another time; a clock that goes back adds nothing."""
        come = max(now_ms - self.at_ms, 0) / 1000 * self.rate
        return _Bucket(min(self.tokens + come, self.most), now_ms, self.rate, self.most)


class MutationQuotas:
    """The buckets of a controller. Nothing of it is in the log: another one starts with full ones.
    """

    def __init__(self, burst_seconds: int = 11) -> None:
        """A full bucket has what comes in so many seconds."""
        self._burst_seconds = burst_seconds
        self._buckets: dict[_Owner, _Bucket] = {}

    def charge(
        self, image: MetadataImage, owner: _Owner, now_ms: int, *, is_strict: bool
    ) -> Charge:
        """Return the charge of a request of a user and client id."""
        found = _quota(image, *owner)
        if found is None:
            return Charge(self, owner, None, is_strict=is_strict)
        owner, rate = found
        most = rate * self._burst_seconds
        known = self._buckets.get(owner)
        tokens = most if known is None else known.tokens
        at_ms = now_ms if known is None else known.at_ms
        bucket = _Bucket(tokens, at_ms, rate, most).later(now_ms)
        return Charge(self, owner, bucket, is_strict=is_strict)

    def keep(self, owner: _Owner, bucket: _Bucket) -> None:
        """Keep a bucket; those that are full again by now are dropped when there are many, and
        then the oldest."""
        self._buckets.pop(owner, None)
        self._buckets[owner] = bucket
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets = {
                key: one
                for key, one in self._buckets.items()
                if one.later(bucket.at_ms).tokens < one.most
            }
        while len(self._buckets) > BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]


class Charge:
    """Takes tokens for one request (C-QUO-1).

    Order: call it for each topic, then `commit` once, if the request counts.
    A strict request is refused while the bucket is overdrawn; any other only learns in
    `throttle_ms` how long it has to wait.
    """

    def __init__(
        self, quotas: MutationQuotas, owner: _Owner, bucket: _Bucket | None, *, is_strict: bool
    ) -> None:
        """Without a bucket nothing is counted."""
        self.throttle_ms = 0
        self._is_asked = False
        self._quotas = quotas
        self._owner = owner
        self._bucket = bucket
        self._is_strict = is_strict

    def __call__(self, partitions: int) -> None:
        """Take tokens. Raises: ApiError THROTTLING_QUOTA_EXCEEDED, having taken none."""
        bucket = self._bucket
        if bucket is None:
            return
        self._is_asked = True
        if self._is_strict and bucket.tokens < 0:
            self._throttle(bucket)
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "")
        tokens = min(bucket.tokens - partitions, bucket.most)
        bucket = self._bucket = _Bucket(tokens, bucket.at_ms, bucket.rate, bucket.most)
        if not self._is_strict and tokens < 0:
            self._throttle(bucket)

    def _throttle(self, bucket: _Bucket) -> None:
        self.throttle_ms = round(-bucket.tokens / bucket.rate * 1000)

    def commit(self) -> None:
        """Store the bucket without the tokens that were taken. One that nothing was taken from is
        not stored: it is full when the next request comes, whatever its rate is then."""
        if self._bucket is not None and self._is_asked:
            self._quotas.keep(self._owner, self._bucket)


# Charges nothing: there is no quota.
FREE = Charge(MutationQuotas(), ("", ""), None, is_strict=False)


def _quota(image: MetadataImage, user: str, client_id: str) -> tuple[_Owner, float] | None:
    """Return the rate of a user and client id, and whose bucket it is: of the most exact entity,
    where the user counts before the client id."""
    for parts in _entities(user, client_id):
        rate = image.quota(frozenset(parts.items()), _KEY)
        if rate is not None:
            owner = user if _USER in parts else "", client_id if _CLIENT_ID in parts else ""
            return owner, rate
    return None


def _entities(user: str, client_id: str) -> Iterator[dict[str, str | None]]:
    for name in (user, None):
        yield {_USER: name, _CLIENT_ID: client_id}
        yield {_USER: name, _CLIENT_ID: None}
        yield {_USER: name}
    yield {_CLIENT_ID: client_id}
    yield {_CLIENT_ID: None}
