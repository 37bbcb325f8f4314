"""Values of properties by key, and the copies that listeners and changes are read from."""

from __future__ import annotations

from kraftwire.properties import Key, Properties
from kraftwire.properties_file import parse_properties


def test_copies_have_what_another_name_of_a_key_has_set() -> None:
    """A listener sees the properties of its node, and a changed key changes no other."""
    keys = {"node.id": Key("node.id", "int")}
    properties = Properties(parse_properties("broker.id=7\n", "file"), "file", keys)
    properties.adopt("node.id", "broker.id")
    for copy in (properties.of_listener("A"), properties.changed({"x": "1"}, "test")):
        assert copy.number("node.id") == 7
        assert copy.place("node.id") == "file:1: broker.id"
        assert {"broker.id", "node.id"} <= set(copy.names())
