"""The source `kafka-internal`: Kafka's internal topics."""
