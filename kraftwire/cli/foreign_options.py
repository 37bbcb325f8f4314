"""What to use in place of other tools and their options: tcpdump, tshark, kcat, Kafka's, etcdctl.

Options are not accepted, as the same letter means something else in each tool; the error names what
does the same here.
"""

from __future__ import annotations

_READERS = ("decode", "stats", "story", "records", "diff")
_METADATA = ("metadata",)
_LIVE = ("quorum", "metadata")

_FILE = "Name the file without an option: kraftwire {command} FILE"
_LIVE_TRAFFIC = (
    "Files are read, not brokers: pipe tcpdump -U -w - port 9092 into kraftwire {command} -, or "
    "name a log directory"
)
_KAFKAS_RECORDS = (
    "Leave it out: the folder's name says whose records they are, else --family does"
)
_AS_TEXT = "kraftwire records --template prints keys, values and headers as you choose"
_DECODED_TEXT = "Leave it out: text, JSON and bytes are recognised"

_FOR_PROGRAMS = ("decode",)

# Options (or commands) that other tools have, or their names -> the commands for which an advice
# holds, and the advice. The first row with an option counts.
_ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # tcpdump and tshark
    ("-r --read-file", _READERS, _FILE),
    ("-n", _READERS, "Leave it out: addresses are never turned into names"),
    (
        "-Y --display-filter -R --read-filter",
        _READERS,
        "Filter with --api, --topic, --client-id, --connection, --error, --since and others",
    ),
    (
        "-w --write-file",
        _READERS,
        "Captures are only read: record one with tcpdump -w FILE port 9092, or keep this output "
        "with > FILE",
    ),
    (
        "-i --interface",
        _READERS,
        "Pipe it: tcpdump -i NAME -U -w - port 9092 | kraftwire {command} -",
    ),
    ("-T", ("decode",), "Use --json for JSON lines, -v for all fields, -o for columns"),
    ("-e", ("decode",), "Use -o NAME,NAME for columns of lines, --json for all fields"),
    ("-V", _READERS, "kraftwire decode -v shows all fields"),
    ("-x -X -A", _READERS, "kraftwire decode --bytes shows the bytes of all fields"),
    ("-z", _READERS, "kraftwire stats has statistics, kraftwire story what happened"),
    ("-d --decode-as", _READERS, "Leave it out: Kafka is found on any port"),
    ("-l", _READERS, "Leave it out: lines of a pipe are written as they come"),
    # kcat and Kafka's console consumer
    ("-b --bootstrap-server --broker", _READERS, _LIVE_TRAFFIC),
    ("-C -G", _READERS, _LIVE_TRAFFIC),
    ("-P -Q", _READERS, _LIVE_TRAFFIC),
    (
        "-L",
        _READERS,
        "kraftwire metadata show topics brokers --bootstrap-controller HOST:PORT lists a cluster",
    ),
    ("-t", _READERS, "Use --topic NAME"),
    ("-p", _READERS, "Use --partition N"),
    ("-o", _READERS, "Use --offset N, N-M or N+"),
    ("-J", _READERS, "Use --json"),
    ("-f", ("stats", "story", "diff"), _AS_TEXT),
    ("-K -D -Z --property --formatter", _READERS, _AS_TEXT),
    ("-s", _READERS, _DECODED_TEXT),
    ("-X", _READERS, _LIVE_TRAFFIC),
    (
        "-e --from-beginning",
        _READERS,
        "Leave it out: files are read from beginning to end, and --follow goes on at the end",
    ),
    ("--max-messages", _READERS, "kraftwire records -c N ends after N records"),
    ("-c", ("stats", "story"), "Use --since and --until: all frames count"),
    # kafka-dump-log
    ("--files", _READERS, _FILE),
    ("--print-data-log", _READERS, "kraftwire records FILE prints records, and decode --json"),
    ("--deep-iteration", _READERS, "Leave it out: -v, --json and records read every record"),
    (
        "--cluster-metadata-decoder --offsets-decoder --transaction-log-decoder "
        "--share-group-state-decoder --remote-log-metadata-decoder",
        _READERS,
        _KAFKAS_RECORDS,
    ),
    ("--key-decoder-class --value-decoder-class", _READERS, _DECODED_TEXT),
    ("--skip-record-metadata", _READERS, _AS_TEXT),
    (
        "--index-sanity-check --verify-index-only",
        _READERS,
        "Leave it out: name the folder, and indexes are compared with their segments",
    ),
    ("--max-bytes --max-message-size", ("decode", "records"), "Use -c N to end after N lines"),
    # kafka-metadata-shell
    (
        "-s --snapshot -d --directory",
        _METADATA,
        "Name the file or the folder: kraftwire metadata show FILE",
    ),
    # kafka-metadata-quorum and etcdctl
    ("-b --broker --bootstrap-server", _METADATA, "Use --bootstrap-controller HOST:PORT"),
    ("--endpoints", _LIVE, "Use --bootstrap-controller HOST:PORT"),
    ("-w --write-out", _LIVE, "Use --json"),
    (
        "endpoint",
        ("quorum",),
        "Use kraftwire quorum describe --status, or --replication for each replica",
    ),
    (
        "member",
        ("quorum",),
        "Use kraftwire quorum describe --replication, add-controller or remove-controller",
    ),
    # Programs, typed after `kraftwire`
    ("tshark wireshark tcpdump", _FOR_PROGRAMS, "kraftwire decode FILE reads captures"),
    (
        "kcat kafkacat",
        _FOR_PROGRAMS,
        "kraftwire records FILE prints records, kraftwire metadata show lists a cluster",
    ),
    (
        "kafka-dump-log kafka-dump-log.sh",
        _FOR_PROGRAMS,
        "kraftwire decode FILE shows batches, kraftwire records FILE prints records",
    ),
    (
        "kafka-metadata-shell kafka-metadata-shell.sh",
        _FOR_PROGRAMS,
        "kraftwire metadata show FOLDER shows what its tree has",
    ),
    (
        "kafka-metadata-quorum kafka-metadata-quorum.sh",
        _FOR_PROGRAMS,
        "kraftwire quorum has its options",
    ),
    ("kafka-storage kafka-storage.sh", _FOR_PROGRAMS, "kraftwire storage has its options"),
    (
        "etcdctl endpoint member",
        _FOR_PROGRAMS,
        "kraftwire quorum describe --bootstrap-controller HOST:PORT shows members and their lag",
    ),
)


def advice(command: str, option: str) -> str | None:
    """Return what to use in place of another tool's option; None if there is nothing to say.

    `command` are the words after `kraftwire`, such as ``story raft``.
    """
    first = command.partition(" ")[0]
    for options, commands, text in _ROWS:
        if first in commands and option in options.split():
            return text.format(command=command)
    return None
