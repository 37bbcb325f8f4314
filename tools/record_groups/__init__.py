"""Records what groups of every kind, and a transactional producer, send to a real Kafka."""
