import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Locale;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Reads every record of a segment with Kafka's own classes, checksums verified, and prints CPU nanoseconds a record.
 * Usage: ReadLog ROUNDS FILE...     prints a line a file: FILE RECORDS NANOSECONDS (the best round)
 */
public class ReadLog {
    public static void main(String[] args) throws Exception {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        BufferSupplier buffers = BufferSupplier.create();
        int rounds = Integer.parseInt(args[0]);
        for (int f = 1; f < args.length; f++) {
            double best = Double.MAX_VALUE;
            long records = 0;
            long bytes = 0;
            for (int round = 0; round < rounds + 2; round++) {  // the first two warm the compiler up
                long started = clock.getCurrentThreadCpuTime();
                records = 0;
                try (FileRecords segment = FileRecords.open(new File(args[f]), false)) {
                    for (RecordBatch batch : segment.batches()) {
                        batch.ensureValid();
                        try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                            while (iterator.hasNext()) {
                                Record record = iterator.next();
                                records++;
                                bytes += (record.hasKey() ? record.key().remaining() : 0)
                                    + (record.hasValue() ? record.value().remaining() : 0) + record.timestamp();
                            }
                        }
                    }
                }
                if (round >= 2) {
                    best = Math.min(best, (double) (clock.getCurrentThreadCpuTime() - started) / records);
                }
            }
            System.out.printf(Locale.ROOT, "%s %d %.2f%n", args[f], records, best);
            if (bytes == 42) {
                System.out.println();  // keeps the sum alive
            }
        }
    }
}
