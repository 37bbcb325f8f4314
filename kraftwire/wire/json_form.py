"""JSON in and out as Kafka's generated converters print and read it.

Keys are camelCase, bytes are base64, uuids are url-safe base64 without padding, tagged fields at
their default are left out. Fields of type records are base64 here, where Kafka's converters print
an empty string.

Source: Kafka's `JsonConverterGenerator`.
"""

from __future__ import annotations

import base64
import binascii
from operator import attrgetter

from kraftwire.errors import InvariantError, WireError
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.json_values import CannotPrintError, Values, elements
from kraftwire.wire.sizes import fresh_default, is_at_default
from kraftwire.wire.writer import write_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Printer = Callable[[Any], dict[str, Any]]

_INT_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}


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
    except CannotPrintError:
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
    one_tagged = {each.name: Values([each], version) for each, _ in tagged}
    refused = [
        each for each in struct.fields if version not in each.versions and not each.is_ignorable
    ]
    names = [each.name for each in always]
    values = _getter([each.attribute for each in always])
    checked = Values(always, version)
    known = checked.known
    pairs = ((each.name, _converter(each, version)) for each in always)
    fixes = [(name, convert) for name, convert in pairs if convert]

    def printer(value: Any) -> dict[str, Any]:
        for each in refused:
            if not is_at_default(each, getattr(value, each.attribute)):
                raise CannotPrintError
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
    sound = elements(each)
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
        raise CannotPrintError
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
            if each.name in data:
                known.add(each.name)
                if present:
                    held = self.field(each, data[each.name], where)
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


