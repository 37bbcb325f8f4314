"""How a session is started."""

from __future__ import annotations

import os
from typing import Any, Self

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")

from pyspark.sql import SparkSession

from kraftwire.spark.session import local_session


class _Builder:
    """Notes the locale in which Java would be started."""

    def __init__(self) -> None:
        self.locale: str | None = None

    def _set(self, *_: Any) -> Self:
        return self

    master = appName = config = _set

    def getOrCreate(self) -> None:
        """Start nothing."""
        self.locale = os.environ.get("LC_ALL")


@pytest.mark.parametrize(
    ("locale", "started"),
    [("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8"), (None, None)],
)
def test_java_finds_names_that_are_not_ascii(
    locale: str | None, started: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a locale without an encoding, the stages would not find a folder with such a name."""
    builder = _Builder()
    monkeypatch.setattr(SparkSession, "builder", builder)
    monkeypatch.delenv("LC_ALL", raising=False)
    if locale is not None:
        monkeypatch.setenv("LC_ALL", locale)
    local_session("local[1]", with_sources=False)
    assert builder.locale == started
