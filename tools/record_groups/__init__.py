"""Records what groups of every kind, and a producer's transactions, say to a real Kafka."""
