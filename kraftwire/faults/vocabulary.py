"""The methods that add faults, the same for every server that has rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, Unpack

from kraftwire.faults.fault import Direction, Drop
from kraftwire.faults.rows import RuleOptions
from kraftwire.faults.rules import FaultRule


class FaultVocabulary(ABC):
    """Adds rules. APIs have their names in the schemas, errors those of Kafka.

    An API is a name, a glob or a list; `RuleOptions` limit a rule to some of its requests. The
    newest rule that meets a request decides. Raises: UsageError for a rule about nothing.
    """

    @abstractmethod
    def add_rule(self, row: Mapping[str, Any]) -> FaultRule:
        """Put the rule of a row in force."""

    def refuse(
        self,
        api: str | Collection[str],
        error: str,
        *,
        whole: bool = False,
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Answer with an error, without carrying the request out.

        If the rule selects topics, partitions, groups or transactional ids, the other parts of the
        request are carried out, unless the `whole` request is refused.
        """
        return self.add_rule({"api": api, "refuse": error, "whole": whole, **options})

    def hold(
        self,
        api: str | Collection[str],
        *,
        undecided: bool = False,
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Carry requests out, but send no answer until the rule is removed.

        With `undecided`, they are not carried out until then either.
        """
        return self.add_rule({"api": api, "hold": True, "undecided": undecided, **options})

    def delay(
        self,
        api: str | Collection[str],
        seconds: float | tuple[float, float],
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Carry requests out, and send each answer so much later; a range is drawn from."""
        return self.add_rule({"api": api, "delay": seconds, **options})

    def falsify(
        self,
        api: str | Collection[str],
        change: Callable[[Any], Any] | Mapping[str, Any],
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Change each answer: by a function, which changes the message or returns another, or to
        values by path, such as ``topics[*].partitions[*].errorCode``.

        A function runs in the server's thread.
        """
        return self.add_rule({"api": api, "falsify": change, **options})

    def observe(self, api: str | Collection[str], **options: Unpack[RuleOptions]) -> FaultRule:
        """Change nothing, but count requests, to wait for them."""
        return self.add_rule({"api": api, "observe": True, **options})

    def drop(
        self, api: str | Collection[str], when: Drop, **options: Unpack[RuleOptions]
    ) -> FaultRule:
        """End the connection before a request is passed on, or after it: in place of its answer."""
        return self.add_rule({"api": api, "drop": when, **options})

    def black_hole(
        self,
        api: str | Collection[str],
        direction: Direction = "both",
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Pass nothing on any more in a direction, this request or its answer included.

        The connection stays until a peer ends it.
        """
        return self.add_rule({"api": api, "black_hole": direction, **options})

    def throttle(
        self, api: str | Collection[str], bytes_per_s: float, **options: Unpack[RuleOptions]
    ) -> FaultRule:
        """Send each answer so slowly."""
        return self.add_rule({"api": api, "throttle": bytes_per_s, **options})

    def hang_up_at(
        self, api: str | Collection[str], byte: int, **options: Unpack[RuleOptions]
    ) -> FaultRule:
        """End the connection after so many bytes of the answer, its length included."""
        return self.add_rule({"api": api, "hang_up_at": byte, **options})

    def script(
        self,
        api: str | Collection[str],
        answers: Collection[Any],
        **options: Unpack[RuleOptions],
    ) -> FaultRule:
        """Treat the next requests one after the other: each by the name of an error, ``"NONE"``
        to carry it out, or a fault such as ``{"drop": "after"}``."""
        return self.add_rule({"api": api, "script": answers, **options})
