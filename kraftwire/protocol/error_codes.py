"""Kafka's error codes: number, name, whether a retry can help, and what is wrong.

Source: `org.apache.kafka.common.protocol.Errors`; RETRY marks the errors that are
RetriableExceptions there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraftwire.errors import UsageError

RETRY = True
FINAL = False

_BY_CODE: dict[int, ErrorCode] = {}


class _Row:
    """A row of the table below; replaced by a member once the class knows its name."""

    def __init__(self, code: int, is_retriable: bool, about: str) -> None:
        self._facts = (code, is_retriable, about)

    def __set_name__(self, owner: type[ErrorCode], name: str) -> None:
        code, is_retriable, about = self._facts
        member = int.__new__(owner, code)
        member.name = name
        member.is_retriable = is_retriable
        member.about = about
        _BY_CODE[code] = member
        setattr(owner, name, member)

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type[ErrorCode]) -> ErrorCode: ...


class _Table(type):
    """Makes the class iterable, in the order of the codes."""

    def __iter__(cls) -> Iterator[ErrorCode]:
        return iter(_BY_CODE.values())


class ErrorCode(int, metaclass=_Table):
    """An error code as responses carry it in an int16.

    `name` is Kafka's; `is_retriable` tells whether the same request may succeed later;
    `about` says what is wrong, in a few words. Calling the class looks a code up.
    Raises: UsageError from ``ErrorCode(code)`` for a code that Kafka does not have.
    """

    # Used like an IntEnum, but enum takes 3 to 5 ms to make this many members and this below 1 ms.
    name: str
    is_retriable: bool
    about: str

    UNKNOWN_SERVER_ERROR = _Row(-1, FINAL, "the server failed in a way that has no code")
    NONE = _Row(0, FINAL, "success")
    OFFSET_OUT_OF_RANGE = _Row(1, FINAL, "the log has no record at this offset")
    CORRUPT_MESSAGE = _Row(2, RETRY, "bad checksum, size or layout of a batch")
    UNKNOWN_TOPIC_OR_PARTITION = _Row(
        3, RETRY, "not on this node: never made, deleted or elsewhere"
    )
    INVALID_FETCH_SIZE = _Row(4, FINAL, "a byte limit below zero")
    LEADER_NOT_AVAILABLE = _Row(5, RETRY, "an election is in progress")
    NOT_LEADER_OR_FOLLOWER = _Row(6, RETRY, "another node leads, or holds the replicas")
    REQUEST_TIMED_OUT = _Row(7, RETRY, "not done within the time allowed")
    BROKER_NOT_AVAILABLE = _Row(8, FINAL, "the node is shutting down or gone")
    REPLICA_NOT_AVAILABLE = _Row(9, RETRY, "the replica is not up yet")
    MESSAGE_TOO_LARGE = _Row(10, FINAL, "a batch above max.message.bytes")
    STALE_CONTROLLER_EPOCH = _Row(11, FINAL, "the controller that sent this was replaced")
    OFFSET_METADATA_TOO_LARGE = _Row(12, FINAL, "the note on a committed offset is too long")
    NETWORK_EXCEPTION = _Row(13, RETRY, "the connection broke before the answer")
    COORDINATOR_LOAD_IN_PROGRESS = _Row(14, RETRY, "the coordinator still reads its log")
    COORDINATOR_NOT_AVAILABLE = _Row(15, RETRY, "no coordinator at present")
    NOT_COORDINATOR = _Row(16, RETRY, "another broker coordinates this key")
    INVALID_TOPIC_EXCEPTION = _Row(17, FINAL, "a name no topic may have, or an internal topic")
    RECORD_LIST_TOO_LARGE = _Row(18, FINAL, "a batch larger than a segment")
    NOT_ENOUGH_REPLICAS = _Row(19, RETRY, "below min.insync.replicas, nothing was written")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = _Row(20, RETRY, "written, then below min.insync.replicas")
    INVALID_REQUIRED_ACKS = _Row(21, FINAL, "acks other than -1, 0 or 1")
    ILLEGAL_GENERATION = _Row(22, FINAL, "the classic group has moved on")
    INCONSISTENT_GROUP_PROTOCOL = _Row(23, FINAL, "no protocol in common with the group")
    INVALID_GROUP_ID = _Row(24, FINAL, "a group id no group may have")
    UNKNOWN_MEMBER_ID = _Row(25, FINAL, "the group has no such member")
    INVALID_SESSION_TIMEOUT = _Row(26, FINAL, "outside what the broker allows")
    REBALANCE_IN_PROGRESS = _Row(27, FINAL, "the member has to join again")
    INVALID_COMMIT_OFFSET_SIZE = _Row(28, FINAL, "the commit would not fit in a batch")
    TOPIC_AUTHORIZATION_FAILED = _Row(29, FINAL, "no right to the topic")
    GROUP_AUTHORIZATION_FAILED = _Row(30, FINAL, "no right to the group")
    CLUSTER_AUTHORIZATION_FAILED = _Row(31, FINAL, "no right to the cluster")
    INVALID_TIMESTAMP = _Row(32, FINAL, "too far from the broker's clock, or below zero")
    UNSUPPORTED_SASL_MECHANISM = _Row(33, FINAL, "the listener does not offer it")
    ILLEGAL_SASL_STATE = _Row(34, FINAL, "a request out of order in the SASL exchange")
    UNSUPPORTED_VERSION = _Row(35, FINAL, "the API, version or feature is not supported")
    TOPIC_ALREADY_EXISTS = _Row(36, FINAL, "the name is taken")
    INVALID_PARTITIONS = _Row(37, FINAL, "a partition count below 1 or below the present one")
    INVALID_REPLICATION_FACTOR = _Row(38, FINAL, "below 1 or above the number of brokers")
    INVALID_REPLICA_ASSIGNMENT = _Row(39, FINAL, "replicas that cannot be assigned like this")
    INVALID_CONFIG = _Row(40, FINAL, "a setting that is unknown or out of range")
    NOT_CONTROLLER = _Row(41, RETRY, "another controller is the active one")
    INVALID_REQUEST = _Row(42, FINAL, "legal bytes that make no sense")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = _Row(43, FINAL, "the record format lacks what is needed")
    POLICY_VIOLATION = _Row(44, FINAL, "the operator's policy forbids it")
    OUT_OF_ORDER_SEQUENCE_NUMBER = _Row(45, FINAL, "a batch of the producer is missing before this")
    DUPLICATE_SEQUENCE_NUMBER = _Row(46, FINAL, "this batch was appended before")
    INVALID_PRODUCER_EPOCH = _Row(47, FINAL, "a newer epoch of the producer is known")
    INVALID_TXN_STATE = _Row(48, FINAL, "not possible in the transaction's state")
    INVALID_PRODUCER_ID_MAPPING = _Row(49, FINAL, "the transactional id has another producer id")
    INVALID_TRANSACTION_TIMEOUT = _Row(50, FINAL, "above transaction.max.timeout.ms")
    CONCURRENT_TRANSACTIONS = _Row(51, RETRY, "the transaction before is still ending")
    TRANSACTION_COORDINATOR_FENCED = _Row(52, FINAL, "a newer transaction coordinator has written")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = _Row(53, FINAL, "no right to the transactional id")
    SECURITY_DISABLED = _Row(54, FINAL, "no authorizer is set up")
    OPERATION_NOT_ATTEMPTED = _Row(55, FINAL, "another part of the request failed first")
    KAFKA_STORAGE_ERROR = _Row(56, RETRY, "the log directory failed")
    LOG_DIR_NOT_FOUND = _Row(57, FINAL, "the broker has no such log directory")
    SASL_AUTHENTICATION_FAILED = _Row(58, FINAL, "wrong credentials")
    UNKNOWN_PRODUCER_ID = _Row(59, FINAL, "nothing of the producer is left in the log")
    REASSIGNMENT_IN_PROGRESS = _Row(60, FINAL, "the partition is already being reassigned")
    DELEGATION_TOKEN_AUTH_DISABLED = _Row(61, FINAL, "delegation tokens are switched off")
    DELEGATION_TOKEN_NOT_FOUND = _Row(62, FINAL, "no such token")
    DELEGATION_TOKEN_OWNER_MISMATCH = _Row(63, FINAL, "neither its owner nor its renewer")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = _Row(64, FINAL, "needs a securely authenticated channel")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = _Row(65, FINAL, "no right to the token")
    DELEGATION_TOKEN_EXPIRED = _Row(66, FINAL, "the token's life is over")
    INVALID_PRINCIPAL_TYPE = _Row(67, FINAL, "a kind of principal that tokens cannot have")
    NON_EMPTY_GROUP = _Row(68, FINAL, "the group has members")
    GROUP_ID_NOT_FOUND = _Row(69, FINAL, "no such group")
    FETCH_SESSION_ID_NOT_FOUND = _Row(70, RETRY, "the session was dropped, start a new one")
    INVALID_FETCH_SESSION_EPOCH = _Row(71, RETRY, "requests of the session are out of step")
    LISTENER_NOT_FOUND = _Row(72, RETRY, "the leader lacks the client's listener")
    TOPIC_DELETION_DISABLED = _Row(73, FINAL, "delete.topic.enable is false")
    FENCED_LEADER_EPOCH = _Row(74, RETRY, "the sender's leader epoch is the older one")
    UNKNOWN_LEADER_EPOCH = _Row(75, RETRY, "the sender's leader epoch is the newer one")
    UNSUPPORTED_COMPRESSION_TYPE = _Row(76, FINAL, "the request's version is too old for the codec")
    STALE_BROKER_EPOCH = _Row(77, FINAL, "the broker has registered again since")
    OFFSET_NOT_AVAILABLE = _Row(78, RETRY, "a new leader does not know its high watermark")
    MEMBER_ID_REQUIRED = _Row(79, FINAL, "join again with the member id of this answer")
    PREFERRED_LEADER_NOT_AVAILABLE = _Row(80, RETRY, "the preferred replica is down")
    GROUP_MAX_SIZE_REACHED = _Row(81, FINAL, "the group is full")
    FENCED_INSTANCE_ID = _Row(82, FINAL, "another member took the instance id")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = _Row(83, RETRY, "no replica may lead")
    ELECTION_NOT_NEEDED = _Row(84, RETRY, "the right replica leads already")
    NO_REASSIGNMENT_IN_PROGRESS = _Row(85, FINAL, "the partition is not being reassigned")
    GROUP_SUBSCRIBED_TO_TOPIC = _Row(86, FINAL, "the group still reads the topic")
    INVALID_RECORD = _Row(87, FINAL, "a record the broker refuses, such as one without key")
    UNSTABLE_OFFSET_COMMIT = _Row(88, RETRY, "an open transaction holds the offset")
    THROTTLING_QUOTA_EXCEEDED = _Row(89, RETRY, "too many changes, try later")
    PRODUCER_FENCED = _Row(90, FINAL, "a newer producer has the transactional id")
    RESOURCE_NOT_FOUND = _Row(91, FINAL, "what the request names does not exist")
    DUPLICATE_RESOURCE = _Row(92, FINAL, "the request names something twice")
    UNACCEPTABLE_CREDENTIAL = _Row(93, FINAL, "empty, too short or too few iterations")
    INCONSISTENT_VOTER_SET = _Row(94, FINAL, "sender or receiver is not a voter; early KRaft")
    INVALID_UPDATE_VERSION = _Row(95, FINAL, "a state that is older than the present one")
    FEATURE_UPDATE_FAILED = _Row(96, FINAL, "features could not be finalized")
    PRINCIPAL_DESERIALIZATION_FAILURE = _Row(
        97, FINAL, "the principal in an envelope is unreadable"
    )
    SNAPSHOT_NOT_FOUND = _Row(98, FINAL, "the node has no snapshot of this id")
    POSITION_OUT_OF_RANGE = _Row(99, FINAL, "outside the snapshot's bytes")
    UNKNOWN_TOPIC_ID = _Row(100, RETRY, "no topic of this id on this node")
    DUPLICATE_BROKER_REGISTRATION = _Row(101, FINAL, "a live broker has this id")
    BROKER_ID_NOT_REGISTERED = _Row(102, FINAL, "no broker of this id")
    INCONSISTENT_TOPIC_ID = _Row(103, RETRY, "the log belongs to another topic id")
    INCONSISTENT_CLUSTER_ID = _Row(104, FINAL, "the sender belongs to another cluster")
    TRANSACTIONAL_ID_NOT_FOUND = _Row(105, FINAL, "no such transactional id")
    FETCH_SESSION_TOPIC_ID_ERROR = _Row(106, RETRY, "names and ids mixed in one session")
    INELIGIBLE_REPLICA = _Row(107, FINAL, "a fenced or restarting replica cannot be in sync")
    NEW_LEADER_ELECTED = _Row(108, FINAL, "the change was made and moved the leader")
    OFFSET_MOVED_TO_TIERED_STORAGE = _Row(109, FINAL, "only remote storage has the offset")
    FENCED_MEMBER_EPOCH = _Row(110, FINAL, "give up everything and join again")
    UNRELEASED_INSTANCE_ID = _Row(111, FINAL, "the instance id's member has not left")
    UNSUPPORTED_ASSIGNOR = _Row(112, FINAL, "the group has no such assignor")
    STALE_MEMBER_EPOCH = _Row(113, FINAL, "heartbeat first, then try again")
    MISMATCHED_ENDPOINT_TYPE = _Row(114, FINAL, "a broker was asked as controller, or the reverse")
    UNSUPPORTED_ENDPOINT_TYPE = _Row(115, FINAL, "neither broker nor controller")
    UNKNOWN_CONTROLLER_ID = _Row(116, FINAL, "no controller of this id")
    UNKNOWN_SUBSCRIPTION_ID = _Row(117, FINAL, "the metrics subscription has changed")
    TELEMETRY_TOO_LARGE = _Row(118, FINAL, "more metrics than the broker takes")
    INVALID_REGISTRATION = _Row(119, FINAL, "the controller refuses the registration")
    TRANSACTION_ABORTABLE = _Row(120, FINAL, "abort the transaction, then continue")
    INVALID_RECORD_STATE = _Row(121, FINAL, "the record is not acquired by this member")
    SHARE_SESSION_NOT_FOUND = _Row(122, RETRY, "the session was dropped, start a new one")
    INVALID_SHARE_SESSION_EPOCH = _Row(123, RETRY, "requests of the session are out of step")
    FENCED_STATE_EPOCH = _Row(124, FINAL, "the share group's state epoch differs")
    INVALID_VOTER_KEY = _Row(125, FINAL, "the receiver is not the voter addressed")
    DUPLICATE_VOTER = _Row(126, FINAL, "the voter set has this node id")
    VOTER_NOT_FOUND = _Row(127, FINAL, "the voter set lacks this id and directory")
    INVALID_REGULAR_EXPRESSION = _Row(128, FINAL, "not in RE2's syntax")
    REBOOTSTRAP_REQUIRED = _Row(129, FINAL, "the client's metadata is too old, start over")
    STREAMS_INVALID_TOPOLOGY = _Row(130, FINAL, "the topology cannot be run")
    STREAMS_INVALID_TOPOLOGY_EPOCH = _Row(131, FINAL, "a topology epoch out of sequence")
    STREAMS_TOPOLOGY_FENCED = _Row(132, FINAL, "a newer topology is known")
    SHARE_SESSION_LIMIT_REACHED = _Row(133, RETRY, "no more share sessions at this broker")
    GROUP_DELETION_FAILED = _Row(134, FINAL, "the answer's text says why the group stays")
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = _Row(
        135, FINAL, "the broker did not take the topology's description"
    )
    CONTROLLER_ID_NOT_REGISTERED = _Row(136, FINAL, "no controller of this id")

    def __new__(cls, code: int) -> ErrorCode:
        """Return the member with this code."""
        member = _BY_CODE.get(code)
        if member is None:
            raise UsageError(f"error code {code}: expected {min(_BY_CODE)} to {max(_BY_CODE)}")
        return member

    def __repr__(self) -> str:
        return f"<ErrorCode.{self.name}: {int(self)}>"

    # Printed as the number on the wire; use `name` for the name.
    __str__ = int.__repr__


def error_name(code: int) -> str:
    """Return the name of a code, such as ``NOT_CONTROLLER``; ``UNKNOWN(999)`` if unknown."""
    member = _BY_CODE.get(code)
    return f"UNKNOWN({code})" if member is None else member.name
