"""Which message-versions are compared with which Kafka release, and how failures are reported."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from kraftwire.errors import KraftwireError
from kraftwire.messages import find
from kraftwire.wire.message import Message
from tests.support.kafka.java import JavaPeer
from tests.support.messages.random_messages import SEED_VARIABLE

# Random messages for each message-version in one run; a long search for rare differences has more.
ROUNDS = int(os.environ.get("KRAFTWIRE_ROUNDS", "4"))
_SHOWN_FAILURES = 8
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Case:
    """One random message to create: everything about it follows from these values."""

    name: str
    version: int
    number: int
    seed: int

    @property
    def message_class(self) -> type[Message]:
        """Our class of the message."""
        return find(self.name)

    @property
    def source(self) -> random.Random:
        """A fresh source of random values that belongs to this case alone."""
        return random.Random(f"{self.seed}/{self.name}/{self.version}/{self.number}")

    @property
    def unknown_tags(self) -> bool:
        """Every second message may have unknown tagged fields, which JSON cannot carry."""
        return self.number % 2 == 1

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        """A question about this message for `JavaPeer.ask`."""
        return {"op": op, "name": self.name, "version": self.version, **values}

    def __str__(self) -> str:
        return f"{self.name} v{self.version} number {self.number} ({SEED_VARIABLE}={self.seed})"


Judge = tuple[JavaPeer, list[Case]]


def only_in(old: JavaPeer, new: JavaPeer) -> dict[str, list[int]]:
    """Versions that the old release has and the new one does not."""
    newer = new.message_versions()
    return {
        name: [version for version in versions if version not in newer.get(name, ())]
        for name, versions in old.message_versions().items()
    }


def cases(versions: Mapping[str, Sequence[int]], seed: int) -> list[Case]:
    """The cases of one run for each of these message-versions."""
    return [
        Case(name, version, number, seed)
        for name, its_versions in versions.items()
        for version in its_versions
        for number in range(ROUNDS)
    ]


def check_each(check: Callable[..., None], items: Iterable[tuple[Any, ...]]) -> None:
    """Call `check` with each item and fail once, naming the cases that went wrong.

    The first value of an item is its case. Raises: AssertionError with the first failures
    in full and the number of all.
    """
    failures = []
    for item in items:
        try:
            check(*item)
        except (AssertionError, KraftwireError, pytest.fail.Exception) as problem:
            failures.append(f"{item[0]}: {problem}"[:_SHOWN_CHARACTERS])
    shown = "\n\n".join(failures[:_SHOWN_FAILURES])
    assert not failures, f"{len(failures)} cases differ from Kafka\n\n{shown}"
