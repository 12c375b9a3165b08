import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Everything that Kafka's consumer tells of the records of some topics. Usage:
 *   RowPeer BOOTSTRAP ISOLATION TOPIC...
 * prints: topic partition offset timestamp_type timestamp key value name=value,... with bytes in hex, - for null
 */
public class RowPeer {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("isolation.level", args[1]);
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : Arrays.asList(args).subList(2, args.length)) {
                for (PartitionInfo info : consumer.partitionsFor(topic)) {
                    TopicPartition partition = new TopicPartition(topic, info.partition());
                    consumer.assign(List.of(partition));
                    consumer.seekToBeginning(List.of(partition));
                    long end = consumer.endOffsets(List.of(partition)).get(partition);
                    while (consumer.position(partition) < end) {
                        consumer.poll(Duration.ofMillis(200)).forEach(record -> print(record, out));
                    }
                }
            }
        }
        System.out.print(out);
    }

    private static void print(ConsumerRecord<byte[], byte[]> record, StringBuilder out) {
        out.append(record.topic()).append(' ').append(record.partition()).append(' ').append(record.offset())
            .append(' ').append(record.timestampType().id).append(' ').append(record.timestamp())
            .append(' ').append(hex(record.key())).append(' ').append(hex(record.value())).append(' ');
        for (Header header : record.headers()) {
            out.append(header.key()).append('=').append(hex(header.value())).append(',');
        }
        out.append('\n');
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : "x" + HexFormat.of().formatHex(bytes);
    }
}
