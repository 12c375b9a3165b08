"""Several nodes over one store: who leads which partition, and what clients see of it."""
