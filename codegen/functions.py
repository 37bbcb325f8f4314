"""Plan the functions of a message's module.

The planners are those of `kraftwire.wire.functions`, and they plan from the facts that the module
will carry, so generated functions and those built at run time cannot differ.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from codegen.facts import facts_of
from codegen.schema import Message
from kraftwire.wire.facts import load
from kraftwire.wire.functions.decoding.plan import DecodePlanner
from kraftwire.wire.functions.encoding.frames import EncodeRoot, EncodeTags
from kraftwire.wire.functions.encoding.plan import EncodePlanner
from kraftwire.wire.functions.layout import layouts_of
from kraftwire.wire.functions.packers import PackerSet
from kraftwire.wire.functions.steps import Function, helpers_of
from kraftwire.wire.functions.tables import helpers_of_tables, tables

__all__ = ["FunctionsPlan", "plan_functions"]


@dataclass
class FunctionsPlan:
    """Functions, each after those that it calls, and their tables."""

    decoders: list[Function]
    encoders: list[Function]
    decoder_names: dict[int, str]
    encoder_names: dict[int, str]
    tables: list[tuple[str, str]]

    @property
    def in_order(self) -> list[Function]:
        """All functions, decoders first."""
        return self.decoders + self.encoders

    @property
    def helpers(self) -> set[str]:
        """The names that they need from kraftwire.wire.fast."""
        used = helpers_of(self.decoders) | helpers_of(self.encoders)
        return {"Parts", "blanks"} | used | helpers_of_tables(self.tables)

    @property
    def has_arrays(self) -> bool:
        """Whether any function takes a sequence."""
        return any(not isinstance(each, EncodeRoot | EncodeTags) for each in self.encoders)


def plan_functions(message: Message) -> FunctionsPlan:
    """Plan the decoders and encoders of all versions."""
    classes = {struct.name: None for struct in message.structs}
    facts = load(ast.literal_eval(facts_of(message)), classes)
    layouts = layouts_of(facts)
    packers = PackerSet()
    decode = DecodePlanner(packers, layouts)
    encode = EncodePlanner(packers, layouts)
    decoder_names = {version: decode.plan(version).name for version in layouts}
    encoder_names = {version: encode.plan(version).name for version in layouts}
    decoders, encoders = decode.in_order(), encode.in_order()
    found = [*tables(packers, encode.rows, decoders)]
    return FunctionsPlan(decoders, encoders, decoder_names, encoder_names, found)
