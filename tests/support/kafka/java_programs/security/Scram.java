package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.ScramExtensionsCallback;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslClient;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCredentialCallback;

import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;

/** SCRAM as Kafka's classes do it; exchanges in several questions have an id. */
final class Scram {
    private static final Map<Integer, ScramSaslServer> SERVERS = new HashMap<>();
    private static final Map<Integer, ScramSaslClient> CLIENTS = new HashMap<>();

    private Scram() { }

    static void keys(JsonNode question, ObjectNode answer) throws Exception {
        ScramFormatter formatter = new ScramFormatter(mechanism(question));
        byte[] salted = formatter.saltedPassword(
            question.get("password").asText(), bytes(question, "salt"),
            question.get("iterations").asInt());
        answer.put("salted", text(salted));
        answer.put("storedKey", text(formatter.storedKey(formatter.clientKey(salted))));
        answer.put("serverKey", text(formatter.serverKey(salted)));
    }

    static void server(JsonNode question, ObjectNode answer) throws Exception {
        int id = question.get("id").asInt();
        if (!SERVERS.containsKey(id)) {
            ScramCredential credential = new ScramCredential(
                bytes(question, "salt"), bytes(question, "storedKey"), bytes(question, "serverKey"),
                question.get("iterations").asInt());
            CallbackHandler handler = callbacks -> {
                for (Callback callback : callbacks) {
                    if (callback instanceof DelegationTokenCredentialCallback token) {
                        token.tokenOwner("owner");
                        token.tokenExpiryTimestamp(1000L);
                    }
                    if (callback instanceof ScramCredentialCallback wanted) {
                        wanted.scramCredential(credential);
                    }
                }
            };
            SERVERS.put(id, new ScramSaslServer(mechanism(question), Map.of(), handler));
        }
        ScramSaslServer server = SERVERS.get(id);
        answer.put("token", text(server.evaluateResponse(bytes(question, "token"))));
        if (server.isComplete()) {
            answer.put("name", server.getAuthorizationID());
            SERVERS.remove(id);
        }
    }

    static void client(JsonNode question, ObjectNode answer) throws Exception {
        int id = question.get("id").asInt();
        if (!CLIENTS.containsKey(id)) {
            String name = question.get("name").asText();
            char[] password = question.get("password").asText().toCharArray();
            Map<String, String> extensions = question.get("isToken").asBoolean()
                ? Map.of("tokenauth", "true") : Map.of();
            CallbackHandler handler = callbacks -> {
                for (Callback callback : callbacks) {
                    if (callback instanceof NameCallback wanted) {
                        wanted.setName(name);
                    } else if (callback instanceof PasswordCallback wanted) {
                        wanted.setPassword(password);
                    } else if (callback instanceof ScramExtensionsCallback wanted) {
                        wanted.extensions(extensions);
                    }
                }
            };
            CLIENTS.put(id, new ScramSaslClient(mechanism(question), handler));
        }
        ScramSaslClient client = CLIENTS.get(id);
        byte[] token = client.evaluateChallenge(bytes(question, "token"));
        answer.put("token", token == null ? null : text(token));
        answer.put("complete", client.isComplete());
    }

    private static ScramMechanism mechanism(JsonNode question) {
        return ScramMechanism.forMechanismName(question.get("mechanism").asText());
    }

    private static byte[] bytes(JsonNode question, String field) {
        return Base64.getDecoder().decode(question.get(field).asText());
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
