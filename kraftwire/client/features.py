"""Requests about features, and the reading of their responses."""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.client.cluster import error_detail, refusal
from kraftwire.client.quorum import NotLeaderError
from kraftwire.client.results import FeatureInfo, VersionRange
from kraftwire.errors import ApiError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message


def feature_info(response: ApiVersionsResponse) -> FeatureInfo:
    """Read the features in an answer. Raises: ApiError if the answer is an error."""
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    epoch = response.finalized_features_epoch
    return FeatureInfo(
        finalized={each.name: each.max_version_level for each in response.finalized_features},
        supported={
            each.name: VersionRange(each.min_version, each.max_version)
            for each in response.supported_features
        },
        epoch=None if epoch < 0 else epoch,
    )


def features_request(
    levels: Mapping[str, int], validate_only: bool, timeout_ms: int
) -> UpdateFeaturesRequest:
    """Build the request to raise feature levels."""
    return UpdateFeaturesRequest(
        timeout_ms=timeout_ms,
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )


def check_features_updated(response: Message) -> None:
    """Read the answer to UpdateFeatures.

    Raises: NotLeaderError if the node is not the active controller; ApiError if it refuses.
    """
    assert isinstance(response, UpdateFeaturesResponse)
    if response.error_code == ErrorCode.NOT_CONTROLLER:
        refused = refusal(response.error_code, response.error_message)
        raise NotLeaderError(error_detail(refused), None)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    # Up to v1 each feature has a separate result.
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            refused = refusal(result.error_code, result.error_message)
            raise ApiError(result.error_code, f"{result.feature}: {error_detail(refused)}")
