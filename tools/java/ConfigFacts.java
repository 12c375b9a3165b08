import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints Kafka's definitions of broker, topic, client metrics and group configs: one line each, fields between tabs.
 * With an argument, prints their documentation instead.
 */
public class ConfigFacts {
    private static boolean documentation;

    public static void main(String[] arguments) throws Exception {
        documentation = arguments.length > 0;
        Class<?> dynamic = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
        Field field = dynamic.getDeclaredField("PER_BROKER_CONFIGS");
        field.setAccessible(true);
        Set<?> perBroker = (Set<?>) field.get(null);
        Set<?> all = (Set<?>) dynamic.getField("ALL_DYNAMIC_CONFIGS").get(null);
        print("broker", (ConfigDef) Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig").getField("CONFIG_DEF").get(null), perBroker, all);
        print("broker", (ConfigDef) Class.forName("org.apache.kafka.server.config.QuotaConfig").getMethod("brokerQuotaConfigs").invoke(null), perBroker, all);
        print("topic", (ConfigDef) Class.forName("org.apache.kafka.storage.internals.log.LogConfig").getMethod("configDefCopy").invoke(null), Set.of(), Set.of());
        print("client-metrics", (ConfigDef) Class.forName("org.apache.kafka.server.metrics.ClientMetricsConfigs").getMethod("configDef").invoke(null), Set.of(), Set.of());
        print("group", (ConfigDef) Class.forName("org.apache.kafka.coordinator.group.GroupConfig").getField("CONFIG_DEF").get(null), Set.of(), Set.of());
    }

    private static void print(String resource, ConfigDef definitions, Set<?> perBroker, Set<?> dynamic) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            if (documentation) {
                String text = key.documentation == null ? "" : key.documentation;
                System.out.println(String.join("\t", resource, key.name, text.replace("\\", "\\\\").replace("\n", "\\n")));
                continue;
            }
            boolean required = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
            String value = required || key.defaultValue == null ? "\\N" : ConfigDef.convertToString(key.defaultValue, key.type);
            String scope = perBroker.contains(key.name) ? "per-broker" : dynamic.contains(key.name) ? "cluster-wide" : "read-only";
            System.out.println(String.join("\t",
                resource, key.name, key.type.toString(), value,
                key.validator == null ? "" : key.validator.toString(),
                resource.equals("broker") ? scope : "", key.internalConfig ? "internal" : ""));
        }
    }
}
