"""Names of clients' software, as ApiVersions requests carry them. Source: KIP-511."""

from __future__ import annotations

import re

from kraftwire.messages.api_versions_request import ApiVersionsRequest

# A longer name of a client's software is refused: names are a word or two.
SOFTWARE_NAME_SIZE_MAX = 256

# ApiVersions requests name the client's software from this version on.
WITH_SOFTWARE = 3

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def software_name(request: ApiVersionsRequest) -> str | None:
    """Return the name of the client's software; None if KIP-511 forbids it or its version."""
    for text in (request.client_software_name, request.client_software_version):
        if len(text) > SOFTWARE_NAME_SIZE_MAX or not _SOFTWARE.fullmatch(text):
            return None
    return request.client_software_name
