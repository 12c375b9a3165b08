import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Locale;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Reads every record of a segment with Kafka's own classes, checksums verified, and prints CPU nanoseconds a record:
 * with FileRecords, as a broker reads, and with MemoryRecords from bytes in memory, as a consumer does.
 * Usage: ReadLog ROUNDS FILE...     prints a line a file: FILE RECORDS NANOSECONDS NANOSECONDS (the best rounds)
 */
public class ReadLog {
    private static final BufferSupplier BUFFERS = BufferSupplier.create();
    private static long bytes = 0;

    public static void main(String[] args) throws Exception {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        int rounds = Integer.parseInt(args[0]);
        for (int f = 1; f < args.length; f++) {
            double fromFile = Double.MAX_VALUE;
            double fromMemory = Double.MAX_VALUE;
            long records = 0;
            File file = new File(args[f]);
            ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(file.toPath()));
            for (int round = 0; round < rounds + 2; round++) {  // the first two warm the compiler up
                long started = clock.getCurrentThreadCpuTime();
                try (FileRecords segment = FileRecords.open(file, false)) {
                    records = read(segment.batches());
                }
                long between = clock.getCurrentThreadCpuTime();
                read(MemoryRecords.readableRecords(content.duplicate()).batches());
                if (round >= 2) {
                    fromFile = Math.min(fromFile, (double) (between - started) / records);
                    fromMemory = Math.min(fromMemory, (double) (clock.getCurrentThreadCpuTime() - between) / records);
                }
            }
            System.out.printf(Locale.ROOT, "%s %d %.2f %.2f%n", args[f], records, fromFile, fromMemory);
            if (bytes == 42) {
                System.out.println();  // keeps the sum alive
            }
        }
    }

    private static long read(Iterable<? extends RecordBatch> batches) {
        long records = 0;
        for (RecordBatch batch : batches) {
            batch.ensureValid();
            try (CloseableIterator<Record> iterator = batch.streamingIterator(BUFFERS)) {
                while (iterator.hasNext()) {
                    Record record = iterator.next();
                    records++;
                    bytes += (record.hasKey() ? record.key().remaining() : 0)
                        + (record.hasValue() ? record.value().remaining() : 0) + record.timestamp();
                }
            }
        }
        return records;
    }
}
