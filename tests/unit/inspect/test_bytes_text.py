"""The byte view that is made straight from bytes is that of the decoder that explains."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path

import pytest

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.records import RecordsForm
from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.bytes.hexdump import BytesWriter
from kraftwire.printable import printable_lines
from tests.support.captures import decoded_frames
from tests.unit.inspect.short_frames import damaged, decoded, of_vector, rpc_vectors

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
SEED = 20_262


def _assert_is_the_view(text: str, frame: DecodedFrame, form: RecordsForm) -> None:
    assert frame.findings == []
    assert frame.error_codes == []
    writer = BytesWriter(StringIO(), topics=frame.settings.topics, records=form)
    assert text == printable_lines(list(writer.frame_lines(frame)))


@pytest.mark.parametrize("show_secrets", [False, True])
@pytest.mark.parametrize("name", ["quorum.pcap", "groups.pcapng"])
def test_frames_of_captures(name: str, show_secrets: bool) -> None:
    """Batches of the metadata log among them."""
    form = RecordsForm(show_secrets=show_secrets)
    frames = decoded_frames(GOLDEN / f"{name}.xz", show_secrets=show_secrets)
    writer = BytesWriter(StringIO(), topics=frames[0].settings.topics, records=form)
    short = 0
    for frame in frames:
        text = writer.frame_text(frame.frame)
        if text is not None:
            short += 1
            _assert_is_the_view(text, frame, form)
    assert short > len(frames) // 2


def test_messages_of_all_versions_sound_and_damaged() -> None:
    """What it accepts has no errors."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    writer = BytesWriter(StringIO(), topics=TopicNames())
    short = 0
    for vector in rpc_vectors():
        for data in (vector.data, damaged(vector.data, chance)):
            frame = of_vector(vector, data)
            text = writer.frame_text(frame)
            if text is not None:
                short += 1
                _assert_is_the_view(text, decoded(frame), RecordsForm())
    assert short > 1000
