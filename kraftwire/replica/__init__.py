"""One replica of a replicated log: carries out what its Raft core decides, runs state machines."""

from kraftwire.replica.state_machine import SnapshotReader, StateMachine

__all__ = ["SnapshotReader", "StateMachine"]
