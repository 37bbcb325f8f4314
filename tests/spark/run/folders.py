"""Folders of inputs, and the tables of a folder in a form that can be compared."""

from __future__ import annotations

import lzma
import random
from pathlib import Path
from typing import Any

from tests.support.captures.builder import pcap_of
from tests.support.captures.busy_connection import busy_connection
from tests.support.captures.decoded import GOLDEN, golden

__all__ = ["busy", "captures", "everything", "rows_of", "tables_of"]


def captures(folder: Path, *names: str) -> Path:
    """A folder with plain captures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or GOLDEN:
        (folder / f"{name}.pcap").write_bytes(lzma.decompress(golden(name).read_bytes()))
    return folder


def busy(folder: Path, *, times: int = 1) -> Path:
    """A folder with a capture of one long connection, and with another capture."""
    captures(folder, "sasl")
    session = busy_connection([golden(name) for name in GOLDEN] * times, random.Random(7))
    (folder / "busy.pcap").write_bytes(pcap_of(session.segments))
    return folder


def everything(folder: Path) -> Path:
    """A folder of captures, whole, packed and cut, of garbage, of text and of files of logs."""
    captures(folder / "captures")
    raw = (folder / "captures" / "quorum.pcap").read_bytes()
    generator = random.Random(1)
    odd = folder / "odd"
    odd.mkdir()
    (odd / "cut.pcap").write_bytes(raw[: len(raw) // 2 + 5])
    (odd / "packed.pcap.xz").write_bytes(golden("clients").read_bytes())
    (odd / "cut.pcap.xz").write_bytes(golden("clients").read_bytes()[:5000])
    (odd / "wild.pcap").write_bytes(raw[:4000] + generator.randbytes(3000))
    (odd / "header.pcap").write_bytes(raw[:24])
    (odd / "short.pcap").write_bytes(raw[:10])
    (odd / "noise").write_bytes(generator.randbytes(5000))
    (odd / "empty").write_bytes(b"")
    (odd / "words.txt").write_text("nothing of interest\n" * 100)
    log = odd / "orders-0"
    log.mkdir()
    (log / "00000000000000000000.log").write_bytes(generator.randbytes(2000))
    (log / "00000000000000000000.index").write_bytes(bytes(800))
    return folder


def tables_of(folder: Path) -> dict[str, list[str]]:
    """The rows of all base tables, sorted."""
    names = sorted(path.name for path in folder.iterdir() if any(path.glob("unit-*.parquet")))
    return {name: sorted(map(repr, rows_of(folder, name))) for name in names}


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table, as dictionaries."""
    import pyarrow.dataset as ds

    path = folder / table
    if not any(path.glob("*.parquet")):
        return []
    rows: list[dict[str, Any]] = ds.dataset(path).to_table().to_pylist()
    return rows
