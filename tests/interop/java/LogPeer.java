import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients for tests of log directories. Usage:
 *   LogPeer BOOTSTRAP create TOPIC PARTITIONS NAME=VALUE,...      repeated for each topic
 *   LogPeer BOOTSTRAP send TRANSACTIONAL_ID TOPIC PARTITION COUNT commit|abort
 *   LogPeer BOOTSTRAP read ISOLATION TOPIC...     prints: topic partition offset timestamp key value, in hex, - for null
 *   LogPeer BOOTSTRAP producers TOPIC PARTITION   prints: id epoch last_sequence transaction_start coordinator_epoch
 */
public class LogPeer {
    private static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        List<String> rest = Arrays.asList(args).subList(2, args.length);
        switch (args[1]) {
            case "create" -> create(rest);
            case "send" -> send(rest);
            case "read" -> read(rest);
            case "producers" -> producers(rest);
            default -> throw new IllegalArgumentException(args[1]);
        }
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private static void create(List<String> args) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 0; i < args.size(); i += 3) {
            Map<String, String> configs = new HashMap<>();
            for (String config : args.get(i + 2).split(",")) {
                configs.put(config.split("=")[0], config.split("=")[1]);
            }
            topics.add(new NewTopic(args.get(i), Optional.of(Integer.parseInt(args.get(i + 1))), Optional.of((short) 1))
                .configs(configs));
        }
        try (Admin admin = Admin.create(settings())) {
            admin.createTopics(topics).all().get();
        }
    }

    private static void send(List<String> args) {
        Properties settings = settings();
        settings.put("transactional.id", args.get(0));
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int i = 0; i < Integer.parseInt(args.get(3)); i++) {
                producer.send(new ProducerRecord<>(args.get(1), Integer.parseInt(args.get(2)), 1_760_000_000_000L + i,
                    "java".getBytes(), (args.get(4) + i).getBytes()));
            }
            producer.flush();
            if (args.get(4).equals("commit")) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private static void read(List<String> args) {
        Properties settings = settings();
        settings.put("isolation.level", args.get(0));
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : args.subList(1, args.size())) {
                for (PartitionInfo info : consumer.partitionsFor(topic)) {
                    TopicPartition partition = new TopicPartition(topic, info.partition());
                    consumer.assign(List.of(partition));
                    consumer.seekToBeginning(List.of(partition));
                    long end = consumer.endOffsets(List.of(partition)).get(partition);
                    while (consumer.position(partition) < end) {
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                            out.append(topic).append(' ').append(info.partition()).append(' ').append(record.offset())
                                .append(' ').append(record.timestamp()).append(' ').append(hex(record.key()))
                                .append(' ').append(hex(record.value())).append('\n');
                        }
                    }
                }
            }
        }
        System.out.print(out);
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : "x" + HexFormat.of().formatHex(bytes);
    }

    private static void producers(List<String> args) throws Exception {
        TopicPartition partition = new TopicPartition(args.get(0), Integer.parseInt(args.get(1)));
        try (Admin admin = Admin.create(settings())) {
            for (ProducerState state : admin.describeProducers(List.of(partition)).partitionResult(partition).get()
                    .activeProducers()) {
                System.out.println(state.producerId() + " " + state.producerEpoch() + " " + state.lastSequence() + " "
                    + state.currentTransactionStartOffset().orElse(-1) + " " + state.coordinatorEpoch().orElse(-1));
            }
        }
    }
}
