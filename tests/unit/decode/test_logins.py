"""Who logs in, as tokens and certificates say, and what tells nobody."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.tls import KeyLog
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.sasl_tokens import principal_of
from kraftwire.inspect.run.totals import Totals, summary
from kraftwire.inspect.stats.collect import Security, StatsCollector
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.captures.builder import pcap_of, request, response
from tests.support.captures.frames import FrameMaker
from tests.support.captures.tls_session import TlsSession


def jwt(claims: object) -> bytes:
    """OAUTHBEARER's message with a token of these claims."""
    text = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"n,,\x01auth=Bearer e30.{text}.c2ln\x01\x01".encode()


@pytest.mark.parametrize(
    ("mechanism", "token", "principal"),
    [
        ("PLAIN", b"\0alice\0secret", "User:alice"),
        ("PLAIN", b"alice\0alice\0secret", "User:alice"),
        ("PLAIN", b"\0\0secret", None),
        ("PLAIN", b"alice\0secret", None),
        ("PLAIN", b"\0" + b"a" * 5000 + b"\0secret", None),
        ("SCRAM-SHA-256", b"n,,n=a=2Cb=3D,r=x", "User:a,b="),
        # The name is that of the token; its owner logs in.
        ("SCRAM-SHA-512", b"n,,n=id,r=x,tokenauth=true", None),
        ("SCRAM-SHA-512", b"c=biws,r=xy,p=cHJvb2Y=", None),
        ("OAUTHBEARER", jwt({"sub": "svc?>", "exp": 1}), "User:svc?>"),
        ("OAUTHBEARER", jwt({"exp": 1}), None),
        ("OAUTHBEARER", jwt({"sub": 5}), None),
        ("OAUTHBEARER", jwt([1]), None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer e30.\xff.x\x01\x01", None),
        ("OAUTHBEARER", b"\x01", None),
        ("GSSAPI", b"\x60\x82", None),
    ],
)
def test_whom_a_token_logs_in(mechanism: str, token: bytes, principal: str | None) -> None:
    """By its mechanism; what is not in it is not told."""
    assert principal_of(mechanism, token) == principal


def deep(levels: int) -> bytes:
    """A token whose claims are nested beyond what Python reads."""
    text = base64.urlsafe_b64encode(b"[" * levels).decode()
    return f"n,,\x01auth=Bearer e30.{text}.x\x01\x01".encode()


def test_tokens_that_are_too_deep_or_too_long() -> None:
    """They tell nobody, and do no harm."""
    assert principal_of("OAUTHBEARER", deep(30_000)) is None
    assert principal_of("PLAIN", b"\0alice\0" + b"x" * 70_000) is None


def decoded(error: int = 0) -> list[Frame]:
    """The frames of a login by PLAIN."""
    maker, decoder = FrameMaker(), FrameDecoder(Settings())
    frames = [
        maker.request(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        maker.response(SaslHandshakeResponse(mechanisms=["PLAIN"])),
        maker.request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
        maker.response(SaslAuthenticateResponse(error_code=error)),
    ]
    return [decoder.decode(frame) for frame in frames]


@pytest.mark.parametrize(
    ("error", "principal"), [(0, "User:alice"), (ErrorCode.SASL_AUTHENTICATION_FAILED, None)]
)
def test_a_refused_login_is_nobodys(error: int, principal: str | None) -> None:
    """The request names the user; the connection is theirs only if nothing was refused."""
    frames = decoded(error)
    assert [each.login for each in frames[:2]] == [None, None]
    assert frames[2].login == ("PLAIN", "User:alice")
    assert frames[3].login == ("PLAIN", principal)
    found = StatsCollector()
    for each in frames:
        found.frame(each)
    (secured,) = found.secured().values()
    assert secured == Security(mechanism="PLAIN", principal=principal)


def test_a_refused_mechanism_is_not_the_connections() -> None:
    """A token after it is not read by it."""
    maker, decoder = FrameMaker(), FrameDecoder(Settings())
    for frame in (
        maker.request(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        maker.response(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM)),
        maker.request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
    ):
        last = decoder.decode(frame)
    assert last.login == (None, None)


@pytest.mark.parametrize("cipher", [None, "ECDHE-RSA-AES128-GCM-SHA256"])
@pytest.mark.parametrize("has_keys", [False, True])
def test_certificates_of_clients(tmp_path: Path, cipher: str | None, has_keys: bool) -> None:
    """TLS 1.2 sends them in clear; in TLS 1.3 they are seen with the secrets."""
    talk = TlsSession(tmp_path, cipher, is_mutual=True)
    talk.client(request(0, b"\0\0\0\0"))
    talk.server(response(0))
    keys = KeyLog.read(str(talk.keylog)) if has_keys else None
    capture = Capture([pcap_of(talk.session.segments)], keys=keys)
    found = StatsCollector()
    found.begin_capture(capture.health)
    assert len(list(capture)) == (2 if has_keys else 0)
    is_seen = has_keys or cipher is not None
    (secured,) = found.secured().values()
    assert secured == Security(
        "TLSv1.3" if cipher is None else "TLSv1.2",
        principal="User:CN=broker.example" if is_seen else None,
    )
    lines = "\n".join(summary(Totals(captures={"a": capture.health})))
    assert ("client certificate CN=broker.example" in lines) == (is_seen and not has_keys)
    assert capture.health.bytes.unaccounted == 0


def test_a_connection_without_a_certificate_names_nobody(tmp_path: Path) -> None:
    """The certificate of the server is not the client's."""
    talk = TlsSession(tmp_path, "ECDHE-RSA-AES128-GCM-SHA256")
    capture = Capture([pcap_of(talk.session.segments)])
    assert list(capture) == []
    (tls,) = capture.health.tls
    assert (tls.version, tls.certificate_name) == ("TLSv1.2", "")
