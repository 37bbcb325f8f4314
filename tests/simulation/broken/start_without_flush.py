"""What a start finds in a log is taken for durable, though a killed process may have left it."""

from __future__ import annotations

import pytest

from kraftwire.log.metadata_log import MetadataLog

FOUND_BY = {"S9"}


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Open a log without flushing it."""
    patch.setattr(MetadataLog, "_start", lambda self: self._segments[-1].activate())
