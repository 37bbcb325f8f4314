"""Which requests a rule is for: by API, version, client, and what the request names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.protocol.entities import ALL, KINDS, Context, TopicName, contexts, request_level
from kraftwire.protocol.versions import fetching_replica
from kraftwire.wire.message import Message

# Root fields with the id of the broker or controller that sends a request. Administrators send
# the others that have one.
_SENDER_FIELDS = ("replica_id", "broker_id", "controller_id")
_OF_ADMINISTRATORS = {"UnregisterBroker", "UnregisterController"}
_VERSIONS = re.compile(r"(\d{1,5})(?:-(\d{1,5})|(\+))?", re.ASCII)


class RowError(UsageError):
    """A value of a rule that cannot be; `key` is its name, empty where the rule itself is wrong."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        super().__init__(f"{key}: {problem}" if key else problem)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known of a request before its body is read. `node` is the id of the node asked."""

    api_key: int
    version: int
    client_id: str | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The requests of some APIs, and of these only those that fit all that is given.

    Texts are names or globs. `versions` has the versions by API key; `sender` is a broker's or
    controller's id, `names` what the request names, by kind: one of the values is enough.
    """

    versions: Mapping[int, range]
    node: int | None = None
    sender: int | None = None
    client_id: tuple[str, ...] = ()
    names: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def needs_body(self) -> bool:
        """Whether a request's head does not decide."""
        return bool(self.names) or self.sender is not None

    def fits_head(self, head: RequestHead) -> bool:
        """Return whether a request may be selected."""
        if head.version not in self.versions.get(head.api_key, ()):
            return False
        if self.node is not None and head.node != self.node:
            return False
        return not self.client_id or _is_one_of(head.client_id, self.client_id)

    def fits_body(self, message: Message, version: int, topic_name: TopicName) -> bool:
        """Return whether a request that fits by its head is selected."""
        if self.sender is not None and sender_of(message) != self.sender:
            return False
        if not self.names:
            return True
        return any(self.decide(each) for each in contexts(message, version, topic_name))

    def decide(self, context: Context) -> bool | None:
        """Return whether a part of a request is selected: all kinds of names have to fit.

        None if some kinds are missing, which parts of it may name.
        """
        known = {kind: context[kind] for kind in self.names if kind in context}
        if not all(_is_one_of(value, self.names[kind]) for kind, value in known.items()):
            return False
        return True if len(known) == len(self.names) else None


def _is_one_of(value: Any, wanted: tuple[Any, ...]) -> bool:
    if value in wanted or value == ALL:
        return True
    return isinstance(value, str) and any(fnmatchcase(value, one) for one in wanted)


def sender_of(message: Any) -> int | None:
    """Return the id of the broker or controller that sends a request, None if it does not say."""
    if isinstance(message, FetchRequest):
        return fetching_replica(message)
    if messages.API_NAMES[message.API_KEY] in _OF_ADMINISTRATORS:
        return None
    return next((getattr(message, one) for one in _SENDER_FIELDS if hasattr(message, one)), None)


Offered = Mapping[int, tuple[int, int]]
"""The lowest and the highest version of each API that a server has."""


def select(
    apis: str | Sequence[str],
    offered: Offered,
    *,
    versions: int | str | None = None,
    node: int | None = None,
    sender: int | None = None,
    client_id: tuple[str, ...] = (),
    names: Mapping[str, tuple[Any, ...]] | None = None,
) -> Selector:
    """Return a selector of requests to a server with these APIs.

    Raises: RowError for one that nothing fits.
    """
    given = names or {}
    by_key: dict[int, range] = {}
    for api in (apis,) if isinstance(apis, str) else apis:
        keys = api_keys(api, offered)
        fitting = {key: _fitting(key, offered[key], versions, given, sender) for key in keys}
        by_key |= {key: found for key, found in fitting.items() if found}
        if not any(fitting.values()):
            raise _nothing_fits(api, keys, offered, versions, given)
    return Selector(versions=by_key, node=node, sender=sender, client_id=client_id, names=given)


def api_keys(api: str, offered: Offered) -> list[int]:
    """Return the keys of the APIs with a name, or that fit a glob. Raises: RowError for none."""
    found = [key for key in offered if fnmatchcase(messages.API_NAMES[key], api)]
    if not found:
        known = [messages.API_NAMES[key] for key in offered]
        near = get_close_matches(api, known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "kraftwire schema lists all"
        raise RowError("api", f"there is no API {api!r} here; {hint}")
    return found


def parse_versions(text: int | str) -> range:
    """Parse one version or a range as schemas have it: ``3``, ``3-7``, ``3+``."""
    found = _VERSIONS.fullmatch(str(text))
    if found is None or isinstance(text, bool):
        raise RowError("versions", f"expected such as 3, 3-7 or 3+, found {text!r:.60}")
    low, high, is_open = found.groups()
    last = int(high or low)
    if last < int(low):
        raise RowError("versions", f"{text} ends before it begins")
    return range(int(low), 1 << 15 if is_open else last + 1)


def _fitting(
    key: int,
    offered: tuple[int, int],
    versions: int | str | None,
    names: Mapping[str, object],
    sender: int | None,
) -> range:
    """Return the versions in which a request can be selected, which are without a gap."""
    wanted = range(1 << 15) if versions is None else parse_versions(versions)
    low, high = max(offered[0], wanted.start), min(offered[1] + 1, wanted.stop)
    if sender is not None and not _has_sender(key):
        return range(0)
    if names:
        fit = [one for one in range(low, high) if request_level(key, one).kinds >= names.keys()]
        return range(fit[0], fit[-1] + 1) if fit else range(0)
    return range(low, high)


def _has_sender(key: int) -> bool:
    fields = messages.request_class(key).facts().root.fields
    name = messages.API_NAMES[key]
    is_named = any(each.attribute in _SENDER_FIELDS for each in fields)
    return is_named and name not in _OF_ADMINISTRATORS


def _nothing_fits(
    api: str,
    keys: list[int],
    offered: Offered,
    versions: int | str | None,
    names: Mapping[str, object],
) -> RowError:
    """Return why no request of an API can be selected."""
    if not any(_fitting(key, offered[key], versions, {}, None) for key in keys):
        if len(keys) > 1:
            return RowError("versions", f"no API {api} has {versions}")
        low, high = offered[keys[0]]
        return RowError("versions", f"{api} has {low}-{high}, not {versions}")
    if names:
        given = [kind for kind in KINDS if kind in names]
        words = " and a ".join(given)
        return RowError(given[-1], f"no request of {api} of these versions names a {words}")
    return RowError("broker", f"no request of {api} names the broker that sends it")
