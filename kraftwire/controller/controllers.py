"""Registrations of controllers. Rules: C-CREG.

Source: Kafka's `ClusterControlManager.registerController`.
"""

from __future__ import annotations

from kraftwire.controller.image import ControllerImage, MetadataImage
from kraftwire.controller.registrations import (
    REGISTRATION_BYTES_MAX,
    REGISTRATION_ENTRIES_MAX,
    is_excessive,
    is_too_long,
    repeated,
)
from kraftwire.controller.step import StepResult
from kraftwire.controller.versions import WITH_CONTROLLERS
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.protocol.error_codes import ErrorCode


def register_controller(image: MetadataImage, request: ControllerRegistrationRequest) -> StepResult:
    """Register a controller; an unchanged registration writes nothing."""
    if (image.metadata_version or 0) < WITH_CONTROLLERS:
        text = f"metadata.version {image.metadata_version} has no controller registrations"
        code = ErrorCode.UNSUPPORTED_VERSION
        return StepResult(ControllerRegistrationResponse(error_code=code, error_message=text))
    if is_excessive(request.listeners, request.features):
        text = f"more than {REGISTRATION_ENTRIES_MAX} listeners or features"
        code = ErrorCode.INVALID_REQUEST
        return StepResult(ControllerRegistrationResponse(error_code=code, error_message=text))
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=repeated(ControllerEndpoint, request.listeners),
        features=repeated(ControllerFeature, request.features),
    )
    if is_too_long(record, 0):
        text = f"the record has more than {REGISTRATION_BYTES_MAX} bytes"
        code = ErrorCode.INVALID_REQUEST
        return StepResult(ControllerRegistrationResponse(error_code=code, error_message=text))
    known = image.controllers.get(request.controller_id)
    response = ControllerRegistrationResponse()
    if known == ControllerImage.of(record):
        return StepResult(response)
    return StepResult(response, [(record, 0)])
