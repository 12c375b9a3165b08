"""The source and sink `kafka-log`: log directories of Kafka brokers."""
