import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.ShareKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.support.ShareAcknowledgment;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Listeners of Spring for Apache Kafka. Prints what they see, one line each: the same lines are expected of real Kafka.
 * Usage: SpringListeners SERVERS NUMBERS, which is how many records go through the transactional listener.
 */
public class SpringListeners {
    static final Map<String, AtomicInteger> ATTEMPTS = new ConcurrentHashMap<>();
    static final ConcurrentLinkedQueue<String> SEEN = new ConcurrentLinkedQueue<>();

    static int attempt(String what) {
        return ATTEMPTS.computeIfAbsent(what, each -> new AtomicInteger()).incrementAndGet();
    }

    /** Fails for a value that begins with "bad", and once for one that begins with "again". */
    static void handle(String listener, String value) {
        int attempt = attempt(listener + " " + value);
        SEEN.add(listener + ": " + value + " " + attempt);
        if (value.startsWith("bad") || value.startsWith("again") && attempt == 1) {
            throw new IllegalStateException(value);
        }
    }

    @Configuration
    @EnableKafka
    @EnableKafkaRetryTopic
    static class Config {
        @Value("${servers}")
        String servers;

        Map<String, Object> settings(Object... more) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", servers);
            for (int i = 0; i < more.length; i += 2) {
                settings.put((String) more[i], more[i + 1]);
            }
            return settings;
        }

        @Bean
        KafkaAdmin admin() {
            return new KafkaAdmin(settings());
        }

        @Bean
        KafkaAdmin.NewTopics topics() {
            return new KafkaAdmin.NewTopics(TopicBuilder.name("orders").partitions(2).build(),
                TopicBuilder.name("orders-dlt").partitions(2).build(),
                TopicBuilder.name("numbers").partitions(3).build(), TopicBuilder.name("squares").partitions(3).build(),
                TopicBuilder.name("retried").partitions(1).build(),
                TopicBuilder.name("shared").partitions(1).build(), TopicBuilder.name("written").partitions(1).build());
        }

        @Bean
        DefaultKafkaConsumerFactory<String, String> consumers() {
            return new DefaultKafkaConsumerFactory<>(settings("auto.offset.reset", "earliest", "isolation.level",
                "read_committed", "enable.auto.commit", false), new StringDeserializer(), new StringDeserializer());
        }

        @Bean
        KafkaTemplate<String, String> template() {
            return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(settings(), new StringSerializer(),
                new StringSerializer()));
        }

        @Bean
        DefaultKafkaProducerFactory<String, String> transactional() {
            var factory = new DefaultKafkaProducerFactory<>(settings("max.block.ms", 120_000), new StringSerializer(),
                new StringSerializer());
            factory.setTransactionIdPrefix("spring-");
            return factory;
        }

        @Bean
        KafkaTemplate<String, String> transactionalTemplate() {
            return new KafkaTemplate<>(transactional());
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory() {
            var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
            factory.setConsumerFactory(consumers());
            factory.setCommonErrorHandler(new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template()),
                new FixedBackOff(50, 2)));
            return factory;
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> transactionalFactory() {
            var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
            factory.setConsumerFactory(consumers());
            factory.setConcurrency(2);
            factory.getContainerProperties().setKafkaAwareTransactionManager(
                new KafkaTransactionManager<>(transactional()));
            factory.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(new FixedBackOff(50, 1000)));
            return factory;
        }

        @Bean
        ShareKafkaListenerContainerFactory<String, String> shareFactory() {
            var factory = new ShareKafkaListenerContainerFactory<>(new DefaultShareConsumerFactory<String, String>(
                settings(), StringDeserializer::new, StringDeserializer::new));
            factory.getContainerProperties().setShareAckMode(ContainerProperties.ShareAckMode.MANUAL);
            return factory;
        }

        @Bean
        ThreadPoolTaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        Listeners listeners() {
            return new Listeners(transactionalTemplate());
        }

        @Bean
        Retried retried() {
            return new Retried();
        }
    }

    static class Listeners {
        private final KafkaTemplate<String, String> template;

        Listeners(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @KafkaListener(topics = "orders", groupId = "orders")
        void order(String value) {
            handle("orders", value);
        }

        @KafkaListener(topics = "numbers", groupId = "numbers", containerFactory = "transactionalFactory")
        void number(ConsumerRecord<String, String> record) {
            long number = Long.parseLong(record.value());
            template.send("squares", record.partition(), record.value(), "" + number * number);
            if (number % 50 == 7 && attempt("number " + number) == 1) {
                throw new IllegalStateException("rolled back");
            }
        }

        @KafkaListener(topics = "shared", groupId = "shared", containerFactory = "shareFactory")
        void share(ConsumerRecord<String, String> record, ShareAcknowledgment acknowledgment) {
            SEEN.add("shared: " + record.value() + " " + record.deliveryCount().orElse((short) -1));
            switch (record.value().charAt(0)) {
                case 'a' -> acknowledgment.acknowledge();
                case 'r' -> acknowledgment.release();
                default -> acknowledgment.reject();
            }
        }
    }

    static class Retried {
        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 100, multiplier = 2), kafkaTemplate = "template")
        @KafkaListener(topics = "retried", groupId = "retried")
        void retried(ConsumerRecord<String, String> record) {
            SEEN.add("from " + record.topic() + ": " + record.value());
            handle("retried", record.value());
        }

        @DltHandler
        void dead(ConsumerRecord<String, String> record) {
            SEEN.add("from " + record.topic() + ": " + record.value());
        }
    }

    static void await(String what, BooleanSupplier isSo) throws InterruptedException {
        long deadline = System.currentTimeMillis() + 200_000;
        while (!isSo.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                System.out.println(what + ": missing; seen " + SEEN);
                System.exit(1);
            }
            Thread.sleep(20);
        }
    }

    static List<ConsumerRecord<String, String>> read(String servers, String topic, int partitions, int count)
            throws InterruptedException {
        var records = new java.util.ArrayList<ConsumerRecord<String, String>>();
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var all = new java.util.ArrayList<TopicPartition>();
            for (int i = 0; i < partitions; i++) {
                all.add(new TopicPartition(topic, i));
            }
            consumer.assign(all);
            consumer.seekToBeginning(all);
            await(topic, () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(records::add);
                return records.size() >= count;
            });
            consumer.poll(Duration.ofMillis(500)).forEach(records::add);
        }
        return records;
    }

    static void print(String listener) {
        var lines = new TreeMap<String, Integer>();
        SEEN.stream().filter(each -> each.startsWith(listener)).forEach(each -> lines.merge(each, 1, Integer::sum));
        lines.forEach((line, count) -> System.out.println(line + (count == 1 ? "" : " " + count + " times")));
    }

    public static void main(String[] args) throws Exception {
        String servers = args[0];
        int count = Integer.parseInt(args[1]);
        System.setProperty("servers", servers);
        try (var admin = AdminClient.create(Map.of("bootstrap.servers", servers))) {
            var resource = new ConfigResource(ConfigResource.Type.GROUP, "shared");
            var ops = new java.util.ArrayList<AlterConfigOp>();
            Map.of("share.auto.offset.reset", "earliest", "errors.deadletterqueue.topic.name", "dlq.shared",
                "errors.deadletterqueue.copy.record.enable", "true", "share.delivery.count.limit", "2").forEach(
                (k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.SET)));
            admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get();
            admin.createTopics(List.of(new NewTopic("dlq.shared", 1, (short) -1).configs(
                Map.of("errors.deadletterqueue.group.enable", "true")))).all().get();
        }
        try (var context = new AnnotationConfigApplicationContext(Config.class)) {
            var template = context.getBean("template", KafkaTemplate.class);
            var transactional = context.getBean("transactionalTemplate", KafkaTemplate.class);
            run(servers, count, template, transactional);
        }
        System.exit(0);
    }

    @SuppressWarnings("unchecked")
    static void run(String servers, int count, KafkaTemplate<String, String> template,
            KafkaTemplate<String, String> transactional) throws Exception {
        for (String value : List.of("good", "bad", "again", "last")) {
            template.send("orders", 0, value, value).get();
        }
        var dead = read(servers, "orders-dlt", 2, 1).get(0);
        await("orders", () -> SEEN.contains("orders: last 1"));
        print("orders");
        var headers = new TreeMap<String, String>();
        for (Header header : dead.headers()) {
            if (header.key().matches(".*(topic|group|exception-message|cause-fqcn)")) {
                headers.put(header.key(), new String(header.value()));
            }
        }
        System.out.println("orders-dlt: " + dead.partition() + " " + dead.value() + " " + headers);

        transactional.executeInTransaction(each -> each.send("written", "k", "committed"));
        try {
            transactional.executeInTransaction(each -> {
                each.send("written", "k", "rolled back");
                throw new IllegalStateException("rolled back");
            });
        } catch (IllegalStateException expected) {
            System.out.println("written: " + expected.getMessage());
        }
        transactional.executeInTransaction(each -> each.send("written", "k", "again"));
        read(servers, "written", 1, 2).forEach(each -> System.out.println("written: " + each.value()));

        for (String value : List.of("good", "bad", "again")) {
            template.send("retried", 0, value, value).get();
        }
        await("retried", () -> SEEN.stream().anyMatch(each -> each.startsWith("from retried-dlt"))
            && SEEN.contains("retried: again 2"));
        print("retried");
        print("from retried");

        for (String value : List.of("accepted", "released", "ended")) {
            template.send("shared", 0, value, value).get();
        }
        read(servers, "dlq.shared", 1, 2).stream().map(each -> "dlq.shared: " + each.value()).sorted()
            .forEach(System.out::println);
        print("shared");

        for (int number = 0; number < count; number++) {
            template.send("numbers", number % 3, null, "" + number);
        }
        template.flush();
        System.out.println("numbers: sent");
        System.out.flush();
        var squares = new TreeMap<Long, Integer>();
        for (var each : read(servers, "squares", 3, count)) {
            long number = Long.parseLong(each.key());
            squares.merge(Long.parseLong(each.value()) == number * number ? number : -1, 1, Integer::sum);
        }
        System.out.println("squares: " + squares.size() + " once: " + squares.values().stream().allMatch(n -> n == 1));
    }
}
