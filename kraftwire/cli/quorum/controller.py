"""The controller that `add-controller` adds: read from its properties file and its log directory.

Source: Kafka's `MetadataQuorumCommand`, whose requirements these are.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from kraftwire.cli.quorum.options import TerseError, read_config
from kraftwire.client import Endpoint
from kraftwire.errors import WireError
from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import parse_endpoint
from kraftwire.wire.json_form import uuid_from_text

_VALID = "Is this a valid controller configuration file?"


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller as a voter set describes it."""

    id: int
    directory_id: str
    endpoints: tuple[Endpoint, ...]


def read_controller(config: Properties) -> Controller:
    """Read a controller from its properties file.

    Raises: TerseError that names what is missing.
    """
    return Controller(_node_id(config), _directory_id(config), _endpoints(config))


def _node_id(config: Properties) -> int:
    text = config.text("node.id")
    if text is None:
        raise TerseError(f"node.id not found in configuration file. {_VALID}")
    if re.fullmatch(r"-?\d{1,10}", text) is None:
        raise TerseError(f"node.id is not a number in configuration file: {text!r}. {_VALID}")
    if int(text) < 0:
        raise TerseError(f"node.id was negative in configuration file. {_VALID}")
    if "controller" not in (config.get("process.roles") or ""):
        raise TerseError(
            f"process.roles did not contain 'controller' in configuration file. {_VALID}"
        )
    return int(text)


def _directory_id(config: Properties) -> str:
    folder = config.get("metadata.log.dir") or next(iter(config.listed("log.dirs")), None)
    if not folder:
        raise TerseError(f"Neither metadata.log.dir nor log.dirs were found. {_VALID}")
    path = os.path.join(folder, "meta.properties")
    if not os.path.exists(path):
        raise TerseError(f"Unable to read meta.properties from {folder}")
    directory_id = read_config(path).get("directory.id")
    if not directory_id:
        raise TerseError(f"No directory id found in {folder}")
    try:
        uuid_from_text(directory_id)
    except WireError as error:
        raise TerseError(
            f"Unable to read meta.properties from {folder}: expected a uuid for directory.id, "
            f"found {directory_id!r}"
        ) from error
    return directory_id


def _endpoints(config: Properties) -> tuple[Endpoint, ...]:
    """Return the controller's endpoints: the advertised ones, else those it listens on."""
    found: dict[str, Endpoint] = {}
    for key in ("listeners", "advertised.listeners"):
        for text in config.listed(key):
            endpoint = parse_endpoint(text)
            if endpoint is None:
                raise TerseError(f"{key}: expected NAME://host:port, found {text!r}")
            host = endpoint.host or "localhost"
            found[endpoint.listener] = replace(endpoint, host=host)
    given = config.text("controller.listener.names")
    if given is None:
        raise TerseError(f"controller.listener.names was not found. {_VALID}")
    names = [name.strip().upper() for name in given.split(",")]
    for name in names:
        if name not in found:
            raise TerseError(
                f"Cannot find information about controller listener name: {name}"
            )
    return tuple(dict.fromkeys(found[name] for name in names))
