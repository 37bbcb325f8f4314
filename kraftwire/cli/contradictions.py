"""Which records of a metadata log contradict those before them, for commands about directories."""

from __future__ import annotations

from pathlib import Path

# Records that are named, each on a line.
_NAMED_MAX = 10


def contradictions(folder: Path) -> list[str]:
    """Return the records of a metadata log that contradict those before them, as decode does."""
    from kraftwire.decode.files import FileFinding, FileOptions, FileReport, decode_file, walk

    found: list[str] = []
    count = 0

    def note(finding: FileFinding) -> None:
        nonlocal count
        if finding.id != "contradiction":
            return
        count += 1
        if count <= _NAMED_MAX:
            found.append(f"{finding.file}: {finding.detail}")

    report = FileReport(note)
    for path in walk([folder], lambda _: None):
        for _ in decode_file(path, FileOptions(), report):
            pass
    if count > len(found):
        found.append(f"and {count - len(found):,} more records that contradict those before them")
    if found:
        found.append("no controller leads with this metadata log, and Kafka's does not start on it")
    return found
