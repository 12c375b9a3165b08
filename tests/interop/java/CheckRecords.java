import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.StringJoiner;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;

/**
 * Reads record sets with Kafka's own classes, checksums verified, and prints what is in them.
 * Usage: CheckRecords DIRECTORY     files in the order of their names; a line F, then lines B and R, or E for an error
 */
public class CheckRecords {
    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        try (var files = Files.list(Path.of(args[0]))) {
            for (Path file : (Iterable<Path>) files.sorted()::iterator) {
                out.append("F ").append(file.getFileName()).append('\n');
                try {
                    check(file, out);
                } catch (RuntimeException e) {
                    out.append("E ").append(e).append('\n');
                }
            }
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static void check(Path file, StringBuilder out) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
        int bytes = 0;
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            bytes += batch.sizeInBytes();
            out.append(String.format("B %d %d %d %s %s %d %d %d %d %b %b %d%n", batch.baseOffset(), batch.lastOffset(),
                batch.magic(), batch.compressionType().name, batch.timestampType().name, batch.maxTimestamp(),
                batch.producerId(), batch.producerEpoch(), batch.baseSequence(), batch.isTransactional(),
                batch.isControlBatch(), batch.partitionLeaderEpoch()));
            for (Record record : batch) {
                record.ensureValid();
                StringJoiner headers = new StringJoiner(",");
                for (Header header : record.headers()) {
                    headers.add(HexFormat.of().formatHex(header.key().getBytes(StandardCharsets.UTF_8)) + "="
                        + hex(header.value() == null ? null : ByteBuffer.wrap(header.value())));
                }
                out.append(String.format("R %d %d %s %s [%s] %d%n", record.offset(), record.timestamp(), hex(record.key()),
                    hex(record.value()), headers, record.sequence()));
            }
        }
        if (bytes != records.sizeInBytes()) {
            out.append(String.format("E %d bytes of %d are batches%n", bytes, records.sizeInBytes()));
        }
    }

    /** Hex; of long fields their length and hash, so that the output stays small. */
    private static String hex(ByteBuffer field) {
        if (field == null) {
            return "null";
        }
        byte[] bytes = new byte[field.remaining()];
        field.duplicate().get(bytes);
        if (bytes.length <= 64) {
            return HexFormat.of().formatHex(bytes);
        }
        java.util.zip.CRC32 crc = new java.util.zip.CRC32();
        crc.update(bytes);
        return bytes.length + ":" + Long.toHexString(crc.getValue());
    }
}
