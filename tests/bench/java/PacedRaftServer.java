import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import kafka.server.KafkaConfig;
import kafka.tools.TestRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/**
 * Kafka's raft test server, with the same flags, and one addition: each line on standard input sets
 * the number of records per second from then on. A restart for each rate would discard the work of
 * the compiler. The server ends when its input does.
 */
final class PacedRaftServer {
    private static Field field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static Object get(Object owner, String name) throws ReflectiveOperationException {
        return field(owner, name).get(owner);
    }

    private static TestRaftServer server(Map<String, String> flags) throws Exception {
        Properties properties = Utils.loadProps(flags.get("--config"));
        properties.put("process.roles", "controller");
        return new TestRaftServer(
                new KafkaConfig(properties, false),
                Uuid.fromString(flags.get("--replica-directory-id")),
                Integer.parseInt(flags.get("--throughput")),
                Integer.parseInt(flags.get("--record-size")));
    }

    /** A new throttle, which counts from now on; the load thread may still sleep by the old one. */
    private static void pace(Object generator, int recordsPerSecond) throws Exception {
        Object old = get(generator, "throttler");
        Object next = old.getClass()
                .getConstructor(Time.class, int.class)
                .newInstance(Time.SYSTEM, recordsPerSecond);
        ((AtomicInteger) get(generator, "recordCount")).set(0);
        field(generator, "throttler").set(generator, next);
        wake(generator);
    }

    /** On this event its loop only reads the throttle again. */
    @SuppressWarnings("unchecked")
    private static void wake(Object generator) throws Exception {
        var shutdown = generator.getClass().getDeclaredMethod("Shutdown");
        shutdown.setAccessible(true);
        ((Collection<Object>) get(generator, "eventQueue")).add(shutdown.invoke(generator));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> flags = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            flags.put(arguments[i], arguments[i + 1]);
        }
        TestRaftServer server = server(flags);
        server.startup();
        Object generator = get(server, "workloadGenerator");
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            pace(generator, Integer.parseInt(line.strip()));
        }
        server.shutdown();
        System.exit(0);
    }
}
