package kraftwire;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * The life of groups of every kind, one after the other: members join, take part, leave,
 * hang and vanish; and a producer's transactions. Arguments: a bootstrap server and a folder.
 */
public final class Groups {
    private static final String ORDERS = "orders";
    private static final String PAYMENTS = "payments";
    private static final byte[] SCHEMA_4711 = {0, 0, 0, 0x12, 0x67};

    private final Map<String, Object> common;
    private final String folder;

    private Groups(String server, String folder) {
        this.folder = folder;
        common = Map.of("bootstrap.servers", server);
    }

    public static void main(String[] args) throws Exception {
        Groups groups = new Groups(args[0], args[1]);
        groups.createTopics();
        groups.produce();
        groups.transactions();
        groups.members("classic", "readers");
        groups.members("consumer", "watchers");
        groups.share();
        groups.streams();
    }

    private void createTopics() throws Exception {
        try (Admin admin = Admin.create(common)) {
            admin.createTopics(List.of(
                new NewTopic(ORDERS, 4, (short) 1),
                new NewTopic(PAYMENTS, 1, (short) 1),
                new NewTopic("totals", 1, (short) 1))).all().get();
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "workers");
            ConfigEntry start = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(group, List.of(
                new AlterConfigOp(start, AlterConfigOp.OpType.SET)))).all().get();
        }
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(common);
        config.put("key.serializer", ByteArraySerializer.class);
        config.put("value.serializer", ByteArraySerializer.class);
        config.put("linger.ms", 20);
        config.putAll(more);
        return new KafkaProducer<>(config);
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Payloads of every distinguishable kind: JSON, text, bytes, a schema id, null. */
    private void produce() {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("client.id", "shop"))) {
            for (int number = 0; number < 40; number++) {
                byte[] value = text("{\"order\": " + number + ", \"city\": \"Zürich\"}");
                ProducerRecord<byte[], byte[]> record =
                    new ProducerRecord<>(ORDERS, number % 4, text("order-" + number), value);
                record.headers().add("trace", text("t" + number));
                producer.send(record);
            }
            producer.send(new ProducerRecord<>(PAYMENTS, text("plain"), text("paid in full")));
            producer.send(new ProducerRecord<>(PAYMENTS, text("gone"), null));
            byte[] avro = new byte[SCHEMA_4711.length + 3];
            System.arraycopy(SCHEMA_4711, 0, avro, 0, SCHEMA_4711.length);
            System.arraycopy(new byte[] {2, 'x', 8}, 0, avro, SCHEMA_4711.length, 3);
            producer.send(new ProducerRecord<>(PAYMENTS, text("avro"), avro));
            producer.send(new ProducerRecord<>(PAYMENTS, new byte[] {(byte) 0xff, 1}, new byte[0]));
        }
    }

    /** One transaction that is committed with offsets, one aborted, and a producer fenced. */
    private void transactions() throws Exception {
        Map<String, Object> config = Map.of("client.id", "till", "transactional.id", "till-1");
        KafkaProducer<byte[], byte[]> first = producer(config);
        first.initTransactions();
        first.beginTransaction();
        first.send(new ProducerRecord<>(PAYMENTS, text("a"), text("committed"))).get();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumer("ledger"))) {
            first.sendOffsetsToTransaction(
                Map.of(new TopicPartition(ORDERS, 0), new OffsetAndMetadata(5)),
                consumer.groupMetadata());
        }
        first.commitTransaction();
        first.beginTransaction();
        first.send(new ProducerRecord<>(PAYMENTS, text("b"), text("aborted"))).get();
        first.abortTransaction();
        first.beginTransaction();
        first.send(new ProducerRecord<>(PAYMENTS, text("c"), text("left open"))).get();
        try (KafkaProducer<byte[], byte[]> second = producer(config)) {
            second.initTransactions();
            second.beginTransaction();
            second.send(new ProducerRecord<>(ORDERS, 0, text("d"), text("by the second"))).get();
            second.commitTransaction();
            try {
                first.commitTransaction();
            } catch (RuntimeException expected) {
                System.out.println("fenced: " + expected.getMessage());
            }
        }
        first.close(Duration.ZERO);
    }

    private Map<String, Object> consumer(String group) {
        Map<String, Object> config = new HashMap<>(common);
        config.put("key.deserializer", ByteArrayDeserializer.class);
        config.put("value.deserializer", ByteArrayDeserializer.class);
        config.put("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("auto.commit.interval.ms", 1500);
        config.put("fetch.max.wait.ms", 1500);
        return config;
    }

    private Map<String, Object> consumer(String group, String protocol, String name) {
        Map<String, Object> config = consumer(group);
        config.put("client.id", group + "-" + name);
        config.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            config.put("session.timeout.ms", 3000);
            config.put("heartbeat.interval.ms", 1000);
        }
        return config;
    }

    /** Of four members one leaves, one is static, one hangs, and one vanishes. */
    private void members(String protocol, String group) throws Exception {
        Member first = new Member(consumer(group, protocol, "first"));
        first.start();
        Thread.sleep(3000);
        Map<String, Object> fixed = consumer(group, protocol, "fixed");
        fixed.put("group.instance.id", "desk-1");
        Member second = new Member(fixed);
        second.start();
        Thread.sleep(3000);
        Map<String, Object> short_ = consumer(group, protocol, "hanging");
        short_.put("max.poll.interval.ms", 3000);
        Member third = new Member(short_);
        third.hangsAfterMillis = 1500;
        third.start();
        Thread.sleep(7500);
        third.end(GroupMembershipOperation.DEFAULT);
        Member fourth = new Member(consumer(group, protocol, "vanishing"));
        fourth.start();
        Thread.sleep(3000);
        fourth.end(GroupMembershipOperation.REMAIN_IN_GROUP);
        Thread.sleep(6000);
        second.end(GroupMembershipOperation.DEFAULT);
        first.end(GroupMembershipOperation.LEAVE_GROUP);
    }

    private void share() throws Exception {
        Sharer first = new Sharer("one");
        Sharer second = new Sharer("two");
        first.start();
        Thread.sleep(2500);
        second.start();
        Thread.sleep(5000);
        first.end();
        Thread.sleep(1500);
        second.end();
    }

    /** Two instances of an application that counts orders by city. */
    private void streams() throws Exception {
        KafkaStreams first = application("first");
        KafkaStreams second = application("second");
        first.start();
        Thread.sleep(8000);
        second.start();
        Thread.sleep(8000);
        second.close(Duration.ofSeconds(5));
        Thread.sleep(3000);
        first.close(Duration.ofSeconds(5));
    }

    private KafkaStreams application(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(ORDERS)
            .selectKey((key, value) -> value.substring(value.length() - 8))
            .groupByKey()
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("totals");
        Properties config = new Properties();
        config.putAll(common);
        config.put("application.id", "counter");
        config.put("client.id", "counter-" + name);
        config.put("group.protocol", "streams");
        config.put("state.dir", new File(folder, name).getPath());
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("commit.interval.ms", 2000);
        config.put("consumer.fetch.max.wait.ms", 1500);
        config.put("consumer.auto.offset.reset", "earliest");
        return new KafkaStreams(builder.build(), config);
    }

    /** A member of a group, which polls until it is stopped or hangs. */
    private static final class Member extends Thread {
        private final Map<String, Object> config;
        private volatile GroupMembershipOperation ending;
        private long hangsAfterMillis = Long.MAX_VALUE;

        private Member(Map<String, Object> config) {
            this.config = config;
        }

        @Override
        public void run() {
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
            consumer.subscribe(List.of(ORDERS, PAYMENTS));
            long start = System.nanoTime();
            while (ending == null) {
                if ((System.nanoTime() - start) / 1_000_000 < hangsAfterMillis) {
                    consumer.poll(Duration.ofMillis(200));
                } else {
                    Thread.onSpinWait();
                    sleepShortly();
                }
            }
            consumer.close(CloseOptions.groupMembershipOperation(ending)
                .withTimeout(Duration.ofSeconds(5)));
        }

        private static void sleepShortly() {
            try {
                Thread.sleep(50);
            } catch (InterruptedException problem) {
                throw new IllegalStateException(problem);
            }
        }

        private void end(GroupMembershipOperation how) throws InterruptedException {
            ending = how;
            join();
        }
    }

    /** A member of a share group, which accepts, releases and rejects records. */
    private final class Sharer extends Thread {
        private final String name;
        private volatile boolean isEnding;

        private Sharer(String name) {
            this.name = name;
        }

        @Override
        public void run() {
            Map<String, Object> config = consumer("workers");
            config.remove("auto.offset.reset");
            config.remove("auto.commit.interval.ms");
            config.put("client.id", "workers-" + name);
            config.put("share.acknowledgement.mode", "explicit");
            config.put("max.poll.records", 12);
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(config)) {
                consumer.subscribe(List.of(ORDERS));
                while (!isEnding) {
                    for (ConsumerRecord<byte[], byte[]> record
                            : consumer.poll(Duration.ofMillis(500))) {
                        consumer.acknowledge(record, kindOf(record));
                    }
                    consumer.commitSync();
                }
            }
        }

        private static AcknowledgeType kindOf(ConsumerRecord<byte[], byte[]> record) {
            if (record.offset() == 3) {
                return AcknowledgeType.REJECT;
            }
            boolean isFirstTime = record.deliveryCount().orElse((short) 1) == 1;
            return record.offset() == 6 && isFirstTime
                ? AcknowledgeType.RELEASE
                : AcknowledgeType.ACCEPT;
        }

        private void end() throws InterruptedException {
            isEnding = true;
            join();
        }
    }
}
