"""Errors of Spark jobs, in one line instead of two stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kraftwire.errors import KraftwireError

_RAISED = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception|Exit|Warning)\b.*", re.MULTILINE)
_NOISE = re.compile(r"^(?:An error occurred while calling .*|: *|\s*)$")
_LENGTH_MAX = 300


class JobError(KraftwireError):
    """A job or a stage failed; `__cause__` is the original error."""


@contextmanager
def as_job_error(what: str) -> Iterator[None]:
    """Raise errors inside the context as a JobError about `what`, except our own and OSError."""
    try:
        yield
    except (KraftwireError, OSError):
        raise
    except Exception as error:
        raise JobError(f"{what} failed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the original error, without the stack traces of two languages around it."""
    kind, text = type(error), str(error)
    is_remote = kind.__module__.partition(".")[0] in ("pyspark", "py4j")
    if not is_remote:
        return f"{kind.__name__}: {text}"[:_LENGTH_MAX]
    _, is_from_python, stack = text.rpartition("Traceback (most recent call last):")
    raised = _RAISED.findall(stack) if is_from_python else []
    lines = [line for line in text.splitlines() if not _NOISE.match(line)]
    return (raised or lines or [kind.__name__])[0].lstrip(": ")[:_LENGTH_MAX]
