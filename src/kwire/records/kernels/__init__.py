"""Kernels of the columnar path: batches to Arrow columns.

Kernels work on raw addresses (int64): the bytes of a segment, a scratch buffer and an Arrow buffer are all alike. The
caller keeps the memory alive. A kernel checks every byte against an end address before it reads it, releases the GIL
and never raises.

    checksums          CRC-32 (magic 0 and 1)
    legacy_messages    messages of magic 0 and 1 into columns
    locate             records of magic 2 as places in memory, of which objects are built
    section_scan       the checks of a broker on the records of a produced batch
    murmur2            hashes of keys, for partitioners
"""
