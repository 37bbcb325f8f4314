"""Byte counts of payload; every byte is counted once."""

from __future__ import annotations

from dataclasses import astuple, dataclass

__all__ = ["FileSums"]


@dataclass(slots=True)
class FileSums:
    """Bytes of payload of one file, or of some connections in it."""

    kafka: int = 0
    tls: int = 0
    other: int = 0
    duplicates: int = 0
    undecoded: int = 0

    def add(self, more: FileSums) -> None:
        """Add those of other connections."""
        self.kafka += more.kafka
        self.tls += more.tls
        self.other += more.other
        self.duplicates += more.duplicates
        self.undecoded += more.undecoded

    @property
    def total(self) -> int:
        """All of them."""
        return sum(astuple(self))
