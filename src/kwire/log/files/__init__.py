"""The files of a partition: names, segments and their batches, indexes, snapshots, epochs, damage."""
