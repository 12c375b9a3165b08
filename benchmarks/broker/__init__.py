"""The broker beside real Kafka: throughput, latency, start-up, memory."""
