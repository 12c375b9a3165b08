"""Compiled code of the columnar path (numba). Import its modules where they are used: numba takes a second to load.

Kernels work on raw addresses (int64), so that a segment's bytes, a scratch buffer and an Arrow buffer are all alike;
the caller keeps the memory alive. Each checks every byte against an end address before it reads it, releases the GIL,
never raises, and is cached on disk.

    table              the header table: its columns, and what fills them
    checksums          CRC-32 (magic 0 and 1)
    crc32c             CRC-32C (magic 2) with the instruction of x86-64; only there
    output             where the columns of an Arrow batch go
    default_records    records of magic 2 into columns
    legacy_messages    messages of magic 0 and 1 into columns
    encode             columns into batches of every magic
    crc_store          checksums of batches just written; only where crc32c may be compiled
    section_scan       what a broker looks at in the records of a batch it is given
"""
