"""AlterUserScramCredentials: users of SCRAM, one change for each in a request. Rules: C-SCR.

The request has no passwords, only what PBKDF2 makes of them; the log gets even less.

Source: Kafka's `ScramControlManager`.
"""

from __future__ import annotations

from typing import NamedTuple

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import METADATA_VERSION, WITH_SCRAM
from kraftwire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftwire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.scram import (
    ITERATIONS_MIN,
    STORED_ITERATIONS_MAX,
    ScramCredential,
    mechanism_of,
)

_Change = ScramCredentialDeletion | ScramCredentialUpsertion


class _Error(NamedTuple):
    code: ErrorCode
    text: str


@Divided
def alter_credentials(
    cluster: Cluster, request: AlterUserScramCredentialsRequest
) -> Pieces[StepResult]:
    """Delete and set credentials. A user who is named twice keeps all of them (C-SCR-1)."""
    changes: dict[str, _Change] = {}
    errors: dict[str, _Error] = {}
    wanted: list[_Change] = [*request.deletions, *request.upsertions]
    for change in wanted:
        yield
        name = change.name
        if name in errors:
            continue
        if changes.pop(name, None) is not None:
            text = "the request names this user more than once"
            errors[name] = _Error(ErrorCode.DUPLICATE_RESOURCE, text)
            continue
        error = _credential_error(cluster, change)
        if error is None:
            changes[name] = change
        else:
            errors[name] = error
    results = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in changes]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.text)
        for name, error in errors.items()
    ]
    records = [_credential_record(change) for change in changes.values()]
    return StepResult(AlterUserScramCredentialsResponse(results=results), records)


def _credential_error(cluster: Cluster, change: _Change) -> _Error | None:
    """Return why a credential cannot be changed so, in the order of Kafka's checks."""
    if cluster.level < WITH_SCRAM:
        text = f"users need {METADATA_VERSION} {WITH_SCRAM}, which is {cluster.level}"
        return _Error(ErrorCode.UNSUPPORTED_VERSION, text)
    if not change.name:
        return _Error(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user is empty")
    if mechanism_of(change.mechanism) is None:
        text = f"{change.mechanism} is no mechanism of SCRAM"
        return _Error(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    if isinstance(change, ScramCredentialUpsertion):
        if not change.salted_password:
            return _Error(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the salted password is empty")
        if ITERATIONS_MIN <= change.iterations <= STORED_ITERATIONS_MAX:
            return None
        allowed = f"expected {ITERATIONS_MIN} to {STORED_ITERATIONS_MAX}"
        text = f"{change.iterations} iterations: {allowed}"
        return _Error(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    if cluster.image.scram.find(change.name, change.mechanism) is None:
        return _Error(ErrorCode.RESOURCE_NOT_FOUND, "the user has no credential of this mechanism")
    return None


def _credential_record(change: _Change) -> VersionedRecord:
    if isinstance(change, ScramCredentialDeletion):
        removal = RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
        return removal, 0
    mechanism = mechanism_of(change.mechanism)
    assert mechanism is not None
    credential = ScramCredential.of(
        mechanism, change.salted_password, change.salt, change.iterations
    )
    record = UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=change.iterations,
    )
    return record, 0
