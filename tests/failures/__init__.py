"""Failures of brokers and controllers under producers, on our controllers and on Kafka's."""
