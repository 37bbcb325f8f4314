"""Statistics: counts, quantiles within their error, the wait of a Fetch without its service."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.exchange import split_latency
from kraftwire.decode.files import FileOptions, FileReport, decode_file, walk
from kraftwire.inspect.stats.collect import (
    ERROR,
    ExchangeCounts,
    ExchangeKey,
    ExchangeTable,
    Histogram,
    Sizes,
    StatsCollector,
    partitions_table,
)
from kraftwire.inspect.stats.writer import Sort, StatsJsonWriter, StatsWriter
from kraftwire.inspect.tables import fitted_lines
from kraftwire.limits import STATS_CLIENT_ROWS_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.messages.join_group_request import JoinGroupRequest
from kraftwire.messages.join_group_response import JoinGroupResponse
from kraftwire.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftwire.messages.sync_group_response import SyncGroupResponse
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.captures.frames import FrameMaker
from tests.support.captures.scripted_quorum import batch

LOGS = Path(__file__).resolve().parents[2] / "golden" / "logs"
MS = 1_000_000


def _collected(frames: list[RawFrame], *, is_quick: bool = False) -> StatsCollector:
    found, decoder = StatsCollector(), FrameDecoder(Settings())
    for frame in decoder.decode_bodies(frames, 0) if is_quick else map(decoder.decode, frames):
        found.frame(frame)
    found.finish()
    return found


def _row(found: StatsCollector, api: str = "Fetch") -> ExchangeCounts:
    (row,) = [row for key, row in found.exchanges.rows.items() if key.api == api]
    return row


def _fetch(
    maker: FrameMaker, latency_ms: int, records: bytes = b"", error: int = 0
) -> list[RawFrame]:
    topic = FetchTopic(topic="t", partitions=[FetchPartition()])
    returned = PartitionData(records=memoryview(records), error_code=error)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[returned])])
    request = maker.request(FetchRequest(max_wait_ms=500, topics=[topic]), 12)
    return [request, maker.response(answer, latency_ms * MS)]


@given(st.lists(st.floats(min_value=1e-3, max_value=1e7), min_size=1, max_size=200))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_quantiles_are_within_the_error_that_is_stated(values: list[float]) -> None:
    """A histogram saves memory; its loss of precision is bounded."""
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    for share in (0.5, 0.99, 1.0):
        rank = max(1, -(-int(share * len(ordered) * 1000) // 1000))
        exact = ordered[min(len(ordered), rank) - 1]
        found = histogram.quantile(share)
        assert found is not None
        assert exact * (1 - ERROR) * 0.999 <= found <= exact * (1 + ERROR) * 1.001
    assert histogram.largest == max(values)


def test_a_histogram_stays_small() -> None:
    """A million latencies between a microsecond and an hour take some hundred buckets."""
    source = random.Random(5)
    histogram = Histogram()
    for _ in range(20_000):
        histogram.add(10 ** source.uniform(-3, 6.5))
    assert len(histogram._buckets) < 500


def test_merged_histograms_equal_one_that_saw_everything() -> None:
    """Rows are added up for the tables."""
    one, two, both = Histogram(), Histogram(), Histogram()
    for value in range(1, 100):
        (one if value % 2 else two).add(value)
        both.add(value)
    one.merge(two)
    assert one.to_json() == both.to_json()


def test_an_empty_fetch_has_waited_all_its_time() -> None:
    """Half a second of long poll is not slowness."""
    row = _row(_collected(_fetch(FrameMaker(), 503)))
    assert row.wait.quantile(0.5) == pytest.approx(500)
    assert row.service.count == 0
    assert row.latency.largest == pytest.approx(503)


def test_a_fetch_whose_records_were_there_has_not_waited() -> None:
    """Old records, long latency: that is the server's time."""
    old = batch(0, 1, [TopicRecord(name="t", topic_id=bytes(16))], time=900)
    row = _row(_collected(_fetch(FrameMaker(), 80, records=old)))
    assert (row.wait.count, row.service.largest) == (0, pytest.approx(80))


def test_a_fetch_that_waited_for_a_record_was_served_from_then_on() -> None:
    """The batch says when it was made: 300 ms after the request, 20 ms before the answer."""
    new = batch(0, 1, [TopicRecord(name="t", topic_id=bytes(16))], time=1000.3)
    row = _row(_collected(_fetch(FrameMaker(), 320, records=new)))
    assert row.wait.largest == pytest.approx(300)
    assert row.service.largest == pytest.approx(20)


def test_a_refused_fetch_has_not_waited() -> None:
    """Errors are answered at once."""
    refused = _fetch(FrameMaker(), 7, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    row = _row(_collected(refused))
    assert (row.wait.count, row.service.largest) == (0, pytest.approx(7))
    assert row.errors == {"NOT_LEADER_OR_FOLLOWER": 1}


def test_a_wait_is_never_longer_than_the_latency_or_the_limit() -> None:
    """A producer's clock may be wrong by hours; the split must not be."""
    late = batch(0, 1, [TopicRecord(name="t", topic_id=bytes(16))], time=99_999)
    returned = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t", partitions=[PartitionData(records=memoryview(late))]
            )
        ]
    )
    requested = FetchRequest(max_wait_ms=500)
    assert split_latency(1, requested, returned, request_ms=1_000_000, latency_ms=40)[0] == 40
    assert split_latency(1, requested, returned, request_ms=1_000_000, latency_ms=900)[0] == 500


def test_counts_sizes_and_missing_answers_add_up() -> None:
    """Everything else depends on these numbers."""
    maker = FrameMaker()
    frames = []
    for error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        frames.append(maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3))
        frames.append(maker.response(HeartbeatResponse(error_code=error)))
    frames.append(maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3))
    row = _row(_collected(frames), "Heartbeat")
    assert (row.requests, row.responses, row.without_response) == (3, 2, 1)
    assert row.request_bytes == sum(f.size for f in frames if f.is_request)
    assert row.errors == {"REBALANCE_IN_PROGRESS": 1}
    quick = _row(_collected(frames, is_quick=True), "Heartbeat")
    assert (quick.requests, quick.responses, quick.errors) == (3, 2, row.errors)


def test_clients_are_known_by_their_software() -> None:
    """Name and version show which library behaves differently."""
    maker = FrameMaker()
    hello = ApiVersionsRequest(client_software_name="lib", client_software_version="1.2")
    frames = [maker.request(hello, 3, "app"), maker.response(ApiVersionsResponse())]
    client = _collected(frames).exchanges.clients["app"]
    assert client.software == {"lib 1.2"}
    assert client.connections == {maker.connection}


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes a new id for each connection must not fill the memory."""
    monkeypatch.setattr("kraftwire.inspect.stats.collect.STATS_CLIENT_ROWS_MAX", 3)
    maker = FrameMaker()
    frames = [
        maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3, f"client-{n}")
        for n in range(20)
    ]
    found = _collected(frames)
    assert len(found.exchanges.rows) == 4
    assert found.exchanges.rows[ExchangeKey("Heartbeat", 3, "(others)")].requests == 17
    assert len(found.exchanges.clients) == 4


def test_rows_of_apis_are_bounded_too() -> None:
    """Nor must one that asks for APIs and versions that nobody knows."""
    table = ExchangeTable()
    for number in range(3 * STATS_CLIENT_ROWS_MAX):
        table.row(f"API {number}", 0, "client").requests += 1
    assert len(table.rows) == 2 * STATS_CLIENT_ROWS_MAX + 1
    rest = table.rows[ExchangeKey("(others)", -1, "(others)")]
    assert rest.requests == STATS_CLIENT_ROWS_MAX


def test_sums_of_rows_leave_the_rows_alone() -> None:
    """A sum may be printed before the rows that it is of."""
    table = ExchangeTable()
    for api in ("Fetch", "Produce", "Metadata"):
        table.row(api, 1, "client").request_sizes.add(100)
        table.row(api, 1, api).request_sizes.add(10)
    sums = table.by_client()
    assert {name: row.request_bytes for name, row in sums.items()} == {
        "client": 300, "Fetch": 10, "Produce": 10, "Metadata": 10
    }  # fmt: skip
    assert {row.request_bytes for row in table.by_api().values()} == {110}
    assert {row.request_bytes for row in table.rows.values()} == {100, 10}


def _written(
    frames: list[RawFrame], *, as_json: bool = False, sort: Sort = "p99", top: int | None = None
) -> str:
    stream = io.StringIO()
    writer = StatsJsonWriter(stream) if as_json else StatsWriter(stream, sort=sort, top=top)
    decoder = FrameDecoder(Settings())
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    return stream.getvalue()


def test_the_tables_are_plain_text_without_a_terminal() -> None:
    """Output that goes into a file or a pipe is aligned and uncoloured."""
    text = _written(_fetch(FrameMaker(), 503))
    assert "\x1b" not in text
    assert "1 request in 503 ms from 1970-01-01T00:16:40.000Z" in text
    head = next(line for line in text.splitlines() if line.startswith("API "))
    row = next(line for line in text.splitlines() if line.startswith("Fetch v12 "))
    assert row.split()[-1] == "500.0"
    assert head.split()[-1] == "waited"
    assert "By client" in text
    assert "tester" in text


def _joined(error: int = 0) -> list[RawFrame]:
    maker = FrameMaker()
    leader = SyncGroupRequestAssignment(member_id="m", assignment=b"")
    frames = []
    for request, version, answer in (
        (JoinGroupRequest(group_id="g"), 5, JoinGroupResponse(error_code=error)),
        (SyncGroupRequest(group_id="g"), 3, SyncGroupResponse(error_code=error)),
        (
            SyncGroupRequest(group_id="h", assignments=[leader]),
            3,
            SyncGroupResponse(error_code=error),
        ),
    ):
        frames += [maker.request(request, version), maker.response(answer, 900 * MS)]
    return frames


@pytest.mark.parametrize("is_quick", [False, True])
def test_waiting_for_other_members_is_not_service(is_quick: bool) -> None:
    """A coordinator answers a JoinGroup when all have joined; that is not slowness."""
    found = _collected(_joined(), is_quick=is_quick)
    join, sync = _row(found, "JoinGroup"), _row(found, "SyncGroup")
    assert (join.wait.count, join.service.count) == (1, 0)
    # The leader of the group sends the assignments and does not wait.
    assert (sync.wait.count, sync.service.count) == (1, 1)
    refused = _collected(_joined(ErrorCode.UNKNOWN_MEMBER_ID), is_quick=is_quick)
    assert (_row(refused, "JoinGroup").wait.count, _row(refused, "SyncGroup").wait.count) == (0, 0)


def test_a_request_after_a_parked_one_is_not_slow() -> None:
    """A broker serves a connection's requests in turn, and a parked Fetch blocks those after it."""
    fetch, beat = FrameMaker(), FrameMaker()
    requested, answered = _fetch(fetch, 500)
    beat.wait(0.1)
    request = beat.request(HeartbeatRequest(group_id="g", member_id="m"), 3)
    response = beat.response(HeartbeatResponse(), 404 * MS)
    row = _row(_collected([requested, request, answered, response]), "Heartbeat")
    assert row.service.largest == pytest.approx(4)
    assert row.wait.largest == pytest.approx(400)
    assert row.latency.largest == pytest.approx(404)


def test_a_fetch_that_waited_for_its_turn_was_parked_less() -> None:
    """Of 900 ms it could wait for records only in the 500 that maxWaitMs allows, after its turn."""
    first, second = FrameMaker(), FrameMaker()
    beat = first.request(HeartbeatRequest(group_id="g", member_id="m"), 3)
    returned = first.response(HeartbeatResponse(), 300 * MS)
    requested, answered = _fetch(second, 900)
    row = _row(_collected([beat, requested, returned, answered]))
    assert row.wait.largest == pytest.approx(800)


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("p99", "rare"),
        ("requests", "busy"),
        ("errors", "busy"),
        ("name", "busy"),
    ],
)
def test_tables_are_sorted_as_wanted(sort: Sort, first: str) -> None:
    """Each column may be the one that matters."""
    frames = []
    for name, count, latency, error in (("rare", 1, 500, 0), ("busy", 3, 5, 27)):
        maker = FrameMaker(f"10.0.0.1:{latency}-10.0.0.2:9092")
        for _ in range(count):
            frames.append(maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3, name))
            frames.append(maker.response(HeartbeatResponse(error_code=error), latency * MS))
    lines = _written(frames, sort=sort).splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("By client,"))
    assert lines[head + 2].split()[0] == first


@pytest.mark.parametrize("count", [99, 100])
def test_a_p99_needs_a_hundred_answers(count: int) -> None:
    """Of fewer it would be the largest, which is shown by its own name."""
    frames = []
    for name, latency in (("even", 5), ("odd", 7)):
        maker = FrameMaker(f"10.0.0.1:{latency}-10.0.0.2:9092")
        for number in range(count):
            frames.append(maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3, name))
            taken_ms = latency if number else 900
            frames.append(maker.response(HeartbeatResponse(), taken_ms * MS))
    has_p99 = count == 100
    text = " ".join(_written(frames).split())
    assert ("slowest client: odd, p99 7" in text) == has_p99
    assert ("slowest client: even, max 900.0 ms" in text) != has_p99
    row = json.loads(_written(frames, as_json=True))["exchanges"][0]
    assert (row["serviceMs"]["p99"] is not None) == has_p99
    assert row["serviceMs"]["max"] == 900
    assert (row["requestSizes"]["p99"] is not None) == has_p99


def test_only_the_first_rows_are_shown_if_so_wanted() -> None:
    """A cluster may have a thousand clients, of which one is wanted."""
    frames = []
    for number in range(9):
        maker = FrameMaker(f"10.0.0.1:{number + 1}-10.0.0.2:9092")
        request = HeartbeatRequest(group_id="g", member_id="m")
        frames.append(maker.request(request, 3, f"client-{number}"))
        frames.append(maker.response(HeartbeatResponse(), (number + 1) * MS))
    text = _written(frames, top=2)
    clients = text.split("By client,")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in clients[2:]] == ["client-8", "client-7", "and"]
    assert clients[-1] == "and 7 more, --json has them"


def test_sizes_have_a_bar_for_each_bound() -> None:
    """A mean of 5 KB may come from one size, or from two very different ones."""
    sizes = Sizes()
    assert sizes.bars() == ""
    for size in [64] * 8 + [65] + [2_000_000] * 4:
        sizes.add(size)
    assert sizes.bars() == "█▁······▄"
    assert sizes.to_json()["counts"] == [
        {"upTo": 64, "count": 8},
        {"upTo": 256, "count": 1},
        {"upTo": None, "count": 4},
    ]
    both = Sizes()
    both.merge(sizes)
    both.merge(sizes)
    assert (both.total, both.bars()) == (2 * sizes.total, sizes.bars())


def test_tables_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of clients may have any length; both ends of one are shown."""
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-client-with-a-name-that-is-longer-than-a-column-" * 3
    maker = FrameMaker()
    frames = [
        maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3, name),
        maker.response(HeartbeatResponse(), 3 * MS),
    ]
    text = _written(frames)
    assert max(map(len, text.splitlines())) <= 80
    first = text.split("By client,")[1].splitlines()[2].split("  ")[0]
    assert first.startswith(name[:16])
    assert first.endswith(name[-16:])
    assert "(sizes: how many have up to 64 B" in text


def test_the_json_form_has_every_row() -> None:
    """Scripts want API, version and client crossed, not the tables' sums."""
    (line,) = _written(_fetch(FrameMaker(), 503), as_json=True).splitlines()
    data = json.loads(line)
    (row,) = data["exchanges"]
    assert (row["api"], row["version"], row["clientId"]) == ("Fetch", 12, "tester")
    assert row["waitMs"]["count"] == 1
    assert data["start"] == 1000.0


def test_log_directories_are_counted_by_partition() -> None:
    """How much is in a partition, how it is compressed, and from when to when."""
    found = StatsCollector()
    for path in walk([LOGS], print):
        for line in decode_file(path, FileOptions(records="none"), FileReport()):
            found.file_line(line)
    rows = found.logs.rows
    zstd = rows["broker/comp-zstd-0"]
    assert zstd.compression.keys() == {"zstd"}
    assert zstd.records > 0
    assert zstd.first_timestamp is not None
    assert zstd.last_timestamp is not None
    assert zstd.first_timestamp <= zstd.last_timestamp
    metadata = rows["controller/__cluster_metadata-0"]
    assert metadata.control_batches > 0
    assert metadata.wrong_crc == 0
    lines = list(fitted_lines(partitions_table(found.logs), 400))
    sizes = [found.logs.rows[line.split()[0]].size for line in lines[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert any("zstd (" in line for line in lines)


def test_partitions_without_batches_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker has hundreds of them, in which one with records would be lost."""
    data = tmp_path / "data"
    for number in range(50):
        folder = data / f"__consumer_offsets-{number}"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").touch()
    source = LOGS / "broker" / "__consumer_offsets-1"
    shutil.copytree(source, data / "__consumer_offsets-7", dirs_exist_ok=True)
    (data / "meta.properties").write_text("node.id=1\nversion=1\n")
    main(["stats", str(data)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "By partition, most bytes first"
    assert lines[2].startswith("data/__consumer_offsets-7       39      119  13.5 KiB  0-118")
    assert lines[-2:] == ["49 empty partitions", "1 file without batches: data/meta.properties"]
    assert len(lines) == 6
