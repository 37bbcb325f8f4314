package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Kafka's own serializer behind standard input and output: one JSON question per line, one JSON
 * answer per line, in order. A question that Kafka refuses is answered with {"error": text}.
 *
 * <pre>
 * {"op": "list"}                                    -> {"messages": [{"name", "low", "high"}]}
 * {"op": "read",  "name", "version", "hex"}         -> {"json", "hex", "rest"}
 * {"op": "write", "name", "version", "json"}        -> {"json", "hex"}
 * {"op": "random", "name", "version", "seed", "unknownTags"} -> {"json", "hex"}
 * </pre>
 *
 * Fields of type records are base64 in the JSON. "hex" of a "read" is the message written again.
 */
public final class Peer {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final Catalog catalog = Catalog.ofClassPath();

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer();
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(MAPPER.writeValueAsString(peer.answer(MAPPER.readTree(line))));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private ObjectNode answer(JsonNode question) {
        try {
            return switch (question.get("op").asText()) {
                case "list" -> catalog.describe();
                case "read" -> read(question);
                case "write" -> write(question);
                case "random" -> random(question);
                default -> error("unknown op " + question.get("op"));
            };
        } catch (Throwable refused) {
            // Errors such as StackOverflowError are answers too: a test wants to see them.
            return error(refused.toString());
        }
    }

    private ObjectNode read(JsonNode question) throws Throwable {
        MessageClass type = catalog.find(question.get("name").asText());
        short version = (short) question.get("version").asInt();
        byte[] bytes = HEX.parseHex(question.get("hex").asText());
        MessageClass.Read result = type.read(bytes, version);
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.set("json", type.toJson(result.message(), version));
        answer.put("rest", result.rest());
        try {
            answer.put("hex", HEX.formatHex(type.write(result.message(), version)));
        } catch (RuntimeException refused) {
            // Kafka reads tagged fields in any order but does not write them so.
            answer.put("hex", (String) null);
        }
        return answer;
    }

    private ObjectNode write(JsonNode question) throws Throwable {
        MessageClass type = catalog.find(question.get("name").asText());
        short version = (short) question.get("version").asInt();
        return written(type, type.fromJson(question.get("json"), version), version);
    }

    private ObjectNode random(JsonNode question) throws Throwable {
        MessageClass type = catalog.find(question.get("name").asText());
        short version = (short) question.get("version").asInt();
        RandomMessage random = new RandomMessage(
            question.get("seed").asLong(), question.get("unknownTags").asBoolean());
        return written(type, random.message(type, version), version);
    }

    private static ObjectNode written(
            MessageClass type, org.apache.kafka.common.protocol.Message message, short version)
            throws Throwable {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.put("hex", HEX.formatHex(type.write(message, version)));
        answer.set("json", type.toJson(message, version));
        return answer;
    }

    private static ObjectNode error(String text) {
        return JsonNodeFactory.instance.objectNode().put("error", text);
    }
}
