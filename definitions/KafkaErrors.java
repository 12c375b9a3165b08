// Prints definitions/errors.json: Kafka's error codes, their names, and whether a client may try again.
// java -cp kafka-clients-4.4.0.jar:slf4j-api-1.7.36.jar definitions/KafkaErrors.java 4.4.0 > definitions/errors.json
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class KafkaErrors {
    public static void main(String[] args) {
        StringBuilder out = new StringBuilder("{\"kafka\": \"" + args[0] + "\", \"errors\": [\n");
        String separator = "";
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            out.append(separator).append(String.format(
                "  {\"code\": %d, \"name\": \"%s\", \"retriable\": %b}", error.code(), error.name(), retriable));
            separator = ",\n";
        }
        System.out.println(out.append("\n]}"));
    }
}
