"""Where the nodes of Kafka log: to standard output, by log4j of either generation."""

from __future__ import annotations

from pathlib import Path

# For log4j 2, and for the log4j 1 of releases before 4.0; each ignores the other's file.
_LOG4J2, _LOG4J = "log4j2.yaml", "log4j.properties"


def write_logging(folder: Path, time: str = "%d") -> None:
    """Write what makes Kafka's nodes log to standard output, with log4j's pattern of the time."""
    pattern = f"{time} %p %m (%c{{1}})%n"
    (folder / _LOG4J2).write_text(
        f"""Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout: {{pattern: "{pattern}"}}
  Loggers:
    Root: {{level: INFO, AppenderRef: [{{ref: out}}]}}
"""
    )
    (folder / _LOG4J).write_text(
        f"""log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern={pattern}
"""
    )


def logging_options(folder: Path) -> list[str]:
    """Return Java's options for these files. Order: `write_logging` was called."""
    return [
        f"-Dlog4j2.configurationFile={folder / _LOG4J2}",
        f"-Dlog4j.configuration={(folder / _LOG4J).as_uri()}",
    ]
