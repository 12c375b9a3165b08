import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs scenarios of share groups against a broker and prints what the clients see, one line each: the same lines are
 * expected of real Kafka. Usage: ShareScenarios SERVERS [SCENARIO...]
 */
public class ShareScenarios {
    private final String servers;
    private final Admin admin;
    private final KafkaProducer<String, String> producer;

    private ShareScenarios(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of("bootstrap.servers", servers));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("linger.ms", "50");
        settings.put("enable.idempotence", "false");
        this.producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    public static void main(String[] args) throws Exception {
        ShareScenarios scenarios = new ShareScenarios(args[0]);
        Set<String> chosen = new TreeSet<>(List.of(args).subList(1, args.length));
        for (String name : List.of("implicit", "explicit", "limit", "lock", "members", "renew", "byrecord", "aborted",
                "admin")) {
            if (chosen.isEmpty() || chosen.contains(name)) {
                try {
                    scenarios.run(name);
                } catch (Throwable error) {
                    System.out.println(name + ": failed: " + error);
                    error.printStackTrace();
                }
            }
        }
        System.exit(0);
    }

    private void run(String name) throws Exception {
        switch (name) {
            case "implicit" -> implicit();
            case "explicit" -> explicit();
            case "limit" -> limit();
            case "lock" -> lock();
            case "members" -> members();
            case "renew" -> renew();
            case "byrecord" -> byRecord();
            case "aborted" -> aborted();
            case "admin" -> admin();
            default -> throw new IllegalArgumentException(name);
        }
    }

    private void topic(String name, int partitions, Map<String, String> groupConfigs) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, Optional.of(partitions), Optional.empty()))).all().get();
        Map<String, String> configs = new HashMap<>(groupConfigs);
        configs.putIfAbsent("share.auto.offset.reset", "earliest");
        Collection<AlterConfigOp> ops = new ArrayList<>();
        configs.forEach((k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), ops)).all().get();
    }

    private void produce(String topic, int partition, int first, int count) {
        for (int i = first; i < first + count; i++) {
            producer.send(new ProducerRecord<>(topic, partition, null, "v" + i));
        }
        producer.flush();
    }

    private KafkaShareConsumer<String, String> consumer(String group, String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        for (int i = 0; i < more.length; i += 2) {
            settings.put(more[i], more[i + 1]);
        }
        var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(group));
        return consumer;
    }

    private static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer, int seconds) {
        long deadline = System.currentTimeMillis() + 1000L * seconds;
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        while (records.isEmpty() && System.currentTimeMillis() < deadline) {
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        }
        return records;
    }

    private static String show(Collection<ConsumerRecord<String, String>> records) {
        StringBuilder shown = new StringBuilder();
        for (ConsumerRecord<String, String> record : records) {
            shown.append(' ').append(record.offset()).append('x').append(record.deliveryCount().orElse((short) -1));
        }
        return shown.toString();
    }

    private static String commit(KafkaShareConsumer<String, String> consumer) {
        StringBuilder shown = new StringBuilder();
        consumer.commitSync().forEach((partition, error) ->
            shown.append(' ').append(partition.partition()).append('=').append(error.map(e -> e.getClass()
                .getSimpleName() + ": " + e.getMessage()).orElse("ok")));
        return shown.toString();
    }

    private void implicit() throws Exception {
        topic("implicit", 1, Map.of());
        produce("implicit", 0, 0, 10);
        try (var consumer = consumer("implicit")) {
            System.out.println("implicit: first" + show(poll(consumer, 20)));
            produce("implicit", 0, 10, 5);
            System.out.println("implicit: second" + show(poll(consumer, 20)));
        }
        produce("implicit", 0, 15, 5);
        try (var consumer = consumer("implicit")) {
            System.out.println("implicit: another member" + show(poll(consumer, 20)));
        }
    }

    private void explicit() throws Exception {
        topic("explicit", 1, Map.of());
        produce("explicit", 0, 0, 6);
        try (var consumer = consumer("explicit", "share.acknowledgement.mode", "explicit")) {
            var records = poll(consumer, 20);
            System.out.println("explicit: polled" + show(records));
            AcknowledgeType[] types = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
            for (var record : records) {
                consumer.acknowledge(record, types[(int) (record.offset() % 3)]);
            }
            System.out.println("explicit: committed" + commit(consumer));
            records = poll(consumer, 20);
            System.out.println("explicit: again" + show(records));
            records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
            System.out.println("explicit: committed" + commit(consumer));
            System.out.println("explicit: nothing left" + show(poll(consumer, 2)));
        }
    }

    private void limit() throws Exception {
        topic("limit", 1, Map.of("share.delivery.count.limit", "3"));
        produce("limit", 0, 0, 2);
        try (var consumer = consumer("limit", "share.acknowledgement.mode", "explicit")) {
            for (int i = 0; i < 7; i++) {
                var records = poll(consumer, i == 0 ? 20 : 3);
                System.out.println("limit: delivery " + i + show(records));
                records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.RELEASE));
                commit(consumer);
            }
        }
    }

    private void lock() throws Exception {
        topic("lock", 1, Map.of("share.record.lock.duration.ms", "2000"));
        produce("lock", 0, 0, 3);
        try (var first = consumer("lock", "share.acknowledgement.mode", "explicit");
             var second = consumer("lock", "share.acknowledgement.mode", "explicit")) {
            var records = poll(first, 20);
            System.out.println("lock: first" + show(records));
            System.out.println("lock: timeout " + first.acquisitionLockTimeoutMs().orElse(-1));
            var later = poll(second, 20);
            System.out.println("lock: second" + show(later));
            records.forEach(record -> first.acknowledge(record, AcknowledgeType.ACCEPT));
            System.out.println("lock: too late" + commit(first));
            later.forEach(record -> second.acknowledge(record, AcknowledgeType.ACCEPT));
            System.out.println("lock: in time" + commit(second));
        }
    }

    private void members() throws Exception {
        topic("members", 4, Map.of());
        try (var first = consumer("members"); var second = consumer("members")) {
            poll(first, 2);
            poll(second, 2);
            poll(first, 2);
            for (int partition = 0; partition < 4; partition++) {
                produce("members", partition, 0, 25);
            }
            Set<String> seen = new TreeSet<>();
            int total = 0;
            boolean[] both = {false, false};
            long deadline = System.currentTimeMillis() + 30_000;
            while (total < 100 && System.currentTimeMillis() < deadline) {
                int i = 0;
                for (var consumer : List.of(first, second)) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                    both[i++] |= !records.isEmpty();
                    for (var record : records) {
                        seen.add(record.partition() + "-" + record.offset());
                        total++;
                    }
                }
            }
            System.out.println("members: " + total + " records, " + seen.size() + " different, both " + (both[0] && both[1]));
        }
    }

    private void renew() throws Exception {
        topic("renew", 1, Map.of("share.record.lock.duration.ms", "3000"));
        produce("renew", 0, 0, 2);
        try (var consumer = consumer("renew", "share.acknowledgement.mode", "explicit")) {
            var records = poll(consumer, 20);
            System.out.println("renew: polled" + show(records));
            for (int i = 0; i < 3; i++) {
                Thread.sleep(1500);
                records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.RENEW));
                System.out.println("renew: committed" + commit(consumer));
                List<ConsumerRecord<String, String>> again = new ArrayList<>();
                consumer.poll(Duration.ofMillis(200)).forEach(again::add);
                System.out.println("renew: renewed" + show(again));
                if (!again.isEmpty()) {
                    records = again;
                }
            }
            records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
            System.out.println("renew: accepted" + commit(consumer));
        }
    }

    private void byRecord() throws Exception {
        topic("byrecord", 1, Map.of());
        produce("byrecord", 0, 0, 10);
        try (var consumer = consumer("byrecord", "share.acquire.mode", "record_limit", "max.poll.records", "4")) {
            for (int i = 0; i < 3; i++) {
                System.out.println("byrecord: polled" + show(poll(consumer, 20)));
            }
        }
    }

    private void aborted() throws Exception {
        topic("aborted", 1, Map.of("share.isolation.level", "read_committed"));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("transactional.id", "aborted");
        try (var writer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            writer.initTransactions();
            for (int i = 0; i < 3; i++) {
                writer.beginTransaction();
                writer.send(new ProducerRecord<>("aborted", 0, null, "a" + i)).get();
                writer.send(new ProducerRecord<>("aborted", 0, null, "b" + i)).get();
                if (i == 1) {
                    writer.abortTransaction();
                } else {
                    writer.commitTransaction();
                }
            }
        }
        try (var consumer = consumer("aborted")) {
            List<ConsumerRecord<String, String>> records = new ArrayList<>();
            long deadline = System.currentTimeMillis() + 20_000;
            while (records.size() < 4 && System.currentTimeMillis() < deadline) {
                records.addAll(poll(consumer, 2));
            }
            System.out.println("aborted: polled" + show(records));
        }
    }

    private void admin() throws Exception {
        topic("admin", 2, Map.of());
        produce("admin", 0, 0, 8);
        produce("admin", 1, 0, 4);
        try (var consumer = consumer("admin")) {
            int total = 0;
            while (total < 12) {
                total += poll(consumer, 20).size();
            }
            consumer.commitSync();
            var described = admin.describeShareGroups(List.of("admin")).all().get().get("admin");
            System.out.println("admin: " + described.groupState() + " members " + described.members().size() + " "
                + new TreeSet<>(described.members().iterator().next().assignment().topicPartitions().stream()
                    .map(TopicPartition::toString).toList()));
            attempt("delete with members", () -> admin.deleteShareGroups(List.of("admin")).all().get());
            attempt("alter with members", () -> admin.alterShareGroupOffsets("admin",
                Map.of(new TopicPartition("admin", 0), 3L)).all().get());
        }
        System.out.println("admin: listed " + admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().stream()
            .filter(group -> group.groupId().equals("admin"))
            .map(group -> group.groupId() + " " + group.type().orElse(GroupType.UNKNOWN) + " " + group.protocol() + " "
                + group.groupState().get()).toList());
        offsets("after reading");
        attempt("alter", () -> admin.alterShareGroupOffsets("admin", Map.of(new TopicPartition("admin", 0), 3L,
            new TopicPartition("admin", 1), 1L)).all().get());
        offsets("altered");
        try (var consumer = consumer("admin")) {
            Map<Integer, Integer> counts = new TreeMap<>();
            int total = 0;
            while (total < 8) {
                for (var record : poll(consumer, 20)) {
                    counts.merge(record.partition(), 1, Integer::sum);
                    total++;
                }
                consumer.commitSync();
            }
            System.out.println("admin: read again " + counts);
        }
        offsets("read again");
        attempt("delete offsets", () -> admin.deleteShareGroupOffsets("admin", Set.of("admin")).all().get());
        offsets("deleted");
        attempt("delete offsets of another topic",
            () -> admin.deleteShareGroupOffsets("admin", Set.of("nothing")).all().get());
        attempt("delete group", () -> admin.deleteShareGroups(List.of("admin")).all().get());
        attempt("delete group again", () -> admin.deleteShareGroups(List.of("admin")).all().get());
        attempt("describe group", () -> admin.describeShareGroups(List.of("admin")).all().get());
    }

    private void offsets(String when) throws Exception {
        Map<String, String> shown = new TreeMap<>();
        Map<TopicPartition, SharePartitionOffsetInfo> offsets = admin.listShareGroupOffsets(
            Map.of("admin", new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo("admin").get();
        offsets.forEach((partition, info) -> shown.put(partition.toString(), info == null ? "none"
            : info.startOffset() + " lag " + info.lag().map(String::valueOf).orElse("unknown")));
        System.out.println("admin: offsets " + when + " " + shown);
    }

    private interface Attempt {
        Object run() throws Exception;
    }

    private static void attempt(String what, Attempt attempt) throws Exception {
        try {
            attempt.run();
            System.out.println("admin: " + what + ": ok");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            System.out.println("admin: " + what + ": " + cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
    }
}
