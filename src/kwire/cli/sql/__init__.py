"""`kwire sql`: queries over topics and the state of a cluster."""
