import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a topic with the records the benchmarks are about. Even ones have a 16 byte key and a 100 byte JSON-like value;
 * varied ones as in benchmarks/records/batches.py: keys, values and headers of different lengths, some of them null.
 * Usage: FillTopic BOOTSTRAP TOPIC PARTITIONS RECORDS CODEC even|varied
 */
public class FillTopic {
    private static final String[] COUNTRIES = {"BR", "DE", "FR", "IN", "JP", "US"};
    private static final String[] HEADERS = {"trace", "content-type", "source", "x"};

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
                long timestamp = 1_760_000_000_000L + i;
                if (args[5].equals("varied")) {
                    producer.send(new ProducerRecord<>(args[1], i % partitions, timestamp,
                        random.nextInt(4) == 0 ? null : digits(random, 4 + random.nextInt(37)),
                        random.nextInt(20) == 0 ? null : variedValue(random, i), headers(random)));
                } else {
                    producer.send(new ProducerRecord<>(args[1], i % partitions, timestamp,
                        String.format("key-%012d", random.nextInt(100_000)).getBytes(), value(random, i, 100)));
                }
            }
        }
    }

    private static byte[] value(Random random, int number, int length) {
        StringBuilder value = new StringBuilder(length).append(String.format(
            "{\"id\":%08d,\"user\":\"u%06d\",\"amount\":%03d.%02d,\"country\":\"%s\",\"note\":\"",
            number, random.nextInt(1_000_000), random.nextInt(1000), random.nextInt(100),
            COUNTRIES[random.nextInt(COUNTRIES.length)]));
        while (value.length() < length - 2) {
            value.append((char) ('a' + random.nextInt(26)));
        }
        return value.append("\"}").toString().getBytes();
    }

    private static byte[] variedValue(Random random, int number) {
        int length = (int) Math.exp(4.5 + 0.7 * random.nextGaussian());
        length = Math.min(2000, Math.max(20, length));
        return Arrays.copyOf(value(random, number, Math.max(100, length)), length);
    }

    private static List<Header> headers(Random random) {
        List<Header> headers = new ArrayList<>();
        for (int left = random.nextInt(3) == 0 ? 1 + random.nextInt(3) : 0; left > 0; left--) {
            headers.add(new RecordHeader(HEADERS[random.nextInt(HEADERS.length)], digits(random, 16)));
        }
        return headers;
    }

    private static byte[] digits(Random random, int length) {
        byte[] digits = new byte[length];
        for (int i = 0; i < length; i++) {
            digits[i] = (byte) ('0' + random.nextInt(10));
        }
        return digits;
    }
}
