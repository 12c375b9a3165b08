"""Logs and log directories as they are read: records, Arrow batches, splits."""
