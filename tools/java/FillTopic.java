import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a topic with the records the benchmarks are about: a 16 byte key, a 100 byte JSON-like value.
 * Usage: FillTopic BOOTSTRAP TOPIC PARTITIONS RECORDS CODEC
 */
public class FillTopic {
    private static final String[] COUNTRIES = {"BR", "DE", "FR", "IN", "JP", "US"};

    public static void main(String[] args) {
        int partitions = Integer.parseInt(args[2]);
        int records = Integer.parseInt(args[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("compression.type", args[4]);
        settings.put("linger.ms", "20");
        settings.put("batch.size", "16384");
        settings.put("acks", "1");
        settings.put("enable.idempotence", "false");
        Random random = new Random(1);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < records; i++) {
                StringBuilder value = new StringBuilder(100).append(String.format(
                    "{\"id\":%08d,\"user\":\"u%06d\",\"amount\":%03d.%02d,\"country\":\"%s\",\"note\":\"",
                    i, random.nextInt(1_000_000), random.nextInt(1000), random.nextInt(100),
                    COUNTRIES[random.nextInt(COUNTRIES.length)]));
                while (value.length() < 98) {
                    value.append((char) ('a' + random.nextInt(26)));
                }
                value.append("\"}");
                producer.send(new ProducerRecord<>(args[1], i % partitions, 1_760_000_000_000L + i,
                    String.format("key-%012d", random.nextInt(100_000)).getBytes(), value.toString().getBytes()));
            }
        }
    }
}
