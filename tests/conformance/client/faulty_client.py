"""aiokafka with one fault: python faulty_client.py FAULT. Without a name: aiokafka, made to obey throttle times."""

# The program for aiokafka is plain Python without types, and so are its faults.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import os
import struct
import sys
import time
from pathlib import Path

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "conformance" / "client"))

import aiokafka_client as program
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher, group_coordinator
from aiokafka.producer import message_accumulator, sender
from aiokafka.record.default_records import DefaultRecordBatch

from kwire.records.format.checksum import crc32c

SEQUENCE, CRC, CRC_START = 53, 17, 21


def obey_throttle() -> None:
    """Send nothing on a connection for the time that a response has asked for."""
    send = AIOKafkaConnection.send

    def obeying(self, request, expect_response=True):
        async def later():
            await asyncio.sleep(max(0.0, getattr(self, "quiet_until", 0.0) - time.monotonic()))
            response = await send(self, request, expect_response)
            throttle_ms = getattr(response, "throttle_time_ms", 0) or 0
            if throttle_ms:
                self.quiet_until = time.monotonic() + throttle_ms / 1000
            return response

        return asyncio.ensure_future(later())

    AIOKafkaConnection.send = obeying


def new_sequence() -> None:
    """A batch is sent again with the next sequence."""
    reenqueue = message_accumulator.MessageAccumulator.reenqueue

    def renumbered(self, batch):
        data = bytearray(batch._builder._buffer)
        (sequence,) = struct.unpack_from(">i", data, SEQUENCE)
        struct.pack_into(">i", data, SEQUENCE, sequence + batch.record_count)
        struct.pack_into(">I", data, CRC, crc32c(data[CRC_START:]))
        batch._builder._buffer = data
        reenqueue(self, batch)

    message_accumulator.MessageAccumulator.reenqueue = renumbered


def same_sequence() -> None:
    """Every batch has sequence 0."""
    set_state = message_accumulator.MessageBatch.set_producer_state

    def zero(self, producer_id, producer_epoch, base_sequence):
        set_state(self, producer_id, producer_epoch, 0)

    message_accumulator.MessageBatch.set_producer_state = zero


def no_retry() -> None:
    """Retriable errors of Produce are final."""
    sender.SendProduceReqHandler._can_retry = lambda self, error, batch: False


def no_backoff() -> None:
    """Produce is retried at once."""
    begin = sender.SendProduceReqHandler.__init__

    def hasty(self, *arguments):
        begin(self, *arguments)
        self._default_backoff = 0

    sender.SendProduceReqHandler.__init__ = hasty


def early_acknowledgement() -> None:
    """Records are acknowledged when they are sent."""

    async def report(number, future):
        program.say(acked=number, offset=-1)
        await asyncio.wait([future])

    program.report = report


def swallowed_error() -> None:
    """Records that failed are forgotten."""

    async def report(number, future):
        try:
            program.say(acked=number, offset=(await future).offset)
        except Exception:
            return

    program.report = report


def null_is_empty() -> None:
    """Null values are sent as empty ones."""
    send = program.send
    program.send = lambda client, task, record: send(client, task, {**record, "value": record["value"] or ""})


def no_headers() -> None:
    """Headers are not sent."""
    send = program.send
    program.send = lambda client, task, record: send(client, task, {**record, "headers": []})


def reads_aborted() -> None:
    """Aborted records are read with read_committed."""
    fetcher.PartitionRecords._consume_aborted_up_to = lambda self, offset: None


def reads_markers() -> None:
    """Markers of transactions are delivered."""
    DefaultRecordBatch.is_control_batch = property(lambda self: False)


def stops_at_gap() -> None:
    """The next offset is expected to follow the last one."""
    consumer_record, last = fetcher.PartitionRecords._consumer_record, {}

    def strict(self, tp, record):
        if record.offset > last.get(tp, record.offset - 1) + 1:
            raise ValueError(f"offset {record.offset} after {last[tp]}")
        last[tp] = record.offset
        return consumer_record(self, tp, record)

    fetcher.PartitionRecords._consumer_record = strict


def after_last_record() -> None:
    """Fetching goes on after the last record of a batch, though the batch may end later."""
    DefaultRecordBatch.next_offset = property(lambda self: max((each.offset + 1 for each in _copied(self)), default=0))


def _copied(batch):
    return list(DefaultRecordBatch(bytes(batch._buffer)))


def whole_batches() -> None:
    """Records before the fetch offset are delivered."""
    seek = program.AIOKafkaConsumer.seek
    program.AIOKafkaConsumer.seek = lambda self, tp, offset: seek(self, tp, 0)


def no_checksum() -> None:
    """Checksums are not checked."""
    DefaultRecordBatch.validate_crc = lambda self: True


def other_time() -> None:
    """LogAppendTime is ignored."""
    DefaultRecordBatch.timestamp_type = property(lambda self: 0)


def doubled() -> None:
    """A record that was delivered is delivered again."""
    say = program.say

    def twice(**line):
        say(**line)
        if line.get("offset") == 1 and "value" in line:
            say(**line)

    program.say = twice


def commits_too_little() -> None:
    """The offset of the last record is committed instead of the next one."""
    do_commit = group_coordinator.GroupCoordinator._do_commit_offsets

    async def less(self, assignment, offsets):
        one_less = {tp: at._replace(offset=at.offset - 1) for tp, at in offsets.items()}
        await do_commit(self, assignment, one_less)

    group_coordinator.GroupCoordinator._do_commit_offsets = less


def no_heartbeat() -> None:
    """No heartbeats are sent."""

    async def idle(self):
        return True

    group_coordinator.GroupCoordinator._do_heartbeat = idle


def keeps_member_id() -> None:
    """A member that was forgotten joins with its former id."""
    reset = group_coordinator.GroupCoordinator.reset_generation

    def kept(self):
        member_id = self.member_id
        reset(self)
        self.member_id = member_id

    group_coordinator.GroupCoordinator.reset_generation = kept


def keeps_coordinator() -> None:
    """The coordinator is not looked for again."""
    group_coordinator.GroupCoordinator.coordinator_dead = lambda self: None


def commits_always() -> None:
    """Transactions that should be aborted are committed."""
    program.AIOKafkaProducer.abort_transaction = program.AIOKafkaProducer.commit_transaction


def does_not_add() -> None:
    """Partitions are not added to the transaction."""

    async def added(self, tps):
        for tp in list(tps):
            self._txn_manager.partition_added(tp)

    sender.Sender._do_add_partitions_to_txn = added


def main(name: str) -> None:
    """Run the program with a fault."""
    if name != "ignores_throttle":
        obey_throttle()
    if name and name != "ignores_throttle":
        globals()[name]()
    for line in sys.stdin:
        asyncio.run(program.main(line))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
