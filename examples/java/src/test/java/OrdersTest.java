import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class OrdersTest {
    static Process broker;
    static String servers;
    static String control;

    @BeforeAll
    static void startBroker() throws Exception {
        // "--until stdin": the broker also ends if this process is killed
        broker = new ProcessBuilder(
                        "kwire", "serve", "--port", "0", "--control", "0", "--topic", "orders", "--until", "stdin")
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        var output = broker.inputReader();
        String line = output.readLine(); // null if it did not start: the reason is on standard error
        servers = line.substring("BROKERS=".length());
        control = output.readLine().substring("CONTROL=".length());
        post("/topics", "{\"name\": \"payments\"}");
    }

    @AfterAll
    static void stopBroker() throws Exception {
        broker.getOutputStream().close();
        assertEquals(0, broker.waitFor());
    }

    @Test
    void anOrderArrives() throws Exception {
        Map<String, Object> configs = Map.of("bootstrap.servers", servers);
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "alice", "one book")).get();
        }
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            var orders = List.of(new TopicPartition("orders", 0));
            consumer.assign(orders);
            consumer.seekToBeginning(orders);
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(30));
            assertEquals("one book", records.iterator().next().value());
        }
    }

    @Test
    void aLostResponseGivesNoDuplicate() throws Exception {
        String fault = post("/faults", """
                {"effect": "drop", "api": "Produce", "topic": "payments", "after": true}
                """);
        String id = fault.replaceAll(".*\"id\":(\\d+).*", "$1");
        Map<String, Object> configs = Map.of("bootstrap.servers", servers, "enable.idempotence", true);
        try (var producer = new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("payments", "alice", "paid")).get();
            assertEquals(1, producer.send(new ProducerRecord<>("payments", "alice", "paid again")).get().offset());
        }
        post("/faults/" + id + "/wait", "{\"hits\": 1}"); // fails unless a response was lost
    }

    static String post(String path, String json) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(control + path))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(json))
                .build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, response.statusCode(), response.body());
        return response.body();
    }
}
