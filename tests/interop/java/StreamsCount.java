import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Counts the records of each key of the topic lines, exactly once, and writes every count to the topic counted, until
 * standard input ends. Arguments: servers, state directory, group protocol, number of the record at which the process
 * halts without a commit (0 for none). Prints what is restored, and the error that ends it.
 */
public class StreamsCount {
    public static void main(String[] arguments) throws Exception {
        int last = Integer.parseInt(arguments[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("state.dir", arguments[1]);
        settings.put("group.protocol", arguments[2]);
        settings.put("application.id", "count");
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", 100);
        settings.put("statestore.cache.max.bytes", 0); // every count is written
        if (arguments[2].equals("classic")) settings.put("main.consumer.session.timeout.ms", 6000);
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        AtomicInteger seen = new AtomicInteger();
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
            .groupByKey()
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .peek((key, count) -> {
                if (seen.incrementAndGet() == last) Runtime.getRuntime().halt(3);
            })
            .to("counted", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setGlobalStateRestoreListener(new Restored());
        streams.setUncaughtExceptionHandler(error -> {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            System.out.println("failed " + cause);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) { }
        streams.close();
    }

    /** Prints how many records of a store were restored. */
    static class Restored implements StateRestoreListener {
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) { }

        public void onBatchRestored(TopicPartition partition, String store, long end, long count) { }

        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            System.out.println("restored " + partition.partition() + " " + total);
        }
    }
}
