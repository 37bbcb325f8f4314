package kraftwire;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
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
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
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
    private static final int ROUNDS = 40;
    private static final int BATCH = 32;
    private static final TopicPartition FIRST = new TopicPartition(TOPIC, 0);

    private final Map<String, Object> common;

    private ClientTraffic(String servers) {
        common = Map.of("bootstrap.servers", servers, "client.id", NAME);
    }

    public static void main(String[] args) throws Exception {
        ClientTraffic traffic = new ClientTraffic(args[0]);
        try (Admin admin = Admin.create(traffic.common)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 3, (short) 1))).all().get();
            traffic.produce();
            traffic.transact();
            traffic.consume("classic", "java-readers");
            traffic.consume("consumer", "java-watchers");
            for (int round = 0; round < 3; round++) {
                describe(admin);
            }
            alter(admin);
            admin.deleteConsumerGroups(List.of("java-readers", "java-watchers")).all().get();
            admin.deleteTopics(List.of(TOPIC)).all().get();
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

    private void produce() {
        try (var producer = producer(Map.of("linger.ms", 5))) {
            for (int number = 0; number < ROUNDS * BATCH; number++) {
                producer.send(order(number));
                if (number % BATCH == BATCH - 1) {
                    producer.flush();
                }
            }
        }
    }

    private void transact() throws Exception {
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
    }

    private void consume(String protocol, String group) {
        Map<String, Object> config = Map.of(
            "group.id", group,
            "group.protocol", protocol,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "max.partition.fetch.bytes", 100,
            "max.poll.records", BATCH);
        try (var consumer = consumer(config)) {
            consumer.subscribe(List.of(TOPIC));
            for (int count = 0; count < ROUNDS * BATCH; ) {
                int found = consumer.poll(Duration.ofSeconds(1)).count();
                count += found;
                if (found > 0) {
                    consumer.commitSync();
                }
            }
        }
    }

    private static ConfigResource topic() {
        return new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
    }

    private static void describe(Admin admin) throws Exception {
        admin.describeCluster().nodes().get();
        admin.describeTopics(List.of(TOPIC)).allTopicNames().get();
        admin.listTopics().names().get();
        admin.describeConfigs(List.of(topic())).all().get();
        admin.listOffsets(Map.of(FIRST, OffsetSpec.latest())).all().get();
        admin.listGroups().all().get();
        admin.describeConsumerGroups(List.of("java-readers", "java-watchers")).all().get();
        admin.listConsumerGroupOffsets("java-readers").partitionsToOffsetAndMetadata().get();
        admin.describeLogDirs(List.of(1)).allDescriptions().get();
        admin.describeMetadataQuorum().quorumInfo().get();
        admin.describeFeatures().featureMetadata().get();
        admin.describeProducers(List.of(FIRST)).all().get();
        admin.describeTransactions(List.of("java-transactions")).all().get();
        admin.listTransactions().all().get();
        admin.listPartitionReassignments().reassignments().get();
        admin.listConfigResources().all().get();
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
        refused(admin.describeUserScramCredentials().all());
    }

    private static void alter(Admin admin) throws Exception {
        ConfigEntry retention = new ConfigEntry("retention.ms", "3600000");
        AlterConfigOp set = new AlterConfigOp(retention, AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(topic(), List.of(set))).all().get();
        admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(4))).all().get();
        admin.alterPartitionReassignments(
            Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get();
        refused(admin.electLeaders(ElectionType.PREFERRED, Set.of(FIRST)).all());
        admin.alterConsumerGroupOffsets(
            "java-readers", Map.of(FIRST, new OffsetAndMetadata(1))).all().get();
        admin.deleteConsumerGroupOffsets("java-readers", Set.of(FIRST)).all().get();
        admin.deleteRecords(Map.of(FIRST, RecordsToDelete.beforeOffset(5))).all().get();
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "anna"));
        ClientQuotaAlteration.Op rate = new ClientQuotaAlteration.Op("producer_byte_rate", 1e6);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(user, List.of(rate)))).all().get();
        ScramCredentialInfo scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(
            List.of(new UserScramCredentialUpsertion("anna", scram, "secret"))).all().get();
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
