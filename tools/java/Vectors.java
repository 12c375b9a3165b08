import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.ScatteringByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.network.NetworkReceive;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.BaseRecords;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's own classes as an encoder and a decoder: one JSON object per line of standard input, one per line of standard
 * output. tools/vectors compiles it against each release, with that release's packages of records.
 */
public final class Vectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, String> CLASSES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        index();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ObjectNode result = JSON.createObjectNode();
            try {
                run(JSON.readTree(line), result);
            } catch (Throwable thrown) {
                Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
                result.removeAll();
                result.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            output.println(JSON.writeValueAsString(result));
        }
        output.flush();
    }

    private static void run(JsonNode task, ObjectNode result) throws Exception {
        String name = task.path("type").asText();
        short version = (short) task.path("version").asInt();
        switch (task.get("op").asText()) {
            case "encode" -> encode(name, version, task, result);
            case "decode" -> decode(name, version, bytes(task), result);
            case "frame" -> frame(name, version, task, result);
            case "unframe" -> unframe(name, version, bytes(task), result);
            case "data" -> result.put("bytes", hex(data(name, version, task)));
            case "undata" -> undata(name, version, task, result);
            case "batch" -> result.put("bytes", hex(batch(task)));
            case "records" -> result.set("value", records(bytes(task)));
            case "primitive" -> primitive(name, task, result);
            default -> throw new IllegalArgumentException(task.get("op").asText());
        }
    }

    // Messages

    private static void index() throws IOException {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().startsWith("kafka")) continue;
            try (ZipFile jar = new ZipFile(path)) {
                jar.stream().map(entry -> entry.getName()).sorted().forEach(entry -> {
                    if (entry.matches("(kafka/internals|org/apache/kafka/.*)/(generated|message|metadata)/\\w+\\.class")) {
                        String name = entry.replace('/', '.').substring(0, entry.length() - 6);
                        CLASSES.putIfAbsent(name.substring(name.lastIndexOf('.') + 1), name);
                    }
                });
            }
        }
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        String found = CLASSES.getOrDefault(name + "Data", CLASSES.get(name));
        if (found == null) throw new ClassNotFoundException(name);
        return Class.forName(found);
    }

    private static Message message(String name, short version, JsonNode task) throws Exception {
        Class<?> type = type(name);
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        Message message =
            (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, task.get("value"), version);
        for (JsonNode each : task.path("tags")) {
            Object at = message;
            for (JsonNode step : each.get("path")) {
                at = step.isInt() ? element((Collection<?>) at, step.asInt()) : get(at, step.asText());
            }
            @SuppressWarnings("unchecked")
            var tags = (List<RawTaggedField>) at.getClass().getMethod("unknownTaggedFields").invoke(at);
            tags.add(new RawTaggedField(each.get("tag").asInt(), HEX.parseHex(each.get("hex").asText())));
        }
        return message;
    }

    private static Object element(Collection<?> all, int index) {
        Iterator<?> iterator = all.iterator();
        for (int i = 0; i < index; i++) iterator.next();
        return iterator.next();
    }

    private static Object get(Object of, String key) throws Exception {
        return of.getClass().getMethod(key).invoke(of);
    }

    private static byte[] write(Message message, short version) {
        var cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version) + 16);
        message.write(new ByteBufferAccessor(buffer), cache, version);
        byte[] all = new byte[buffer.position()];
        buffer.flip().get(all);
        return all;
    }

    private static Message read(String name, short version, ByteBuffer buffer) throws Exception {
        return (Message) type(name).getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
    }

    private static JsonNode value(Message message, short version) throws Exception {
        Class<?> converter;
        try {
            converter = Class.forName(message.getClass().getName() + "JsonConverter");
        } catch (ClassNotFoundException missing) {
            return null; // the classes of the coordinators have no converter in 2.8
        }
        JsonNode node = (JsonNode) converter.getMethod("write", message.getClass(), short.class)
            .invoke(null, message, version);
        fillRecords(message, node);
        return node;
    }

    /** Kafka's converters leave records empty: put the true bytes. */
    private static void fillRecords(Object of, JsonNode node) throws Exception {
        if (!(node instanceof ObjectNode object)) return;
        for (Iterator<String> keys = node.fieldNames(); keys.hasNext();) {
            String key = keys.next();
            JsonNode child = node.get(key);
            if (child.isObject()) {
                fillRecords(get(of, key), child);
            } else if (child.isArray() && child.size() > 0 && child.get(0).isObject()) {
                Iterator<?> elements = ((Collection<?>) get(of, key)).iterator();
                for (JsonNode each : child) fillRecords(elements.next(), each);
            } else if (key.toLowerCase().endsWith("records") && !child.isNull() && !child.isArray()) {
                Object found = get(of, key);
                if (found instanceof MemoryRecords records) object.put(key, bytesOf(records.buffer()));
            }
        }
    }

    private static void encode(String name, short version, JsonNode task, ObjectNode result) throws Exception {
        byte[] written = write(message(name, version, task), version);
        result.put("bytes", hex(written));
        result.set("value", value(read(name, version, ByteBuffer.wrap(written)), version));
    }

    private static void decode(String name, short version, ByteBuffer buffer, ObjectNode result) throws Exception {
        Message message = read(name, version, buffer);
        result.set("value", value(message, version));
        if (buffer.hasRemaining()) result.put("rest", buffer.remaining());
        try {
            result.put("bytes", hex(write(message, version)));
        } catch (RuntimeException notWritable) {
            result.put("unwritable", notWritable.getMessage()); // such as unknown tags out of order
        }
    }

    // Frames: the size, the header and the body

    private static void frame(String name, short version, JsonNode task, ObjectNode result) throws Exception {
        ApiKeys api = ApiKeys.forId(task.get("apiKey").asInt());
        boolean isRequest = name.endsWith("Request");
        short headerVersion = isRequest ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version);
        ObjectNode header = JSON.createObjectNode();
        header.set("value", task.get("header"));
        byte[] head = write(message(isRequest ? "RequestHeader" : "ResponseHeader", headerVersion, header), headerVersion);
        byte[] body = write(message(name, version, task), version);
        ByteBuffer all = ByteBuffer.allocate(4 + head.length + body.length);
        all.putInt(head.length + body.length).put(head).put(body);
        result.put("bytes", hex(all.array()));
    }

    private static void unframe(String name, short version, ByteBuffer buffer, ObjectNode result) throws Exception {
        NetworkReceive receive = new NetworkReceive(1 << 20, "vectors");
        while (!receive.complete() && receive.readFrom(new Channel(buffer)) > 0) { }
        if (!receive.complete()) throw new IllegalStateException("the frame is not complete");
        ByteBuffer payload = receive.payload().rewind();
        ObjectNode value = JSON.createObjectNode();
        if (name.endsWith("Request")) {
            ByteBuffer start = payload.duplicate();
            RequestHeader header = RequestHeader.parse(payload);
            if (header.apiVersion() != version || !header.apiKey().name.equals(name.replaceFirst("Request$", "")))
                throw new IllegalStateException("another request");
            // not header.data(): it has an empty client id for null
            value.set("header", value(read("RequestHeader", header.headerVersion(), start), header.headerVersion()));
        } else {
            ApiKeys api = api(name.substring(0, name.length() - "Response".length()));
            ResponseHeader header = ResponseHeader.parse(payload, api.responseHeaderVersion(version));
            value.set("header", value(header.data(), header.headerVersion()));
        }
        value.set("body", value(read(name, version, payload), version));
        result.set("value", value);
        if (payload.hasRemaining() || buffer.hasRemaining()) result.put("rest", payload.remaining() + buffer.remaining());
    }

    private static ApiKeys api(String name) {
        for (ApiKeys each : ApiKeys.values()) if (each.name.equals(name)) return each;
        throw new IllegalArgumentException(name);
    }

    private record Channel(ByteBuffer buffer) implements ScatteringByteChannel {
        @Override public int read(ByteBuffer into) {
            int count = Math.min(into.remaining(), buffer.remaining());
            for (int i = 0; i < count; i++) into.put(buffer.get());
            return count == 0 && into.hasRemaining() ? -1 : count;
        }

        @Override public long read(ByteBuffer[] into) {
            throw new UnsupportedOperationException();
        }

        @Override public long read(ByteBuffer[] into, int offset, int length) {
            throw new UnsupportedOperationException();
        }

        @Override public boolean isOpen() {
            return true;
        }

        @Override public void close() { }
    }

    // Records of internal topics: a version or a type precedes the body

    private static byte[] data(String name, short version, JsonNode task) throws Exception {
        ApiMessage message = (ApiMessage) message(name, version, task);
        ByteBuffer buffer = switch (task.get("kind").asText()) {
            case "metadata" -> {
                Object pair = metadata("ApiMessageAndVersion").getConstructor(ApiMessage.class, short.class)
                    .newInstance(message, version);
                var cache = new ObjectSerializationCache();
                Object serde = serde();
                int size = (int) method(serde, "recordSize").invoke(serde, pair, cache);
                ByteBuffer into = ByteBuffer.allocate(size);
                method(serde, "write").invoke(serde, pair, cache, new ByteBufferAccessor(into));
                yield into.flip();
            }
            case "coordinator-key" -> (ByteBuffer) MessageUtil.class
                .getMethod("toCoordinatorTypePrefixedByteBuffer", ApiMessage.class).invoke(null, message);
            default -> MessageUtil.toVersionPrefixedByteBuffer(version, message);
        };
        byte[] all = new byte[buffer.remaining()];
        buffer.get(all);
        return all;
    }

    private static void undata(String name, short version, JsonNode task, ObjectNode result) throws Exception {
        ByteBuffer buffer = bytes(task);
        if (task.get("kind").asText().equals("metadata")) {
            Object serde = serde();
            Object pair = method(serde, "read").invoke(serde, new ByteBufferAccessor(buffer), buffer.remaining());
            Message message = (Message) pair.getClass().getMethod("message").invoke(pair);
            if (!message.getClass().equals(type(name))) throw new IllegalStateException("another record");
            result.set("value", value(message, (short) pair.getClass().getMethod("version").invoke(pair)));
            return;
        }
        short prefix = buffer.getShort();
        if (prefix != task.get("prefix").asInt()) throw new IllegalStateException("another version or type: " + prefix);
        decode(name, version, buffer, result);
        result.remove("bytes");
    }

    private static Object serde() throws Exception {
        Class<?> type = metadata("MetadataRecordSerde");
        try {
            return type.getField("INSTANCE").get(null);
        } catch (NoSuchFieldException old) {
            return type.getConstructor().newInstance();
        }
    }

    private static Class<?> metadata(String name) throws ClassNotFoundException {
        for (String each : new String[] {"server.common", "metadata", "raft.metadata"}) {
            try {
                return Class.forName("org.apache.kafka." + each + "." + name);
            } catch (ClassNotFoundException elsewhere) {
                // in the next package
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static Method method(Object of, String name) {
        for (Method each : of.getClass().getMethods())
            if (each.getName().equals(name) && !each.isBridge()) return each;
        throw new IllegalArgumentException(name);
    }

    // Record batches

    private static byte[] batch(JsonNode task) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        MemoryRecordsBuilder builder = builder(buffer, task);
        for (JsonNode each : task.get("records")) {
            long offset = each.get("offset").asLong();
            long timestamp = each.get("timestamp").asLong();
            if (each.has("marker")) {
                builder.appendEndTxnMarker(timestamp,
                    new EndTransactionMarker(ControlRecordType.valueOf(each.get("marker").asText()), each.get("epoch").asInt()));
            } else if (each.has("control")) {
                builder.appendControlRecordWithOffset(offset,
                    new SimpleRecord(timestamp, binary(each.get("control")), binary(each.get("value"))));
            } else {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : each.path("headers"))
                    headers.add(new RecordHeader(header.get(0).asText(), binary(header.get(1))));
                builder.appendWithOffset(offset, timestamp, binary(each.get("key")), binary(each.get("value")),
                    headers.toArray(new Header[0]));
            }
        }
        MemoryRecords records = builder.build();
        byte[] all = new byte[records.sizeInBytes()];
        records.buffer().duplicate().get(all);
        if (task.has("lastOffset")) { // a compacted batch keeps its last offset
            ByteBuffer view = ByteBuffer.wrap(all);
            for (MutableRecordBatch each : MemoryRecords.readableRecords(view).batches())
                each.setLastOffset(task.get("lastOffset").asLong());
        }
        return all;
    }

    private static MemoryRecordsBuilder builder(ByteBuffer buffer, JsonNode task) throws Exception {
        Object codec = CompressionType.forName(task.get("codec").asText());
        Class<?> codecType = CompressionType.class;
        try {
            codecType = Class.forName("org.apache.kafka.common.compress.Compression"); // since 3.8
            Object of = codecType.getMethod("of", CompressionType.class).invoke(null, codec);
            var build = Class.forName("org.apache.kafka.common.compress.Compression$Builder").getMethod("build");
            codec = build.invoke(of);
        } catch (ClassNotFoundException old) {
            // the type itself
        }
        Constructor<?> constructor = MemoryRecordsBuilder.class.getConstructor(ByteBuffer.class, byte.class, codecType,
            TimestampType.class, long.class, long.class, long.class, short.class, int.class, boolean.class, boolean.class,
            int.class, int.class);
        return (MemoryRecordsBuilder) constructor.newInstance(buffer, (byte) task.get("magic").asInt(), codec,
            TimestampType.forName(task.get("timestampType").asText()), task.get("baseOffset").asLong(),
            task.get("logAppendTime").asLong(), task.get("producerId").asLong(), (short) task.get("producerEpoch").asInt(),
            task.get("baseSequence").asInt(), task.get("isTransactional").asBoolean(), task.get("isControl").asBoolean(),
            task.get("partitionLeaderEpoch").asInt(), buffer.capacity());
    }

    private static JsonNode records(ByteBuffer buffer) {
        ObjectNode value = JSON.createObjectNode();
        ArrayNode batches = value.putArray("batches");
        ArrayNode records = value.putArray("records");
        long size = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(buffer).batches()) {
            batch.ensureValid();
            size += batch.sizeInBytes();
            ArrayNode within = JSON.createArrayNode();
            for (Record each : batch) within.add(record(batches.size(), each));
            batches.add(batch(batch));
            records.addAll(within);
        }
        value.put("incompleteBytes", buffer.limit() - size);
        return value;
    }

    private static ObjectNode batch(MutableRecordBatch batch) {
        ObjectNode node = JSON.createObjectNode();
        node.put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset()).put("magic", batch.magic());
        node.put("codec", batch.compressionType().name).put("timestampType", batch.timestampType().name);
        node.put("maxTimestamp", batch.maxTimestamp()).put("sizeInBytes", batch.sizeInBytes());
        if (batch.magic() < 2) return node;
        node.put("producerId", batch.producerId()).put("producerEpoch", batch.producerEpoch());
        node.put("baseSequence", batch.baseSequence()).put("lastSequence", batch.lastSequence());
        node.put("isTransactional", batch.isTransactional()).put("isControl", batch.isControlBatch());
        node.put("partitionLeaderEpoch", batch.partitionLeaderEpoch()).put("crc", batch.checksum());
        node.put("count", ((DefaultRecordBatch) batch).countOrNull());
        return node;
    }

    private static ObjectNode record(int batch, Record record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("batch", batch).put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", bytesOf(record.hasKey() ? record.key() : null));
        node.put("value", bytesOf(record.hasValue() ? record.value() : null));
        ArrayNode headers = node.putArray("headers");
        for (Header each : record.headers()) {
            byte[] value = each.value();
            headers.addArray().add(each.key()).add(value == null ? null : Base64.getEncoder().encodeToString(value));
        }
        return node;
    }

    // Primitives

    private static void primitive(String name, JsonNode task, ObjectNode result) throws Exception {
        Type type = (Type) Type.class.getField(name).get(null);
        if (task.has("bytes")) {
            ByteBuffer buffer = bytes(task);
            Object found = type.read(buffer);
            if (found instanceof ByteBuffer bytes) result.put("value", bytesOf(bytes));
            else if (found instanceof Uuid) result.put("value", found.toString());
            else result.set("value", JSON.valueToTree(found));
            if (buffer.hasRemaining()) result.put("rest", buffer.remaining());
            return;
        }
        JsonNode value = task.get("value");
        Object given = switch (name) {
            case "BOOLEAN" -> value.asBoolean();
            case "INT8" -> (byte) value.asInt();
            case "INT16" -> (short) value.asInt();
            case "UINT16", "INT32", "VARINT" -> value.asInt();
            case "UNSIGNED_INT32", "INT64", "VARLONG" -> value.asLong();
            case "FLOAT64" -> value.asDouble();
            case "UUID" -> Uuid.fromString(value.asText());
            case "STRING", "COMPACT_STRING", "NULLABLE_STRING", "COMPACT_NULLABLE_STRING" ->
                value.isNull() ? null : value.asText();
            default -> value.isNull() ? null : ByteBuffer.wrap(value.binaryValue());
        };
        ByteBuffer buffer = ByteBuffer.allocate(type.sizeOf(given));
        type.write(buffer, given);
        result.put("bytes", hex(buffer.array()));
    }

    // Text forms of bytes

    private static ByteBuffer bytes(JsonNode task) {
        return ByteBuffer.wrap(HEX.parseHex(task.get("bytes").asText()));
    }

    private static byte[] binary(JsonNode node) throws IOException {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    private static String bytesOf(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] all = new byte[buffer.remaining()];
        buffer.duplicate().get(all);
        return Base64.getEncoder().encodeToString(all);
    }

    private static String hex(byte[] bytes) {
        return HEX.formatHex(bytes);
    }
}
