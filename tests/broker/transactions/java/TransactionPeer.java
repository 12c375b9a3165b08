import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Kafka's own client: BOOTSTRAP ROUNDS. Prints what it sees, a line each. */
public class TransactionPeer {
    static final String TOPIC = "java";
    static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        int rounds = Integer.parseInt(args[1]);
        KafkaProducer<String, String> producer = producer("java");
        for (int round = 0; round < rounds; round++) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, 0, null, "round " + round));
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            offsets.put(PARTITION, new OffsetAndMetadata(round));
            producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata("java-group"));
            if (round % 2 == 0) producer.commitTransaction();
            else producer.abortTransaction();
        }
        producer.beginTransaction();
        producer.abortTransaction();
        System.out.println("read " + read());
        try (Admin admin = Admin.create(settings())) {
            System.out.println("offset " + admin.listConsumerGroupOffsets("java-group")
                .partitionsToOffsetAndMetadata().get().get(PARTITION).offset());
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, 0, null, "fenced")).get();
            var described = admin.describeTransactions(List.of("java")).description("java").get();
            System.out.println("described " + described.state() + " " + described.topicPartitions());
            System.out.println("epoch " + described.producerEpoch());
            admin.listTransactions().all().get().forEach(each ->
                System.out.println("listed " + each.transactionalId() + " " + each.state()));
            admin.fenceProducers(List.of("java")).all().get();
        }
        try {
            producer.commitTransaction();
            System.out.println("committed although fenced");
        } catch (ProducerFencedException | InvalidProducerEpochException e) {
            System.out.println("fenced");
        }
        producer.close(Duration.ofSeconds(5));
        KafkaProducer<String, String> next = producer("java");
        next.beginTransaction();
        next.send(new ProducerRecord<>(TOPIC, 0, null, "last"));
        next.commitTransaction();
        next.close();
        System.out.println("read " + read());
    }

    static Map<String, Object> settings() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    static KafkaProducer<String, String> producer(String transactionalId) {
        Map<String, Object> settings = settings();
        settings.put("transactional.id", transactionalId);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    static List<String> read() {
        Map<String, Object> settings = settings();
        settings.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(PARTITION));
            consumer.seekToBeginning(List.of(PARTITION));
            long end = consumer.endOffsets(List.of(PARTITION)).get(PARTITION);
            List<String> found = new ArrayList<>();
            while (consumer.position(PARTITION) < end)
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200)))
                    found.add(record.value());
            return found;
        }
    }
}
