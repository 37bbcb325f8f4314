"""What the report says about tables, and that most of them are optional."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kraftwire.cli.main import main
from kraftwire.errors import StorageError
from kraftwire.spark.report import write
from kraftwire.spark.report.axis import TimeAxis
from kraftwire.spark.report.formatting import evidence
from kraftwire.spark.report.plots import line_points
from kraftwire.spark.tables import TABLES
from tests.spark.report.folders import SECOND, START, quorum, written
from tests.spark.report.reading import csv_rows, words_of

HOSTILE = '</script><script>broken=1</script><img src="//evil/x" onerror="alert(1)">{{rate}}'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report that tests only look at."""
    return write(quorum(tmp_path_factory.mktemp("tables") / "lab"))


def test_the_verdict_and_five_numbers(page: Path) -> None:
    """The sentence names the finding and the time without a leader."""
    words = words_of(page)
    assert "Kafka traffic in lab" in words
    assert "1 anomaly in 29.9 s with 300 exchanges: silent-leader. First:" in words
    assert "Nobody led for 3 s in all." in words
    for number in ("exchanges 300", "leaders 2 3 s without one", "largest lag 4", "anomalies 1"):
        assert number in words, number
    assert re.search(r"99 % of the slowest API (1\.9\d*|2) ms Fetch", words)


def test_a_quiet_quorum_gets_a_quiet_verdict(tmp_path: Path) -> None:
    """Without findings, and with nothing undecoded, the sentence says so."""
    quorum(tmp_path)
    for name in ("anomalies", "raft_timeline", "bad_input"):
        for part in (tmp_path / name).iterdir():
            part.unlink()
    assert "Nothing stands out in 29.9 s with 300 exchanges." in words_of(write(tmp_path))


def test_every_plot_has_a_csv(page: Path) -> None:
    """The names of the links are those of the files, and their rows are those of the plots."""
    folder = page.parent
    linked = set(re.findall(r'href="report/(\w+)\.csv"', page.read_text()))
    assert linked == {path.stem for path in (folder / "report").iterdir()}
    assert {
        "leaders", "timeline", "anomalies", "replica_lag", "latency", "throughput", "errors",
        "rebalances", "group_lag", "connections", "bad_input", "conservation",
    } == linked  # fmt: skip
    assert [(row["node"], row["ending"]) for row in csv_rows(folder, "leaders")] == [
        ("1", "fell silent"), ("", "no leader"), ("2", "leads to the end"),
    ]
    fetch, wait = sorted(csv_rows(folder, "latency"), key=lambda row: row["what"])
    assert (fetch["what"], fetch["exchanges"], wait["what"]) == ("service", "300", "wait")
    assert float(fetch["p99_ns"]) == pytest.approx(2_000_000, rel=0.05)
    assert float(wait["p50_ns"]) == pytest.approx(498_000_000, rel=0.05)
    assert sum(int(row["exchanges"]) for row in csv_rows(folder, "throughput")) == 300
    assert {row["slowest_ns"] for row in csv_rows(folder, "throughput")} == {"2000000"}
    [refused] = csv_rows(folder, "errors")
    assert (refused["api"], refused["error"]) == ("Fetch", "NOT_LEADER_OR_FOLLOWER")
    assert (refused["time_ns"], refused["responses"]) == (str(START), "1")


def test_sums_that_do_not_add_up_are_reported(page: Path) -> None:
    """One of the two files lacks seven bytes."""
    words = words_of(page)
    assert "In 1 file the sums differ from the size." in words
    assert "+7 B" in words
    assert "body client 2 30 B" in words  # bad input, its bytes summed


def test_evidence_names_file_and_position(page: Path) -> None:
    """The last part of the path is shown, and the whole path is available."""
    assert 'title="a/client">client @1,234' in page.read_text()


def test_two_clusters_are_distinguished(tmp_path: Path) -> None:
    """Both have a node 1, a replica 3 and a group g, and are shown separately."""
    clusters = ("alpha-cluster", "beta-cluster")
    common = {"bucket": START // 1000, "topic": "t", "partition": 0}
    folder = written(
        tmp_path / "lab",
        raft_timeline=[
            {"time_ns": START, "cluster": each, "kind": "leader", "epoch": 1, "node": "1"}
            for each in clusters
        ],
        replica_lag=[
            {**common, "cluster": each, "replica_id": 3, "lag_max": lag}
            for lag, each in enumerate(clusters)
        ],
        group_lag=[{**common, "cluster": each, "group_id": "g", "lag": 4} for each in clusters],
        anomalies=[{"rule": "r", "node": "1", "cluster": clusters[0], "severity": "error"}],
    )
    text = write(folder).read_text()
    for name in ("node 1 in ", "replica 3 of t in ", "g on t in "):
        assert {f"{name}alpha-" in text, f"{name}beta-c" in text} == {True}
    assert "<td>1 in alpha-" in re.sub(r"<td[^>]*>", "<td>", text)
    lags = (folder / "report" / "replica_lag.csv").read_text()
    assert len(lags.splitlines()) == 3
    alone = written(
        tmp_path / "one", replica_lag=[{**common, "cluster": "c", "replica_id": 3, "lag_max": 1}]
    )
    text = write(alone).read_text()
    assert "replica 3 of t" in text
    assert "replica 3 of t in" not in text


def test_files_of_logs_are_distinguished() -> None:
    """Every partition of every node has a segment 0."""
    path = "/data/node-1/orders-0/00000000000000000000.log"
    assert f'title="{path}">node-1/orders-0/…0.log @7</span>' in evidence(path, 7)
    snapshot = "m/00000000000000000807-0000000001.checkpoint"
    assert ">m/…807-0000000001.checkpoint<" in evidence(snapshot, None)
    assert ">trace.pcap<" in evidence("captures/trace.pcap", None)


def test_lines_stop_at_gaps() -> None:
    """Where nothing was seen or a value is unknown there is not-a-number."""
    points = [(0, 1.0), (SECOND, 2.0), (9 * SECOND, 3.0), (10 * SECOND, None)]
    times, values = line_points(TimeAxis(0, 0), points, 3 * SECOND)
    assert times[:2] == [0.0, 1000.0]
    assert times[3] == 9000.0
    assert [value if value == value else None for value in values] == [1.0, 2.0, None, 3.0, None]


def test_nothing_from_a_file_is_markup(page: Path, tmp_path: Path) -> None:
    """A name with tags, a script's end and our own places for plots stays a name."""
    plain, hostile = page.read_text(), write(quorum(tmp_path, HOSTILE)).read_text()
    for tag in ("<script", "</script", "<img", "<svg", 'class="plot"'):
        assert hostile.count(tag) == plain.count(tag), tag
    assert "&lt;/script&gt;" in hostile


@pytest.mark.parametrize("first", range(4))
def test_any_table_may_be_missing(tmp_path: Path, first: int) -> None:
    """Parts without data say so; the page is still made."""
    quorum(tmp_path)
    for name in sorted(TABLES)[first::4]:
        for part in (tmp_path / name).glob("*"):
            part.unlink()
    assert "What was read" in words_of(write(tmp_path))


def test_every_part_says_that_it_has_nothing(tmp_path: Path) -> None:
    """Tables without rows are enough for a page, which then has no plot and no library."""
    for name, table in TABLES.items():
        (tmp_path / name).mkdir()
        pq.write_table(table.arrow.empty_table(), tmp_path / name / "a.parquet")
    path = write(tmp_path)
    words = words_of(path)
    for said in (
        "Nothing of a KRaft quorum was seen.", "No rule found anything.", "No replica fetched",
        "No request was captured together with its response.", "There are no exchanges.",
        "No group rebalanced.", "There are no connections.", "Everything could be decoded.",
        "The sums of bytes are not known.", "No file is named.",
    ):  # fmt: skip
        assert said in words, said
    assert path.stat().st_size < 20_000


def test_what_was_not_made_is_not_known(tmp_path: Path) -> None:
    """A run makes the tables that it is asked for: without them nobody knows that all was well."""
    (tmp_path / "exchanges").mkdir()
    pq.write_table(TABLES["exchanges"].arrow.empty_table(), tmp_path / "exchanges" / "a.parquet")
    words = words_of(write(tmp_path))
    for name in (
        "raft_timeline", "anomalies", "replica_lag", "groups", "connections", "bad_input", "files",
    ):  # fmt: skip
        assert f"the run did not make the table {name} " in words, name
    for said in ("No rule found", "No replica", "No group", "Everything", "nothing stands out"):
        assert said not in words, said
    assert "There are no exchanges." in words
    assert "anomalies – the run did not make the table" in words


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    """It says how tables are made."""
    with pytest.raises(StorageError, match="kraftwire pipeline run writes them"):
        write(tmp_path)


def test_the_command_prints_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It also accepts an interval."""
    quorum(tmp_path)
    since = f"{START // SECOND + 20}"
    assert main(["pipeline", "report", str(tmp_path), "--since", since]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    assert not list(tmp_path.glob(".report*"))
    assert "exchanges 100" in words_of(tmp_path / "report.html")


def test_the_commands_that_read_tables_need_no_spark(tmp_path: Path) -> None:
    """The extra `report` is enough: whoever reads tables need not be able to make them."""
    folder = quorum(tmp_path / "tables")
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pyspark', 'py4j']))\n"
        "from kraftwire.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    for arguments in (["pipeline", "report", str(folder)], ["pipeline", "tables"]):
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_memory_does_not_grow_with_clients_of_one_name(tmp_path: Path) -> None:
    """Latencies are counted in buckets: a thousand different ones are a few dozen numbers."""
    from kraftwire.spark.report.folder import TableFolder
    from kraftwire.spark.report.page import _context
    from kraftwire.spark.report.parts.traffic import read_traffic

    rows = [
        {
            "time_ns": START + at, "api_name": "Fetch", "client_id": "c",
            "latency_ns": 1_000_000 + at * 1000,
        }
        for at in range(1000)
    ]
    traffic = read_traffic(_context(TableFolder(written(tmp_path, exchanges=rows))))
    [one] = traffic.latency.values()
    assert one.total == 1000
    assert len(one.counts) <= 17
    assert one.quantile(0.5) == pytest.approx(1_500_000, rel=0.05)
    assert one.quantile(1.0) == pytest.approx(1_999_000, rel=0.05)


def test_files_that_are_not_tables_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of other Parquet, or a truncated table, is reported in one line."""
    (tmp_path / "exchanges").mkdir()
    (tmp_path / "exchanges" / "part.parquet").write_bytes(b"x")
    assert main(["pipeline", "report", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/exchanges: not a table of the pipeline" in line
    assert "part.parquet" in line
