"""kcat, a command line client on librdkafka: metadata, offsets, and a partition to its end."""

from __future__ import annotations

import json
import re
import subprocess

from tests.interop.clients.probe import METADATA_TOPIC, bootstrap_servers, login, run

_SECONDS = 20
# The quorum writes one control record for each of its leaders; clients do not show them.
_CONTROL_RECORDS_MAX = 10


def _options() -> list[str]:
    options = {"client.id": "probe"}
    if (found := login()) is not None:
        options |= {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": found.ca,
            "sasl.mechanism": found.mechanism,
            "sasl.username": found.user,
            "sasl.password": found.password,
        }
    return [word for key, value in options.items() for word in ("-X", f"{key}={value}")]


def _kcat(*words: str) -> str:
    """What kcat prints. Raises: AssertionError with its complaint if it fails."""
    command = ["kcat", "-b", bootstrap_servers(), *_options(), *words]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, check=False, errors="replace"
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def version() -> str:
    """The versions of kcat and of its librdkafka."""
    output = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"Version (\S+) .*librdkafka (\S+)", output.stdout + output.stderr)
    assert found, output
    return f"{found[1]} (librdkafka {found[2]})"


def connect() -> str:
    """The brokers."""
    metadata = json.loads(_kcat("-L", "-J"))
    assert len(metadata["brokers"]) == 3, metadata
    assert metadata["controllerid"] > 0, metadata
    return "3 brokers"


def describe() -> str:
    """The quorum's topic; the client has no call for the quorum itself."""
    metadata = json.loads(_kcat("-L", "-J", "-t", METADATA_TOPIC))
    (topic,) = metadata["topics"]
    partition = topic["partitions"][0]
    assert partition["leader"] in (1, 2, 3), partition
    assert len(partition["replicas"]) == 3, partition
    return "topic, its leader"


def read() -> str:
    """The quorum's topic from its beginning to its end."""
    told = _kcat("-Q", "-t", f"{METADATA_TOPIC}:0:-1")
    found = re.search(r"offset (\d+)", told)
    assert found, told
    high_watermark = int(found[1])
    partition = ("-C", "-t", METADATA_TOPIC, "-p", "0", "-o", "beginning")
    # Values are not text: only their sizes are requested. All but one are shown, at most.
    output = _kcat(*partition, "-c", str(high_watermark - 1), "-q", "-f", r"%o %S\n")
    records = [tuple(map(int, line.split())) for line in output.splitlines()]
    offsets = [offset for offset, _ in records]
    assert all(size > 0 for _, size in records), records
    assert offsets == sorted(set(offsets)), offsets
    missing = offsets[-1] + 1 - len(offsets)
    is_whole = offsets[-1] >= high_watermark - 1 and missing <= _CONTROL_RECORDS_MAX
    assert is_whole, (high_watermark, offsets)
    return f"all up to the high watermark, from offset {offsets[0]}"


if __name__ == "__main__":
    run(version(), {"connect": connect, "describe": describe, "read": read})
