"""Read schema files into `codegen.schema` objects, as leniently as Kafka's own files need.

Accepted: comments, `versions` missing where `taggedVersions` is given, tags written as strings,
``validVersions: none`` (the message is left out), `commonStructs` in any order.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from codegen.errors import SchemaError
from codegen.located_json import DEPTH_MAX, LocatedDict, parse
from codegen.schema import ANY_VERSION, NO_VERSIONS, Field, Message, Struct, Versions
from codegen.types import PRIMITIVES

# The types of each key's value. Here a boolean is not a number, unlike in Python.
_MESSAGE_KEYS: dict[str, tuple[type, ...]] = {
    "apiKey": (int,), "type": (str,), "name": (str,), "validVersions": (str,),
    "deprecatedVersions": (str,), "flexibleVersions": (str,), "fields": (list,),
    "commonStructs": (list,), "listeners": (list,), "latestVersionUnstable": (bool,),
    "about": (str,), "renamedTo": (str,),
}  # fmt: skip
_STRUCT_KEYS: dict[str, tuple[type, ...]] = {
    "name": (str,), "versions": (str,), "about": (str,), "fields": (list,),
}  # fmt: skip
_FIELD_KEYS: dict[str, tuple[type, ...]] = {
    "name": (str,), "type": (str,), "versions": (str,), "nullableVersions": (str,),
    "taggedVersions": (str,), "tag": (int, str), "flexibleVersions": (str,),
    "default": (str, int, float, bool, type(None)), "ignorable": (bool,), "mapKey": (bool,),
    "entityType": (str,), "about": (str,), "fields": (list,), "zeroCopy": (bool,),
    "formerNames": (list,),
}  # fmt: skip
_JSON_WORDS = {
    str: "a string", int: "an integer", float: "a number", bool: "true or false",
    list: "an array", LocatedDict: "an object", type(None): "null",
}  # fmt: skip
_VERSIONS = re.compile(r"(?P<low>\d+)(?:(?P<open>\+)|-(?P<high>\d+))?")


def load_folder(folder: Path) -> list[Message]:
    """Load every schema below a folder, sorted by name.

    Raises: SchemaError for the first file that cannot be read, or if two share a name.
    """
    messages: dict[str, Message] = {}
    for path in sorted(folder.rglob("*.json")):
        if path.name == "SOURCE.json":
            continue
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot be read: {error}", file=name) from None
        message = load_text(text, name)
        if message is None:
            continue
        if message.name in messages:
            other = messages[message.name].file
            raise SchemaError(f"message {message.name} is also in {other}", file=message.file)
        messages[message.name] = message
    return [messages[name] for name in sorted(messages)]


def load_text(text: str, file: str) -> Message | None:
    """Load one schema; None if it has no valid version. Raises: SchemaError."""
    return _Loader(file).message(parse(text, file), text)


def parse_versions(text: str) -> Versions:
    """Parse ``3``, ``0-5``, ``2+`` or ``none``. Raises: ValueError if it is anything else."""
    text = text.strip()
    if text == "none":
        return NO_VERSIONS
    match = _VERSIONS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    low = int(match["low"])
    high = ANY_VERSION if match["open"] else int(match["high"] or low)
    if not low <= high <= ANY_VERSION:
        raise ValueError(text)
    return Versions(low, high)


class _Loader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.flexible = NO_VERSIONS
        self.common: dict[str, LocatedDict] = {}
        self.structs: dict[str, Struct] = {}
        self.open_structs: list[str] = []

    def fail(self, problem: str, data: Any, key: str = "", path: str = "") -> SchemaError:
        line = data.line_of(key) if isinstance(data, LocatedDict) else 0
        return SchemaError(problem, file=self.file, line=line, path=path)

    def message(self, data: Any, text: str) -> Message | None:
        if not isinstance(data, LocatedDict):
            raise self.fail("a schema is one JSON object", data)
        self.check_keys(data, _MESSAGE_KEYS, "")
        name = self.get(data, "name")
        versions = self.versions(data, "validVersions", "")
        if not versions:
            return None
        self.flexible = self.versions(data, "flexibleVersions", "", NO_VERSIONS)
        for common in data.get("commonStructs", []):
            if not isinstance(common, LocatedDict):
                raise self.fail("a struct is a JSON object", data, "commonStructs", name)
            self.check_keys(common, _STRUCT_KEYS, name)
            self.common[self.get(common, "name", name)] = common
        root = Struct(name, [], versions, data.get("about", ""), data.line)
        root.fields = self.fields(data, versions, name)
        return Message(
            name=name,
            kind=self.get(data, "type"),
            api_key=data.get("apiKey", -1),
            versions=versions,
            flexible=self.flexible,
            unstable=data.get("latestVersionUnstable", False),
            listeners=tuple(data.get("listeners", ())),
            renamed_to=data.get("renamedTo", ""),
            about=root.about,
            root=root,
            structs=[*self.structs.values(), root],
            file=self.file,
            digest=hashlib.sha256(text.encode()).hexdigest()[:16],
        )

    def check_keys(
        self, data: LocatedDict, known: dict[str, tuple[type, ...]], path: str
    ) -> None:
        for key, value in data.items():
            if key not in known:
                raise self.fail(f"unknown key {key!r}", data, key, path)
            if type(value) not in known[key]:
                wanted = " or ".join(_JSON_WORDS[kind] for kind in known[key])
                found = _JSON_WORDS[LocatedDict if isinstance(value, dict) else type(value)]
                raise self.fail(f"{key!r} must be {wanted}, is {found}", data, key, path)

    def get(self, data: LocatedDict, key: str, path: str = "") -> Any:
        if key not in data:
            raise self.fail(f"key {key!r} is missing", data, path=path)
        return data[key]

    def versions(
        self, data: LocatedDict, key: str, path: str, default: Versions | None = None
    ) -> Versions:
        if key not in data and default is not None:
            return default
        text = self.get(data, key, path)
        try:
            return parse_versions(text)
        except ValueError:
            problem = f"{key!r} must look like 3, 0-5, 2+ or none, is {text!r}"
            raise self.fail(problem, data, key, path) from None

    def fields(self, data: LocatedDict, versions: Versions, path: str) -> list[Field]:
        listed = self.get(data, "fields", path)
        for item in listed:
            if not isinstance(item, LocatedDict):
                raise self.fail("a field is a JSON object", data, "fields", path)
        return [self.field(item, versions, path) for item in listed]

    def field(self, data: LocatedDict, parent: Versions, parent_path: str) -> Field:
        path = f"{parent_path}.{data.get('name', '')}".rstrip(".")
        self.check_keys(data, _FIELD_KEYS, path)
        name = self.get(data, "name", path)
        type_text = self.get(data, "type", path)
        tagged = self.versions(data, "taggedVersions", path, NO_VERSIONS)
        versions = self.versions(data, "versions", path, tagged or None)
        result = Field(
            name=name,
            type=type_text.removeprefix("[]"),
            is_array=type_text.startswith("[]"),
            versions=versions,
            nullable=self.versions(data, "nullableVersions", path, NO_VERSIONS),
            tagged=tagged,
            tag=self.tag(data, path),
            default=data.get("default"),
            has_default="default" in data,
            ignorable=data.get("ignorable", False),
            map_key=data.get("mapKey", False),
            entity_type=data.get("entityType", ""),
            flexible=self.versions(data, "flexibleVersions", path, self.flexible),
            own_flexible="flexibleVersions" in data,
            former=tuple(data.get("formerNames", ())),
            about=data.get("about", ""),
            line=data.line,
            tag_line=data.line_of("tag"),
        )
        if result.type not in PRIMITIVES:
            used = Versions(max(parent.low, versions.low), min(parent.high, versions.high))
            result.struct = self.struct(result.type, data, used, path)
        return result

    def tag(self, data: LocatedDict, path: str) -> int:
        try:
            return int(data.get("tag", -1))
        except ValueError:
            raise self.fail(f"tag {data['tag']!r} is not a number", data, "tag", path) from None

    def struct(self, name: str, data: LocatedDict, used: Versions, path: str) -> Struct:
        source = data if "fields" in data else self.common.get(name)
        if source is None and name in self.structs:
            return self.structs[name]
        if source is None:
            problem = f"type {name!r} is neither primitive nor a struct of this schema"
            raise self.fail(problem, data, "type", path)
        if name in self.open_structs:
            raise self.fail(f"struct {name!r} contains itself", data, "type", path)
        if name in self.structs:
            if "fields" in data:
                raise self.fail(f"struct {name!r} is defined twice", data, "fields", path)
            return self.structs[name]
        if len(self.open_structs) == DEPTH_MAX:
            problem = f"structs are nested deeper than {DEPTH_MAX} levels"
            raise self.fail(problem, data, "type", path)
        self.open_structs.append(name)
        result = Struct(name, [], used, source.get("about", ""), source.line)
        result.fields = self.fields(source, used, path)
        self.open_structs.pop()
        self.structs[name] = result
        return result
