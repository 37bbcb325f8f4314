"""Java controllers and ours in one quorum over mutual TLS, with a Java broker that joins it."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftwire.client import Admin, QuorumInfo
from kraftwire.errors import ApiError
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.agreement import check_logs
from tests.support.security.certificates import der, identity
from tests.support.security.kafka import client_properties, write_stores

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Secured:
    """A quorum of two Java controllers and one of ours, and what clients need."""

    quorum: MixedQuorum
    stores: Path

    @property
    def client(self) -> dict[str, str]:
        """The properties of a client with a certificate."""
        return client_properties("SSL", self.stores) | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.stores / "client.pem"),
        }

    def describe(self, *, without: int = 0) -> QuorumInfo:
        """The quorum as a leader other than `without` sees it, once its epoch has a commit."""
        admin = Admin(
            bootstrap_controllers=[
                self.quorum.address(one.node_id)
                for one in self.quorum.running()
                if one.is_controller
            ],
            timeout_s=60,
            security=self.client,
        )

        def look() -> QuorumInfo | None:
            try:
                found = admin.describe_quorum()
            except ApiError:
                return None
            is_ready = found.leader_id != without and found.high_watermark > 0
            return found if is_ready else None

        return wait_until(look, "a leader", self.quorum.last_lines)

    def wait_all_caught_up(self) -> QuorumInfo:
        """Wait until all running voters have what is committed now."""
        mark = self.describe().high_watermark
        running = {one.node_id for one in self.quorum.running() if one.is_controller}

        def look() -> QuorumInfo | None:
            found = self.describe()
            ends = {each.id: each.log_end_offset for each in found.voters}
            return found if all(ends.get(i, -1) >= mark for i in running) else None

        return wait_until(look, f"all voters at {mark}", self.quorum.last_lines)


def _properties(stores: Path) -> dict[str, object]:
    """Every listener and every connection between the nodes is mutual TLS."""
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": stores / "ca.pem",
        "ssl.client.auth": "required",
        "metadata.max.idle.interval.ms": 200,
    }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One quorum for all tests: each leaves all three controllers running."""
    folder = tmp_path_factory.mktemp("tls")
    stores = folder / "stores"
    stores.mkdir()
    write_stores(stores)
    special: dict[int, dict[str, object]] = {}
    for number in (1, 2, 3, 4):
        holder, path = identity(f"node-{number}"), stores / f"node-{number}.pem"
        path.write_text(holder.key_pem() + holder.chain_pem)
        path.chmod(0o600)
        special[number] = {"ssl.keystore.location": path}
    with MixedQuorum(
        folder,
        {1: JAVA, 2: JAVA, 3: OURS},
        _properties(stores),
        special,
        is_dynamic=True,
        brokers={4: JAVA},
    ) as quorum:
        quorum.start(1, 2, 3)
        yield Secured(quorum, stores)


def test_both_kinds_elect_a_leader_and_replicate(secured: Secured) -> None:
    """Every byte between them is encrypted, and both sides show certificates."""
    found = secured.wait_all_caught_up()
    assert sorted(each.id for each in found.voters) == [1, 2, 3]


def test_either_kind_leads_when_the_other_is_killed(secured: Secured) -> None:
    """kill -9 of a Java leader, then of ours; nothing that was committed is lost."""
    quorum, ours = secured.quorum, secured.quorum.members[3]
    ours.stop()
    ours.start()
    leader = secured.wait_all_caught_up().leader_id
    if leader != 3:
        # The other Java controller is paused until it lacks records, so it cannot win.
        (other,) = {1, 2} - {leader}
        late = quorum.members[other]
        late.pause()
        start = late.end_offset
        wait_until(lambda: ours.end_offset > start + 10, "records that one lacks")
        quorum.members[leader].kill()
        late.resume()
        assert secured.describe(without=leader).leader_id == 3
        quorum.start(leader)
    committed = secured.wait_all_caught_up().high_watermark
    ours.kill()
    found = secured.describe(without=3)
    assert found.leader_id in (1, 2)
    assert found.high_watermark >= committed
    quorum.start(3)
    secured.wait_all_caught_up()
    for member in quorum.members.values():
        assert not member.ended(), quorum.last_lines()


def test_a_java_broker_registers_through_the_secured_listener(secured: Secured) -> None:
    """It connects to the controllers by the settings of their listener."""
    secured.quorum.start(4)

    def look() -> bool:
        return any(each.id == 4 for each in secured.describe().observers)

    wait_until(look, "the broker as an observer", secured.quorum.last_lines)


def test_strangers_are_kept_out_of_our_listener(secured: Secured) -> None:
    """Without a certificate, and in clear."""
    port = secured.quorum.members[3].port
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(secured.stores / "ca.pem")
    with (
        socket.create_connection((HOST, port), 30) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as stream,
        # With TLS 1.3 the client hears of it when it reads.
        pytest.raises(ssl.SSLError),
    ):
        stream.recv(1)
    with socket.create_connection((HOST, port), 30) as plain:
        plain.sendall(bytes.fromhex("0000001400120004000000000004646961670000"))
        assert plain.recv(100)[:2] in (b"", b"\x15\x03")


def _shown(secured: Secured, port: int) -> bytes | None:
    """The certificate that a listener shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(secured.stores / "ca.pem")
    context.load_cert_chain(secured.stores / "client.pem")
    with (
        socket.create_connection((HOST, port), 30) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as stream,
    ):
        return stream.getpeercert(binary_form=True)


def _replace(path: Path, text: str) -> None:
    """As certificate managers do it: another file takes the name."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.chmod(0o600)
    os.replace(other, path)


def test_a_certificate_is_replaced_under_load_and_a_bad_one_kept_out(secured: Secured) -> None:
    """New connections get the new one, the quorum goes on, and nobody has to lead anew."""
    before = secured.wait_all_caught_up()
    ours, path = secured.quorum.members[3], secured.stores / "node-3.pem"
    renewed = identity("node-3", ("localhost", HOST, "more.example"))
    _replace(path, renewed.key_pem() + renewed.chain_pem)

    def shows(wanted: bytes) -> Callable[[], bool]:
        return lambda: _shown(secured, ours.port) == wanted

    wait_until(shows(der(renewed.certificate)), "the new certificate", secured.quorum.last_lines)
    fewer = identity("node-3", ("localhost",))
    _replace(path, fewer.key_pem() + fewer.chain_pem)
    assert ours.ours is not None
    ours.ours.wait_for("store-kept-out.*no longer for 127.0.0.1, more.example")
    assert shows(der(renewed.certificate))()
    _replace(path, renewed.key_pem() + renewed.chain_pem)
    after = secured.wait_all_caught_up()
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)


def test_all_logs_agree_in_the_end(secured: Secured) -> None:
    """Byte for byte below the high watermark, on all disks."""
    found = secured.wait_all_caught_up()
    controllers = [one for one in secured.quorum.members.values() if one.is_controller]
    assert check_logs(controllers, found.high_watermark) > 5
