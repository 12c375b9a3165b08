"""Logs that are written: appends, segments, recovery, retention, the manager of a directory."""
