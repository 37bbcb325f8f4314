package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metadata.AccessControlEntryRecord;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** StandardAuthorizer's decisions: a set of ACLs, and requests; ranges of addresses. */
final class Acls {
    private Acls() { }

    static void decide(JsonNode question, ObjectNode answer) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> config = new HashMap<>();
        config.put("super.users", question.get("superUsers").asText());
        config.put("allow.everyone.if.no.acl.found", question.get("allowEveryone").asText());
        authorizer.configure(config);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        long id = 1;
        for (JsonNode acl : question.get("acls")) {
            AccessControlEntryRecord record = new AccessControlEntryRecord()
                .setResourceType((byte) acl.get(0).asInt())
                .setResourceName(acl.get(1).asText())
                .setPatternType((byte) acl.get(2).asInt())
                .setPrincipal(acl.get(3).asText())
                .setHost(acl.get(4).asText())
                .setOperation((byte) acl.get(5).asInt())
                .setPermissionType((byte) acl.get(6).asInt());
            authorizer.addAcl(new Uuid(1, id++), StandardAcl.fromRecord(record));
        }
        authorizer.completeInitialLoad();
        ArrayNode results = answer.putArray("results");
        int rounds = question.path("rounds").asInt(1);
        long begin = System.nanoTime();
        for (int round = 0; round < rounds; round++) {
            results.removeAll();
            for (JsonNode request : question.get("requests")) {
                results.add(decide(authorizer, request));
            }
        }
        ArrayNode described = answer.putArray("described");
        for (JsonNode filter : question.path("filters")) {
            described.add(count(authorizer, filter));
        }
        answer.put("nanos", (System.nanoTime() - begin) / rounds);
        authorizer.close();
    }

    /** For each range which of the hosts are in it; null if it is refused in a new ACL. */
    static void ranges(JsonNode question, ObjectNode answer) {
        ArrayNode found = answer.putArray("found");
        for (JsonNode range : question.get("ranges")) {
            try {
                CidrUtils.validate(range.asText());
            } catch (IllegalArgumentException refused) {
                found.addNull();
                continue;
            }
            ArrayNode hosts = found.addArray();
            for (JsonNode host : question.get("hosts")) {
                hosts.add(CidrUtils.isInRange(host.asText(), range.asText()));
            }
        }
    }

    private static int count(StandardAuthorizer authorizer, JsonNode filter) {
        int count = 0;
        AclBindingFilter binding = new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.fromCode((byte) filter.get(0).asInt()),
                filter.get(1).textValue(), PatternType.fromCode((byte) filter.get(2).asInt())),
            new AccessControlEntryFilter(filter.get(3).textValue(), filter.get(4).textValue(),
                AclOperation.fromCode((byte) filter.get(5).asInt()),
                AclPermissionType.fromCode((byte) filter.get(6).asInt())));
        for (AclBinding ignored : authorizer.acls(binding)) {
            count++;
        }
        return count;
    }

    private static boolean decide(StandardAuthorizer authorizer, JsonNode request)
        throws Exception {
        Context context = new Context(
            new KafkaPrincipal(request.get(0).asText(), request.get(1).asText()),
            InetAddress.getByName(request.get(2).asText()));
        Action action = new Action(
            AclOperation.fromCode((byte) request.get(3).asInt()),
            new ResourcePattern(ResourceType.fromCode((byte) request.get(4).asInt()),
                request.get(5).asText(), PatternType.LITERAL),
            1, false, false);
        return authorizer.authorize(context, List.of(action)).get(0) == AuthorizationResult.ALLOWED;
    }

    private record Context(KafkaPrincipal principal, InetAddress clientAddress)
        implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "CLIENT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
