import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Transactions over the topics of tests/maintenance/cut/busy.py, until standard input ends. The last one stays open.
 * Keys are NAME.N/RECORDS/OFFSET: the transaction, the number of its records, and whether it commits an offset.
 */
public class TransactionLoad {
    public static void main(String[] arguments) throws Exception {
        int number = Integer.parseInt(arguments[1]);
        Random random = new Random(number);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", "t" + number);
        settings.put("linger.ms", "1");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            int n = 0;
            while (System.in.available() == 0) {
                String name = "t" + number + "." + n;
                boolean withOffset = random.nextInt(10) < 6;
                List<TopicPartition> places = new ArrayList<>();
                for (int i = random.nextInt(6); i >= 0; i--) {
                    boolean orders = random.nextBoolean();
                    places.add(new TopicPartition(orders ? "orders" : "payments", random.nextInt(orders ? 4 : 3)));
                }
                producer.beginTransaction();
                String key = name + "/" + places.size() + "/" + (withOffset ? 1 : 0);
                for (TopicPartition place : places) {
                    producer.send(new ProducerRecord<>(place.topic(), place.partition(), bytes(key), bytes("x")));
                    Thread.sleep(random.nextInt(3));
                }
                if (withOffset) {
                    OffsetAndMetadata offset = new OffsetAndMetadata(n % 50, name);
                    producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition("plain", number % 3), offset),
                        new ConsumerGroupMetadata("eos" + number));
                }
                if (random.nextInt(5) == 0) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                n++;
            }
            producer.beginTransaction();
            for (String topic : List.of("orders", "payments")) {
                producer.send(new ProducerRecord<>(topic, number % 3, bytes("t" + number + ".open/2/0"), bytes("x")));
            }
            producer.flush();
            System.out.println(n);
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
