package org.apache.kafka.common.test.junit;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * Gives Kafka's tests a cluster that is there already.
 *
 * <p>The class of this name in Kafka's own jar starts one; the first on the class path counts.
 *
 * <p>Its address is the property kraftwire.bootstrap. Tests that need more than an address are
 * aborted, with the reason; what a test leaves is deleted.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {

    private final String baseDisplayName;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(
            String baseDisplayName, ClusterConfig config, boolean isCombined) {
        this.baseDisplayName = baseDisplayName;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int invocationIndex) {
        return baseDisplayName + " [" + invocationIndex + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        StartedCluster cluster = new StartedCluster(config, isCombined);
        return List.of(
            (BeforeEachCallback) context -> cluster.check(),
            (AfterEachCallback) context -> cluster.clean(),
            new ClusterInstanceParameterResolver(cluster));
    }

    private static final class StartedCluster implements ClusterInstance {

        private static final String BOOTSTRAP = System.getProperty("kraftwire.bootstrap");
        private static final long WAIT_MS = 60_000;

        private final ClusterConfig config;
        private final boolean isCombined;
        private boolean isUsed;

        StartedCluster(ClusterConfig config, boolean isCombined) {
            this.config = config;
            this.isCombined = isCombined;
        }

        /** Abort what this cluster is not. */
        void check() throws InterruptedException, ExecutionException {
            if (isCombined) {
                throw new TestAbortedException("the same as with isolated controllers");
            }
            if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
                throw new TestAbortedException("needs logins");
            }
            if (config.numBrokers() > brokerIds().size()) {
                throw new TestAbortedException("needs " + config.numBrokers() + " brokers");
            }
            isUsed = true;
        }

        /** Delete what a test has left; members that are still there keep their group. */
        void clean() throws InterruptedException, ExecutionException {
            if (!isUsed) {
                return;
            }
            try (Admin admin = admin()) {
                List<String> groups =
                    admin.listGroups().all().get().stream().map(GroupListing::groupId).toList();
                for (var deleted : admin.deleteConsumerGroups(groups).deletedGroups().values()) {
                    var done = deleted.toCompletionStage().toCompletableFuture();
                    done.exceptionally(error -> null).get();
                }
                Set<String> topics = admin.listTopics().names().get();
                admin.deleteTopics(topics).all().get();
                for (String topic : topics) {
                    waitTopicDeletion(topic);
                }
            }
        }

        private static TestAbortedException inside(String what) {
            return new TestAbortedException("looks inside the process: " + what);
        }

        private Optional<Integer> partitions(Admin admin, String topic) throws Exception {
            try {
                var topics = admin.describeTopics(List.of(topic)).allTopicNames().get();
                var partitions = topics.get(topic).partitions().stream();
                return Optional.of((int) partitions.filter(each -> each.leader() != null).count());
            } catch (ExecutionException error) {
                if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                    return Optional.empty();
                }
                throw error;
            }
        }

        private void waitForPartitions(String topic, Optional<Integer> count)
                throws InterruptedException {
            try (Admin admin = admin()) {
                TestUtils.waitForCondition(
                    () -> partitions(admin, topic).equals(count), WAIT_MS, topic + " is not right");
            }
            // A broker that was not asked may be a little behind.
            Thread.sleep(100);
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            waitForPartitions(topic, Optional.of(partitions));
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            waitForPartitions(topic, Optional.empty());
        }

        @Override
        public void ensureConsistentMetadata() throws InterruptedException {
            Thread.sleep(100);
        }

        @Override
        public void waitForReadyBrokers() {
            // They are.
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
        }

        @Override
        public String bootstrapServers() {
            return BOOTSTRAP;
        }

        @Override
        public Set<Integer> brokerIds() {
            try (Admin admin = admin()) {
                return admin.describeCluster().nodes().get().stream()
                    .map(Node::id).collect(Collectors.toSet());
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public String clusterId() {
            try (Admin admin = admin()) {
                return admin.describeCluster().clusterId().get();
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public Type type() {
            return Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            throw inside("a controller's listener");
        }

        @Override
        public String bootstrapControllers() {
            throw inside("a controller's address");
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            throw inside("brokers");
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            throw inside("controllers");
        }

        @Override
        public Set<Integer> controllerIds() {
            throw inside("ids of controllers");
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public void start() {
            throw inside("its start");
        }

        @Override
        public boolean started() {
            return true;
        }

        @Override
        public void stop() {
            throw inside("its end");
        }

        @Override
        public boolean stopped() {
            return false;
        }

        @Override
        public void shutdownBroker(int brokerId) {
            throw inside("a broker's end");
        }

        @Override
        public void startBroker(int brokerId) {
            throw inside("a broker's start");
        }
    }
}
