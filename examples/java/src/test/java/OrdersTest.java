import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
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

    @BeforeAll
    static void startBroker() throws IOException {
        // "--until stdin": the broker also ends if this process is killed
        broker = new ProcessBuilder("kwire", "serve", "--port", "0", "--topic", "orders", "--until", "stdin")
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String line = broker.inputReader().readLine(); // null if it did not start: the reason is on standard error
        servers = line.substring("BROKERS=".length());
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
}
