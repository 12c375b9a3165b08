import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Consumers in groups, and what an administrator sees of them; prints a line for everything that is compared. */
public class GroupPeer {
    static String servers;

    public static void main(String[] args) throws Exception {
        servers = args[0];
        switch (args[1]) {
            case "share": share(args[2], Integer.parseInt(args[3]), args[4], args[5].split(",")); break;
            case "groups": groups(); break;
            case "alter": alter(args[2], args[3], Long.parseLong(args[4])); break;
            default: throw new IllegalArgumentException(args[1]);
        }
    }

    /** protocols: one consumer each, like classic, consumer, or consumer:instance. */
    static void share(String group, int records, String topics, String[] protocols) throws Exception {
        List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        Set<String> read = new TreeSet<>();
        for (String protocol : protocols) {
            String[] parts = protocol.split(":");
            KafkaConsumer<byte[], byte[]> consumer = consumer(group, parts[0], parts.length > 1 ? parts[1] : null);
            consumers.add(consumer);
            subscribe(consumer, topics);
            poll(consumer, read, 200);
        }
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (System.nanoTime() < end && !(read.size() >= records && isShared(consumers))) {
            for (KafkaConsumer<byte[], byte[]> consumer : consumers) poll(consumer, read, 50);
        }
        System.out.println("read " + read.size());
        Set<TopicPartition> all = new java.util.HashSet<>();
        int sum = 0;
        for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
            consumer.commitSync();
            sum += consumer.assignment().size();
            all.addAll(consumer.assignment());
        }
        System.out.println("assigned " + sum + " of " + all.size());
        try (Admin admin = admin()) {
            describe(admin, group);
        }
        for (KafkaConsumer<byte[], byte[]> consumer : consumers) consumer.close();
    }

    static boolean isShared(List<KafkaConsumer<byte[], byte[]>> consumers) {
        Set<TopicPartition> all = new java.util.HashSet<>();
        int sum = 0, least = Integer.MAX_VALUE;
        for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
            sum += consumer.assignment().size();
            least = Math.min(least, consumer.assignment().size());
            all.addAll(consumer.assignment());
        }
        return sum == all.size() && least > 0 && sum >= 4;
    }

    /** topics: a name, or /pattern/ for one that the broker resolves (clients of 4.0 and later). */
    static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String topics) throws Exception {
        if (!topics.startsWith("/")) {
            consumer.subscribe(List.of(topics.split(",")));
            return;
        }
        Class<?> pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
        Object it = pattern.getConstructor(String.class).newInstance(topics.substring(1, topics.length() - 1));
        KafkaConsumer.class.getMethod("subscribe", pattern).invoke(consumer, it);
    }

    static void poll(KafkaConsumer<byte[], byte[]> consumer, Set<String> read, int ms) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(ms)))
            read.add(record.topic() + "-" + record.partition() + "@" + record.offset());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group, String protocol, String instance) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        properties.put("group.id", group);
        properties.put("group.protocol", protocol);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        if (instance != null) properties.put("group.instance.id", instance);
        if (protocol.equals("classic")) {
            properties.put("heartbeat.interval.ms", "200");
            properties.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", servers));
    }

    static void describe(Admin admin, String group) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Integer> members = new TreeMap<>();
        for (MemberDescription member : found.members())
            members.merge(member.groupInstanceId().orElse("-"), member.assignment().topicPartitions().size(), Integer::sum);
        System.out.println("group " + group + " " + found.state() + " " + found.partitionAssignor() + " " + members);
    }

    /** Every group with its state, type and offsets. */
    static void groups() throws Exception {
        try (Admin admin = admin()) {
            Map<String, String> lines = new TreeMap<>();
            for (ConsumerGroupListing listing : admin.listConsumerGroups().all().get()) {
                Map<String, String> offsets = new TreeMap<>();
                Map<TopicPartition, OffsetAndMetadata> found =
                    admin.listConsumerGroupOffsets(listing.groupId()).partitionsToOffsetAndMetadata().get();
                found.forEach((partition, offset) ->
                    offsets.put(partition.toString(), offset.offset() + ":" + offset.metadata()));
                lines.put(listing.groupId(), listing.state().get() + " " + listing.type().get() + " " + offsets);
            }
            lines.forEach((group, line) -> System.out.println(group + " " + line));
        }
    }

    static void alter(String group, String topic, long offset) throws Exception {
        try (Admin admin = admin()) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            offsets.put(new TopicPartition(topic, 0), new OffsetAndMetadata(offset, "by Kafka"));
            admin.alterConsumerGroupOffsets(group, offsets).all().get();
        }
    }
}
