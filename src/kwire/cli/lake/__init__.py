"""`kwire lake`: logs and topics as Iceberg and Delta tables. One module a command."""
