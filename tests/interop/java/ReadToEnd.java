import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a partition from its first offset until the consumer's position is its end offset, as Connect and schema
 * registries do when they start. Prints the offsets of the records, then position and end offset; gives up in time.
 * Usage: ReadToEnd SERVERS TOPIC PARTITION SECONDS
 */
public class ReadToEnd {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("enable.auto.commit", "false");
        TopicPartition partition = new TopicPartition(args[1], Integer.parseInt(args[2]));
        StringJoiner offsets = new StringJoiner(" ");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.currentTimeMillis() + 1000L * Integer.parseInt(args[3]);
            while (consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> offsets.add(Long.toString(record.offset())));
            }
            System.out.println(offsets);
            System.out.println(consumer.position(partition) + " " + end);
        }
    }
}
