// Prints errors.csv: Kafka's error codes, their names, and whether a client may try again. For Kafka 4.4.0:
// java -cp kafka-clients-4.4.0.jar:slf4j-api-1.7.36.jar definitions/KafkaErrors.java > definitions/kafka-4.4.0/errors.csv
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class KafkaErrors {
    public static void main(String[] args) {
        System.out.println("code,name,retriable");
        for (Errors error : Errors.values()) {
            System.out.printf("%d,%s,%b%n", error.code(), error.name(), error.exception() instanceof RetriableException);
        }
    }
}
