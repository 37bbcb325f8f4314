"""Turn plans into source text; the only place that knows Jinja2."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen.plan import ModulePlan, fill

__all__ = ["Renderer"]

_TEMPLATES = Path(__file__).parent / "templates"
# Names that a module may need from kraftwire.wire.fast; those it uses are imported.
_FAST_NAMES = (
    "EMPTY", "LENGTH", "PACK", "STRING_LENGTH", "UNPACK", "ZERO_UUID", "Packer", "Parts", "Rows",
    "Sweep", "blanks", "compact_blobs", "compact_strings", "islice", "lists", "long_length",
    "long_string", "plain_blobs", "plain_strings", "put_blobs", "put_strings", "put_tags",
    "put_uuids",
    "read_uvarint", "tag_count", "unknown_tags", "uuids",
)  # fmt: skip
_FACTS = re.compile(r"^\w+\._RAW_FACTS = ", re.MULTILINE)
_TYPE_IMPORTS = """
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
"""
_BLANK_LINES = re.compile(r"\n{4,}")


class Renderer:
    """Renders modules; one instance compiles the templates once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        decode = self._environment.get_template("decode.j2").module
        encode = self._environment.get_template("encode.j2").module
        self._macros: dict[str, Any] = {
            "decode_function": decode.decode_function,  # type: ignore[attr-defined]
            "encode_function": encode.encode_function,  # type: ignore[attr-defined]
        }

    def module(self, plan: ModulePlan) -> str:
        """Source of one message module."""
        about = plan.structs[-1].about
        template = self._environment.get_template("module.py.j2")
        # Rendered twice: the first text shows which helpers are used, the second imports them.
        text = template.render(plan=plan, m=plan.message, about=about, **self._macros)
        code = text[text.index("__all__") : _facts_start(text)]
        words = set(re.findall(r"\w+", code))
        plan.imports = fill([f"{name}," for name in _FAST_NAMES if name in words], 4)
        text = template.render(plan=plan, m=plan.message, about=about, **self._macros)
        if "Sequence[" not in code:
            text = text.replace(_TYPE_IMPORTS, "", 1)
        return _BLANK_LINES.sub("\n\n\n", text).rstrip("\n") + "\n"

    def manifest(self, **values: Any) -> str:
        """Source of the registry's tables."""
        return self._environment.get_template("manifest.py.j2").render(**values).rstrip("\n") + "\n"


def _facts_start(text: str) -> int:
    match = _FACTS.search(text)
    return match.start() if match else len(text)
