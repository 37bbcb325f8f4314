"""Our message codec against those of other languages: Kafka's own in Java, franz-go in Go."""

from tests.bench.languages.run import run

__all__ = ["run"]
