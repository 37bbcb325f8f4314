"""Every message in every version, as Kafka's own serializer wrote it: read, written, printed."""

from __future__ import annotations

import pytest

from kraftwire.messages import find
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from tests.support.messages.vectors import canonical, vectors

every_message = pytest.mark.parametrize("name", sorted(vectors()))


def test_the_vectors_are_complete() -> None:
    """A lost vector would silently weaken all other tests of this module."""
    assert sum(map(len, vectors().values())) == 2595


@every_message
def test_kafkas_bytes_decode_to_what_kafka_prints(name: str) -> None:
    """Reading is right if the JSON is that of Kafka's converter and no byte is left."""
    for vector in vectors()[name]:
        message, end = find(name).decode(vector.data, vector.version)
        assert canonical(message.to_json(vector.version)) == canonical(vector.printed), vector
        assert end == len(vector.data), vector


@every_message
def test_json_encodes_to_kafkas_bytes(name: str) -> None:
    """Writing is right if the bytes are Kafka's, also where a tagged default is spelled out."""
    for vector in vectors()[name]:
        message = find(name).from_json(vector.given, vector.version)
        assert message.encode(vector.version).hex() == vector.data.hex(), vector


@every_message
def test_decoded_messages_encode_to_the_same_bytes(name: str) -> None:
    """What a node stores or forwards must be what it received."""
    for vector in vectors()[name]:
        message, _ = find(name).decode(vector.data, vector.version)
        assert message.encode(vector.version).hex() == vector.data.hex(), vector


@pytest.mark.parametrize(
    ("data", "cluster_id", "node_id"),
    [
        ("046b676f04312e3200ffffffff00", None, -1),
        (
            "046b676f04312e3217354c3667336e5368542d654d43744b2d2d58383673770000000700",
            "5L6g3nShT-eMCtK--X86sw",
            7,
        ),
    ],
)
def test_version_5_of_api_versions_is_read_as_franz_go_writes_it(
    data: str, cluster_id: str | None, node_id: int
) -> None:
    """franz-go opens its connections with ApiVersions 5 (KIP-1242): bytes of its kmsg 1.15.1."""
    content = bytes.fromhex(data)
    request, end = ApiVersionsRequest.decode(content, 5)
    assert end == len(content)
    assert (request.cluster_id, request.node_id) == (cluster_id, node_id)
    assert (request.client_software_name, request.client_software_version) == ("kgo", "1.2")
    assert request.encode(5) == content
