"""The header table, int64[batches, COLUMN_COUNT]: one row for each batch, filled by one walk over the bytes.

column           magic 2                       magic 0 and 1
POSITION         of the batch in the bytes     the same
SIZE             of the whole batch            the same
BASE_OFFSET      first offset                  the message's offset
LAST_OFFSET      last offset                   the message's offset
ATTRIBUTES       as stored                     as stored
BASE_TIMESTAMP   as stored                     the message's timestamp, -1 in magic 0
MAX_TIMESTAMP    as stored                     the same
COUNT            as stored                     1; of inner messages once decompressed
MAGIC            2                             0 or 1
PRODUCER_ID      as stored                     -1
START, END       addresses of the records      of the message; of the inner ones once decompressed
SHIFT            0                             offset to add to those of inner messages
FAULT            0, BAD_CRC, BAD_CODEC, Fault  the same
"""

from __future__ import annotations

__all__ = ["BAD_CODEC", "BAD_CRC", "COLUMN_COUNT", "CUT", "FULL", "TABLE", "UNBELIEVABLE", "WHOLE"]

TABLE = (
    *("POSITION", "SIZE", "BASE_OFFSET", "LAST_OFFSET", "ATTRIBUTES", "BASE_TIMESTAMP", "MAX_TIMESTAMP", "COUNT"),
    *("MAGIC", "PRODUCER_ID", "START", "END", "SHIFT", "FAULT"),
)
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP, COUNT = range(8)
MAGIC, PRODUCER_ID, START, END, SHIFT, FAULT = range(8, 14)
COLUMN_COUNT = len(TABLE)

WHOLE, CUT, UNBELIEVABLE, FULL = range(4)
"""How a scan of batch headers ended."""
BAD_CRC, BAD_CODEC = -1, -2
"""In FAULT; numbers above 0 are those of `Fault`."""
