"""UpdateFeatures, versions 0 to 2: refused, levels are fixed by the bootstrap records.

Versions 0 and 1 have a result for each feature, version 2 one for all.

Source: KIP-584, KIP-1022.
"""

from __future__ import annotations

from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, refusal
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]

_WITHOUT_RESULTS = 2
_TEXT = "this quorum does not change the levels of its features"


async def handle(request: Request, context: Context) -> UpdateFeaturesResponse:
    """Refuse each feature."""
    code, text = refusal(request, context)
    if code == ErrorCode.NOT_CONTROLLER:
        return UpdateFeaturesResponse(error_code=code, error_message=text)
    code = ErrorCode.FEATURE_UPDATE_FAILED
    if request.version >= _WITHOUT_RESULTS:
        return UpdateFeaturesResponse(error_code=code, error_message=_TEXT)
    return UpdateFeaturesResponse(
        results=[
            UpdatableFeatureResult(
                feature=update.feature, error_code=code, error_message=_TEXT
            )
            for update in body(request, UpdateFeaturesRequest).feature_updates
        ]
    )
