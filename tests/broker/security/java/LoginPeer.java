import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.serialization.StringSerializer;

/** SECONDS KEY=VALUE...: produces with those settings until it has logged in again twice, for so long at most. */
public class LoginPeer {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        for (int i = 1; i < args.length; i++) {
            int split = args[i].indexOf('=');
            settings.put(args[i].substring(0, split), args[i].substring(split + 1));
        }
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("t", "x")).get();  // however long it takes to get there
            long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
            while (loginsAgain(producer) < 2 && System.nanoTime() < end) {
                producer.send(new ProducerRecord<>("t", "x")).get();
                Thread.sleep(50);
            }
            System.out.println("logged in again: " + (loginsAgain(producer) > 1));
        }
    }

    private static double loginsAgain(KafkaProducer<String, String> producer) {
        double again = 0;
        for (Metric metric : producer.metrics().values())
            if (metric.metricName().name().equals("successful-reauthentication-total")
                && metric.metricName().group().equals("producer-metrics"))
                again += (Double) metric.metricValue();
        return again;
    }
}
