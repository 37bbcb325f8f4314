package kraftwire;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.kafka.common.utils.AppInfoParser;

/** Steps that are reported as JSON lines: one with the version, then one for each step. */
final class Steps {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Steps() {}

    static void begin() throws Exception {
        say(Map.of("version", AppInfoParser.getVersion()));
    }

    /** Takes a step and reports it; one that fails does not stop the others. */
    static void take(String name, Callable<String> body) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("step", name);
        try {
            line.put("detail", body.call());
            line.put("ok", true);
        } catch (Exception failure) {
            line.put("detail", failure.toString());
            line.put("ok", false);
        }
        say(line);
    }

    static void expect(boolean isTrue, String found) {
        if (!isTrue) {
            throw new IllegalStateException("unexpected: " + found);
        }
    }

    private static void say(Map<String, ?> line) throws Exception {
        System.out.println(JSON.writeValueAsString(line));
    }
}
