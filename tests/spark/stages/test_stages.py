"""Stages as a whole: what they are made of, what they may do, and those that users add."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftwire.spark.stages import STAGES, Stage, known, register
from kraftwire.spark.tables import TABLES
from tests.spark.stages.tables import SECOND, START, given, rows_of

STAGES_FOLDER = Path(known.__file__).parent
PAGE = Path(__file__).resolve().parents[3] / "docs" / "pipeline.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def _block(word: str) -> str:
    (found,) = (block for block in BLOCKS if word in block)
    return found


@pytest.fixture
def restored() -> Iterator[None]:
    """Forget the stages that a test registers."""
    before = dict(known._known)
    yield
    known._known.clear()
    known._known.update(before)


def test_every_input_is_made_before() -> None:
    """Stages run in their order; an input is a base table or the output of an earlier stage."""
    made: set[str] = set()
    for name, stage in STAGES.items():
        assert name == stage.name
        assert name in TABLES
        assert set(stage.inputs) <= set(TABLES)
        assert not (set(stage.inputs) & set(STAGES)) - made
        made.add(name)


def test_no_rows_give_no_rows(spark: SparkSession) -> None:
    """Every stage works without input rows, and keeps its columns."""
    nothing = {n: spark.createDataFrame(t.arrow.empty_table()) for n, t in TABLES.items()}
    for name, stage in STAGES.items():
        assert rows_of(stage.make(nothing), name) == []


def test_stages_only_plan() -> None:
    """Nothing is collected on the driver, nothing is written, no function runs row by row."""
    forbidden = r"\.(collect|toPandas|toArrow|count|write|foreach\w*|take|head)\(\)?|F\.udf|rdd"
    for path in STAGES_FOLDER.rglob("*.py"):
        code = path.read_text().replace('F.count("*")', "").replace("_budget.take(", "")
        assert not re.findall(forbidden, code), path


@pytest.mark.usefixtures("restored")
def test_a_name_belongs_to_one_stage() -> None:
    """A second stage of a name is refused, and so is a name that no folder can have."""
    with pytest.raises(ValueError, match="already makes the table anomalies"):
        register(Stage("anomalies", (), STAGES["anomalies"].make))
    with pytest.raises(ValueError, match=r"not '\.\./mine'"):
        register(Stage("../mine", (), STAGES["anomalies"].make))


@pytest.mark.usefixtures("restored")
def test_the_custom_stage_of_the_readme(spark: SparkSession) -> None:
    """It registers itself and makes a table."""
    exec(_block("register("), {})
    rows = [
        {
            "time_ns": START, "client_id": "c", "api_name": name, "latency_ns": took,
            "service_ns": took,
        }
        for name, took in (("Fetch", 5), ("Produce", 9), ("Produce", 7))
    ]
    table = STAGES["slow_apis"].make(given(spark, exchanges=rows))
    [row] = table.toArrow().to_pylist()
    assert row["client_id"] == "c"
    assert (row["slowest"]["api_name"], row["slowest"]["p99_ns"]) == ("Produce", 9)


def test_the_join_of_the_readme(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the client that produced a record, and how long it waited."""
    place = {"file": "x.pcap", "position": 7, "client_id": "shop"}
    record = {"topic": "orders", "partition": 0, "key": b"\x2a"}
    tables = given(
        spark,
        records=[{**record, "offset": 5}, {**record, "offset": 9}],
        partition_traffic=[
            {
                **place, "kind": "produce", "error_code": 0, "topic": "orders", "partition": 0,
                "offset": 4, "records": 3,
            }
        ],
        exchanges=[{**place, "client": "10.0.0.1:5", "latency_ns": 4 * SECOND}],
    )
    for name in ("records", "partition_traffic", "exchanges"):
        tables[name].write.parquet(str(tmp_path / "tables" / name))
    code = _block("partition_traffic").replace('"tables/', f'"{tmp_path}/tables/')
    exec(code, {"spark": spark, "F": F})
    shown = capsys.readouterr().out
    assert "shop" in shown
    assert "10.0.0.1:5" in shown
    assert "4000000000" in shown
    assert shown.count("shop") == 1
