import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.Type;

/** kafka-clients as a runner: kwire conformance codec -- java -cp "libs/*" KafkaRunner.java */
public final class KafkaRunner {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err);
        for (int size; (size = size(in)) >= 0; out.flush()) {
            JsonNode task = JSON.readTree(in.readNBytes(size));
            ObjectNode response = JSON.createObjectNode();
            try {
                switch (task.get("chapter").asText()) {
                    case "messages", "headers" -> message(task, response);
                    case "primitives" -> primitive(task, response);
                    default -> response.put("unsupported", "only messages, headers and primitives");
                }
            } catch (ClassNotFoundException missing) {
                response.put("unsupported", "no class " + missing.getMessage());
            } catch (InvocationTargetException thrown) {
                response.put("rejected", String.valueOf(thrown.getCause()));
            } catch (RuntimeException thrown) {
                response.put("rejected", String.valueOf(thrown));
            }
            byte[] text = JSON.writeValueAsBytes(response);
            out.writeInt(text.length);
            out.write(text);
        }
    }

    static int size(DataInputStream in) throws IOException {
        try { return in.readInt(); } catch (EOFException end) { return -1; }
    }

    static byte[] bytes(JsonNode task) { return HEX.parseHex(task.get("bytes").asText()); }
    static void message(JsonNode task, ObjectNode response) throws Exception {
        String name = "org.apache.kafka.common.message." + task.get("type").asText() + "Data";
        short version = (short) task.get("version").asInt();
        Class<?> type = Class.forName(name), converter = Class.forName(name + "JsonConverter");
        Message message = task.get("op").asText().equals("encode")
            ? (Message) converter.getMethod("read", JsonNode.class, short.class)
                .invoke(null, task.get("value"), version)
            : (Message) type.getConstructor(org.apache.kafka.common.protocol.Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(ByteBuffer.wrap(bytes(task))), version);
        if (!name.matches(".*(Produce|Fetch|Snapshot).*")) // the converters leave records empty
            response.set("value",
                (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version));
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version) + 16);
            message.write(new ByteBufferAccessor(buffer), cache, version);
            response.put("bytes", HEX.formatHex(buffer.array(), 0, buffer.position()));
        } catch (RuntimeException notWritable) { // such as tags out of order
            response.put("accepted", true);
        }
    }

    static void primitive(JsonNode task, ObjectNode response) throws Exception {
        Type type = (Type) Type.class.getField(task.get("type").asText()).get(null);
        if (task.get("op").asText().equals("encode")) {
            response.put("unsupported", "decodes only");
            return;
        }
        Object value = type.read(ByteBuffer.wrap(bytes(task)));
        if (value instanceof ByteBuffer bytes) value = Arrays.copyOfRange(bytes.array(),
            bytes.arrayOffset() + bytes.position(), bytes.arrayOffset() + bytes.limit());
        response.set("value", JSON.valueToTree(value instanceof Uuid ? value.toString() : value));
    }
}
