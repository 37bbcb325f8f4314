"""Programs that use other people's Kafka clients on a quorum of kraftwire nodes."""
