// Kafka's own client under `kwire conformance client --stdin`: java -cp 'jars/*' KafkaClient.java
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;

public class KafkaClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

    static synchronized void say(Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) line.put((String) pairs[i], pairs[i + 1]);
        try { System.out.println(JSON.writeValueAsString(line)); } catch (Exception e) { throw new RuntimeException(e); }
    }

    static byte[] bytes(JsonNode text) { return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8); }
    static String text(byte[] data) { return data == null ? null : new String(data, StandardCharsets.UTF_8); }

    static Properties settings(JsonNode task, Set<String> known) {
        Properties found = new Properties();
        task.get("settings").fields().forEachRemaining(each -> {
            if (known.contains(each.getKey())) found.put(each.getKey(), each.getValue().asText()); });
        found.put("bootstrap.servers", task.get("bootstrap").asText());
        String user = task.get("settings").path("sasl.username").asText("");
        if (!user.isEmpty()) found.put("sasl.jaas.config", String.format("%s required username=\"%s\" password=\"%s\";",
            "PLAIN".equals(found.get("sasl.mechanism")) ? "org.apache.kafka.common.security.plain.PlainLoginModule"
                : "org.apache.kafka.common.security.scram.ScramLoginModule",
            user, task.get("settings").get("sasl.password").asText()));
        return found;
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode task) {
        Properties given = settings(task, ProducerConfig.configNames());
        given.put("key.serializer", BYTES + "Serializer");
        given.put("value.serializer", BYTES + "Serializer");
        if (task.has("transactional_id")) given.put("transactional.id", task.get("transactional_id").asText());
        return new KafkaProducer<>(given);
    }

    static List<Runnable> send(KafkaProducer<byte[], byte[]> client, JsonNode task, JsonNode records, int first) throws Exception {
        List<Runnable> reports = new ArrayList<>();
        int number = first;
        for (JsonNode each : records) {
            Thread.sleep(each.path("wait_ms").asInt(0));
            byte[] value = bytes(each.get("value"));
            if (each.has("repeat")) value = text(value).repeat(each.get("repeat").asInt()).getBytes(StandardCharsets.UTF_8);
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                task.get("topic").asText(), each.get("partition").asInt(), bytes(each.get("key")), value);
            for (JsonNode header : each.path("headers")) record.headers().add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
            int at = number++;
            try {
                Future<RecordMetadata> sent = client.send(record);
                reports.add(() -> {
                    try { say("acked", at, "offset", sent.get().offset()); } catch (Exception e) { say("failed", at, "error", "" + e.getCause()); } });
            } catch (Exception e) { say("failed", at, "error", "" + e); }
        }
        return reports;
    }

    static void produce(JsonNode task) throws Exception {
        try (KafkaProducer<byte[], byte[]> client = producer(task)) { send(client, task, task.get("records"), 0).forEach(Runnable::run); }
    }

    static void transact(JsonNode task) throws Exception {
        try (KafkaProducer<byte[], byte[]> client = producer(task)) {
            client.initTransactions();
            int number = 0;
            for (JsonNode each : task.get("transactions")) {
                client.beginTransaction();
                send(client, task, each.get("records"), number).forEach(Runnable::run);
                number += each.get("records").size();
                JsonNode offsets = each.get("offsets");
                if (!offsets.isNull()) client.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(task.get("topic").asText(), offsets.get("partition").asInt()),
                        new OffsetAndMetadata(offsets.get("offset").asLong())), new ConsumerGroupMetadata(offsets.get("group").asText()));
                if (each.get("end").asText().equals("commit")) client.commitTransaction(); else client.abortTransaction();
                say("ended", each.get("end").asText());
            }
        }
    }

    static void consume(JsonNode task) {
        Properties given = settings(task, ConsumerConfig.configNames());
        given.put("key.deserializer", BYTES + "Deserializer");
        given.put("value.deserializer", BYTES + "Deserializer");
        if (!task.get("group").isNull()) given.put("group.id", task.get("group").asText());
        String topic = task.get("topic").asText();
        KafkaConsumer<byte[], byte[]> client = new KafkaConsumer<>(given);
        try {
            List<TopicPartition> partitions = new ArrayList<>();
            task.get("partitions").forEach(each -> partitions.add(new TopicPartition(topic, each.asInt())));
            if (task.get("group").isNull()) client.assign(partitions); else client.subscribe(List.of(topic));
            if (!task.get("offset").isNull()) client.seek(partitions.get(0), task.get("offset").asLong());
            int left = task.get("count").asInt();
            long quietSince = System.nanoTime();
            while (left > 0 || System.nanoTime() - quietSince < 300_000_000L) {
                for (ConsumerRecord<byte[], byte[]> each : client.poll(Duration.ofMillis(100))) {
                    List<List<String>> headers = new ArrayList<>();
                    each.headers().forEach(header -> headers.add(Arrays.asList(header.key(), text(header.value()))));
                    say("partition", each.partition(), "offset", each.offset(), "timestamp", each.timestamp(),
                        "headers", headers, "key", text(each.key()), "value", text(each.value()));
                    left--;
                    quietSince = System.nanoTime();
                }
            }
            if (task.get("commit").asBoolean()) { client.commitSync(); say("committed", true); }
        } finally { client.close(CloseOptions.timeout(Duration.ofSeconds(1))); }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String given = System.getenv("KWIRE_TASK");
        for (String line = given != null ? given : lines.readLine(); line != null; line = given != null ? null : lines.readLine()) {
            JsonNode task = JSON.readTree(line);
            try {
                switch (task.get("do").asText()) {
                    case "produce" -> produce(task);
                    case "transact" -> transact(task);
                    default -> consume(task);
                }
            } catch (Exception e) { say("error", "" + e); }
            say("done", task.get("id").asText());
        }
    }
}
