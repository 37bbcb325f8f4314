"""LogChecks of logs that begin at a snapshot: some break an invariant, some nearly do."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.state_machine import Digest
from tests.simulation.examples_of_logs import batch, log_checks, replicate


class _Snapshot:
    """A snapshot as a state machine reads it. `values` are those of its records."""

    class _Batch:
        def __init__(self, values: list[bytes]) -> None:
            self._values = values

        def records(self) -> list[object]:
            return [type("Record", (), {"value": value}) for value in self._values]

    def __init__(self, offset: int, values: list[bytes]) -> None:
        self.id = type("Id", (), {"offset": offset})
        self._values = values

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield self._Batch(self._values)


def committed() -> LogChecks:
    """Two batches that two voters have, and that are committed; the third voter has none."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1) + batch(5, 5, 2), 2)
    logs.advanced(1, 10, 2)
    return logs


def a_log_that_begins_at_what_is_not_committed() -> None:
    """S14."""
    committed().reset(3, 12, 2)


def a_log_that_begins_inside_a_batch() -> None:
    """S14."""
    committed().reset(3, 7, 2)


def a_log_that_begins_with_a_wrong_epoch() -> None:
    """S14."""
    committed().reset(3, 10, 1)


def a_log_that_begins_again_and_loses_what_is_committed() -> None:
    """S11."""
    committed().reset(2, 5, 1)


def a_log_that_begins_again_and_loses_what_is_not() -> None:
    logs = committed()
    logs.appended(3, batch(0, 5, 1) + batch(5, 9, 1), 1)
    logs.reset(3, 5, 1)
    logs.appended(3, batch(5, 5, 2), 2)
    logs.advanced(3, 10, None)


def a_log_whose_start_is_not_known_to_be_committed() -> None:
    """S14."""
    logs = committed()
    logs.started(2, 5)


def a_log_whose_start_goes_back() -> None:
    """S14."""
    logs = committed()
    logs.started(1, 10)
    logs.started(1, 5)


def a_log_whose_start_moves_on() -> None:
    logs = committed()
    logs.started(1, 5)
    logs.started(1, 5)
    logs.started(1, 10)
    logs.restarted(1, [], is_durable=True, start=10)
    logs.restarted(2, [batch(5, 5, 2)], is_durable=True, start=5)


def a_restart_that_lost_what_was_durable_above_the_start() -> None:
    """S12."""
    logs = committed()
    logs.restarted(1, [], is_durable=True, start=5)


def a_restart_in_which_a_snapshot_took_the_place_of_the_log() -> None:
    logs = committed()
    logs.restarted(3, [], is_durable=True, start=10)
    logs.appended(3, batch(10, 1, 2), 2)


def a_snapshot_of_another_state() -> None:
    """S14."""
    logs = committed()
    machine = Digest(1, logs, Coverage())
    machine.load(_Snapshot(5, [bytes(200)] * 6))  # type: ignore[arg-type]


def a_snapshot_of_a_later_state() -> None:
    """S14."""
    logs = committed()
    machine = Digest(1, logs, Coverage())
    machine._state, machine.applied = logs.digest_at(10), 5
    values = list(machine.freeze())
    Digest(2, logs, Coverage()).load(_Snapshot(5, values))  # type: ignore[arg-type]


def a_snapshot_that_takes_a_state_machine_back() -> None:
    """S15."""
    logs = committed()
    machine = Digest(1, logs, Coverage())
    machine._state, machine.applied = logs.digest_at(5), 5
    values = list(machine.freeze())
    machine.applied = 10
    machine.load(_Snapshot(5, values))  # type: ignore[arg-type]


def a_snapshot_that_is_what_was_committed() -> None:
    logs = committed()
    machine = Digest(1, logs, Coverage())
    machine._state, machine.applied = logs.digest_at(5), 5
    other = Digest(2, logs, Coverage())
    other.load(_Snapshot(5, list(machine.freeze())))  # type: ignore[arg-type]
    assert list(other.freeze()) == list(machine.freeze())


BAD: list[tuple[str, Callable[[], None]]] = [
    ("S11", a_log_that_begins_again_and_loses_what_is_committed),
    ("S12", a_restart_that_lost_what_was_durable_above_the_start),
    ("S14", a_log_that_begins_at_what_is_not_committed),
    ("S14", a_log_that_begins_inside_a_batch),
    ("S14", a_log_that_begins_with_a_wrong_epoch),
    ("S14", a_log_whose_start_is_not_known_to_be_committed),
    ("S14", a_log_whose_start_goes_back),
    ("S14", a_snapshot_of_another_state),
    ("S14", a_snapshot_of_a_later_state),
    ("S15", a_snapshot_that_takes_a_state_machine_back),
]

NEAR: list[Callable[[], None]] = [
    a_log_that_begins_again_and_loses_what_is_not,
    a_log_whose_start_moves_on,
    a_restart_in_which_a_snapshot_took_the_place_of_the_log,
    a_snapshot_that_is_what_was_committed,
]
