package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;

import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.UpdateFeaturesRequestData;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.controller.QuorumController;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;

import scala.Option;

/**
 * Nodes of Kafka one after the other in one JVM, which saves the seconds that each would need to
 * start, and finds the code compiled. One JSON line in, one out:
 *
 * <pre>
 * {"log": file}         -> {}    log4j's configuration, before anything else
 * {"start": properties} -> {}    a node with this file, on a formatted directory
 * {"stop": true}        -> {"halted": text}    ends it; what would have ended its process, or ""
 * {"clock": "stands"}   -> {"ms": text}        its clock stands still from now on, or "runs"
 * {"moves": [ms, ...]}  -> {}    its clock moves; after each time, everything due has been done
 * {"published": offset} -> {}    waits until it has published its image up to an offset
 * </pre>
 */
public final class Controllers {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final AtomicReference<String> HALTED = new AtomicReference<>("");
    private static final MovedTime TIME = new MovedTime();
    private static KafkaRaftServer server;
    private static ControllerServer controller;

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
        if (question.has("clock")) {
            if (question.get("clock").asText().equals("runs")) {
                TIME.run();
            } else {
                TIME.stop();
            }
            return Map.of("ms", Long.toString(TIME.milliseconds()));
        }
        if (question.has("moves")) {
            for (JsonNode ms : question.get("moves")) {
                TIME.move(ms.asLong());
                settle();
            }
            return Map.of();
        }
        if (question.has("published")) {
            long offset = question.get("published").asLong();
            while (controller.sharedServer().loader().lastAppliedOffset() < offset) {
                Thread.onSpinWait();
            }
            return Map.of();
        }
        if (question.has("stop")) {
            TIME.run();
            server.shutdown();
            return Map.of("halted", HALTED.getAndSet(""));
        }
        Properties properties = new Properties();
        try (InputStream file = Files.newInputStream(Path.of(question.get("start").asText()))) {
            properties.load(file);
        }
        TIME.run();
        server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), TIME);
        server.startup();
        var field = KafkaRaftServer.class.getDeclaredField("controller");
        field.setAccessible(true);
        controller = (ControllerServer) ((Option<?>) field.get(server)).get();
        giveTimeToTokens();
        return Map.of();
    }

    /** Kafka lets its controller decide on delegation tokens by the system's clock. */
    private static void giveTimeToTokens() throws ReflectiveOperationException {
        var field = QuorumController.class.getDeclaredField("delegationTokenControlManager");
        field.setAccessible(true);
        Object tokens = field.get(controller.controller());
        var time = tokens.getClass().getDeclaredField("time");
        time.setAccessible(true);
        time.set(tokens, TIME);
    }

    /** A change of nothing: it comes after what is due, and its answer after what that wrote. */
    private static void settle() throws Exception {
        var context = new ControllerRequestContext(
            new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
        controller.controller().updateFeatures(context, new UpdateFeaturesRequestData()).get();
    }
}
