import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A producer and a consumer that compile against every Java client since 0.9. Usage:
 *   OldPeer BOOTSTRAP produce TOPIC CODEC WORD COUNT    sends WORD0, WORD1, ... to partition 0, prints their offsets
 *   OldPeer BOOTSTRAP follow TOPIC GROUP COUNT SECONDS  prints: offset key value timestamp, - where the client knows none;
 *                                                       ends with "committed OFFSET", or with "failed: ..." in between
 */
public class OldPeer {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        switch (args[1]) {
            case "produce" -> produce(settings, args);
            case "follow" -> follow(settings, args);
            default -> throw new IllegalArgumentException(args[1]);
        }
    }

    private static void produce(Properties settings, String[] args) throws Exception {
        settings.put("compression.type", args[3]);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "false"); // refused for the formats of old
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            java.util.List<java.util.concurrent.Future<org.apache.kafka.clients.producer.RecordMetadata>> sent =
                new java.util.ArrayList<>();
            for (int i = 0; i < Integer.parseInt(args[5]); i++) {
                sent.add(producer.send(new ProducerRecord<>(args[2], 0, "k" + i, args[4] + i)));
            }
            StringBuilder offsets = new StringBuilder();
            for (var each : sent) {
                offsets.append(each.get().offset()).append(' ');
            }
            System.out.println(offsets.toString().trim());
        }
    }

    private static void follow(Properties settings, String[] args) throws Exception {
        settings.put("group.id", args[3]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        long deadline = System.currentTimeMillis() + 1000 * Long.parseLong(args[5]);
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(Collections.singletonList(args[2]));
        long last = -1;
        for (int left = Integer.parseInt(args[4]); left > 0 && System.currentTimeMillis() < deadline; ) {
            ConsumerRecords<String, String> records;
            try {
                records = poll(consumer);
            } catch (RuntimeException error) {
                System.out.println("failed: " + error.getClass().getSimpleName() + " " + error.getMessage());
                break;
            }
            for (ConsumerRecord<String, String> record : records) {
                System.out.println(record.offset() + " " + record.key() + " " + record.value() + " " + timestamp(record));
                last = record.offset();
                left--;
            }
        }
        consumer.commitSync();
        System.out.println("committed " + (last + 1));
        consumer.close();
    }

    /** poll(long) is gone in 4.0, poll(Duration) came in 2.0. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        Method method;
        Object wait;
        try {
            method = KafkaConsumer.class.getMethod("poll", java.time.Duration.class);
            wait = java.time.Duration.ofMillis(200);
        } catch (NoSuchMethodException old) {
            method = KafkaConsumer.class.getMethod("poll", long.class);
            wait = 200L;
        }
        try {
            return (ConsumerRecords<String, String>) method.invoke(consumer, wait);
        } catch (java.lang.reflect.InvocationTargetException error) {
            throw (RuntimeException) error.getCause();
        }
    }

    /** Since 0.10 records have one. */
    private static String timestamp(ConsumerRecord<String, String> record) throws Exception {
        try {
            return String.valueOf(ConsumerRecord.class.getMethod("timestamp").invoke(record));
        } catch (NoSuchMethodException old) {
            return "-";
        }
    }
}
