"""A test of your own against a real quorum: `pytest examples/test_failover.py`.

The fixture `kraftwire_quorum` is there wherever kraftwire is installed.
"""

from __future__ import annotations

from kraftwire.testing import Quorum


def test_the_quorum_survives_its_leader(kraftwire_quorum: Quorum) -> None:
    """Replace the client below by yours, and check that it finds the new leader."""
    first = kraftwire_quorum.leader()
    kraftwire_quorum.kill(first)
    assert kraftwire_quorum.leader() != first

    kraftwire_quorum.start(first)
    described = kraftwire_quorum.admin().describe_quorum()
    assert {voter.id for voter in described.voters} == {1, 2, 3}
