"""ApiVersions, versions 0 to 4: the APIs of this listener, and the features of the cluster.

Supported levels are those of the software, finalized ones those of the committed records. A range
that begins at 0 is hidden below version 4, whose clients cannot read it (KAFKA-17011). The
connection refuses versions that are too new and invalid software names.

Source: KIP-35, KIP-511, KIP-584; R-SRV-2, R-SRV-3.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.features import KRAFT_VERSION, SUPPORTED_FEATURES
from kraftwire.node.handlers.versions import offered

__all__ = ["handle"]

# Answers have features from this version on.
_WITH_FEATURES = 3
_WITH_ZERO_RANGES = 4


async def handle(request: Request, context: Context) -> ApiVersionsResponse:
    """Answer with APIs, versions and features."""
    versions = offered(
        is_controller=request.from_controller_listener, is_client=request.from_client_listener
    )
    response = ApiVersionsResponse(api_keys=_ranges(versions))
    if request.version >= _WITH_FEATURES:
        _add_features(response, request.version, context)
    return response


def _ranges(versions: Mapping[int, tuple[int, int]]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in versions.items()
    ]


def _add_features(response: ApiVersionsResponse, version: int, context: Context) -> None:
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
        if low or version >= _WITH_ZERO_RANGES
    ]
    finalized = dict(context.image.features)
    if context.raft.kraft_version:
        finalized[KRAFT_VERSION] = context.raft.kraft_version
    response.finalized_features_epoch = context.image.highest_offset
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(finalized.items())
    ]
