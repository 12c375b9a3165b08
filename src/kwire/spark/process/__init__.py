"""Python processes of Spark: workers, the daemon, which Python they run."""
