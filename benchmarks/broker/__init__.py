"""The broker compared to real Kafka: throughput, latency, start-up, memory."""
