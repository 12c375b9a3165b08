"""The source and sink `kafka-live`: topics of a running cluster."""
