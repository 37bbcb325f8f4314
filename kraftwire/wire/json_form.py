"""JSON in and out as Kafka's generated converters print and read it.

Keys are camelCase, bytes are base64, uuids are url-safe base64 without padding, tagged fields at
their default are left out. Fields of type records are base64 here, where Kafka's converters print
an empty string.

Types of values are checked before they become JSON: encoding notices most wrong types by itself,
but a number in a string field would be valid JSON too. `json_plan` describes messages to the
engine, which writes the same text straight from their bytes (`kraftwire/engine/json_plan.c`).

Source: Kafka's `JsonConverterGenerator`.
"""

from __future__ import annotations

import base64
import binascii
from operator import attrgetter

from kraftwire import engine
from kraftwire.errors import InvariantError, WireError
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.sizes import fresh_default, is_at_default, is_optional_struct, min_struct_size
from kraftwire.wire.writer import default_bytes, write_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Printer = Callable[[Any], dict[str, Any]]

_INT_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}

# Combinations of classes that are cached for a struct: a few, unless every field is nullable.
_COMBINATIONS_MAX = 256

_NO_TOPIC, _TOPIC_NAME, _TOPIC_ID = range(3)
_RECORDS = "records"


def uuid_to_text(value: bytes) -> str:
    """Return a uuid as Kafka prints it: 22 characters of url-safe base64."""
    return base64.urlsafe_b64encode(value)[:22].decode()


def uuid_from_text(text: str) -> bytes:
    """Parse Kafka's form of a uuid. Raises: WireError unless it stands for 16 bytes."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if len(value) != 16:
        raise WireError("bad uuid", expected="22 characters of url-safe base64", found=repr(text))
    return value


def to_json(facts: MessageFacts, message: Any, version: int) -> dict[str, Any]:
    """Return a message as JSON. Raises: WireError if the version cannot carry a value."""
    try:
        return _printer(facts.root, version)(message)
    except _CannotPrintError:
        # Rare, so the slow writer, which knows field paths, finds the value again and raises.
        write_message(facts, message, version)
        raise InvariantError(f"{facts.name} v{version} can be written but not printed") from None


_printers: dict[tuple[Any, int], Printer] = {}


def _printer(struct: StructFacts, version: int) -> Printer:
    """Return the function that prints a struct in one version, built on first use."""
    printer = _printers.get((struct.cls, version))
    if printer is None:
        printer = _printers[struct.cls, version] = _build_printer(struct, version)
    return printer


def _build_printer(struct: StructFacts, version: int) -> Printer:
    present = [each for each in struct.fields if version in each.versions]
    always = [each for each in present if version not in each.tagged]
    tagged = [(each, _converter(each, version)) for each in present if version in each.tagged]
    one_tagged = {each.name: _Values([each], version) for each, _ in tagged}
    refused = [
        each for each in struct.fields if version not in each.versions and not each.is_ignorable
    ]
    names = [each.name for each in always]
    values = _getter([each.attribute for each in always])
    checked = _Values(always, version)
    known = checked.known
    pairs = ((each.name, _converter(each, version)) for each in always)
    fixes = [(name, convert) for name, convert in pairs if convert]

    def printer(value: Any) -> dict[str, Any]:
        for each in refused:
            if not is_at_default(each, getattr(value, each.attribute)):
                raise _CannotPrintError
        held = values(value)
        if (*map(type, held),) not in known:
            held = checked(held)
        out = dict(zip(names, held, strict=True))
        for name, convert_always in fixes:
            held = out[name]
            if held is not None:
                out[name] = convert_always(held)
        for each, convert_tagged in tagged:
            held = getattr(value, each.attribute)
            if not is_at_default(each, held):
                (held,) = one_tagged[each.name]((held,))
                convert = None if held is None else convert_tagged
                out[each.name] = convert(held) if convert else held
        return out

    return printer


def _getter(attributes: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that takes attributes from an object, always as a tuple."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda value: tuple(getattr(value, name) for name in attributes)


def _converter(each: FieldFacts, version: int) -> Callable[[Any], Any] | None:
    """Return the function that converts a value other than None to JSON; None if none is needed."""
    convert = _printer(each.struct, version) if each.struct else _PLAIN.get(each.type)
    if not each.is_array:
        return convert
    sound = _checked_elements(each)
    if convert is None:
        return sound
    one = convert
    return lambda values: [one(value) for value in sound(values)]


def _base64(value: Any) -> str:
    try:
        return base64.b64encode(value).decode()
    except BufferError:
        return base64.b64encode(bytes(value)).decode()  # a view with gaps


def _uuid(value: bytes) -> str:
    if len(value) != 16:
        raise _CannotPrintError
    return uuid_to_text(value)


def float_to_json(value: float) -> Any:
    """Return a number as Kafka's converters print it."""
    # JSON has no infinity; Jackson prints these words in quotes.
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


# How to convert primitives to JSON; those not listed stay unchanged.
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "bytes": _base64,
    "records": _base64,
    "uuid": _uuid,
    "float64": float_to_json,
}


def from_json(facts: MessageFacts, data: Any, version: int) -> Any:
    """Build a message from JSON.

    Raises: WireError naming the key that is missing, unknown or of the wrong type.
    """
    return _FromJson(facts, version).struct(facts.root, data, "")


def field_from_json(
    facts: MessageFacts, field: FieldFacts, data: Any, version: int, *, is_element: bool = False
) -> Any:
    """Build the value of one field of a message, or of one element of it.

    Raises: WireError.
    """
    reader = _FromJson(facts, version)
    read = reader.one if is_element else reader.field
    return read(field, data, field.name)


class _FromJson:
    def __init__(self, facts: MessageFacts, version: int) -> None:
        self.facts = facts
        self.version = version

    def fail(self, problem: str, path: str, *, expected: str = "", found: Any = "") -> WireError:
        return WireError(
            problem,
            message=self.facts.name,
            version=self.version,
            path=path,
            expected=expected,
            found=f"{found!r:.60}" if expected else "",
        )

    def struct(self, struct: StructFacts, data: Any, path: str) -> Any:
        if not isinstance(data, dict):
            raise self.fail("wrong type", path, expected="a JSON object", found=data)
        value = object.__new__(struct.cls)
        value.unknown_tagged_fields = None
        known = set()
        for each in struct.fields:
            where = f"{path}.{each.name}" if path else each.name
            present = self.version in each.versions
            name = self.given_name(struct, each, data, where) if each.former_names else each.name
            if name in data:
                known.add(name)
                if present:
                    held = self.field(each, data[name], where)
                elif each.is_ignorable:
                    held = fresh_default(each)
                else:
                    raise self.fail(
                        f"version {self.version} cannot carry the field (it has {each.versions})",
                        where,
                    )
            elif present and self.version not in each.tagged:
                raise self.fail("the key is missing", where)
            else:
                held = fresh_default(each)
            setattr(value, each.attribute, held)
        for key in data:
            if key not in known:
                raise self.fail(
                    "unknown key",
                    f"{path}.{key}" if path else str(key),
                    expected=f"a field of {struct.name} in version {self.version}",
                    found=key,
                )
        return value

    def given_name(
        self, struct: StructFacts, each: FieldFacts, data: dict[str, Any], path: str
    ) -> str:
        """The name under which a field is given that had others."""
        given = [name for name in struct.names_of(each, self.version) if name in data]
        if len(given) > 1:
            raise self.fail(f"{' and '.join(given)} name the same field: give one of them", path)
        return given[0] if given else each.name

    def field(self, each: FieldFacts, data: Any, path: str) -> Any:
        if data is None:
            if self.version in each.nullable:
                return None
            raise self.fail("null is not allowed", path, expected=each.type_text, found=data)
        if not each.is_array:
            return self.one(each, data, path)
        if not isinstance(data, list):
            raise self.fail("wrong type", path, expected="a JSON array", found=data)
        return [self.one(each, item, f"{path}[{index}]") for index, item in enumerate(data)]

    def one(self, each: FieldFacts, data: Any, path: str) -> Any:
        if each.struct:
            return self.struct(each.struct, data, path)
        if each.type in _INT_BITS:
            return self.integer(each.type, data, path)
        if each.type == "bool":
            return self.typed(data, bool, "true or false", path)
        if each.type == "string":
            return self.typed(data, str, "a string", path)
        if each.type == "float64":
            return self.float64(data, path)
        text = self.typed(data, str, "a base64 string", path)
        if each.type == "uuid":
            try:
                return uuid_from_text(text)
            except WireError as error:
                raise self.fail("bad uuid", path, expected=error.expected, found=text) from None
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.fail("bad base64", path, expected="base64", found=text) from None

    def typed(self, data: Any, kind: type, expected: str, path: str) -> Any:
        if not isinstance(data, kind):
            raise self.fail("wrong type", path, expected=expected, found=data)
        return data

    def integer(self, type_name: str, data: Any, path: str) -> int:
        bits = _INT_BITS[type_name]
        low, high = (0, 2**bits) if type_name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        if isinstance(data, bool) or not isinstance(data, int) or not low <= data < high:
            raise self.fail("wrong value", path, expected=type_name, found=data)
        return data

    def float64(self, data: Any, path: str) -> float:
        if data in ("NaN", "Infinity", "-Infinity"):
            return float(data)
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise self.fail("wrong value", path, expected="a number", found=data)
        try:
            return float(data)
        except OverflowError:
            raise self.fail("wrong value", path, expected="float64", found="too large") from None


class _CannotPrintError(Exception):
    """A field holds a value that the version cannot carry, or that has the wrong type."""


class _Values:
    """Checks the values of some fields at once.

    `known` holds the classes of values that were right and need not be checked again.
    """

    __slots__ = ("_fields", "_version", "known")

    def __init__(self, fields: list[FieldFacts], version: int) -> None:
        self._fields = fields
        self._version = version
        self.known: set[tuple[type, ...]] = set()

    def __call__(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values, numbers as plain ones. Raises: _CannotPrintError for a wrong type."""
        pairs = zip(self._fields, values, strict=True)
        sound = tuple(_sound(each, value, self._version) for each, value in pairs)
        is_plain = all(map(_is_same, values, sound))
        if is_plain and len(self.known) < _COMBINATIONS_MAX:
            self.known.add((*map(type, values),))
        return sound


def _checked_elements(field: FieldFacts) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that checks an array's elements and returns them, numbers as plain ones.

    Raises: that function TypeError or _CannotPrintError for an element of a wrong type.
    """
    plain = _METHODS.get(field.type)
    if plain:
        return lambda values: [*map(plain, values)]
    known: set[type] = set()

    def check(values: Sequence[Any]) -> Sequence[Any]:
        if not known.issuperset(map(type, values)):
            values = [_element(field, value) for value in values]
            if field.struct and len(known) < _COMBINATIONS_MAX:
                known.update(map(type, values))
        return values

    return check


def _is_same(one: object, two: object) -> bool:
    return one is two


def _sound(field: FieldFacts, value: Any, version: int) -> Any:
    if value is None:
        may_be_none = version in field.nullable
        if not may_be_none and not (version in field.tagged and is_optional_struct(field)):
            raise _CannotPrintError
        return None
    if not field.is_array:
        return _element(field, value)
    if not isinstance(value, list | tuple):
        raise _CannotPrintError
    return value


def _element(field: FieldFacts, value: Any) -> Any:
    if field.struct:
        if value.__class__ is not field.struct.cls:
            raise _CannotPrintError
        return value
    if not isinstance(value, _CLASSES.get(field.type, int)):
        raise _CannotPrintError
    # True is written as the number 1, so it is printed as 1.
    convert = _NUMBER_CLASSES.get(field.type, int)
    return value if convert is None or type(value) is convert else convert(value)


# Methods that accept only their own class, and return a plain value of it.
_METHODS: dict[str, Callable[[Any], Any]] = {
    "string": str.__str__,
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), int.__index__),
}

_CLASSES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "string": str,
    "float64": (int, float),
    "uuid": (bytes, bytearray, memoryview),
    "bytes": (bytes, bytearray, memoryview),
    "records": (bytes, bytearray, memoryview),
}

# Converts a number of another class; None for a field that is not a number.
_NUMBER_CLASSES: dict[str, type | None] = {
    "bool": None,
    "string": None,
    "float64": float,
    "uuid": None,
    "bytes": None,
    "records": None,
}


def json_plan(facts: MessageFacts, version: int) -> Any:
    """Return the engine's plan for a version of a message; None if there is none."""
    shapes = None if engine.core is None else describe_json(facts, version)
    return None if shapes is None else engine.core.JsonPlan(shapes, STRING_SIZE_MAX)


def describe_json(facts: MessageFacts, version: int) -> tuple[tuple[Any, ...], ...] | None:
    """Describe a version in the form of the engine: structs, inner ones first.

    A struct is whether it has tagged fields, its least size, its weight, and two groups of fields:
    in wire order, and tagged in order of tags. None if the order of bytes is not that of JSON, or
    JSON has numbers with fractions, which Python writes.
    """
    describer = _Describer(facts, version)
    describer.add(facts.root)
    return tuple(describer.shapes) if describer.is_possible else None


class _Describer:
    """Describes the structs of one version of a message, each once."""

    def __init__(self, facts: MessageFacts, version: int) -> None:
        self.shapes: list[tuple[Any, ...]] = []
        self.is_possible = True
        self._numbers: dict[str, int] = {}
        self._facts = facts
        self._version = version
        self._is_flexible = version in facts.flexible

    def add(self, facts: StructFacts) -> int:
        """Append a struct after those that it holds, unless it was added; returns its number."""
        if facts.name in self._numbers:
            return self._numbers[facts.name]
        version = self._version
        present = [each for each in facts.fields if version in each.versions]
        fields = [(each, self._field(each)) for each in present]
        tagged = [(each.tag, field) for each, field in fields if version in each.tagged]
        in_order = sorted(tagged, key=lambda pair: pair[0])
        self.is_possible &= in_order == tagged and self._names_topic_first(present)
        self.shapes.append(
            (
                self._is_flexible,
                min_struct_size(facts, version, self._is_flexible),
                1 + len(facts.cls.__slots__),
                tuple(field for each, field in fields if version not in each.tagged),
                tuple(field for _, field in tagged),
            )
        )
        self._numbers[facts.name] = len(self.shapes) - 1
        return self._numbers[facts.name]

    def _names_topic_first(self, fields: list[FieldFacts]) -> bool:
        """Whether the topic is known before the records that belong to it are there."""
        topics = [at for at, each in enumerate(fields) if each.names_topic]
        held = [at for at, each in enumerate(fields) if each.struct or each.type == _RECORDS]
        is_tagged = any(self._version in fields[at].tagged for at in topics)
        return not topics or not held or (topics[-1] < held[0] and not is_tagged)

    def _field(self, facts: FieldFacts) -> tuple[Any, ...]:
        version = self._version
        is_tagged = version in facts.tagged
        is_many_records = facts.type == _RECORDS and (facts.is_array or is_tagged)
        self.is_possible &= facts.type != "float64" and not is_many_records
        return (
            f'"{facts.name}":'.encode("ascii"),
            "struct" if facts.struct else facts.type,
            facts.is_array,
            version in facts.flexible,
            version in facts.nullable,
            is_tagged,
            max(facts.tag, 0),
            _topic_kind(facts),
            default_bytes(self._facts, facts, version) if is_tagged else None,
            self.add(facts.struct) if facts.struct else -1,
        )


def _topic_kind(facts: FieldFacts) -> int:
    if facts.is_array or not facts.names_topic:
        return _NO_TOPIC
    return {"string": _TOPIC_NAME, "uuid": _TOPIC_ID}.get(facts.type, _NO_TOPIC)
