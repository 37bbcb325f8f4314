"""Arrow arrays of spans of a buffer, without a Python object for each.

A `BinaryArray` covers the whole buffer, with wanted spans and gaps as its elements; `take` then
copies the wanted ones. Lists of bytes cost ten times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["HEADERS", "header_array", "key_value_arrays"]

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.list_(_HEADER)


def key_value_arrays(data: Any, edges: Any, has_key: Any, has_value: Any) -> tuple[Any, Any]:
    """Return two binary arrays of the spans between the four edges of each row.

    `edges` ascend from row to row, below 2 GiB; a cell is null where `has_key` or `has_value` is
    false.
    """
    count = len(edges)
    if not count:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    offsets = np.ascontiguousarray(edges, np.int32).reshape(-1)
    laid = pa.Array.from_buffers(
        pa.binary(), 4 * count - 1, [None, pa.py_buffer(offsets), data]
    )
    return _taken(laid, 0, has_key), _taken(laid, 2, has_value)


def header_array(data: Any, counts: Any, edges: Any, has_value: Any) -> Any:
    """Return lists of headers: `counts` for each record, the other arrays for each header.

    As in the reader, invalid UTF-8 in names becomes replacement characters.
    """
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    names, values = key_value_arrays(data, edges, np.ones(len(edges), bool), has_value)
    children = pa.StructArray.from_arrays([_text(names), values], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array(offsets), children).cast(HEADERS)


def _taken(laid: Any, first: int, is_there: Any) -> Any:
    """Return every fourth element from the first on, null where `is_there` is false."""
    count = len(is_there)
    if not is_there.any():
        return pa.nulls(count, pa.binary())
    places = np.arange(first, 4 * count, 4, dtype=np.int32)
    return laid.take(pa.array(places, mask=None if is_there.all() else ~is_there))


def _text(names: Any) -> Any:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [name.decode("utf-8", "replace") for name in names.to_pylist()]
        return pa.array(texts, pa.string())
