"""Runs of fixed-width values: one `struct` call reads or writes as many as stand together."""

from __future__ import annotations

from kraftwire.wire.sizes import FIXED_CODES, FIXED_SIZES

__all__ = ["CODES", "PackerSet", "Run", "offset"]

# The letter of each type of fixed width in a `struct` format.
CODES = {name: layout.removeprefix(">") for name, layout in FIXED_CODES.items()}

_SIZES = {CODES[name]: size for name, size in FIXED_SIZES.items()} | {"B": 1, "x": 1}
_METHODS = {"get": "unpack_from", "sweep": "iter_unpack", "put": "pack"}
_LETTERS = {"16s": "U", "?": "o"}


def offset(base: str, distance: int, more: str = "") -> str:
    """Return the Python expression for a sum: ``pos + 4``, ``pos - 1``, ``pos + 4 + n``."""
    far = f" + {more}" if more else ""
    if distance < 0:
        return f"{base}{far} - {-distance}"
    return f"{base} + {distance}{far}" if distance else f"{base}{far}"


class PackerSet:
    """The `struct` formats that a module uses, each under a readable name."""

    def __init__(self) -> None:
        self.formats: dict[str, str] = {}

    def name(self, prefix: str, codes: list[str]) -> str:
        """Global name of the function for these codes; prefix is ``get``, ``sweep`` or ``put``."""
        name = prefix + "_" + "".join(_LETTERS.get(code, code) for code in codes)
        method = _METHODS[prefix]
        self.formats[name] = f'Packer(">{"".join(codes)}").{method}'
        return name


class Run:
    """Values that stand together: parallel lists of codes and Python expressions or targets.

    `at` counts the bytes that a decoder has read beyond its variable `pos`; adding it to the next
    expression is cheaper than storing a new `pos` after every read.
    """

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.names: list[str] = []
        self.at = 0

    def add(self, code: str, name: str) -> None:
        """Append one value."""
        self.codes.append(code)
        self.names.append(name)

    @property
    def size(self) -> int:
        """The size of the whole run in bytes."""
        return sum(_SIZES[code] for code in self.codes)

    @property
    def arguments(self) -> str:
        """Return the expressions of all values but padding."""
        return ", ".join(name for name in self.names if name)

    def __bool__(self) -> bool:
        return bool(self.codes)

    def clear(self) -> None:
        """Forget all values."""
        self.codes.clear()
        self.names.clear()
