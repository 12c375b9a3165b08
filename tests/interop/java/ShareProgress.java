import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads topics as a member of a share group until none of them has had a record for a while, and prints a line for each
 * record that it accepts: topic, partition, offset, value, and the times in ms before and after the acknowledgement.
 * Every seventh record is released with its first delivery. Usage: ShareProgress SERVERS GROUP IDLE_MS TOPIC...
 */
public class ShareProgress {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "10");
        long idleMs = Long.parseLong(arguments[2]);
        long last = System.currentTimeMillis();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(arguments).subList(3, arguments.length));
            while (System.currentTimeMillis() - last < idleMs) {
                List<ConsumerRecord<String, String>> accepted = new ArrayList<>();
                boolean any = false;
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    any = true;
                    boolean isFirst = record.deliveryCount().map(count -> count == 1).orElse(true);
                    if (isFirst && record.offset() % 7 == 3) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                    } else {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        accepted.add(record);
                    }
                }
                if (!any) {
                    continue;
                }
                long before = System.currentTimeMillis();
                consumer.commitSync().forEach((partition, error) -> error.ifPresent(each -> {
                    throw each;
                }));
                last = System.currentTimeMillis();
                for (ConsumerRecord<String, String> record : accepted) {
                    System.out.println(String.join(" ", record.topic(), "" + record.partition(), "" + record.offset(),
                        record.value(), "" + before, "" + last));
                }
                System.out.flush();
            }
        }
    }
}
