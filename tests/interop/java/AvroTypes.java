// Reads an Avro schema from each line; prints the type that Spark's from_avro gives it, as JSON, or ERROR.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.spark.sql.avro.SchemaConverters;

public class AvroTypes {
    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println(SchemaConverters.toSqlType(new Schema.Parser().parse(line)).dataType().json());
            } catch (Exception error) {
                System.out.println("ERROR " + error.toString().replace('\n', ' '));
            }
        }
    }
}
