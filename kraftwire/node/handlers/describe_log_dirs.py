"""DescribeLogDirs: the log directories and the size of the quorum's log.

Source: KIP-113, KIP-827 (total and usable bytes).
"""

from __future__ import annotations

import os
import shutil

from kraftwire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftwire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.protocol.error_codes import ErrorCode

_WITH_BYTES = 4


async def handle(request: Request, context: Context) -> DescribeLogDirsResponse:
    """Describe every log directory of this node."""
    config = context.config
    names = {*config.log_dirs, config.metadata_log_dir}
    return DescribeLogDirsResponse(
        results=[_describe(request, context, name) for name in sorted(names)]
    )


def _describe(request: Request, context: Context, name: str) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=name)
    try:
        if name == context.config.metadata_log_dir and _is_requested(request, context):
            result.topics = [_topic(context)]
        if request.version >= _WITH_BYTES:
            usage = shutil.disk_usage(name)
            result.total_bytes, result.usable_bytes = usage.total, usage.free
    except OSError:
        return DescribeLogDirsResult(log_dir=name, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return result


def _is_requested(request: Request, context: Context) -> bool:
    topics = body(request, DescribeLogDirsRequest).topics
    own = context.config.topic.name
    return topics is None or any(t.topic == own and 0 in t.partitions for t in topics)


def _topic(context: Context) -> DescribeLogDirsTopic:
    name = context.config.topic.name
    folder = os.path.join(context.config.metadata_log_dir, f"{name}-0")
    with os.scandir(folder) as entries:
        size = sum(entry.stat().st_size for entry in entries if entry.name.endswith(".log"))
    partition = DescribeLogDirsPartition(partition_index=0, partition_size=size)
    return DescribeLogDirsTopic(name=name, partitions=[partition])
