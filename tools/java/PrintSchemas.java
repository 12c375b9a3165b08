import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Type;

/** Prints each version of each request and response of a release whose protocol is Java code: a line of JSON each. */
public class PrintSchemas {
    public static void main(String[] args) {
        for (ApiKeys key : ApiKeys.values()) {
            for (short version = 0; version <= key.latestVersion(); version++) {
                System.out.printf("{\"key\": %d, \"version\": %d, \"request\": %s, \"response\": %s}%n",
                    key.id, version, fields(key.requestSchema(version)), fields(key.responseSchema(version)));
            }
        }
    }

    /** The types of the fields, a struct's in its place. */
    private static String fields(Schema schema) {
        StringBuilder out = new StringBuilder();
        for (BoundField field : schema.fields()) {
            String type = type(field.def.type);
            out.append(out.length() == 0 || type.isEmpty() ? "" : ", ").append(type);
        }
        return "[" + out + "]";
    }

    private static String type(Type type) {
        if (type instanceof ArrayOf) {
            ArrayOf array = (ArrayOf) type;
            String inner = array.type() instanceof Schema ? fields((Schema) array.type()) : "[" + type(array.type()) + "]";
            return "[\"array\", " + array.isNullable() + ", " + inner + "]";
        }
        if (type instanceof Schema) {
            String inner = fields((Schema) type);
            return inner.substring(1, inner.length() - 1);
        }
        return "\"" + type + "\"";
    }
}
