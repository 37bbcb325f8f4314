"""The records of a log directory as a pandas table: `python -m examples.log_to_pandas FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas

import kraftwire.decode


def rows(folder: Path) -> Iterator[dict[str, object]]:
    """A row for each record of an application; markers that Kafka writes are left out."""
    for segment in sorted(folder.glob("*/*.log")):
        topic, _, partition = segment.parent.name.rpartition("-")
        for record in kraftwire.decode.records(segment):
            if not record.is_control:
                yield {
                    "topic": topic,
                    "partition": int(partition),
                    "offset": record.offset,
                    "time": record.timestamp,
                    "compression": record.batch.batch.compression,
                    "key": record.key,
                    "value": record.value,
                }


def table(folder: Path) -> pandas.DataFrame:
    """All records of a folder of `log.dirs`; for polars, call `polars.from_dicts(rows(...))`."""
    frame = pandas.DataFrame(rows(folder))
    frame["time"] = pandas.to_datetime(frame["time"], unit="ms", utc=True)
    return frame


if __name__ == "__main__":
    records = table(Path(sys.argv[1]))
    records["bytes"] = records["value"].str.len()
    by_topic = records.groupby(["topic", "compression"])
    print(by_topic.agg({"offset": "count", "bytes": "sum", "time": "max"}).to_string())
