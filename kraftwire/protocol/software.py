"""What ApiVersions requests say of their sender and of its aim. Source: KIP-511, KIP-1242."""

from __future__ import annotations

import re

from kraftwire.messages.api_versions_request import ApiVersionsRequest

# A longer name of a client's software is refused: names are a word or two.
SOFTWARE_NAME_SIZE_MAX = 256

# ApiVersions requests name the client's software from this version on.
WITH_SOFTWARE = 3

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def software_name(request: ApiVersionsRequest) -> str | None:
    """Return the name of the client's software; None if the request is not valid.

    KIP-511 says what names and versions are; KIP-1242 that cluster and node are named together.
    """
    if (request.cluster_id is None) != (request.node_id == -1):
        return None
    for text in (request.client_software_name, request.client_software_version):
        if len(text) > SOFTWARE_NAME_SIZE_MAX or not _SOFTWARE.fullmatch(text):
            return None
    return request.client_software_name
