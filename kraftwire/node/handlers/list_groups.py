"""ListGroups, versions 0 to 5: there are no groups.

Source: KIP-848 (group types in the request).
"""

from __future__ import annotations

from kraftwire.messages.list_groups_response import ListGroupsResponse
from kraftwire.node.context import Context, Request

__all__ = ["handle"]


async def handle(_: Request, __: Context) -> ListGroupsResponse:
    """Answer with no group."""
    return ListGroupsResponse()
