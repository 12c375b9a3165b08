import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Scanner;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** Reads lines "rules TAB principal"; prints for each the short name by Kafka, or "!" and the exception's class. */
public class ShortNames {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t", -1);
            try {
                KerberosShortNamer namer =
                    KerberosShortNamer.fromUnparsedRules("EXAMPLE.COM", Arrays.asList(parts[0].trim().split("\\s*,\\s*", -1)));
                System.out.println(namer.shortName(KerberosName.parse(parts[1])));
            } catch (Exception error) {
                System.out.println("!" + error.getClass().getSimpleName());
            }
        }
    }
}
