"""The files of a quorum's nodes: properties, formatted log directories, ports.

Every node is broker and controller (`process.roles=broker,controller`). Voters are static
(`controller.quorum.voters`, kraft.version 0), or dynamic: formatted with the first ones, changed
with Kafka's tools from then on (kraft.version 1).
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kraftwire.testing.ports import free_ports

if TYPE_CHECKING:
    from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord

HOST = "127.0.0.1"


@contextmanager
def node_folder(given: Path | None, whole: str) -> Iterator[Path]:
    """A folder for the files of a quorum or cluster, which `whole` names: a given one, which
    stays, or a temporary one, which stays if the block fails. A note on the error says where."""
    if given is None:
        folder = Path(tempfile.mkdtemp(prefix=f"kraftwire-{whole}-"))
    else:
        folder = given
        # Properties may hold passwords, and logs of nodes what clients sent.
        folder.mkdir(0o700, parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException as error:
        error.add_note(f"logs and data of the {whole}'s nodes are in {folder}")
        raise
    if given is None:
        shutil.rmtree(folder, ignore_errors=True)


class NodeFiles:
    """The files in a quorum's folder. `ports` has (broker, controller) by node id."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, object],
        *,
        is_dynamic: bool,
        is_captured: bool,
        users: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.cluster_id = ""
        self.ports: dict[int, tuple[int, int]] = {}
        self._properties = dict(properties)
        self._is_dynamic = is_dynamic
        self._is_captured = is_captured
        self._users = tuple(users)

    def prepare(self, count: int) -> None:
        """Choose new ports and a new cluster id, and format the directories of the first nodes."""
        from kraftwire.log.uuids import random_uuid
        from kraftwire.wire.json_form import uuid_to_text

        self.cluster_id = uuid_to_text(random_uuid())
        ports = iter(free_ports(2 * count))
        self.ports = {number: (next(ports), next(ports)) for number in range(1, count + 1)}
        directory_ids = {number: random_uuid() for number in self.ports}
        for number in self.ports:
            self._write_config(number)
            self.format(number, directory_ids)

    def add(self, number: int) -> None:
        """Create the files of an additional node: it observes until it is made a voter."""
        broker_port, controller_port = free_ports(2)
        self.ports[number] = (broker_port, controller_port)
        self._write_config(number)
        self.format(number)

    def format(self, number: int, initial: Mapping[int, bytes] | None = None) -> None:
        """Format a node's empty directory, as that of a first voter if `initial` is given.

        `initial` has the directory ids of the first voters by node id.
        """
        from kraftwire.log.files import LocalFiles
        from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
        from kraftwire.wire.json_form import uuid_to_text

        data = str(self.data(number))
        shutil.rmtree(data, ignore_errors=True)
        kind = VotersFlag.UNSAID
        voters: str | tuple[()] = ()
        if self._is_dynamic and initial is None:
            kind = VotersFlag.NO_INITIAL_CONTROLLERS
        elif self._is_dynamic and initial is not None:
            kind = VotersFlag.INITIAL_CONTROLLERS
            voters = ",".join(
                f"{each}@{HOST}:{self.ports[each][1]}:{uuid_to_text(directory_id)}"
                for each, directory_id in initial.items()
            )
        node = FormatNode(
            node_id=number,
            directories=(data,),
            metadata_directory=data,
            is_controller=True,
            has_static_voters=not self._is_dynamic,
            endpoint=(HOST, self.ports[number][1]),
        )
        request = FormatRequest(
            cluster_id=self.cluster_id, voters_flag=kind, voters=voters, users=self._scram_users()
        )
        list(format_directories(LocalFiles(), node, request))

    def _scram_users(self) -> tuple[UserScramCredentialRecord, ...]:
        if not self._users:
            return ()
        from kraftwire.security.scram_argument import parse_scram_arguments

        return parse_scram_arguments(self._users, secrets.token_bytes)

    def config(self, number: int) -> Path:
        """Return a node's properties file."""
        return self.folder / f"node-{number}.properties"

    def log(self, number: int) -> Path:
        """Return a node's log file."""
        return self.folder / f"node-{number}.log"

    def data(self, number: int) -> Path:
        """Return a node's log directory."""
        return self.folder / f"data-{number}"

    def capture(self, number: int) -> Path:
        """Return the capture of a node's traffic."""
        return self.folder / f"node-{number}.pcapng"

    def _write_config(self, number: int) -> None:
        from kraftwire.properties_file import escape_property

        lines = (
            f"{escape_property(key, is_key=True)}={escape_property(text)}\n"
            for key, value in self._all_properties(number).items()
            for text in [str(value).replace("{node}", str(number))]
        )
        self.config(number).write_text("".join(lines), encoding="iso-8859-1")

    def _all_properties(self, number: int) -> dict[str, object]:
        broker_port, controller_port = self.ports[number]
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": number,
            "listeners": f"PLAINTEXT://{HOST}:{broker_port},CONTROLLER://{HOST}:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data(number),
            # Half of Kafka's default second: the first election starts when it has passed.
            "controller.quorum.election.timeout.ms": 500,
        }
        if self._is_dynamic:
            servers = (f"{HOST}:{port}" for _, port in self.ports.values())
            properties["controller.quorum.bootstrap.servers"] = ",".join(servers)
        else:
            voters = (f"{each}@{HOST}:{port}" for each, (_, port) in self.ports.items())
            properties["controller.quorum.voters"] = ",".join(voters)
        properties.update(self._properties)
        if self._is_captured:
            properties["kraftwire.capture.file"] = self.capture(number)
        return properties
