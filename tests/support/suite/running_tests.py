"""Names the tests that were running when a run was interrupted: one of them may never end."""

from __future__ import annotations


class RunningTests:
    """A plugin for the process that hears of all tests, with pytest-xdist or without."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._ids.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """It has ended."""
        self._ids.discard(nodeid)

    def pytest_keyboard_interrupt(self) -> None:
        """The run ends here."""
        for nodeid in sorted(self._ids):
            print(f"running when interrupted: {nodeid}", flush=True)
