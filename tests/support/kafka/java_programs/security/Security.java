package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.x500.X500Principal;

/**
 * Kafka's own decisions about security: one JSON line {"op": name, ...} in, one JSON line out, which
 * is {"error": text} where Kafka refuses.
 */
public final class Security {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Security() { }

    public static void main(String[] args) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        try {
            switch (question.get("op").asText()) {
                case "mapper": names(question, answer); break;
                case "jaas": entry(question, answer); break;
                case "localNames": localNames(question, answer); break;
                case "acls": Acls.decide(question, answer); break;
                case "ranges": Acls.ranges(question, answer); break;
                case "principal": principal(question, answer); break;
                case "subject": answer.put("name", new X500Principal(HexFormat.of().parseHex(
                    question.get("bytes").asText())).getName()); break;
                case "keys": Scram.keys(question, answer); break;
                case "server": Scram.server(question, answer); break;
                case "client": Scram.client(question, answer); break;
                case "host": Hosts.check(question, answer); break;
                case "stores": Stores.load(question, answer); break;
                case "tokens": Tokens.validate(question, answer); break;
                default: throw new IllegalArgumentException("unknown question");
            }
        } catch (Exception refused) {
            answer.removeAll();
            answer.put("error", refused.toString());
        }
        return answer;
    }

    private static void names(JsonNode question, ObjectNode answer) {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(question.get("rules").asText());
        ArrayNode found = answer.putArray("names");
        for (JsonNode name : question.get("names")) {
            try {
                found.add(mapper.getName(name.asText()));
            } catch (IOException noRule) {
                found.addNull();
            } catch (RuntimeException fault) {
                found.add(false);
            }
        }
    }

    private static void localNames(JsonNode question, ObjectNode answer) {
        List<String> rules = new ArrayList<>();
        question.get("rules").forEach(rule -> rules.add(rule.asText()));
        KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules("R", rules);
        ArrayNode found = answer.putArray("names");
        for (JsonNode name : question.get("names")) {
            try {
                found.add(namer.shortName(KerberosName.parse(name.asText())));
            } catch (IOException | IllegalArgumentException refused) {
                found.addNull();
            } catch (RuntimeException fault) {
                found.add(false);
            }
        }
    }

    private static void entry(JsonNode question, ObjectNode answer) {
        Password text = new Password(question.get("text").asText());
        JaasContext context =
            JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, text));
        put(context.configurationEntries().get(0), answer);
    }

    private static void put(AppConfigurationEntry entry, ObjectNode out) {
        out.put("module", entry.getLoginModuleName());
        String flag = entry.getControlFlag().toString();
        out.put("flag", flag.substring(flag.lastIndexOf(' ') + 1));
        ObjectNode options = out.putObject("options");
        entry.getOptions().forEach((key, value) -> options.put(String.valueOf(key), (String) value));
        out.put("nameless", entry.getOptions().containsKey(null));
    }

    private static void principal(JsonNode question, ObjectNode answer) {
        DefaultKafkaPrincipalBuilder builder = new DefaultKafkaPrincipalBuilder(null, null);
        byte[] bytes = HexFormat.of().parseHex(question.get("bytes").asText());
        KafkaPrincipal principal = builder.deserialize(bytes);
        answer.put("type", principal.getPrincipalType());
        answer.put("name", principal.getName());
        answer.put("token", principal.tokenAuthenticated());
        answer.put("bytes", HexFormat.of().formatHex(builder.serialize(principal)));
    }
}
