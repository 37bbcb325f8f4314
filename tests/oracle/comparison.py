"""What became of one script at both controllers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# One operation of a script and what it did: "i", "op", "re" and "rec" are its number, itself, the
# answers and the records.
Step = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """An operation to which the controllers do not answer the same, or after which they do not
    write the same."""

    java: Step
    ours: Step

    @property
    def number(self) -> int:
        """The operation's place in the script."""
        return int(self.java["i"])

    @property
    def text(self) -> str:
        """The operation, and both answers and streams where they differ."""
        lines = [f"operation {self.number}: {_text(self.java['op'])}"]
        for key, title in (("re", "answer"), ("rec", "records"), ("end", "end")):
            java, ours = (_text(step.get(key)) for step in (self.java, self.ours))
            if java != ours:
                lines += [f"  {title} of Kafka: {java}", f"  {title} of ours:  {ours}"]
        return "\n".join(lines)


@dataclass
class Comparison:
    """What was compared.

    `known` counts deliberate differences, `difference` is the first other one. `log` are the bytes
    that our controller wrote. Without a difference, fewer `operations` than the script has say that
    a known one could not be evened out.
    """

    operations: int = 0
    requests: int = 0
    records: int = 0
    known: Counter[str] = field(default_factory=Counter)
    difference: Difference | None = None
    log: bytes = b""


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
