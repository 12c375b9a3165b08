"""Records, batches of magic 0, 1 and 2, and sets of them: read and written as objects."""
