"""What Prometheus scrapes: `/metrics`."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.transport.http_server import Handler, HttpRequest, HttpResponse

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def scrapes(content: Callable[[], bytes]) -> Handler:
    """Return what answers scrapes with the metrics."""

    async def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            allowed = (("Allow", "GET, HEAD"),)
            return HttpResponse(status=405, body=b"only GET and HEAD\n", headers=allowed)
        if request.path not in ("/metrics", "/"):
            return HttpResponse(status=404, body=b"see /metrics\n")
        return HttpResponse(content_type=_CONTENT_TYPE, body=content())

    return answer
