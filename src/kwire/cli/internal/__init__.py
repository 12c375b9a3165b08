"""`kwire group`, `kwire txn`, `kwire cluster`: the contents of Kafka's internal topics. One module a command."""
