"""Failed connections in one line: the check that failed, where, what the port speaks, what to set.

What will fail again is a `SecurityError`. Everything else is an ApiError NETWORK_EXCEPTION, after
which callers try again.

Source: SEC-T14, SEC-T16, SEC-C3, SEC-C4.
"""

from __future__ import annotations

import ssl

from kraftwire.errors import ApiError, SecurityError
from kraftwire.protocol.endpoint import Address, address_text
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.errors import CREDENTIALS, LISTENER, MECHANISM, TICKET, SaslError
from kraftwire.security.host_check import OTHER_HOST
from kraftwire.security.settings import PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL
from kraftwire.security.stores import certificate_facts
from kraftwire.transport.client_security import ClientSecurity
from kraftwire.transport.port_probe import ProbeResult, probe_port

# OpenSSL's codes of failed verifications.
_NOT_YET_VALID, _EXPIRED = 9, 10
# 7 is a signature by another authority of the same name, as after its keys were made anew.
_UNTRUSTED = frozenset({2, 7, 18, 19, 20, 21})

# Alerts, in OpenSSL's names without what precedes ALERT_.
_NO_CERTIFICATE = frozenset({"BAD_CERTIFICATE", "CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE"})
_BAD_CERTIFICATE = frozenset(
    {
        "ACCESS_DENIED",
        "BAD_CERTIFICATE",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_UNKNOWN",
        "UNKNOWN_CA",
        "UNSUPPORTED_CERTIFICATE",
    }
)
_NO_VERSION = frozenset(
    {
        "NO_CIPHERS_AVAILABLE",
        "NO_PROTOCOLS_AVAILABLE",
        "PROTOCOL_VERSION",
        "UNSUPPORTED_PROTOCOL",
        "VERSION_TOO_LOW",
    }
)
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


def network_error(address: Address, problem: str) -> ApiError:
    """Return an error of the network, after which trying again may help."""
    return ApiError(ErrorCode.NETWORK_EXCEPTION, f"{address_text(address)}: {problem}")


async def not_plaintext(address: Address, own: str) -> SecurityError:
    """Explain the answer of a TLS listener to a client without TLS, whose protocol is `own`."""
    return _other_protocol(address, own, await probe_port(*address, is_tls=True), "TLS")


async def closed_early(address: Address, own: str, *, problem: str) -> SecurityError | ApiError:
    """Explain why a node closed a connection without an answer to its first request.

    `problem` is what to say if nothing shows that the port speaks another protocol.
    """
    has_tls = own in (SSL, SASL_SSL)
    for is_tls in (has_tls, not has_tls):
        result = await probe_port(*address, is_tls=is_tls)
        if result.protocol == own:
            break
        if result.protocol is not None or (result.certificate and not has_tls):
            return _other_protocol(address, own, result, "TLS")
    return network_error(address, problem)


async def tls_failure(
    address: Address, error: Exception, security: ClientSecurity
) -> SecurityError | ApiError:
    """Explain a failed handshake, or an alert after it."""
    where = address_text(address)
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    own = security.settings.protocol
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _certificate_failure(where, cause, await probe_port(*address, is_tls=True), security)
    reason = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    alert = reason.partition("ALERT_")[2]
    if not alert and (reason in _NO_TLS or not reason or "EOF" in reason):
        result = await probe_port(*address, is_tls=False)
        if result.protocol in (PLAINTEXT, SASL_PLAINTEXT):
            return _other_protocol(address, own, result, "no TLS")
        if reason in _NO_TLS:
            text = f"{where}: the TLS handshake failed: this port speaks neither TLS nor Kafka"
            return SecurityError(f"{text}; check the address", is_usage=True)
        return network_error(address, "the node closed the connection during the TLS handshake")
    return _alert_failure(where, alert or reason, security)


def sasl_failure(address: Address, error: SaslError, security: ClientSecurity) -> SecurityError:
    """Explain a failed login."""
    login, where = security.login, address_text(address)
    assert login is not None
    mechanism = login.mechanism
    if error.check == LISTENER:
        protocol = SSL if security.tls is not None else PLAINTEXT
        result = ProbeResult(protocol)
        return _other_protocol(address, security.settings.protocol, result, protocol)
    if error.check == MECHANISM:
        text = f"{where}: the node does not take the mechanism {mechanism}: {error.detail}"
        return SecurityError(f"{text}; set {login.mechanism_place}", is_usage=True)
    if error.check == CREDENTIALS:
        who = f" of user {login.user!r}" if login.user else ""
        text = f"{where}: the login{who} by {mechanism} was refused: {error.detail}"
        return SecurityError(
            f"{text} (SASL_AUTHENTICATION_FAILED); check {login.place}", is_usage=False
        )
    if error.check == TICKET:
        text = f"{where}: Kerberos refuses the login: {error.detail}; check {login.place}"
        text += ", sasl.kerberos.service.name and the host of the address"
        return SecurityError(text, is_usage=True)
    text = f"{where}: the login by {mechanism} failed: {error.detail}"
    return SecurityError(text, is_usage=False)


def _other_protocol(address: Address, own: str, result: ProbeResult, found: str) -> SecurityError:
    """Explain that the port speaks another protocol: which, and what to set."""
    if result.protocol is None:
        what, wanted = found, f"{SSL} or {SASL_SSL}"
    else:
        what, wanted = str(result), result.protocol
    login = " with sasl.mechanism and sasl.jaas.config" if result.mechanisms else ""
    return SecurityError(
        f"{address_text(address)}: this port speaks {what}, and this client {own}: set "
        f"security.protocol={wanted}{login} in the client's properties (--command-config)",
        is_usage=True,
    )


def _certificate_failure(
    where: str, error: ssl.SSLCertVerificationError, result: ProbeResult, security: ClientSecurity
) -> SecurityError:
    code, properties = error.verify_code, security.settings.properties
    facts = certificate_facts(result.certificate) if result.certificate else None
    whose = f"the certificate of {facts.subject}" if facts else "the node's certificate"
    if code == OTHER_HOST:
        names = f", only for {', '.join(facts.names)}" if facts and facts.names else ""
        text = f"{where}: the host check failed: {whose} is not for this host{names}"
        cure = "use a name of the certificate, or give the node one for this host"
        return SecurityError(f"{text}; {cure}", is_usage=True)
    if code in _UNTRUSTED:
        issuer = f", issued by {facts.issuer}," if facts else ""
        key = "ssl.truststore.location"
        if properties.get("ssl.truststore.certificates") is not None:
            key = "ssl.truststore.certificates"
        has_roots = security.tls is not None and security.tls.has_roots
        by = "any authority of the trust store" if has_roots else "any authority of this system"
        text = f"{where}: the trust check failed: {whose}{issuer} is not signed by {by}"
        return SecurityError(f"{text}; set {properties.place(key)}", is_usage=True)
    if code in (_EXPIRED, _NOT_YET_VALID):
        is_old = code == _EXPIRED
        when = ""
        if facts:
            ends, starts = (f"{each:%Y-%m-%d %H:%M:%S} UTC" for each in (facts.ends, facts.starts))
            when = f" (it ended {ends})" if is_old else f" (from {starts})"
        state = "has expired" if is_old else "is not valid yet"
        text = f"{where}: the time check failed: {whose}, or one above it, {state}{when}"
        return SecurityError(f"{text}; the node needs another one", is_usage=False)
    text = f"{where}: the check of {whose} failed: {error.verify_message}"
    return SecurityError(text, is_usage=False)


def _alert_failure(where: str, name: str, security: ClientSecurity) -> SecurityError:
    properties = security.settings.properties
    words = name.replace("_", " ").lower()
    if name in _NO_VERSION:
        place = properties.place("ssl.enabled.protocols")
        text = f"{where}: the TLS handshake failed: no version of TLS in common ({words})"
        return SecurityError(f"{text}; set {place}", is_usage=True)
    has_key = security.tls is not None and security.tls.has_key
    if name == "HANDSHAKE_FAILURE" and properties.get("ssl.cipher.suites") is not None:
        place = properties.place("ssl.cipher.suites")
        text = f"{where}: the TLS handshake failed: no cipher suite in common ({words})"
        return SecurityError(f"{text}; set {place}", is_usage=True)
    if name in _NO_CERTIFICATE and not has_key:
        place = properties.place("ssl.keystore.location")
        text = f"{where}: the node refused a client without a certificate ({words})"
        return SecurityError(f"{text}; set {place}", is_usage=True)
    if name in _BAD_CERTIFICATE and has_key:
        place = properties.place("ssl.keystore.location")
        text = f"{where}: the node refused this client's certificate ({words})"
        return SecurityError(f"{text}; check {place}", is_usage=False)
    return SecurityError(f"{where}: TLS failed: {words}", is_usage=False)
