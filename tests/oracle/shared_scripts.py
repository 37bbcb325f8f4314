"""Scripts of simulated brokers, and a codec that reads Kafka's own schemas: the shared tools.

Owns how they are imported: they read the schemas of Kafka's jars from a folder.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kraftwire.controller.versions import SUPPORTED_FEATURES
from tests.oracle import client_steps, operations
from tests.oracle.forwarding import Sender
from tests.support.kafka.maven import KAFKA, ROOT, directory_of, kafka_classpath

_TOOLS = ROOT.parent / "shared" / "tools" / "controller"


class Tools:
    """The shared tools, with a folder for the schemas in Kafka's jars, which they read."""

    def __init__(self, folder: Path) -> None:
        if not _TOOLS.exists():
            pytest.skip("the scripts of simulated brokers are missing: shared/tools/controller")
        schemas = folder / "schemas"
        jars = kafka_classpath(KAFKA)
        for jar in sorted(directory_of(KAFKA).glob("kafka-*.jar")):
            with zipfile.ZipFile(jar) as archive:
                names = [name for name in archive.namelist() if name.endswith(".json")]
                archive.extractall(schemas, names)
        environment = {"KAFKA_JARS": jars, "KAFKA_SCHEMAS": str(schemas)}
        with mock.patch.dict(os.environ, environment), warnings.catch_warnings():
            # They leave the files of the schemas to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            path = [str(_TOOLS), *sys.path]
            with mock.patch.multiple(sys, path=path, dont_write_bytecode=True):
                self.fuzz: Any = importlib.import_module("ctlfuzz")
                self.oracle: Any = importlib.import_module("oracle")
                self.node: Any = importlib.import_module("node")
                self.proto: Any = importlib.import_module("proto")
        # Brokers support what the current release does; the tools hold on to this very object.
        self.oracle.FEATURES.update(SUPPORTED_FEATURES)

    def sender(self, connection: Any) -> Sender:
        """A connection over which requests may be forwarded."""
        return Sender(self.proto, self.oracle.KEY, connection)

    def script(self, connection: Any, end: int) -> Any:
        """A run of a script over a connection to a cluster whose log ends at an offset."""
        run = self.fuzz.Run.__new__(self.fuzz.Run)
        run.c = self.sender(connection)
        run.b, run.tid, run.p, run.nm = {}, {}, {}, {}
        run.off = run.base = end
        run.step = partial(operations.step, self, run)
        run.settle = partial(client_steps.settle, run)
        return run
