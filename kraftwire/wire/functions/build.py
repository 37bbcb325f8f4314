"""Builds the Python functions of a message's version that its module does not carry.

The most used messages carry their functions in their modules. For all others the same planners and
steps make the same source from the facts, which Python compiles when the version is first used, as
it does for `dataclasses` and `namedtuple`.
"""

from __future__ import annotations

from threading import Lock

from kraftwire.wire import fast
from kraftwire.wire.functions.compiled import compiled
from kraftwire.wire.functions.decoding.plan import DecodePlanner
from kraftwire.wire.functions.encoding.plan import EncodePlanner
from kraftwire.wire.functions.layout import layouts_of
from kraftwire.wire.functions.packers import PackerSet
from kraftwire.wire.functions.steps import lines_of
from kraftwire.wire.functions.tables import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kraftwire.wire.facts import MessageFacts, StructFacts

__all__ = ["build_decoder", "build_encoder"]

# A second thread must wait until the source of a planned function is compiled.
_lock = Lock()
_builders: dict[str, _Builder] = {}


def build_decoder(cls: Any, version: int) -> None:
    """Add the function that decodes a version, which must exist, to the class of a message."""
    with _lock:
        if version not in cls._DECODERS:
            cls._DECODERS[version] = _builder(cls).decoder(version)


def build_encoder(cls: Any, version: int) -> None:
    """Add the function that encodes a version, which must exist, to the class of a message."""
    with _lock:
        if version not in cls._ENCODERS:
            cls._ENCODERS[version] = _builder(cls).encoder(version)


def _builder(cls: Any) -> _Builder:
    # Kept by the module, since modules of several sets of schemas may share names of messages.
    key = f"{cls._NAMESPACE['__name__']}.{cls.NAME}"
    if key not in _builders:
        _builders[key] = _Builder(key, cls.facts())
    return _builders[key]


class _Builder:
    """Builds the functions of one message; structs of equal layout share them."""

    def __init__(self, name: str, facts: MessageFacts) -> None:
        self._name = name
        layouts = layouts_of(facts)
        self._packers = PackerSet()
        self._decode = DecodePlanner(self._packers, layouts)
        self._encode = EncodePlanner(self._packers, layouts)
        self._globals = {name: getattr(fast, name) for name in fast.__all__}
        for code in fast.UNPACK:
            self._globals[f"UNPACK_{code}"] = fast.UNPACK[code]
            self._globals[f"PACK_{code}"] = fast.PACK[code]
        self._add_structs(facts.root)

    def _add_structs(self, facts: StructFacts) -> None:
        self._globals[facts.name] = facts.cls
        self._globals[f"blank_{facts.name}"] = fast.blanks(facts.cls)
        for field in facts.fields:
            if field.struct:
                self._add_structs(field.struct)

    def decoder(self, version: int) -> Any:
        """Return the function that decodes a version."""
        return self._build(self._decode, version)

    def encoder(self, version: int) -> Any:
        """Return the function that encodes a version."""
        return self._build(self._encode, version)

    def _build(self, planner: DecodePlanner | EncodePlanner, version: int) -> Any:
        name = planner.plan(version).name
        if name not in self._globals:
            made = compiled(f"{self._name} {name}", self._source(planner), self._globals)
            self._globals |= made
        return self._globals[name]

    def _source(self, planner: DecodePlanner | EncodePlanner) -> str:
        """Return the text of all functions and tables that are planned and not compiled yet."""
        functions = [each for each in planner.in_order() if each.name not in self._globals]
        lines = ["from __future__ import annotations"]
        lines += [
            f"{name} = {value}"
            for name, value in tables(self._packers, self._encode.rows, functions)
            if name not in self._globals
        ]
        for function in functions:
            lines += ["", "", *lines_of(function)]
        return "\n".join(lines) + "\n"
