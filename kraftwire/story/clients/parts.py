"""The parts of a request that may fail by themselves, and what an answer says of each.

A part is known again by what the request names, such as a partition or a group; of a Produce also
by its batches, as others for the same partition are something else; by the whole body where it
names nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from kraftwire.decode.body.context import TopicNames
from kraftwire.protocol.answers import Answers, answers_of, error_field
from kraftwire.protocol.entities import ALL, GROUP, KINDS, PARTITION, TOPIC, Context, contexts
from kraftwire.records.header import HEADER_SIZE, MAGIC, fields
from kraftwire.story.observed_exchange import ObservedExchange
from kraftwire.wire.json_form import uuid_to_text

_SEQUENCE = fields("magic", "producer_id", "producer_epoch", "base_sequence")
_FETCHES = ("Fetch", "ShareFetch")
_DIGEST_BYTES = 16


class Part(NamedTuple):
    """A part of a request: kinds and values of what it names, and what else makes it the same."""

    names: tuple[tuple[str, Any], ...] = ()
    identity: Any = None

    @property
    def batch(self) -> tuple[int, int, int] | None:
        """Producer id, epoch and base sequence of a batch of an idempotent producer."""
        return self.identity if isinstance(self.identity, tuple) else None

    @property
    def label(self) -> str:
        """What it names, for people; empty for a part that names nothing."""
        named = dict(self.names)
        topic, partition = named.get(TOPIC), named.get(PARTITION)
        if topic is not None:
            shown = "all topics" if topic == ALL else str(topic)
            return shown if partition in (None, ALL) else f"{shown}-{partition}"
        found = next(iter(named.values()), "")
        return "all" if found == ALL else str(found)


class Result(NamedTuple):
    """What an answer says of a part: an error code, and the base offset of an append, or -1."""

    code: int
    base_offset: int = -1


def request_parts(exchange: ObservedExchange, names: TopicNames) -> list[Part]:
    """Return the parts of a request whose body is known."""
    body, version = exchange.request_body, exchange.api_version or 0
    named = list(_innermost(contexts(body, version, partial(_topic_name, names))))
    if exchange.api.endswith("GroupHeartbeat"):
        # What a member says beside its group changes from one to the next.
        named = [{GROUP: body.group_id}]
    batches = _batches(body, names) if exchange.api == "Produce" else {}
    is_fetch = exchange.api in _FETCHES
    kinds = (TOPIC, PARTITION) if is_fetch else KINDS
    parts = [
        Part(_named(each, kinds), batches.get((each.get(TOPIC), each.get(PARTITION))))
        for each in named
    ]
    if is_fetch:
        # The session, whose requests list only what has changed.
        parts = [each for each in parts if each.names] + [Part(identity=exchange.first.server)]
    elif not parts:
        digest = blake2b(body.encode(version), digest_size=_DIGEST_BYTES).digest()
        parts.append(Part(identity=digest))
    return list(dict.fromkeys(parts))


def results_of(
    exchange: ObservedExchange, parts: list[Part], names: TopicNames
) -> dict[Part, Result]:
    """Return what a response says of the parts of its request, and of other parts that it names.

    A part without an error of its own has that of the whole response.
    """
    body, version = exchange.response_body, exchange.api_version or 0
    attribute = error_field(body.facts().root, version)
    found = dict.fromkeys(parts, Result(getattr(body, attribute) if attribute else 0))
    find = _finder(parts)
    for context, element, code in _elements(body, version, partial(_topic_name, names)):
        result = Result(code, getattr(element, "base_offset", -1))
        for part in find(context) or [Part(_named(context))]:
            if result.code or not found.get(part, result).code:
                found[part] = result
    return found


def _topic_name(names: TopicNames, topic_id: bytes) -> str:
    return names.name(None, topic_id) or uuid_to_text(topic_id)


def _named(context: Mapping[str, Any], kinds: Sequence[str] = KINDS) -> tuple[tuple[str, Any], ...]:
    known = [(kind, context[kind]) for kind in kinds if kind in context]
    return tuple(known or context.items())


def _innermost(found: Iterator[Context]) -> Iterator[Context]:
    """Yield the contexts that no context within them completes."""
    before: Context = {}
    for each in found:
        if before and not before.items() <= each.items():
            yield before
        before = each
    if before:
        yield before


def _batches(body: Any, names: TopicNames) -> dict[tuple[Any, Any], Any]:
    """Return what tells the batches for each partition of a Produce from others."""
    found: dict[tuple[Any, Any], Any] = {}
    for topic in body.topic_data:
        name = topic.name or _topic_name(names, topic.topic_id)
        for each in topic.partition_data:
            records = each.records or b""
            found[name, each.index] = blake2b(records, digest_size=_DIGEST_BYTES).digest()
            if len(records) >= HEADER_SIZE:
                magic, producer_id, epoch, sequence = _SEQUENCE.unpack_from(records)
                if magic == MAGIC and producer_id >= 0:
                    found[name, each.index] = (producer_id, epoch, sequence)
    return found


def _elements(
    body: Any, version: int, topic_name: Any
) -> Iterator[tuple[Mapping[str, Any], Any, int]]:
    """Yield the elements of a response that have an error code, with what they name."""

    def walk(
        answers: Answers, holder: Any, outer: Mapping[str, Any]
    ) -> Iterator[tuple[Mapping[str, Any], Any, int]]:
        named = {each.attribute for each in answers.level.fields}
        for element in getattr(holder, answers.attribute) or ():
            own = dict(answers.level.own_context(element, outer, topic_name))
            own |= {key: getattr(element, key) for key in answers.targets if key not in named}
            if answers.error:
                yield own, element, getattr(element, answers.error)
            for inner in answers.inner:
                yield from walk(inner, element, own)

    for each in answers_of(body.API_KEY, version):
        yield from walk(each, body, {})


def _finder(parts: list[Part]) -> Callable[[Mapping[str, Any]], list[Part]]:
    """Return a function that finds the parts that an element of a response is about.

    It may name fewer things than the request, or call them otherwise.
    """
    tables: dict[frozenset[str], dict[frozenset[Any], list[Part]]] = {}

    def find(context: Mapping[str, Any]) -> list[Part]:
        kinds = frozenset(context)
        table = tables.get(kinds)
        if table is None:
            table = tables[kinds] = {}
            for part in parts:
                named = dict(part.names)
                values = map(named.get, kinds) if kinds <= named.keys() else named.values()
                table.setdefault(frozenset(values), []).append(part)
        return table.get(frozenset(context.values()), [])

    return find
