package kraftwire;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Traffic of Kafka's own clients: the admin client, a producer, transactions, and groups of both
 * protocols. The only argument is the list of bootstrap servers.
 */
public final class ClientTraffic {
    private static final String NAME = "java";
    private static final String TOPIC = "java-orders";
    private static final String READERS = "java-readers";
    private static final String WATCHERS = "java-watchers";
    private static final int BATCH = 32;
    private static final int COUNT = 40 * BATCH;
    private static final int MORE = 2 * BATCH;
    private static final int PARTITIONS = 3;
    private static final int SECONDS = 30;
    private static final TopicPartition FIRST = new TopicPartition(TOPIC, 0);

    private final Map<String, Object> common;

    private ClientTraffic(String servers) {
        common = Map.of("bootstrap.servers", servers, "client.id", NAME);
    }

    public static void main(String[] args) throws Exception {
        ClientTraffic traffic = new ClientTraffic(args[0]);
        Steps.begin();
        try (Admin admin = Admin.create(traffic.common)) {
            Steps.take("cluster", () -> cluster(admin));
            Steps.take("quorum", () -> quorum(admin));
            Steps.take("features", () -> features(admin));
            Steps.take("topics", () -> topics(admin));
            Steps.take("configs", () -> configs(admin));
            Steps.take("produce", () -> traffic.produce(COUNT, false));
            Steps.take("idempotent", () -> traffic.produce(MORE, true));
            Steps.take("classic", () -> traffic.consume("classic", READERS));
            Steps.take("consumer", () -> traffic.consume("consumer", WATCHERS));
            Steps.take("groups", () -> groups(admin));
            Steps.take("transactions", () -> traffic.transact(admin));
            Steps.take("rest", () -> rest(admin));
            Steps.take("delete", () -> delete(admin));
        }
    }

    private static String cluster(Admin admin) throws Exception {
        var found = admin.describeCluster();
        Steps.expect(found.clusterId().get().length() == 22, "cluster " + found.clusterId().get());
        return found.nodes().get().size() + " brokers";
    }

    private static String quorum(Admin admin) throws Exception {
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        Steps.expect(quorum.leaderId() > 0, "" + quorum);
        return quorum.voters().size() + " voters";
    }

    private static String features(Admin admin) throws Exception {
        var finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        return finalized.entrySet().stream()
            .map(each -> each.getKey() + " " + each.getValue().maxVersionLevel())
            .sorted()
            .collect(Collectors.joining(", "));
    }

    private static String topics(Admin admin) throws Exception {
        NewTopic wanted = new NewTopic(TOPIC, Optional.of(PARTITIONS - 1), Optional.empty());
        admin.createTopics(List.of(wanted)).all().get();
        admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(PARTITIONS))).all().get();
        until(() -> partitions(admin).size() == PARTITIONS);
        Steps.expect(admin.listTopics().names().get().contains(TOPIC), TOPIC);
        int replicas = partitions(admin).get(0).replicas().size();
        return PARTITIONS + " partitions of " + replicas + " replicas";
    }

    private static List<TopicPartitionInfo> partitions(Admin admin) throws Exception {
        return admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC).partitions();
    }

    private static String configs(Admin admin) throws Exception {
        ConfigEntry retention = new ConfigEntry("retention.ms", "3600000");
        AlterConfigOp set = new AlterConfigOp(retention, AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(topic(), List.of(set))).all().get();
        until(() -> config(admin).get("retention.ms").value().equals("3600000"));
        admin.listConfigResources().all().get();
        return config(admin).entries().size() + " properties";
    }

    private static Config config(Admin admin) throws Exception {
        return admin.describeConfigs(List.of(topic())).all().get().get(topic());
    }

    /** Asks again and again, as a broker learns a little later what a controller has decided. */
    private static void until(Callable<Boolean> isSo) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (!isSo.call()) {
            Steps.expect(System.nanoTime() < end, "nothing after " + SECONDS + " s");
        }
    }

    private Map<String, Object> with(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(common);
        config.putAll(more);
        return config;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        ByteArraySerializer bytes = new ByteArraySerializer();
        return new KafkaProducer<>(with(more), bytes, bytes);
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(with(more), bytes, bytes);
    }

    private static ProducerRecord<byte[], byte[]> order(int number) {
        String customer = String.format("customer-%03d", number * 7 % 211);
        String value = String.format(
            "{\"order\": %d, \"customer\": \"%s\", \"city\": \"Malm\u00f6\", \"items\": [{\"article\": "
                + "\"A-%05d\", \"count\": %d}], \"note\": \"leave it at number %d\"}",
            number, customer, number * 7919 % 100000, number % 9 + 1, number % 50);
        return new ProducerRecord<>(
            TOPIC,
            customer.getBytes(StandardCharsets.UTF_8),
            value.getBytes(StandardCharsets.UTF_8));
    }

    /** Sends batches, each of them answered before the next. */
    private String produce(int count, boolean isIdempotent) throws Exception {
        Map<String, Object> config = Map.of("linger.ms", 5, "enable.idempotence", isIdempotent);
        try (var producer = producer(config)) {
            for (int start = 0; start < count; start += BATCH) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int number = start; number < start + BATCH; number++) {
                    sent.add(producer.send(order(number)));
                }
                producer.flush();
                for (Future<RecordMetadata> each : sent) {
                    each.get();
                }
            }
        }
        return count + " records";
    }

    /** Each third of the transactions is aborted; offsets are part of them. */
    private String transact(Admin admin) throws Exception {
        try (var producer = producer(Map.of("transactional.id", "java-transactions"));
                var consumer = consumer(Map.of("group.id", "java-ledger"))) {
            producer.initTransactions();
            for (int number = 0; number < 12; number++) {
                producer.beginTransaction();
                producer.send(order(number)).get();
                producer.sendOffsetsToTransaction(
                    Map.of(FIRST, new OffsetAndMetadata(number)), consumer.groupMetadata());
                if (number % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        admin.describeProducers(List.of(FIRST)).all().get();
        admin.describeTransactions(List.of("java-transactions")).all().get();
        admin.listTransactions().all().get();
        return "offset " + offsets(admin, "java-ledger");
    }

    /** The sum of a group's offsets. */
    private static long offsets(Admin admin, String group) throws Exception {
        return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .values().stream().mapToLong(OffsetAndMetadata::offset).sum();
    }

    private String consume(String protocol, String group) {
        Map<String, Object> config = Map.of(
            "group.id", group,
            "group.protocol", protocol,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "max.partition.fetch.bytes", 100,
            "max.poll.records", BATCH);
        int count = 0;
        try (var consumer = consumer(config)) {
            consumer.subscribe(List.of(TOPIC));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (count < COUNT + MORE) {
                int found = consumer.poll(Duration.ofSeconds(1)).count();
                count += found;
                if (found > 0) {
                    consumer.commitSync();
                }
                Steps.expect(System.nanoTime() < end, count + " records in " + SECONDS + " s");
            }
        }
        return count + " records";
    }

    private static ConfigResource topic() {
        return new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
    }

    private static String groups(Admin admin) throws Exception {
        admin.listGroups().all().get();
        var found = admin.describeConsumerGroups(List.of(READERS, WATCHERS)).all().get();
        String states = found.get(READERS).groupState() + " and " + found.get(WATCHERS).groupState();
        return states + ", offsets " + offsets(admin, READERS) + " and " + offsets(admin, WATCHERS);
    }

    /** What no other client has. */
    private static String rest(Admin admin) throws Exception {
        int broker = partitions(admin).get(0).replicas().get(0).id();
        admin.describeLogDirs(List.of(broker)).allDescriptions().get();
        admin.listOffsets(Map.of(FIRST, OffsetSpec.latest())).all().get();
        var reassignment = Optional.of(new NewPartitionReassignment(List.of(broker)));
        admin.alterPartitionReassignments(Map.of(FIRST, reassignment)).all().get();
        until(() -> admin.listPartitionReassignments().reassignments().get().isEmpty());
        refused(admin.electLeaders(ElectionType.PREFERRED, Set.of(FIRST)).all());
        admin.alterConsumerGroupOffsets(READERS, Map.of(FIRST, new OffsetAndMetadata(1))).all().get();
        admin.deleteConsumerGroupOffsets(READERS, Set.of(FIRST)).all().get();
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "anna"));
        ClientQuotaAlteration.Op rate = new ClientQuotaAlteration.Op("producer_byte_rate", 1e6);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(user, List.of(rate)))).all().get();
        ScramCredentialInfo scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(
            List.of(new UserScramCredentialUpsertion("anna", scram, "secret"))).all().get();
        until(() -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().size() == 1);
        until(() -> admin.describeUserScramCredentials().all().get().containsKey("anna"));
        return "reassignment, election, offsets, quotas, SCRAM";
    }

    private static String delete(Admin admin) throws Exception {
        admin.deleteRecords(Map.of(FIRST, RecordsToDelete.beforeOffset(5))).all().get();
        admin.deleteConsumerGroups(List.of(READERS, WATCHERS)).all().get();
        admin.deleteTopics(List.of(TOPIC)).all().get();
        until(() -> !admin.listTopics().names().get().contains(TOPIC));
        return "records, groups, topic";
    }

    /** Wait for an answer that is an error, too. */
    private static void refused(KafkaFuture<?> answer) throws Exception {
        try {
            answer.get();
        } catch (java.util.concurrent.ExecutionException problem) {
            if (!(problem.getCause() instanceof ApiException)) {
                throw problem;
            }
        }
    }
}
