"""No secret of a capture is in any output, neither in clear nor in base64 nor in hex."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder, uncaptured
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.metadata import encode_metadata
from tests.support.captures.builder import Session, pcap_of
from tests.support.captures.builder import request as framed_request
from tests.support.captures.decoded import GOLDEN, decode, decoded_frames, golden, shared
from tests.support.captures.payloads import request, view

Captured = pytest.CaptureFixture[str]

PASSWORDS = (b"admin-secret", b"alice-secret", b"carol-secret")
# Keys of the JSON form that hold secrets, as base64 or as text.
SECRET_KEYS = frozenset(
    {"authBytes", "hmac", "password", "proof", "salt", "saltedPassword", "serverKey"}
    | {"serverSignature", "storedKey"}
)
OUTPUTS = (
    ("decode", "--format", "jsonl"),
    ("decode", "--format", "jsonl", "--records", "summary"),
    ("decode", "--format", "line"),
    ("decode", "-v",),
    ("decode", "-vv",),
    ("decode", "--bytes",),
    ("decode", "-v", "--bytes"),
    ("stats",),
    ("stats", "--json"),
    ("story", "raft",),
    ("story", "raft", "--json"),
    ("records",),
    ("records", "--json"),
    ("records", "--template", "%t %k %s %h"),
    ("story", "groups",),
    ("story", "groups", "--json"),
    ("story", "transactions",),
    ("story", "transactions", "--json"),
    ("story", "topics",),
    ("story", "topics", "--json"),
)


def _secrets(value: Any, key: str = "") -> Iterator[bytes]:
    """The secrets in a line that shows them, as bytes."""
    if isinstance(value, dict):
        for name, held in value.items():
            yield from _secrets(held, name)
    elif isinstance(value, list):
        for held in value:
            yield from _secrets(held, key)
    elif isinstance(value, str) and key in SECRET_KEYS and value:
        yield value.encode()
        try:
            yield base64.b64decode(value, validate=True)
        except ValueError:
            return


def _forms(secret: bytes) -> Iterator[bytes]:
    """The forms of a secret: in clear, in hex, and in base64 at each of three offsets."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex(" ").encode()
    for shift, spoilt in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(shift) + secret).rstrip(b"=")
        yield text[spoilt:-1]


def _dumped(text: bytes) -> bytes:
    """The bytes that a dump shows, joined across its rows."""
    rows = re.findall(rb"^ +(?:\[ *-?\d+, *\d+\))? {2}((?:[0-9a-f]{2} )+) ", text, re.MULTILINE)
    return bytes.fromhex(b"".join(rows).decode())


def _all_secrets(name: str) -> set[bytes]:
    found = set(PASSWORDS)
    for line in decode(golden(name), show_secrets=True).lines:
        found.update(each for each in _secrets(line) if len(each) > 5)
    return found


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("name", GOLDEN)
def test_no_output_shows_a_secret(
    name: str, arguments: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Sending a decoded capture to somebody else must not reveal the passwords."""
    code = main([*arguments, str(golden(name))])
    out, err = capfdbinary.readouterr()
    assert code == 0
    # One capture has only logins, and no record.
    assert out or (name == "sasl" and arguments[0] == "records")
    if "--bytes" in arguments:
        dumped = _dumped(out)
        assert len(dumped) > 4_000
        out += dumped
    for secret in _all_secrets(name):
        for form in _forms(secret):
            assert form not in out, (secret, form)
            assert form not in err, (secret, form)


def test_the_secrets_of_the_captures_are_found_when_they_are_shown() -> None:
    """The test above would also pass if it did not know what to look for."""
    assert len(_all_secrets("sasl")) > 20
    assert b"admin-secret" in b"".join(_all_secrets("sasl"))
    assert len(_all_secrets("quorum")) > 10
    assert len(_all_secrets("clients")) > 4


def test_hidden_values_are_marked() -> None:
    """A missing value would look like an empty one."""
    lines = decode(golden("sasl")).lines
    tokens = [line for line in lines if line["apiName"] == "SaslAuthenticate"]
    assert {line["body"]["authBytes"] for line in tokens} == {REDACTED, ""}
    users = {value["username"] for line in tokens for value in line["nested"].values()
             if "username" in value}
    assert users == {"admin", "alice", "carol"}


def test_hidden_ranges_cover_the_secrets_in_the_bytes() -> None:
    """Views of raw bytes rely on them."""
    for name in GOLDEN:
        secrets = _all_secrets(name)
        found = 0
        for frame in decoded_frames(golden(name)):
            data = bytearray(frame.data)
            for start, end in hidden_ranges(frame):
                assert 0 <= start < end <= len(data)
                data[start:end] = b"\0" * (end - start)
                found += 1
            for secret in secrets:
                assert secret not in data, (name, frame)
        assert found


def test_nothing_is_hidden_if_secrets_are_asked_for() -> None:
    """The same capture with everything, for those who may see it."""
    for frame in decoded_frames(golden("sasl"), show_secrets=True):
        assert hidden_ranges(frame) == []
        assert frame.secret_paths == []


def test_an_envelope_with_secrets_is_hidden_as_bytes() -> None:
    """Its payload is the same request once more."""
    for line in decode(golden("quorum")).lines:
        inner = line["nested"].get("requestData")
        if inner and inner["apiName"] == "AlterUserScramCredentials":
            assert line["body"]["requestData"] == REDACTED
            assert inner["body"]["upsertions"][0]["saltedPassword"] == REDACTED
        elif inner:
            assert line["body"]["requestData"] != REDACTED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a_kraft_quorum", "b_mixed_clients", "e_sasl"])
def test_large_recordings_keep_their_secrets(name: str) -> None:
    """The same for every frame of a whole cluster's life."""
    path = shared("captures", f"{name}.pcapng.xz")
    secrets = set(PASSWORDS)
    for line in decode(path, show_secrets=True).text.splitlines():
        if any(key.encode() in line for key in SECRET_KEYS):
            secrets.update(each for each in _secrets(json.loads(line)) if len(each) > 5)
    text = decode(path).text
    for secret in secrets:
        for form in _forms(secret):
            assert form not in text, (secret, form)


def test_bytes_of_frames_that_may_hold_a_secret_are_not_shown_in_findings() -> None:
    """A login that was cut off, and a response that may answer one."""
    login = request("SaslAuthenticate", 2, {"authBytes": "AGFsaWNlAHNlY3JldA=="})
    for shown in (
        view(login[:-1] + b"\xff\xff", None),
        view(login[:-6], None, size=len(login)),
        view(login + b"secret", None),
    ):
        assert shown.hides_bytes
        assert all("not shown" in each["detail"] for each in shown.to_json()["findings"])
    answer = uncaptured(b"\0\0\0\1secret", is_request=False)
    assert FrameDecoder(Settings()).decode(answer).hides_bytes


def test_an_envelope_that_was_cut_hides_what_it_carries() -> None:
    """The bytes of a forwarded request are not decoded unless they are complete."""
    cut = bytes.fromhex(
        "003a00000000000a000163002700330000000000070001630001020275010000100002780d"
        "546f7053656372657458595a"
    )
    shown = view(cut, None)
    assert shown.hides_bytes
    assert all("not shown" in each["detail"] for each in shown.to_json()["findings"])


def test_bytes_of_an_unknown_api_are_shown() -> None:
    """Nothing else of a newer client can be shown."""
    payload = b"\x03\xe7\0\0\0\0\0\1\0\0\0new"
    shown = view(payload)
    assert not shown.hides_bytes
    assert shown.to_json()["findings"][0]["detail"].endswith(b"new".hex())


MARKER = b"MARKER-OF-A-SECRET-MARKER"
DECODED_OUTPUTS = [each for each in OUTPUTS if each[0] == "decode"]


def _shown(arguments: tuple[str, ...], payload: bytes, capsys: Captured, *more: str) -> bytes:
    """What decode prints of one raw frame."""
    path = Path(more[-1])
    path.write_text((len(payload).to_bytes(4, "big") + payload).hex())
    main([*arguments, "--input", "hex", *more])
    captured = capsys.readouterr()
    return (captured.out + captured.err).encode()


def _leaks(output: bytes, secret: bytes) -> list[bytes]:
    return [each for each in _forms(secret) if each in output or secret in _dumped(output)]


@pytest.mark.parametrize("arguments", DECODED_OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("name", ["Metadata", "FindCoordinator", "Fetch", "SaslAuthenticate"])
@pytest.mark.parametrize("version", [1, 3])
def test_a_token_response_is_hidden_whatever_its_request(
    arguments: tuple[str, ...], name: str, version: int, tmp_path: Path, capsys: Captured
) -> None:
    """A response that is paired with another API's request is still what it is."""
    body = CreateDelegationTokenResponse(hmac=MARKER, token_id="t").encode(version)
    payload = b"\0\0\0\7" + (b"\0" if version >= 2 else b"") + body
    path = str(tmp_path / "frame.hex")
    more = ("--response", "--api", name, "--version", "0", path)
    output = _shown(arguments, payload, capsys, *more)
    assert not _leaks(output, MARKER)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "one byte more": lambda payload: payload + b"\x01",
    "three bytes less": lambda payload: payload[:-3],
    "another last byte": lambda payload: payload[:-1] + bytes([payload[-1] ^ 0x55]),
    "cut in the token": lambda payload: payload[: payload.index(MARKER) + len(MARKER)],
}


@pytest.mark.parametrize("arguments", DECODED_OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("name", ["Metadata"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_token_response_is_hidden_whatever_its_request(
    arguments: tuple[str, ...], name: str, damage: str, tmp_path: Path, capsys: Captured
) -> None:
    """The token is whole although the response is not."""
    for version in (1, 3):
        body = CreateDelegationTokenResponse(hmac=MARKER, token_id="t").encode(version)
        payload = b"\0\0\0\7" + (b"\0" if version >= 2 else b"") + body
        path = str(tmp_path / "frame.hex")
        more = ("--response", "--api", name, "--version", "0", path)
        assert not _leaks(_shown(arguments, DAMAGES[damage](payload), capsys, *more), MARKER)


@pytest.mark.parametrize("arguments", DECODED_OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("damage", ["one byte more", "three bytes less", "another last byte"])
def test_a_damaged_envelope_hides_what_it_carries(
    arguments: tuple[str, ...], damage: str, tmp_path: Path, capsys: Captured
) -> None:
    """A forwarded change of a password is in it, as bytes."""
    carried = b"\0\x2c\0\1\0\0\0\1\0\1c\0" + MARKER
    body = EnvelopeRequest(request_data=carried, client_host_address=b"\x7f\0\0\1").encode(0)
    payload = DAMAGES[damage](b"\0\x3a\0\0\0\0\0\7\0\1c\0" + body)
    assert not _leaks(_shown(arguments, payload, capsys, str(tmp_path / "frame.hex")), MARKER)


@pytest.mark.parametrize("arguments", DECODED_OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("where", ["body", "header"])
def test_an_unknown_tag_of_a_login_is_hidden(
    arguments: tuple[str, ...], where: str, tmp_path: Path, capsys: Captured
) -> None:
    """A later version may put the secret there."""
    tag = bytes([1, 9, len(MARKER)]) + MARKER
    body = SaslAuthenticateRequest(auth_bytes=b"x").encode(2)
    head = b"\0\x24\0\2\0\0\0\7\0\1c"
    payload = head + tag + body if where == "header" else head + b"\0" + body[:-1] + tag
    output = _shown(arguments, payload, capsys, str(tmp_path / "frame.hex"))
    assert not _leaks(output, MARKER)
    assert b"unknown-tag" in output


@pytest.mark.parametrize("arguments", [*DECODED_OUTPUTS, ("records",)], ids=" ".join)
@pytest.mark.parametrize("frame_version", [0, 1, 2, 3])
def test_secret_records_are_hidden_in_any_frame_version(
    arguments: tuple[str, ...], frame_version: int, tmp_path: Path, capsys: Captured
) -> None:
    """What a later controller writes has the same secrets in it."""
    record = UserScramCredentialRecord(
        name="u", mechanism=1, salt=MARKER, stored_key=MARKER, server_key=MARKER, iterations=4096
    )
    value = bytes([frame_version]) + encode_metadata(record, 0)[1:]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    path.write_bytes(build_batch([Record(0, 1_700_000_000_000, None, value)], BatchHeader()))
    main([*arguments, str(path)])
    captured = capsys.readouterr()
    assert not _leaks((captured.out + captured.err).encode(), MARKER)


@pytest.mark.parametrize("arguments", DECODED_OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("damage", ["none", *DAMAGES])
def test_a_token_response_to_an_unknown_api_is_hidden(
    arguments: tuple[str, ...], damage: str, tmp_path: Path, capsys: Captured
) -> None:
    """A vendor's request may be what it is paired with, after a loss or under a wrong id."""
    for version in (1, 3):
        body = CreateDelegationTokenResponse(hmac=MARKER, token_id="t").encode(version)
        answer = b"\0\0\0\7" + (b"\0" if version >= 2 else b"") + body
        answer = DAMAGES.get(damage, bytes)(answer)
        session = Session().open().client(framed_request(7, b"x", key=12_345, version=version))
        session.server(len(answer).to_bytes(4, "big") + answer)
        path = tmp_path / "capture.pcap"
        path.write_bytes(pcap_of(session.segments))
        main([*arguments, str(path)])
        captured = capsys.readouterr()
        assert not _leaks((captured.out + captured.err).encode(), MARKER)
