"""A report as a reader sees it: the words of the page, the rows of its CSV files."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

__all__ = ["csv_rows", "words_of"]


def words_of(path: Path) -> str:
    """What a reader sees: the page without scripts, styles and tags."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page))).replace("\u00a0", " ")


def csv_rows(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of the CSV of a plot."""
    with (folder / "report" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))
