"""Files of Kafka's log directories as lines: segments, snapshots, indexes, state files.

`walk` finds files, `open_source` opens one and finds its kind, `decode_source` (or `decode_file`
for both at once) gives its lines, `follow` the lines of a segment that grows. What is wrong with a
file goes to a `FileReport`. The section on files in kraftwire/decode/README.md has an example.

Importing this package loads none of its modules.
"""

from __future__ import annotations

from kraftwire.lazy_names import load_name

# Imports for type checkers only are not executed: captures need a part of this package only.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kraftwire.decode.files.decode import decode_file, decode_source
    from kraftwire.decode.files.folders import walk
    from kraftwire.decode.files.growing_segment import follow
    from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess
    from kraftwire.decode.files.report import (
        FINDINGS,
        LOSSES,
        ExitCode,
        FileFinding,
        FileLine,
        FileReport,
    )
    from kraftwire.decode.files.segment import FileOptions
    from kraftwire.decode.files.source import ByteSource, open_source

__all__ = [
    "FINDINGS",
    "HEAD_SIZE",
    "LOSSES",
    "ByteSource",
    "ExitCode",
    "FileFinding",
    "FileKind",
    "FileLine",
    "FileOptions",
    "FileReport",
    "decode_file",
    "decode_source",
    "follow",
    "guess",
    "open_source",
    "walk",
]

# Name -> module that defines it.
_HOMES = {
    "FINDINGS": "kraftwire.decode.files.report",
    "HEAD_SIZE": "kraftwire.decode.files.kinds",
    "LOSSES": "kraftwire.decode.files.report",
    "ByteSource": "kraftwire.decode.files.source",
    "ExitCode": "kraftwire.decode.files.report",
    "FileFinding": "kraftwire.decode.files.report",
    "FileKind": "kraftwire.decode.files.kinds",
    "FileLine": "kraftwire.decode.files.report",
    "FileOptions": "kraftwire.decode.files.segment",
    "FileReport": "kraftwire.decode.files.report",
    "decode_file": "kraftwire.decode.files.decode",
    "decode_source": "kraftwire.decode.files.decode",
    "follow": "kraftwire.decode.files.growing_segment",
    "guess": "kraftwire.decode.files.kinds",
    "open_source": "kraftwire.decode.files.source",
    "walk": "kraftwire.decode.files.folders",
}


def __getattr__(name: str) -> Any:
    return load_name(__name__, _HOMES, name)
