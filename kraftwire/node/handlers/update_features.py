"""UpdateFeatures: levels of metadata.version and kraft.version.

A listener for clients passes the request on to the leader; a controller's listener answers
NOT_CONTROLLER where it does not lead. All updates of a request are applied or none: an error is
that of the whole request. On success versions 0 and 1 have a result for each feature.

Differs from Kafka: any leader can raise kraft.version, even one that is not an active controller
because the quorum has voters of other implementations; a level that is finalized already writes
nothing. As in Kafka, AllowDowngrade of version 0 changes nothing.

Source: KIP-584, KIP-778, KIP-853, KIP-1022; Kafka's `QuorumController.updateFeatures`.
"""

from __future__ import annotations

from kraftwire.controller.features import check_updates
from kraftwire.controller.image import MetadataImage
from kraftwire.controller.versions import KRAFT_VERSION
from kraftwire.errors import ApiError
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from kraftwire.node.context import Context, Request, not_active
from kraftwire.node.handlers.shared import body, must_forward
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message

_WITHOUT_RESULTS = 2


async def handle(request: Request, context: Context) -> Message:
    """Answer once the levels are finalized."""
    message = body(request, UpdateFeaturesRequest)
    is_leader = context.raft.leader_id == context.key.id
    try:
        if must_forward(request) and not is_leader:
            return await context.forward(message, request.version)
        if not is_leader:
            raise not_active()
        await _update(context, message)
    except ApiError as error:
        code = error.code
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            code = ErrorCode.NOT_CONTROLLER
        return _failed(code, error.detail)
    response = UpdateFeaturesResponse(error_message=None)
    if request.version < _WITHOUT_RESULTS:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in message.feature_updates
        ]
    return response


async def _update(context: Context, message: UpdateFeaturesRequest) -> None:
    """Check all updates, then apply them. Raises: ApiError."""
    updates, is_dry = message.feature_updates, message.validate_only

    def check(image: MetadataImage) -> None:
        check_updates(
            image,
            updates,
            kraft_version=context.raft.kraft_version,
            own_id=context.key.id,
            configured=[voter.key.id for voter in context.config.voters],
        )

    check(context.image)
    upgrades = [one.max_version_level for one in updates if one.feature == KRAFT_VERSION]
    for version in upgrades:
        await context.upgrade_kraft_version(version, validate_only=True)
    if is_dry:
        return
    if any(one.feature != KRAFT_VERSION for one in updates):
        # An earlier decision may have made an update invalid.
        await context.controller.update_features(updates, check)
    for version in upgrades:
        await context.upgrade_kraft_version(version, validate_only=False)


def _failed(code: int, text: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=text)
