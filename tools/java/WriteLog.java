import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/**
 * Puts the records of a segment into new batches of 16 KB before compression with Kafka's own classes, into a buffer it
 * reuses, and prints CPU nanoseconds a record: of building alone, and of building and writing to a file.
 * Usage: WriteLog ROUNDS SEGMENT OUTPUT CODEC...     prints a line a codec: CODEC RECORDS BYTES MEMORY FILE (best rounds)
 */
public class WriteLog {
    private static final int BATCH_BYTES = 16384;
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private record Row(long timestamp, byte[] key, byte[] value) { }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        List<Row> rows = new ArrayList<>();
        try (FileRecords segment = FileRecords.open(new File(args[1]), false)) {
            for (Record record : segment.records()) {
                rows.add(new Row(record.timestamp(), bytes(record.key()), bytes(record.value())));
            }
        }
        ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
        for (int c = 3; c < args.length; c++) {
            Compression codec = Compression.of(CompressionType.forName(args[c])).build();
            double[] best = {Double.MAX_VALUE, Double.MAX_VALUE};
            long size = 0;
            for (int round = 0; round < rounds + 2; round++) {  // the first two warm the compiler up
                for (int kind = 0; kind < 2; kind++) {
                    try (FileChannel file = kind == 0 ? null : FileChannel.open(Path.of(args[2]), StandardOpenOption.CREATE,
                            StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
                        long started = CLOCK.getCurrentThreadCpuTime();
                        size = build(rows, codec, buffer, file);
                        if (round >= 2) {
                            best[kind] = Math.min(best[kind],
                                (double) (CLOCK.getCurrentThreadCpuTime() - started) / rows.size());
                        }
                    }
                }
            }
            System.out.printf(Locale.ROOT, "%s %d %d %.2f %.2f%n", args[c], rows.size(), size, best[0], best[1]);
        }
    }

    private static byte[] bytes(ByteBuffer field) {
        byte[] copy = new byte[field.remaining()];
        field.get(copy);
        return copy;
    }

    private static long build(List<Row> rows, Compression codec, ByteBuffer buffer, FileChannel file) throws Exception {
        long size = 0;
        int i = 0;
        while (i < rows.size()) {
            buffer.clear();
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                buffer, RecordBatch.MAGIC_VALUE_V2, codec, TimestampType.CREATE_TIME, i);
            int used = 61;
            while (i < rows.size()) {
                Row row = rows.get(i);
                int bytes = row.key.length + row.value.length + 11;
                if (used > 61 && used + bytes > BATCH_BYTES) {
                    break;
                }
                builder.append(row.timestamp, row.key, row.value);
                used += bytes;
                i++;
            }
            ByteBuffer batch = builder.build().buffer();
            size += batch.remaining();
            if (file != null) {
                file.write(batch);
            }
        }
        return size;
    }
}
