"""Arrow arrays of spans of a buffer, without an object for each.

A `BinaryArray` is laid over the whole buffer, with what is wanted and the gaps between as its
elements; `take` then copies what is wanted. Lists of bytes cost ten times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["HEADERS", "header_array", "key_value_arrays"]

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.list_(_HEADER)


def key_value_arrays(data: Any, edges: Any, has_key: Any, has_value: Any) -> tuple[Any, Any]:
    """Two binary arrays of the spans that rows of four edges enclose.

    Shape: `edges` ascend from row to row, below 2 GiB; null where `has_key` or `has_value` is
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
    """Lists of headers; `counts` says how many each row has, the rest has a row for each header.

    Shape: as in the reader, names that are no UTF-8 have replacement characters.
    """
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    names, values = key_value_arrays(data, edges, np.ones(len(edges), bool), has_value)
    children = pa.StructArray.from_arrays([_text(names), values], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array(offsets), children).cast(HEADERS)


def _taken(laid: Any, first: int, is_there: Any) -> Any:
    """Every fourth element from the first on, null where it is not there."""
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
