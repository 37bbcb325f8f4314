"""Which tests run once for each available engine."""

from __future__ import annotations

# Path prefixes, under `tests`, of the tests of what the engine in C does as well.
FOR_EACH_ENGINE = (
    "engine/test_choice",
    "unit/records/",
    "unit/wire/test_",
    "fuzz/test_damage",
    "fuzz/test_memory",
    "spark/logs/test_columns",
    "spark/logs/test_log_tables",
)
