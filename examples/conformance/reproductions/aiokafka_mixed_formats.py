"""aiokafka 0.14.0 reads the records of a response in the format of its first batch (FORMAT-MIXED).

A log that old and new producers wrote has batches of several formats in one response, and each has its own magic.
pip install aiokafka kwire; prints the error.
"""

from aiokafka.record.memory_records import MemoryRecords

from kwire.records import BatchBuilder


def batch(magic: int, offset: int) -> bytes:
    builder = BatchBuilder(magic=magic, base_offset=offset)
    builder.append(b"key", b"value", timestamp=1)
    return builder.build()


records = MemoryRecords(batch(1, 0) + batch(2, 1))
try:
    while records.has_next():
        print([record.offset for record in records.next_batch()])
except Exception as error:
    print(f"{type(error).__name__}: {error}")
