"""A voter that loses its disk: removed from the voters, and added again with the new one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kraftwire.wire.json_form import uuid_to_text
from tests.support.kafka.mixed_quorum import Member, MixedQuorum, wait_until
from tests.support.kafka.quorum_tools import ours

_CALL_SECONDS = 5
_SECONDS_MAX = 240.0


class Replacement:
    """The change of one member's disk, which proceeds while other faults come and go."""

    def __init__(
        self, quorum: MixedQuorum, member: Member, is_back: Callable[[int], None]
    ) -> None:
        """Name the member. `is_back` is called with its id once it is a voter again."""
        self._quorum = quorum
        self._member = member
        self._is_back = is_back
        self._problem: BaseException | None = None
        self._lost = member.directory_id
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def is_done(self) -> bool:
        """Whether it is a voter again, with everything that was committed before."""
        return not self._thread.is_alive() and self._problem is None

    def start(self) -> None:
        """Remove the disk and start the node with an empty one; a thread does the rest."""
        self._member.kill()
        self._quorum.reformat(self._member.node_id)
        self._member.start()
        self._thread.start()

    def finish(self) -> None:
        """Wait for the end. Raises: AssertionError if it did not become a voter again in time."""
        self._thread.join()
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            what = f"node {self._member.node_id} as a voter with its new disk"
            wait_until(self._try, what, self._quorum.last_lines, _SECONDS_MAX)
        except AssertionError as error:
            self._problem = error
        else:
            self._is_back(self._member.node_id)

    def _try(self) -> bool:
        """Take the next step; an unanswered earlier attempt may have succeeded."""
        node_id, member = self._member.node_id, self._member
        if member.is_java and member.ended():
            # A Java node ends on an answer that names it as leader of an epoch that its new disk
            # does not know (IllegalStateException in maybeTransition). Operators start it again.
            member.kill()
            member.start()
        keys = self._voters()
        if (node_id, self._lost) in keys:
            self._call("remove-controller", "-i", str(node_id), "-d", self._lost)
        elif keys and (node_id, member.directory_id) not in keys:
            self._call("--command-config", str(member.config), "add-controller")
        return (node_id, member.directory_id) in self._voters()

    def _call(self, *words: str) -> None:
        through = ("--bootstrap-controller", self._quorum.bootstrap_controllers)
        ours(*through, "--timeout", str(_CALL_SECONDS), *words)

    def _voters(self) -> set[tuple[int, str]]:
        """Ids and directories of the voters according to the leader; empty without one."""
        for member in self._quorum.running():
            info = member.describe(_CALL_SECONDS) if member.is_controller else None
            if info is not None and info.leader_id == member.node_id and not info.error_code:
                return {
                    (one.replica_id, uuid_to_text(one.replica_directory_id))
                    for one in info.current_voters
                }
        return set()
