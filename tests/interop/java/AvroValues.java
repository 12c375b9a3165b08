// Reads lines of (writer's schema, reader's schema, value in hex), separated by tabs; prints what Avro makes of each as
// JSON, or ERROR. Numbers with fractions are their bits, bytes and strings are in hex.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.DecoderFactory;

public class AvroValues {
    static final Map<String, Schema> SCHEMAS = new HashMap<>();

    static Schema schema(String text) {
        return SCHEMAS.computeIfAbsent(text, each -> new Schema.Parser().parse(each));
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Integer || value instanceof Long || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Float f) {
            out.append("\"f").append(Float.isNaN(f) ? "nan" : Integer.toString(Float.floatToRawIntBits(f))).append('"');
        } else if (value instanceof Double d) {
            out.append("\"d").append(Double.isNaN(d) ? "nan" : Long.toString(Double.doubleToRawLongBits(d))).append('"');
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            out.append("\"b").append(hex(bytes)).append('"');
        } else if (value instanceof GenericFixed fixed) {
            out.append("\"b").append(hex(fixed.bytes())).append('"');
        } else if (value instanceof IndexedRecord record) {
            String separator = "{";
            for (Schema.Field field : record.getSchema().getFields()) {
                out.append(separator).append('"').append(field.name()).append("\":");
                write(record.get(field.pos()), out);
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            out.append('[');
            for (int i = 0; i < list.size(); i++) {
                if (i > 0) out.append(',');
                write(list.get(i), out);
            }
            out.append(']');
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                write(entry.getKey(), out);
                out.append(':');
                write(entry.getValue(), out);
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else { // strings and symbols
            out.append("\"s").append(hex(value.toString().getBytes(StandardCharsets.UTF_8))).append('"');
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            try {
                var reader = new GenericDatumReader<Object>(schema(parts[0]), schema(parts[1]));
                var text = new StringBuilder();
                var decoder = DecoderFactory.get().binaryDecoder(HexFormat.of().parseHex(parts[2]), null);
                write(reader.read(null, decoder), text);
                out.println(text);
            } catch (Exception | StackOverflowError | OutOfMemoryError error) {
                out.println("ERROR " + error.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }
}
