package kraftwire;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own admin client and consumer on a quorum, reported as JSON lines: one with the version,
 * then one per step. The only argument is the list of bootstrap servers; a login by SASL_SSL comes
 * from the environment.
 */
public final class ClientProbe {
    private static final String TOPIC = "__cluster_metadata";
    private static final int READ_COUNT = 10;
    private static final int SECONDS = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Properties config = new Properties();

    private ClientProbe(String bootstrapServers) throws Exception {
        config.put("bootstrap.servers", bootstrapServers);
        config.put("client.id", "probe");
        String login = System.getenv("KRAFTWIRE_PROBE_LOGIN");
        if (login != null) {
            logIn(JSON.readValue(login, Map.class));
        }
    }

    /** SASL_SSL, with the file of an authority, a mechanism, a user and its password. */
    private void logIn(Map<?, ?> login) {
        String mechanism = (String) login.get("mechanism");
        String kind = mechanism.startsWith("SCRAM") ? "scram.Scram" : "plain.Plain";
        config.put("security.protocol", "SASL_SSL");
        config.put("ssl.truststore.type", "PEM");
        config.put("ssl.truststore.location", login.get("ca"));
        config.put("sasl.mechanism", mechanism);
        config.put(
            "sasl.jaas.config",
            String.format(
                "org.apache.kafka.common.security.%sLoginModule required username=\"%s\""
                    + " password=\"%s\";",
                kind, login.get("user"), login.get("password")));
    }

    public static void main(String[] args) throws Exception {
        ClientProbe probe = new ClientProbe(args[0]);
        Steps.begin();
        Steps.take("connect", probe::connect);
        Steps.take("describe", probe::describe);
        Steps.take("read", probe::read);
    }

    private String connect() throws Exception {
        try (Admin admin = Admin.create(config)) {
            var cluster = admin.describeCluster();
            Collection<Node> nodes = cluster.nodes().get(SECONDS, TimeUnit.SECONDS);
            Steps.expect(nodes.size() == 3, "nodes " + nodes);
            String id = cluster.clusterId().get();
            Steps.expect(id.length() == 22, "cluster id " + id);
            return "3 brokers";
        }
    }

    private String describe() throws Exception {
        try (Admin admin = Admin.create(config)) {
            QuorumInfo quorum =
                admin.describeMetadataQuorum().quorumInfo().get(SECONDS, TimeUnit.SECONDS);
            Steps.expect(quorum.voters().size() == 3, "voters " + quorum.voters());
            var features = admin.describeFeatures().featureMetadata().get(SECONDS, TimeUnit.SECONDS);
            Steps.expect(features.finalizedFeatures().containsKey("metadata.version"), "" + features);
            TopicDescription topic = admin.describeTopics(List.of(TOPIC)).allTopicNames()
                .get(SECONDS, TimeUnit.SECONDS).get(TOPIC);
            int leader = topic.partitions().get(0).leader().id();
            Steps.expect(leader == quorum.leaderId(), leader + " is not " + quorum.leaderId());
            return "quorum of 3, its leader; topic; features";
        }
    }

    private String read() {
        var bytes = new ByteArrayDeserializer();
        TopicPartition partition = new TopicPartition(TOPIC, 0);
        List<Long> offsets = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (offsets.size() < READ_COUNT && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    Steps.expect(record.value()[0] == 1, "no metadata record at " + record.offset());
                    offsets.add(record.offset());
                }
            }
        }
        Steps.expect(offsets.size() >= READ_COUNT, "offsets " + offsets);
        return "offsets " + offsets.get(0) + "-" + offsets.get(READ_COUNT - 1);
    }
}
