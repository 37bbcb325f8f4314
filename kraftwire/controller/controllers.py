"""Registrations of controllers. Rules: C-CREG.

Source: Kafka's `ClusterControlManager.registerController`; `unregisterController` of 4.4, read by
``javap``, and KAFKA-20865.
"""

from __future__ import annotations

from collections.abc import Container

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image import ControllerImage, MetadataImage
from kraftwire.controller.registrations import (
    REGISTRATION_BYTES_MAX,
    REGISTRATION_ENTRIES_MAX,
    is_excessive,
    is_too_long,
    repeated,
)
from kraftwire.controller.step import StepResult
from kraftwire.controller.versions import WITH_CONTROLLERS, WITH_UNREGISTRATION
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.messages.unregister_controller_record import UnregisterControllerRecord
from kraftwire.messages.unregister_controller_request import UnregisterControllerRequest
from kraftwire.messages.unregister_controller_response import UnregisterControllerResponse
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


def unregister_controller(
    cluster: Cluster, request: UnregisterControllerRequest, voters: Container[int]
) -> StepResult:
    """Remove the registration of a controller that is no voter any more (C-CREG-2).

    `voters` are the ids of the quorum's latest voters, committed or not.
    """
    controller_id, level = request.controller_id, cluster.level
    code, text = ErrorCode.INVALID_REQUEST, ""
    if controller_id == cluster.node_id:
        text = f"controller {controller_id} is the active one, which cannot unregister itself"
    elif level < WITH_UNREGISTRATION:
        code = ErrorCode.UNSUPPORTED_VERSION
        text = f"controllers are unregistered from metadata.version {WITH_UNREGISTRATION} on"
        text += f" (4.4-IV2), which is {level}"
    elif controller_id not in cluster.image.controllers:
        code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        text = f"controller {controller_id} is not registered"
    elif controller_id in voters:
        text = f"controller {controller_id} is a voter of the quorum: remove that voter first"
    if text:
        return StepResult(UnregisterControllerResponse(error_code=code, error_message=text))
    record = UnregisterControllerRecord(controller_id=controller_id)
    return StepResult(UnregisterControllerResponse(error_message=None), [(record, 0)])
