package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;

import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Nodes of Kafka one after the other in one JVM, which saves the seconds that each would need to
 * start, and finds the code compiled. One JSON line in, one out:
 *
 * <pre>
 * {"log": file}         -> {}    log4j's configuration, before anything else
 * {"start": properties} -> {}    a node with this file, on a formatted directory
 * {"stop": true}        -> {"halted": text}    ends it; what would have ended its process, or ""
 * </pre>
 */
public final class Controllers {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final AtomicReference<String> HALTED = new AtomicReference<>("");
    private static KafkaRaftServer server;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
            answers.flush();
        }
        System.exit(0);
    }

    private static Map<String, String> answer(JsonNode question) throws Exception {
        if (question.has("log")) {
            System.setProperty("log4j2.configurationFile", question.get("log").asText());
            Exit.setHaltProcedure((code, text) -> HALTED.compareAndSet("", "halted: " + text));
            Exit.setExitProcedure((code, text) -> HALTED.compareAndSet("", "ended: " + text));
            return Map.of();
        }
        if (question.has("stop")) {
            server.shutdown();
            return Map.of("halted", HALTED.getAndSet(""));
        }
        Properties properties = new Properties();
        try (InputStream file = Files.newInputStream(Path.of(question.get("start").asText()))) {
            properties.load(file);
        }
        server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
        server.startup();
        return Map.of();
    }
}
