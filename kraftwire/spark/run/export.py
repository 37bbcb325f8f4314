"""Tables as CSV or JSON lines, next to the Parquet files."""

from __future__ import annotations

import base64
import csv
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

__all__ = ["export"]


def export(folder: Path, form: str) -> None:
    """Write every table of a folder as `<form>/<table>.<form>`; the form is csv or jsonl.

    Bytes are base64, times ISO 8601; in CSV lists and tags are JSON.
    """
    target = folder / form
    target.mkdir(exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and any(path.glob("*.parquet")):
            fresh = target / f"{path.name}.{form}.new"
            with open(fresh, "w", encoding="utf-8", newline="") as file:
                _write(ds.dataset(path), file, form)
            os.replace(fresh, target / f"{path.name}.{form}")


def _write(dataset: Any, file: Any, form: str) -> None:
    names = dataset.schema.names
    rows = csv.writer(file)
    if form == "csv":
        rows.writerow(names)
    for batch in dataset.to_batches(batch_size=8192):
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            if form == "csv":
                rows.writerow([_cell(row[name]) for name in names])
            else:
                file.write(json.dumps(row, default=_plain, ensure_ascii=False) + "\n")


def _plain(value: object) -> str:
    """Convert values that JSON cannot hold."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"JSON cannot hold {type(value).__name__}")


def _cell(value: object) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return _plain(value) if isinstance(value, datetime | bytes) else value
