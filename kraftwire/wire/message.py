"""Base classes of generated code: the methods of every struct and every message.

A generated class has a reader and a writer for all its versions; this module supplies the common
interface: the engine's plan or these two, the checks at the boundary, and the fallback to the
slow, explaining reader and writer when they fail.
"""

from __future__ import annotations

import struct

from kraftwire.errors import UsageError, WireError, check
from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT

# Loading one message must stay cheap, so imports for type checkers only are not executed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self

    from kraftwire.wire.facts import MessageFacts
    from kraftwire.wire.fast import Parts
    from kraftwire.wire.sizes import CountCheck
    from kraftwire.wire.versions import Versions

    Decoder = Callable[[bytes, int, int], tuple[Any, int]]
    Encoder = Callable[[Any], bytes]

# The exceptions that bad bytes cause in a reader without checks. MemoryError and OverflowError
# come from absurd lengths before any memory is taken. Any other is our bug and propagates.
_BAD_BYTES = (
    IndexError,
    MemoryError,
    OverflowError,
    ValueError,  # includes UnicodeError
    WireError,
    struct.error,
)
# The exceptions that bad values cause in a writer; the slow writer names the value.
_BAD_VALUES = (*_BAD_BYTES, ArithmeticError, AttributeError, BufferError, LookupError, TypeError)


class Struct:
    """A struct of a message: plain attributes, compared and printed by value."""

    __slots__: tuple[str, ...] = ()

    @staticmethod
    def _read(
        buf: bytes, pos: int, count: int, version: int, budget: list[int]
    ) -> tuple[list[Any], int]:
        """Read structs that follow each other; return them and the position after the last one.

        `budget[0]` is the number of array elements still accepted. Bad bytes raise one of
        `_BAD_BYTES`, or leave the position beyond the end.
        """
        raise NotImplementedError

    def _write(self, out: Parts, version: int) -> None:
        """Append the struct to `out`. Bad values raise one of `_BAD_VALUES`."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__class__.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Self:
        result = object.__new__(self.__class__)
        for name in self.__class__.__slots__:
            setattr(result, name, getattr(self, name))
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        values = tuple(getattr(self, name) for name in self.__class__.__slots__)
        return _restore, (self.__class__, values)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__class__.__slots__)
        shown = ", ".join(
            f"{name}={value!r}"
            for name, value in values
            if name != "unknown_tagged_fields" or value
        )
        return f"{self.__class__.__name__}({shown})"


def _as_bytes(buf: object) -> bytes:
    # bytes() would turn a number into zeros.
    if not isinstance(buf, bytes | bytearray | memoryview):
        raise UsageError(f"only bytes can be decoded, not {type(buf).__name__}")
    return bytes(buf)


def _check_offset(offset: Any, length: int) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise UsageError(f"an offset is an int, not {type(offset).__name__} {offset!r:.60}")
    if not 0 <= offset <= length:
        raise UsageError(f"offset {offset} is outside the buffer of {length} bytes")
    return int(offset)


def _restore(cls: type[Struct], values: tuple[Any, ...]) -> Struct:
    """Return what pickle and deepcopy call to restore an object."""
    result = object.__new__(cls)
    for name, value in zip(cls.__slots__, values, strict=True):
        setattr(result, name, value)
    return result


class Message(Struct):
    """A message of one schema file, in all its versions."""

    __slots__ = ()

    NAME: ClassVar[str]
    KIND: ClassVar[str]
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]
    # The functions of the versions used so far, for the engine in use; set by kraftwire.wire.plans.
    _DECODE: ClassVar[dict[int, Decoder]]
    _ENCODE: ClassVar[dict[int, Encoder]]
    # Checks for too many small structs, for the versions in which a long message was written.
    _COUNT_CHECKS: ClassVar[dict[int, CountCheck]]
    _RAW_FACTS: ClassVar[tuple[Any, ...]]
    _NAMESPACE: ClassVar[dict[str, Any]]
    _FACTS: ClassVar[MessageFacts | None] = None

    def __init_subclass__(cls) -> None:
        # A class derived from a message has the functions of that message.
        if "NAME" in cls.__dict__:
            cls._DECODE = {}
            cls._ENCODE = {}
            cls._COUNT_CHECKS = {}

    @classmethod
    def decode(
        cls, buf: bytes | bytearray | memoryview, version: int, offset: int = 0
    ) -> tuple[Self, int]:
        """Read a message; return it and the position after it (more bytes may follow).

        Records fields are memoryviews of the input (of a copy, unless it is `bytes`). The process's
        garbage collector is left as it is; see `kraftwire.collector`. Raises: WireError naming
        field path and offset; UsageError for an unknown version, or an offset outside the buffer.
        """
        data = buf if buf.__class__ is bytes else _as_bytes(buf)
        if version.__class__ is not int:
            version = cls._check_version(version)
        try:
            decoder = cls._DECODE[version]
        except KeyError:
            cls._check_version(version)
            from kraftwire.wire.plans import choose_decoder

            choose_decoder(cls, version)
            decoder = cls._DECODE[version]
        length = len(data)
        if offset.__class__ is not int or not 0 <= offset <= length:
            offset = _check_offset(offset, length)
        budget = ELEMENT_FREE_COUNT + (length - offset) // ELEMENT_BYTES_MIN
        try:
            result = decoder(data, offset, budget)
            if result[1] <= length:
                return result
        except _BAD_BYTES:
            pass
        return cls._decode_slowly(data, version, offset)

    @classmethod
    def try_decode(cls, data: bytes, version: int, offset: int) -> tuple[Self, int] | None:
        """As `decode`, for bytes that are probably another message: None if they are."""
        if version not in cls._DECODE:
            from kraftwire.wire.plans import choose_decoder

            choose_decoder(cls, version)
        budget = ELEMENT_FREE_COUNT + (len(data) - offset) // ELEMENT_BYTES_MIN
        try:
            result = cls._DECODE[version](data, offset, budget)
        except _BAD_BYTES:
            return None
        return result if result[1] <= len(data) else None

    @classmethod
    def _decode_slowly(cls, data: bytes, version: int, offset: int) -> tuple[Self, int]:
        from kraftwire.wire.reader import read_message

        message, end = read_message(cls.facts(), data, version, offset)
        check(isinstance(message, cls), "the reader builds the class of its facts")
        return message, end

    def encode(self, version: int) -> bytes:
        """Write the message as Kafka's serializer does.

        Raises: WireError naming the field whose value does not fit, that the version cannot carry,
        or that has more elements or tags than decoders accept; UsageError for an unknown version.
        """
        if version.__class__ is not int:
            version = self._check_version(version)
        try:
            encoder = self._ENCODE[version]
        except KeyError:
            self._check_version(version)
            from kraftwire.wire.plans import choose_encoder

            choose_encoder(self.__class__, version)
            encoder = self._ENCODE[version]
        try:
            data = encoder(self)
            if len(data) <= ELEMENT_FREE_COUNT or not self._has_too_many(version, len(data)):
                return data
        except _BAD_VALUES:
            pass  # errors raised below should not have this one as their context
        from kraftwire.wire.writer import write_message

        return write_message(self.facts(), self, version)

    def _has_too_many(self, version: int, size: int) -> bool:
        try:
            check_count = self._COUNT_CHECKS[version]
        except KeyError:
            from kraftwire.wire.sizes import count_check

            check_count = self._COUNT_CHECKS[version] = count_check(self.facts(), version)
        return check_count(self, size)

    def to_json(self, version: int) -> dict[str, Any]:
        """The message in the form of Kafka's JSON converters; records are base64.

        Raises: WireError if the version cannot carry a value or it is of the wrong type; UsageError
        for an unknown version.
        """
        from kraftwire.wire.json_form import to_json

        version = self._check_version(version)
        try:
            return to_json(self.facts(), self, version)
        except (AttributeError, TypeError, ValueError):
            self.encode(version)  # reports which value is of the wrong type
            raise

    @classmethod
    def from_json(cls, data: Any, version: int) -> Self:
        """Build a message from the form of Kafka's JSON converters.

        Raises: WireError naming the key that is missing, unknown or of the wrong type.
        """
        from kraftwire.wire.json_form import from_json

        version = cls._check_version(version)
        message: Self = from_json(cls.facts(), data, version)
        return message

    @classmethod
    def facts(cls) -> MessageFacts:
        """The schema's facts, built on first use."""
        if cls._FACTS is None:
            from kraftwire.wire.facts import load

            cls._FACTS = load(cls._RAW_FACTS, cls._NAMESPACE)
        return cls._FACTS

    @classmethod
    def _check_version(cls, version: Any) -> int:
        # True and 2.0 would find a decoder, since they equal a number.
        is_int = isinstance(version, int) and not isinstance(version, bool)
        if not is_int or version not in cls.VERSIONS:
            raise cls._unknown_version(version)
        return int(version)

    @classmethod
    def _unknown_version(cls, version: Any) -> UsageError:
        problem = f"{cls.NAME} has versions {cls.VERSIONS}, not {version!r:.60}"
        if isinstance(version, bool) or not isinstance(version, int):
            problem += f": expected an int, found {type(version).__name__}"
        return UsageError(problem)
