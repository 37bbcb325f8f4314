"""The promises of the threat model are tested under their names."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# A letter and a number are a rule of docs/security-rules.md.
_NAME = re.compile(r"SEC-[A-Z]{2,}")


def test_every_promise_is_attacked_by_a_test() -> None:
    """And no test cites a promise that does not exist."""
    promised = re.findall(r"^\| (SEC-[A-Z]+) \|", (_ROOT / "docs/security.md").read_text(), re.M)
    assert len(promised) > 5
    cited = set[str]()
    for folder in ("hostile", "unit"):
        for path in (_ROOT / "tests" / folder).rglob("test_*.py"):
            cited.update(_NAME.findall(path.read_text()))
    assert cited == set(promised)
