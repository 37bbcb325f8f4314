"""The paths of a source, as Spark's own sources of files take them, and columns from folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from kraftwire.decode.files.folders import walk
from kraftwire.errors import UsageError
from kraftwire.spark import paths
from kraftwire.spark.paths import expanded, folder_values, has_name, top_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATTERN = "pathGlobFilter"

# Spark's options of files that would be ignored, and what to use instead.
_REFUSED = {
    "modifiedBefore": "select files by their names, or rows by their times",
    "modifiedAfter": "select files by their names, or rows by their times",
}

# Types of values in the names of folders, the first that all have; anything else is text.
_TYPES = (pa.int32(), pa.int64(), pa.date32())


class InputPaths:
    """The options of a source that name its files; can be pickled.

    `names` are paths, URIs and patterns; `pattern` is one for the names of files alone. Raises:
    UsageError if there are no paths, and for an option that would be ignored.
    """

    def __init__(self, options: Any, source: str) -> None:
        # Spark passes one path as `path` and a list as JSON.
        several = json.loads(options.get("paths") or "[]")
        self.names = [*_separated(options.get("path") or ""), *several]
        if not self.names:
            raise UsageError(f"{source} needs a path: a file, a folder or a pattern")
        for name, instead in _REFUSED.items():
            if name in options:
                raise UsageError(f"option {name} is not supported: {instead}")
        if str(options.get("recursiveFileLookup", "true")).lower() != "true":
            raise UsageError(
                "option recursiveFileLookup: folders are read with all those in them; "
                "a pattern such as folder/* names files"
            )
        self.pattern = str(options.get(_PATTERN, "*"))
        base = options.get("basePath")
        self._tops = top_paths(self.names if base is None else [base])

    def require(self) -> None:
        """Raises: UsageError for a name or pattern that leads to no file or folder."""
        paths.require(self.names)

    def refuse_pattern(self, why: str) -> None:
        """Raises: UsageError if names of files are to match a pattern."""
        if self.pattern != "*":
            raise UsageError(f"option {_PATTERN}: {why}; name those in the path")

    def all_columns(self, table: StructType) -> StructType:
        """Return the columns of a table, and those of the folders that it does not have itself."""
        found: dict[str, set[str]] = {}
        for path in self._files():
            for name, value in folder_values(path, self._tops).items():
                found.setdefault(name, set()).add(value)
        fields = [
            StructField(name, from_arrow_type(_type(values)))
            for name, values in found.items()
            if name not in table.names
        ]
        return StructType([*table.fields, *fields])

    def with_columns(self, rows: Any, file: str, target: pa.Schema) -> Any:
        """Return an Arrow table or batch of a file with the columns of folders in a schema.

        They are null where no folder of the file has that name.
        """
        values = folder_values(file, self._tops)
        for field in target:
            if field.name not in rows.schema.names:
                value = pa.scalar(values.get(field.name), pa.string()).cast(field.type)
                rows = rows.append_column(field, pa.repeat(value, rows.num_rows))
        return rows

    def _files(self) -> Iterator[Path]:
        found = walk(expanded(self.names), lambda _error: None)
        return (path for path in found if has_name(path, self.pattern))


def _separated(text: str) -> list[str]:
    """Return the paths in a text with commas between them; commas in braces belong to a pattern."""
    if Path(text).exists():
        return [text] if text else []
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part]


def _type(values: set[str]) -> pa.DataType:
    texts = pa.array(values, pa.string())
    for kind in _TYPES:
        try:
            texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()
