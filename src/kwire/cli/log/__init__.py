"""`kwire log`: commands for log directories. One module a command."""
