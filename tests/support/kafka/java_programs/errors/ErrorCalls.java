package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One call of Kafka's clients for each API, and what the program that makes it gets to see.
 *
 * A JSON line {"api", "servers", "topic", "name"} in, one {"error"} out: null if the call returned,
 * the name of Kafka's error or of the exception if it raised. The topic has one partition with
 * records; the name is used once, for groups, transactions and what is made. {"op": "list"} is
 * answered with the names of all APIs that there is a call for.
 */
public final class ErrorCalls {
    private static final int SECONDS = 5;
    private static final Duration WAIT = Duration.ofSeconds(2 * SECONDS);
    // A heartbeat follows the last answer after so long.
    private static final int HEARTBEAT_MS = 100;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** What a program does with a client. */
    private interface Call {
        void make(ErrorCalls calls) throws Exception;
    }

    private static final Map<String, Call> CALLS = new TreeMap<>();

    static {
        addProducers();
        addConsumers();
        addAdminOfTopics();
        addAdminOfGroups();
        addAdminOfCluster();
        addAdminOfSecurity();
    }

    private final Map<String, Object> config = new HashMap<>();
    private final String topic;
    private final String name;
    private final TopicPartition partition;

    private ErrorCalls(JsonNode question) {
        topic = question.get("topic").asText();
        name = question.get("name").asText();
        partition = new TopicPartition(topic, 0);
        config.put("bootstrap.servers", question.get("servers").asText());
        config.put("client.id", "tested");
        config.put("retry.backoff.ms", 20);
        config.put("retry.backoff.max.ms", 50);
        config.put("request.timeout.ms", SECONDS * 1000 / 2);
        config.put("default.api.timeout.ms", SECONDS * 1000);
        config.put("enable.metrics.push", false);
    }

    public static void main(String[] args) throws Exception {
        // The library logs to standard output.
        PrintStream answers = System.out;
        System.setOut(System.err);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            Map<String, Object> answer = new HashMap<>();
            if (question.has("op")) {
                answer.put("apis", CALLS.keySet());
            } else {
                answer.put("error", new ErrorCalls(question).error(question.get("api").asText()));
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }

    private String error(String api) {
        try {
            CALLS.get(api).make(this);
            return null;
        } catch (Exception thrown) {
            return nameOf(thrown);
        }
    }

    /** The first error of Kafka's among the causes, or the class of what was thrown. */
    private static String nameOf(Throwable thrown) {
        Throwable last = thrown;
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            Errors found = Errors.forException(each);
            if (found != Errors.UNKNOWN_SERVER_ERROR || each instanceof UnknownServerException) {
                return found.name();
            }
            last = each;
        }
        return last.getClass().getSimpleName();
    }

    private static void addProducers() {
        CALLS.put("Produce", calls -> calls.produce(Map.of("enable.idempotence", false)));
        CALLS.put("InitProducerId", calls -> calls.produce(Map.of("enable.idempotence", true)));
        CALLS.put("Metadata", ErrorCalls::partitions);
        CALLS.put("AddPartitionsToTxn", calls -> calls.transact(false));
        CALLS.put("EndTxn", calls -> calls.transact(false));
        CALLS.put("AddOffsetsToTxn", calls -> calls.transact(true));
        CALLS.put("TxnOffsetCommit", calls -> calls.transact(true));
    }

    private static void addConsumers() {
        CALLS.put("Fetch", ErrorCalls::consume);
        CALLS.put("ListOffsets", ErrorCalls::consume);
        CALLS.put("OffsetForLeaderEpoch", ErrorCalls::validate);
        CALLS.put("FindCoordinator", ErrorCalls::commit);
        CALLS.put("OffsetCommit", ErrorCalls::commit);
        CALLS.put("OffsetFetch", ErrorCalls::committed);
        for (String api : List.of("JoinGroup", "SyncGroup")) {
            CALLS.put(api, calls -> calls.join(Map.of(), 0));
        }
        Map<String, Object> often = Map.of("heartbeat.interval.ms", HEARTBEAT_MS);
        CALLS.put("Heartbeat", calls -> calls.join(often, 10));
        CALLS.put("LeaveGroup", calls -> calls.join(Map.of(), 0));
        Map<String, Object> next = Map.of("group.protocol", "consumer");
        CALLS.put("ConsumerGroupHeartbeat", calls -> calls.join(next, 0));
        for (String api : List.of("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")) {
            CALLS.put(api, ErrorCalls::share);
        }
        CALLS.put("GetTelemetrySubscriptions", ErrorCalls::instanceId);
    }

    private static void addAdminOfTopics() {
        admin("CreateTopics", (a, c) ->
            a.createTopics(Set.of(new NewTopic(c.name, 1, (short) 1))).all());
        admin("DeleteTopics", (a, c) -> a.deleteTopics(Set.of(c.name)).all());
        admin("CreatePartitions", (a, c) ->
            a.createPartitions(Map.of(c.name, NewPartitions.increaseTo(2))).all());
        admin("DescribeTopicPartitions", (a, c) -> a.describeTopics(Set.of(c.topic)).allTopicNames());
        admin("DeleteRecords", (a, c) ->
            a.deleteRecords(Map.of(c.partition, RecordsToDelete.beforeOffset(0))).all());
        admin("DescribeProducers", (a, c) -> a.describeProducers(Set.of(c.partition)).all());
        admin("WriteTxnMarkers", (a, c) ->
            a.abortTransaction(new AbortTransactionSpec(c.partition, 1L, (short) 0, 0)).all());
        admin("ElectLeaders", (a, c) ->
            a.electLeaders(ElectionType.PREFERRED, Set.of(c.partition)).all());
        admin("AlterPartitionReassignments", (a, c) ->
            a.alterPartitionReassignments(Map.of(c.partition, Optional.empty())).all());
        admin("ListPartitionReassignments", (a, c) ->
            a.listPartitionReassignments().reassignments());
        admin("DescribeLogDirs", (a, c) -> a.describeLogDirs(Set.of(c.broker(a))).allDescriptions());
        admin("AlterReplicaLogDirs", (a, c) -> a.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica(c.topic, 0, c.broker(a)), "/none")).all());
    }

    private static void addAdminOfGroups() {
        admin("ListGroups", (a, c) -> a.listGroups().all());
        admin("DescribeGroups", (a, c) -> a.describeClassicGroups(Set.of(c.name)).all());
        admin("ConsumerGroupDescribe", (a, c) -> a.describeConsumerGroups(Set.of(c.name)).all());
        admin("ShareGroupDescribe", (a, c) -> a.describeShareGroups(Set.of(c.name)).all());
        admin("StreamsGroupDescribe", (a, c) -> a.describeStreamsGroups(Set.of(c.name)).all());
        admin("DeleteGroups", (a, c) -> a.deleteConsumerGroups(Set.of(c.name)).all());
        admin("OffsetDelete", (a, c) ->
            a.deleteConsumerGroupOffsets(c.name, Set.of(c.partition)).all());
        admin("AlterShareGroupOffsets", (a, c) ->
            a.alterShareGroupOffsets(c.name, Map.of(c.partition, 0L)).all());
        admin("DeleteShareGroupOffsets", (a, c) ->
            a.deleteShareGroupOffsets(c.name, Set.of(c.topic)).all());
        admin("DescribeShareGroupOffsets", (a, c) -> a.listShareGroupOffsets(Map.of(
            c.name, new ListShareGroupOffsetsSpec().topicPartitions(Set.of(c.partition)))).all());
        admin("DescribeTransactions", (a, c) -> a.describeTransactions(Set.of(c.name)).all());
        admin("ListTransactions", (a, c) -> a.listTransactions().all());
    }

    private static void addAdminOfCluster() {
        admin("ApiVersions", (a, c) -> a.describeFeatures().featureMetadata());
        admin("DescribeCluster", (a, c) -> a.describeCluster().nodes());
        admin("DescribeQuorum", (a, c) -> a.describeMetadataQuorum().quorumInfo());
        admin("UpdateFeatures", (a, c) -> a.updateFeatures(
            Map.of("group.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all());
        admin("UnregisterBroker", (a, c) -> a.unregisterBroker(4711).all());
        admin("AddRaftVoter", (a, c) -> a.addRaftVoter(4711, Uuid.randomUuid(),
            Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all());
        admin("RemoveRaftVoter", (a, c) -> a.removeRaftVoter(4711, Uuid.randomUuid()).all());
        admin("DescribeConfigs", (a, c) -> a.describeConfigs(Set.of(c.resource())).all());
        admin("IncrementalAlterConfigs", (a, c) -> a.incrementalAlterConfigs(
            Map.of(c.resource(), Set.of(new AlterConfigOp(
                new ConfigEntry("retention.ms", "1000000000"), AlterConfigOp.OpType.SET)))).all());
        admin("ListConfigResources", (a, c) -> a.listConfigResources().all());
        admin("DescribeClientQuotas", (a, c) ->
            a.describeClientQuotas(ClientQuotaFilter.all()).entities());
        admin("AlterClientQuotas", (a, c) -> a.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("user", c.name)),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all());
    }

    private static void addAdminOfSecurity() {
        AccessControlEntry entry =
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW);
        Function<ErrorCalls, AclBinding> binding = c ->
            new AclBinding(new ResourcePattern(ResourceType.TOPIC, c.name, PatternType.LITERAL), entry);
        admin("DescribeAcls", (a, c) -> a.describeAcls(AclBindingFilter.ANY).values());
        admin("CreateAcls", (a, c) -> a.createAcls(List.of(binding.apply(c))).all());
        admin("DeleteAcls", (a, c) -> a.deleteAcls(List.of(binding.apply(c).toFilter())).all());
        admin("DescribeUserScramCredentials", (a, c) -> a.describeUserScramCredentials().all());
        admin("AlterUserScramCredentials", (a, c) -> a.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion(c.name,
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all());
        admin("CreateDelegationToken", (a, c) -> a.createDelegationToken().delegationToken());
        admin("RenewDelegationToken", (a, c) -> a.renewDelegationToken(new byte[1]).expiryTimestamp());
        admin("ExpireDelegationToken", (a, c) ->
            a.expireDelegationToken(new byte[1]).expiryTimestamp());
        admin("DescribeDelegationToken", (a, c) -> a.describeDelegationToken().delegationTokens());
    }

    /** What is asked of an admin client. */
    private interface Asked {
        KafkaFuture<?> ask(Admin admin, ErrorCalls calls) throws Exception;
    }

    private static void admin(String api, Asked asked) {
        CALLS.put(api, calls -> {
            try (Admin admin = Admin.create(calls.config)) {
                asked.ask(admin, calls).get(2 * SECONDS, TimeUnit.SECONDS);
            }
        });
    }

    private int broker(Admin admin) throws Exception {
        return admin.describeCluster().nodes().get(SECONDS, TimeUnit.SECONDS).iterator().next().id();
    }

    private ConfigResource resource() {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private Map<String, Object> with(Map<String, Object> more) {
        Map<String, Object> found = new HashMap<>(config);
        found.putAll(more);
        return found;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> all = with(more);
        all.put("max.block.ms", SECONDS * 1000);
        all.put("delivery.timeout.ms", SECONDS * 1000);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private ProducerRecord<byte[], byte[]> record() {
        return new ProducerRecord<>(topic, 0, null, new byte[1]);
    }

    private void produce(Map<String, Object> more) throws Exception {
        var producer = producer(more);
        try {
            producer.send(record()).get(2 * SECONDS, TimeUnit.SECONDS);
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private void partitions() {
        var producer = producer(Map.of());
        try {
            producer.partitionsFor(topic);
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    /** A transaction with a record, and with an offset of a group. */
    private void transact(boolean withOffsets) throws Exception {
        var producer = producer(Map.of("transactional.id", name));
        try {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record()).get(2 * SECONDS, TimeUnit.SECONDS);
            if (withOffsets) {
                try (var consumer = consumer(Map.of())) {
                    producer.sendOffsetsToTransaction(
                        Map.of(partition, new OffsetAndMetadata(1)), consumer.groupMetadata());
                }
            }
            producer.commitTransaction();
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> all = with(more);
        all.put("group.id", name);
        all.put("enable.auto.commit", false);
        all.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Poll until records come. */
    private static void read(KafkaConsumer<byte[], byte[]> consumer) {
        long end = System.nanoTime() + WAIT.toNanos();
        while (System.nanoTime() < end) {
            ConsumerRecords<byte[], byte[]> found = consumer.poll(Duration.ofMillis(100));
            if (!found.isEmpty()) {
                return;
            }
        }
        throw new TimeoutException("no records");
    }

    private void consume() {
        try (var consumer = consumer(Map.of())) {
            consumer.assign(Set.of(partition));
            consumer.seekToBeginning(Set.of(partition));
            read(consumer);
        }
    }

    /** A position with a leader epoch is validated before records are fetched. */
    private void validate() {
        try (var consumer = consumer(Map.of())) {
            consumer.assign(Set.of(partition));
            consumer.seek(partition, new OffsetAndMetadata(0, Optional.of(0), ""));
            read(consumer);
        }
    }

    private void commit() {
        try (var consumer = consumer(Map.of())) {
            consumer.assign(Set.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1)));
        }
    }

    private void committed() {
        try (var consumer = consumer(Map.of())) {
            consumer.committed(Set.of(partition));
        }
    }

    /** Join a group, read, poll some more times, and leave. */
    private void join(Map<String, Object> more, int polls) {
        try (var consumer = consumer(more)) {
            consumer.subscribe(Set.of(topic));
            read(consumer);
            for (int count = 0; count < polls; count++) {
                consumer.poll(Duration.ofMillis(HEARTBEAT_MS));
            }
        }
    }

    /** A share group begins at the end of a topic, so a record is sent once it is there. */
    private void share() throws Exception {
        Map<String, Object> all = with(Map.of("group.id", name));
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaShareConsumer<>(all, bytes, bytes)) {
            consumer.subscribe(Set.of(topic));
            long end = System.nanoTime() + WAIT.toNanos();
            while (System.nanoTime() < end) {
                produce(Map.of());
                if (!consumer.poll(Duration.ofMillis(300)).isEmpty()) {
                    for (Optional<KafkaException> each : consumer.commitSync().values()) {
                        if (each.isPresent()) {
                            throw each.get();
                        }
                    }
                    return;
                }
            }
            throw new TimeoutException("no records");
        }
    }

    private void instanceId() throws Exception {
        try (Admin admin = Admin.create(with(Map.of("enable.metrics.push", true)))) {
            admin.clientInstanceId(WAIT);
        }
    }
}
