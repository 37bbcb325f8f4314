"""The types of the resources that have configurations. Source: Kafka's `ConfigResource.Type`."""

from __future__ import annotations

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

RESOURCE_NAMES = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    LOGGER_RESOURCE: "broker logger",
    CLIENT_METRICS_RESOURCE: "client metrics",
    GROUP_RESOURCE: "group",
}
