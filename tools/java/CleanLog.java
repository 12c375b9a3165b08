import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogCleanerManager$;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

/**
 * Recovers and compacts partition directories with the broker's own classes. Each line of the file TASKS is one of
 *   load DIRECTORY NOW_MS SETTINGS                              recover as after a crash, then close cleanly
 *   clean DIRECTORY NOW_MS SETTINGS MAP_BYTES CHECKPOINT        one pass of the log cleaner from CHECKPOINT on;
 *                                                               -1: there is none, -2: where the pass before ended
 * with SETTINGS a topic's settings as name=value,name=value. Usage: CleanLog TASKS
 * Prints for each clean: DIRECTORY END_OFFSET UNCLEANABLE_OFFSET BYTES_READ BYTES_WRITTEN RECORDS_READ RECORDS_WRITTEN
 * CPU_NS WALL_NS
 */
public class CleanLog {
    /** A clock that stands still. */
    private record StandingTime(long now) implements Time {
        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return System.nanoTime(); }
        @Override public void sleep(long ms) { Time.SYSTEM.sleep(ms); }
        @Override public void waitObject(Object o, Supplier<Boolean> until, long deadline) throws InterruptedException {
            Time.SYSTEM.waitObject(o, until, deadline);
        }
    }

    private static final Map<File, Long> ENDS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] words = line.split(" ");
            Time time = new StandingTime(Long.parseLong(words[2]));
            Properties settings = new Properties();
            for (String setting : words[3].split(",")) {
                int at = setting.indexOf('=');
                settings.put(setting.substring(0, at), setting.substring(at + 1));
            }
            UnifiedLog log = open(new File(words[1]), new LogConfig(settings), words[0].equals("clean"), time, scheduler);
            log.updateHighWatermark(log.logEndOffset());
            if (words[0].equals("clean")) {
                answers.add(words[1] + " " + clean(log, time, Integer.parseInt(words[4]), Long.parseLong(words[5])));
            } else {
                log.flush(true);
                log.close();
            }
        }
        answers.forEach(System.out::println);
        System.exit(0);  // the scheduler would remove *.deleted files one day
    }

    private static UnifiedLog open(File directory, LogConfig config, boolean clean, Time time, KafkaScheduler scheduler) {
        return UnifiedLog$.MODULE$.apply(
            directory, config, 0L, 0L, scheduler, new BrokerTopicStats(false), time, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), clean,
            Option.empty(), true, new ConcurrentHashMap<>(), false, new LogOffsetsListener() { });
    }

    private static String clean(UnifiedLog log, Time time, int mapBytes, long checkpoint) throws Exception {
        long from = checkpoint == -2 ? ENDS.get(log.dir()) : checkpoint;
        Option<Object> last = from < 0 ? Option.empty() : new Some<>(from);
        OffsetsToClean offsets = LogCleanerManager$.MODULE$.cleanableOffsets(log, last, time.milliseconds());
        TopicPartition partition = log.topicPartition();
        LogToClean toClean = new LogToClean(
            partition, log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(mapBytes), 262_144, 1_048_588, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", time), time, any -> BoxedUnit.UNIT);
        long wall = System.nanoTime();
        long cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        Tuple2<Object, CleanerStats> done = cleaner.clean(toClean);
        cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        CleanerStats stats = done._2();
        ENDS.put(log.dir(), (Long) done._1());
        String answer = done._1() + " " + toClean.firstUncleanableOffset() + " " + stats.bytesRead() + " "
            + stats.bytesWritten() + " " + stats.messagesRead() + " " + stats.messagesWritten() + " " + cpu + " " + wall;
        log.close();
        return answer;
    }
}
