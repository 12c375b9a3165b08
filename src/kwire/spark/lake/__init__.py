"""The sinks `kwire-iceberg` and `kwire-delta`; docs/tables.md."""
