"""What the kernels of the cleaner, which numba compiles, know of the fields of records and messages."""
