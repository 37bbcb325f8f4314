"""ApiVersions: the APIs of this listener, and the features of the cluster.

Supported levels are those that a node announces, finalized ones those of the committed records. A
range that begins at 0 is hidden below version 4, whose clients cannot read it (KAFKA-17011).
Connections refuse versions that are too new and invalid software names. On a listener for clients,
whoever means another node or another cluster is to begin anew with its bootstrap addresses.

Source: KIP-35, KIP-511, KIP-584, KIP-1242; R-SRV-2, R-SRV-3, R-SRV-8.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.controller.features import ANNOUNCED_FEATURES
from kraftwire.controller.versions import KRAFT_VERSION
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.node.handlers.versions import offered
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode

# Answers have features from this version on.
_WITH_FEATURES = 3
_WITH_ZERO_RANGES = 4


async def handle(request: Request, context: Context) -> ApiVersionsResponse:
    """Answer with APIs, versions and features."""
    if request.from_client_listener and _is_misrouted(body(request, ApiVersionsRequest), context):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    versions = offered(
        is_controller=request.from_controller_listener, is_client=request.from_client_listener
    )
    return answer(versions, request.version, context)


def _is_misrouted(message: ApiVersionsRequest, context: Context) -> bool:
    """Return whether a client means another node than this one."""
    if message.cluster_id is None:
        return False
    own = context.raft.cluster_id
    return message.node_id != context.key.id or own not in (None, message.cluster_id)


def answer(
    versions: Mapping[int, tuple[int, int]], version: int, context: Context
) -> ApiVersionsResponse:
    """Return the answer to a request in a version, from a listener that offers `versions`."""
    response = ApiVersionsResponse(api_keys=_ranges(versions))
    if version >= _WITH_FEATURES:
        _add_features(response, version, context)
    return response


def _ranges(versions: Mapping[int, tuple[int, int]]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in versions.items()
    ]


def _add_features(response: ApiVersionsResponse, version: int, context: Context) -> None:
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in ANNOUNCED_FEATURES.items()
        if low or version >= _WITH_ZERO_RANGES
    ]
    finalized = dict(context.image.features)
    if context.raft.kraft_version:
        finalized[KRAFT_VERSION] = context.raft.kraft_version
    response.finalized_features_epoch = context.image.features_offset
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(finalized.items())
    ]


def only_api_versions(versions: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    """Return the answer to a version that is too new: the range of ApiVersions alone.

    The client then asks again in a version that both sides know (R-SRV-2).
    """
    low, high = versions[ApiKey.API_VERSIONS]
    own = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
