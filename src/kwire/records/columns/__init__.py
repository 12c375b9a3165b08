"""Records as Arrow columns, and back."""
