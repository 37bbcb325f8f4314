"""Members of a quorum fail under producers and consumers: with ours it is no worse than without.

One failure of each kind; ``python -m tests.nemesis --traffic`` runs all of them.
"""

from __future__ import annotations

from pathlib import Path

from tests.nemesis.script import compare

FAILURES = (("follower", "stop"), ("third", "kill"), ("leader", "pause"))


def test_members_fail_under_load_as_java_does(tmp_path: Path) -> None:
    """Nothing is lost; no more duplicates, errors or seconds than with Java's controllers alone."""
    assert compare(tmp_path, FAILURES) == []
