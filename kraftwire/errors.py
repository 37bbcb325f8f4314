"""The five families of errors, and `check` for invariants.

`WireError`: bytes of a peer or a file are wrong. `ApiError`: legal bytes, refused with an error
code. `SecurityError`: a connection that cannot be secured. `StorageError`: the disk lies or fails.
`InvariantError`: a bug of ours.
"""

from __future__ import annotations

__all__ = [
    "ApiError",
    "InvariantError",
    "KraftwireError",
    "LogMovedError",
    "SecurityError",
    "StorageError",
    "UsageError",
    "WireError",
    "check",
]

# The exceptions of bugs: one ends the request that met it, never the node.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class KraftwireError(Exception):
    """Base of every error that this package raises on purpose; picklable."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the attributes: a subclass does not keep the arguments that made its text."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[KraftwireError], arguments: tuple[object, ...]) -> KraftwireError:
    """Return an unpickled error, before its attributes are restored."""
    return kind.__new__(kind, *arguments)


class UsageError(KraftwireError):
    """A caller named something that does not exist: a message, a version, an option."""


class WireError(KraftwireError):
    """Bytes do not follow the format, or a value cannot be written in it.

    Units: `offset` counts bytes from the start of the buffer that was handed in (None while
    encoding). `path` names the field as the JSON form does:
    ``topics[0].partitions[2].highWatermark``.
    """

    def __init__(
        self,
        problem: str,
        *,
        message: str = "",
        version: int | None = None,
        path: str = "",
        offset: int | None = None,
        expected: str = "",
        found: str = "",
    ) -> None:
        self.problem = problem
        self.message = message
        self.version = version
        self.path = path
        self.offset = offset
        self.expected = expected
        self.found = found
        super().__init__(self._text())

    def _text(self) -> str:
        where = self.message
        if self.version is not None:
            where += f" v{self.version}"
        if self.path:
            where += f" {self.path}"
        if self.offset is not None:
            where += f" at offset {self.offset}"
        detail = self.problem
        if self.expected or self.found:
            detail += f" (expected {self.expected or 'nothing'}, found {self.found or 'nothing'})"
        return f"{where.strip()}: {detail}" if where else detail


# A string of Kafka's protocol has 32,767 bytes at most, and a character four.
API_ERROR_LENGTH_MAX = 4_096


class ApiError(KraftwireError):
    """A legal request that is refused: `code` is Kafka's error code, `detail` says why.

    `detail` is cut to API_ERROR_LENGTH_MAX characters: it has to fit into a response, whatever
    value of the request it names.
    """

    def __init__(self, code: int, detail: str) -> None:
        self.code = code
        self.detail = detail[:API_ERROR_LENGTH_MAX]
        super().__init__(f"error {code}: {self.detail}")


class SecurityError(KraftwireError):
    """A connection that cannot be secured, and will not be by trying again.

    A certificate, a protocol, a mechanism or a login did not pass. `is_usage` says whether the
    settings or the address of this end cure it; otherwise the peer refuses, or has to change.
    """

    def __init__(self, problem: str, *, is_usage: bool) -> None:
        self.is_usage = is_usage
        super().__init__(problem)


class StorageError(KraftwireError):
    """A file on disk is damaged or an operation on it failed; names the file and the position.

    `problem` is the text without file and position. `fatal` is True after a failed sync: the
    process must end, and nothing be tried again.
    """

    def __init__(
        self, problem: str, *, file: str, position: int | None = None, fatal: bool = False
    ) -> None:
        self.problem = problem
        self.file = file
        self.position = position
        self.fatal = fatal
        at = f" at byte {position}" if position is not None else ""
        super().__init__(f"{file}{at}: {problem}")


class LogMovedError(StorageError):
    """The log is not the one that was read before: it was truncated, or starts after our offset.

    Executors of Spark raise it, where no client can be imported.
    """


class InvariantError(KraftwireError):
    """A condition that the code relies on does not hold: a bug of ours."""


def check(condition: bool, message: str) -> None:
    """Raise `InvariantError` unless the condition holds; unlike `assert` it survives ``-O``."""
    if not condition:
        raise InvariantError(message)
