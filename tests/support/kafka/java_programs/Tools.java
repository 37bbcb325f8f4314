package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.Exit;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Kafka's command line tools one after the other in one JVM, which saves the second that each
 * would need to start: one JSON line {"tool", "args"} in, one JSON line {"code", "out", "err"} out.
 *
 * The tools are "storage", "quorum", "features", "acls", "configs" and "tokens", and any other by its
 * class. What a tool throws is reported as its main method reports it. They are called by reflection,
 * as not every release has them.
 */
public final class Tools {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.println(MAPPER.writeValueAsString(run(MAPPER.readTree(line))));
            answers.flush();
        }
    }

    private static ObjectNode run(JsonNode question) throws Exception {
        List<String> args = new ArrayList<>();
        question.get("args").forEach(arg -> args.add(arg.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream console = System.out;
        PrintStream errors = System.err;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        int code;
        try {
            code = call(question.get("tool").asText(), args.toArray(new String[0]));
        } finally {
            System.setOut(console);
            System.setErr(errors);
        }
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        answer.put("code", code);
        answer.put("out", out.toString(StandardCharsets.UTF_8));
        answer.put("err", err.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private static int call(String tool, String[] args) throws Exception {
        try {
            Object code = switch (tool) {
                case "storage" -> Class.forName("kafka.tools.StorageTool")
                    .getMethod("execute", String[].class, PrintStream.class)
                    .invoke(null, args, System.out);
                case "quorum" -> command("MetadataQuorumCommand", args);
                case "features" -> command("FeatureCommand", args);
                case "tokens" -> command("DelegationTokenCommand", args);
                case "acls" -> main("org.apache.kafka.tools.AclCommand", args);
                case "configs" -> main("org.apache.kafka.tools.ConfigCommand", args);
                // Others by their class.
                default -> main(tool, args);
            };
            return (Integer) code;
        } catch (InvocationTargetException thrown) {
            // Its main method prints the message of these two, and a stack trace of the others.
            Throwable cause = thrown.getCause();
            String name = cause.getClass().getSimpleName();
            boolean isTerse = name.equals("FormatterException") || name.equals("TerseFailure");
            System.err.println(isTerse ? cause.getMessage() : cause.toString());
            return 1;
        }
    }

    /** Runs a tool that has nothing but its main method, which ends the JVM where it fails. */
    private static Object main(String name, String[] args) throws Exception {
        // Some catch whatever is thrown, and end the JVM once more.
        List<Integer> codes = new ArrayList<>();
        Exit.setExitProcedure((code, message) -> {
            codes.add(code);
            throw new Exited();
        });
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Exited) {
                return codes.get(0);
            }
            throw thrown;
        } finally {
            Exit.resetExitProcedure();
        }
    }

    /** A tool that would have ended the JVM. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;
    }

    private static Object command(String name, String[] args) throws Exception {
        var method = Class.forName("org.apache.kafka.tools." + name)
            .getDeclaredMethod("mainNoExit", String[].class);
        method.setAccessible(true);
        return method.invoke(null, (Object) args);
    }
}
