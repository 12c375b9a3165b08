"""The data set of `kwire conformance vectors`: made by Kafka's own classes, judged by those of three releases."""
