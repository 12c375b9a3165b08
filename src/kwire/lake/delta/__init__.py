"""Delta tables, through deltalake (delta-rs)."""
