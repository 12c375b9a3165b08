"""The source `kafka-capture`: packet captures."""
