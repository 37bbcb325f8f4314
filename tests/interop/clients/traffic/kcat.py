"""Traffic of kcat: metadata, records sent and read, without a group and with one."""

from __future__ import annotations

import subprocess

from tests.interop.clients.traffic.orders import BATCH, COUNT, servers, value

NAME = "kcat"
TOPIC = "kcat-orders"
SECONDS = 60


def kcat(*words: str, given: bytes = b"") -> None:
    """Run kcat to its end. Raises: CalledProcessError if it fails."""
    command = ["kcat", "-b", servers(), "-X", f"client.id={NAME}", *words]
    subprocess.run(command, input=given, stdout=subprocess.DEVNULL, timeout=SECONDS, check=True)


if __name__ == "__main__":
    lines = [value(NAME, number) + b"\n" for number in range(COUNT)]
    batches = ("-X", f"batch.num.messages={BATCH}", "-X", "linger.ms=5")
    kcat("-P", "-t", TOPIC, *batches, given=b"".join(lines))
    for _ in range(3):
        kcat("-L", "-J")
        kcat("-Q", "-t", f"{TOPIC}:0:-1")
    small = ("-X", "fetch.message.max.bytes=100", "-X", "fetch.wait.max.ms=200")
    kcat("-C", "-t", TOPIC, "-o", "beginning", "-c", str(COUNT), "-q", *small)
    started = ("-X", "auto.offset.reset=earliest")
    kcat("-G", "kcat-readers", "-c", str(COUNT), "-q", *small, *started, TOPIC)
