"""Files of Kafka's log directories as lines: segments, snapshots, indexes, state files.

`walk` finds files, `open_source` opens one and finds its kind, `decode_source` (or `decode_file`
for both at once) gives its lines, `follow` the lines of a segment that grows. What is wrong with a
file goes to a `FileReport`. The section on files in kraftwire/decode/README.md has an example.
"""

from kraftwire.decode.files.decode import decode_file, decode_source
from kraftwire.decode.files.follow import follow
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
from kraftwire.decode.files.walk import walk

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
