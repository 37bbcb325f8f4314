"""Formatting log directories: what `kraftwire storage format` does.

The rules, the files and the messages are those of kafka-storage, except that an error that Java
prints as a stack trace is one line here, and that a directory with a log is not formatted.
`meta.properties` is written last in each directory, so that a crash in between leaves one that is
not formatted.

Source: Kafka's `Formatter`, `StorageTool` and `MetaPropertiesEnsemble`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.features import (
    METADATA_VERSION,
    Features,
    choose_features,
    parse_features,
)
from kraftwire.log.files import Files, replace_file
from kraftwire.log.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraftwire.log.names import (
    BOOTSTRAP_FILE,
    META_PROPERTIES_FILE,
    checkpoint_name,
    join,
    parent,
    partition_directory,
)
from kraftwire.log.snapshots.writer import ControlRecords, footer_batch, header_batch
from kraftwire.log.unowned_log import unowned_log
from kraftwire.log.uuids import random_uuid
from kraftwire.log.voters import InitialVoter, parse_initial_voters
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.control import ControlType
from kraftwire.records.metadata import encode_metadata
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT
from kraftwire.records.plain import data_batch
from kraftwire.wire.message import Message


class VotersFlag(Enum):
    """How the voters of a new cluster are specified."""

    UNSAID = "no flag"
    STANDALONE = "--standalone/-s"
    INITIAL_CONTROLLERS = "--initial-controllers/-I"
    NO_INITIAL_CONTROLLERS = "--no-initial-controllers/-N"


# The level 3.5-IV2, from which users for SCRAM are in the log.
_WITH_SCRAM = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatNode:
    """The node whose directories are formatted, as its properties file describes it.

    `endpoint` is host and port under which the first controller listener, `listener`, is
    advertised; None for a node that is not a controller.
    """

    node_id: int
    directories: tuple[str, ...]
    metadata_directory: str
    is_controller: bool
    has_static_voters: bool
    listener: str = "CONTROLLER"
    endpoint: tuple[str, int] | None = None

    @property
    def all_directories(self) -> list[str]:
        """Return the log directories and that of the metadata log, by name."""
        return sorted({*self.directories, self.metadata_directory})

    @property
    def is_dynamic(self) -> bool:
        """Whether the voters of the quorum are in its log."""
        return not self.has_static_voters


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRequest:
    """The cluster, features and voters to format directories for.

    `voters` belong to `INITIAL_CONTROLLERS`; as a text they are `id@host:port:directory`,
    comma-separated. `features` are texts `feature=level`, `users` those for SCRAM. `now_ms` is
    written into the snapshots, `date` into the comment of meta.properties. `new_id` generates the
    directory ids that are not given.
    """

    cluster_id: str
    voters_flag: VotersFlag = VotersFlag.UNSAID
    voters: str | tuple[InitialVoter, ...] = ()
    ignore_formatted: bool = False
    release: str | None = None
    features: tuple[str, ...] = ()
    users: tuple[UserScramCredentialRecord, ...] = ()
    now_ms: int = 0
    date: str = ""
    new_id: Callable[[], bytes] = random_uuid


@dataclass(frozen=True, slots=True)
class _FormatPlan:
    """The contents of the directories. `kind` is the description of the metadata directory."""

    directory_id: bytes
    voters: tuple[InitialVoter, ...]
    kind: str
    features: Features


def format_directories(
    files: Files,
    node: FormatNode,
    request: FormatRequest,
    warn: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """Format the directories that are not formatted yet; yields the lines to print.

    A directory whose meta.properties cannot be read is skipped, and `warn` is called with the
    reason. Raises: UsageError for what kafka-storage refuses, before anything is written;
    StorageError.
    """
    wishes = parse_features(request.release, request.features)
    _check_static_voters(node, request)
    voters = request.voters
    if isinstance(voters, str):
        voters = parse_initial_voters(voters)
    _check_flags(node, request)
    features = choose_features(wishes, is_dynamic=node.is_dynamic)
    if request.users and features.metadata_version < _WITH_SCRAM:
        raise UsageError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    found = _sort_directories(files, node, request)
    for directory, problem in found.unreadable.items():
        yield f"I/O error trying to read log directory {directory}. Ignoring..."
        if warn is not None:
            warn(problem)
    if not found.missing:
        if not found.formatted:
            raise UsageError("No available log directories to format.")
        yield "All of the log directories are already formatted."
        return
    plan = _plan(node, request, voters, features)
    yield f"Bootstrap metadata: {_describe(features, request.users)}"
    for directory in found.missing:
        is_metadata = directory == node.metadata_directory
        kind = plan.kind if is_metadata else "data directory"
        yield f"Formatting {kind} {directory} with metadata.version {features.release}."
        _format(files, node, request, plan, directory)


def _check_static_voters(node: FormatNode, request: FormatRequest) -> None:
    names_voters = (VotersFlag.STANDALONE, VotersFlag.INITIAL_CONTROLLERS)
    if node.has_static_voters and request.voters_flag in names_voters:
        raise UsageError(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )


def _check_flags(node: FormatNode, request: FormatRequest) -> None:
    if request.voters_flag is VotersFlag.STANDALONE and not node.is_controller:
        raise UsageError("You can only use --standalone on a controller.")
    if node.is_controller and node.is_dynamic and request.voters_flag is VotersFlag.UNSAID:
        raise UsageError(
            "Because controller.quorum.voters is not set on this controller, you must specify "
            "one of the following: --standalone, --initial-controllers, or "
            "--no-initial-controllers."
        )


@dataclass(slots=True)
class _Directories:
    """The directories by their state. `unreadable` says why."""

    missing: list[str] = field(default_factory=list)
    formatted: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def _sort_directories(
    files: Files, node: FormatNode, request: FormatRequest
) -> _Directories:
    """Sort the directories. Raises: UsageError if one is another node's or already formatted."""
    found = _Directories()
    for directory in node.all_directories:
        path = join(directory, META_PROPERTIES_FILE)
        try:
            properties = _read(files, directory)
        except StorageError as error:
            found.unreadable[directory] = str(error)
            continue
        if properties is None:
            if log := unowned_log(files, directory):
                raise UsageError(log)
            found.missing.append(directory)
            continue
        found.formatted.append(directory)
        if properties.cluster_id != request.cluster_id:
            raise UsageError(
                f"Invalid cluster.id in: {path}. Expected {request.cluster_id}, but read "
                f"{properties.cluster_id}"
            )
        if properties.node_id != node.node_id:
            raise UsageError(
                f"Stored node id {properties.node_id} doesn't match previous node id "
                f"{node.node_id} in {path}. If you moved your data, make sure your configured "
                "node id matches. If you intend to create a new node, you should remove all "
                "data in your data directories."
            )
    if found.formatted and not request.ignore_formatted:
        raise UsageError(
            f"Log directory {found.formatted[0]} is already formatted. Use --ignore-formatted to "
            "ignore this directory and format the others."
        )
    return found


def _read(files: Files, directory: str) -> MetaProperties | None:
    """The directory's meta.properties, None without one. Raises: StorageError if unreadable."""
    path = join(directory, META_PROPERTIES_FILE)
    if files.exists(directory):
        files.listdir(directory)  # fails if it is not a directory
    properties = read_meta_properties(files, path)
    if properties is not None and properties.cluster_id is None:
        raise StorageError("expected a cluster.id, found none", file=path)
    return properties


def _plan(
    node: FormatNode,
    request: FormatRequest,
    voters: tuple[InitialVoter, ...],
    features: Features,
) -> _FormatPlan:
    if request.voters_flag is VotersFlag.STANDALONE and node.endpoint is not None:
        voter = InitialVoter(node.node_id, request.new_id(), *node.endpoint)
        kind = "dynamic metadata voter directory"
        return _FormatPlan(voter.directory_id, (voter,), kind, features)
    if request.voters_flag is VotersFlag.INITIAL_CONTROLLERS:
        for voter in voters:
            if voter.id == node.node_id:
                kind = "dynamic metadata voter directory"
                return _FormatPlan(voter.directory_id, voters, kind, features)
        return _FormatPlan(request.new_id(), voters, "dynamic metadata directory", features)
    return _FormatPlan(request.new_id(), (), "metadata directory", features)


def _format(
    files: Files, node: FormatNode, request: FormatRequest, plan: _FormatPlan, directory: str
) -> None:
    is_metadata = directory == node.metadata_directory
    files.mkdir(directory)
    files.fsync_dir(parent(directory))
    levels = ((METADATA_VERSION, plan.features.metadata_version), *plan.features.levels)
    records: list[tuple[Message, int]] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels
    ]
    records += [(user, 0) for user in request.users]
    content = bootstrap_checkpoint(records, request.now_ms)
    replace_file(files, join(directory, BOOTSTRAP_FILE), content)
    if is_metadata and plan.voters:
        partition = partition_directory(directory, METADATA_TOPIC)
        files.mkdir(partition)
        files.fsync_dir(directory)
        content = voters_checkpoint(plan.voters, node.listener, request.now_ms)
        path = join(partition, checkpoint_name(BOOTSTRAP_SNAPSHOT))
        replace_file(files, path, content)
        files.make_read_only(path)
    directory_id = plan.directory_id if is_metadata else request.new_id()
    properties = MetaProperties(request.cluster_id, node.node_id, directory_id)
    path = join(directory, META_PROPERTIES_FILE)
    write_meta_properties(files, path, properties, comment=request.date)


def _describe(features: Features, users: Sequence[UserScramCredentialRecord]) -> str:
    """Describe the first records as Kafka does, but without the keys of users, which it prints."""
    levels = ((METADATA_VERSION, features.metadata_version), *features.levels)
    shown = [f"FeatureLevelRecord(name='{name}', featureLevel={level})" for name, level in levels]
    shown += [
        f"UserScramCredentialRecord(name='{user.name}', mechanism={user.mechanism}, [hidden], "
        f"iterations={user.iterations})"
        for user in users
    ]
    records = ", ".join(f"ApiMessageAndVersion({one} at version 0)" for one in shown)
    return (
        f"BootstrapMetadata(records=[{records}], "
        f"metadataVersionLevel={features.metadata_version}, source=format command)"
    )


_VOTER_KRAFT_VERSION_MAX = 1


def bootstrap_checkpoint(records: Sequence[tuple[Message, int]], now_ms: int) -> bytes:
    """Build the file with metadata records, each with its version."""
    values = [encode_metadata(record, version) for record, version in records]
    # Kafka leaves the time of the last record at 0 here.
    return (
        header_batch(0, now_ms, 0)
        + data_batch(1, 0, now_ms, values)
        + footer_batch(1 + len(values), 0, now_ms)
    )


def voters_checkpoint(voters: Iterable[InitialVoter], listener: str, now_ms: int) -> bytes:
    """Build the file with kraft.version 1 and the voters, with the name of their listener."""
    record = VotersRecord(version=0, voters=[_voter(voter, listener) for voter in voters])
    control: ControlRecords = [
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
        (ControlType.KRAFT_VOTERS, record),
    ]
    header = header_batch(0, now_ms, now_ms, control)
    return header + footer_batch(1 + len(control), 0, now_ms)


def _voter(voter: InitialVoter, listener: str) -> Voter:
    return Voter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[Endpoint(name=listener, host=voter.host, port=voter.port)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=_VOTER_KRAFT_VERSION_MAX
        ),
    )
