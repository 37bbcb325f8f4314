"""Scripts at a controller of Kafka and at ours: both have to answer and to write the same."""
