"""What a connection passes its bytes to: detection of its protocol, then a reader of that."""

from __future__ import annotations

from typing import Protocol

from kraftwire.capture.tcp import Flow


class Stage(Protocol):
    """A stage of decoding a connection; it is the sink of both flows."""

    @property
    def is_kafka(self) -> bool:
        """Whether the bytes are decoded as Kafka's."""

    @property
    def is_waiting(self) -> bool:
        """Whether the next packets may settle something that is open."""

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits in it."""

    def is_client(self, flow: Flow, /) -> bool:
        """Whether the direction is known to be the client's."""

    def release_memory(self) -> None:
        """Stop waiting for anything that may complete what is held, to free memory."""

    def review(self, packet_number: int) -> None:
        """Decide what packets that have passed may settle."""

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on what there is."""


class Detection(Stage, Protocol):
    """Detection of a protocol: it has a stage once it knows the protocol."""

    @property
    def stage(self) -> Stage | None:
        """The stage that follows, None until the protocol is known."""

    def forget(self) -> None:
        """Break reference cycles and discard further bytes."""
