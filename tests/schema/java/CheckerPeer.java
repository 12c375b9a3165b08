import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.message.MessageGenerator;
import org.apache.kafka.message.MessageSpec;
import org.apache.kafka.message.checker.EvolutionVerifier;

/** Kafka's checker of definitions: for each line [OLD, NEW] of standard input a line with its answer. */
public class CheckerPeer {
    private static final long LIMIT_S = 20;  // it answers in milliseconds, or loops for ever

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode pair = MessageGenerator.JSON_SERDE.readTree(line);
            Future<String> answer = pool.submit(() -> check(pair.get(0).asText(), pair.get(1).asText()));
            try {
                System.out.println(answer.get(LIMIT_S, TimeUnit.SECONDS));
            } catch (TimeoutException never) {
                System.out.println("never ends");
            }
        }
    }

    private static String check(String older, String newer) {
        MessageSpec one;
        MessageSpec two;
        try {
            one = MessageGenerator.JSON_SERDE.readValue(older, MessageSpec.class);
            two = MessageGenerator.JSON_SERDE.readValue(newer, MessageSpec.class);
        } catch (Exception error) {
            return "no definition: " + text(error);
        }
        try {
            new EvolutionVerifier(one, two).verify();
            return "passes";
        } catch (Exception error) {
            return "refused: " + text(error);
        }
    }

    private static String text(Exception error) {
        return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
    }
}
