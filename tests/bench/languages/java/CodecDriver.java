import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

import com.sun.management.OperatingSystemMXBean;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Times the message codec of Kafka's own Java client. Reads a list of items, a line each: name,
 * message, API key, version and file, split by tabs; writes a line for each operation: name,
 * operation and CPU seconds per call. What it does not know it leaves out.
 */
public final class CodecDriver {
    private static final long WARM_NANOS = 700_000_000L;
    private static final long ROUND_NANOS = 20_000_000L;
    private static final int ROUNDS = 15;
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** What calls return, so that the compiler cannot leave them out. */
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split("\t");
            byte[] data = Files.readAllBytes(Path.of(parts[4]));
            measure(parts[0], parts[1], Short.parseShort(parts[2]), Short.parseShort(parts[3]), data);
        }
    }

    private static void measure(String item, String name, short key, short version, byte[] data) {
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        boolean isRequest = name.endsWith("Request");
        Supplier<ApiMessage> maker = isRequest ? type::newRequest : type::newResponse;
        ApiMessage message = maker.get();
        if (version < message.lowestSupportedVersion() || version > message.highestSupportedVersion()) {
            return;
        }
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        if (!Arrays.equals(encode(message, version).array(), data)) {
            throw new IllegalStateException("Java does not reproduce the bytes of " + item);
        }
        say(item, "decode", () -> {
            ApiMessage fresh = maker.get();
            fresh.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
            return fresh;
        });
        say(item, "encode", () -> encode(message, version));
    }

    private static ByteBuffer encode(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer;
    }

    private static void say(String item, String operation, Supplier<Object> call) {
        long calls = 0;
        long start = System.nanoTime();
        while (System.nanoTime() - start < WARM_NANOS) {
            sink = call.get();
            calls++;
        }
        long perRound = Math.max(1, calls * ROUND_NANOS / WARM_NANOS);
        double[] rounds = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            long before = SYSTEM.getProcessCpuTime();
            for (long turn = 0; turn < perRound; turn++) {
                sink = call.get();
            }
            rounds[round] = (SYSTEM.getProcessCpuTime() - before) / 1e9 / perRound;
        }
        Arrays.sort(rounds);
        System.out.println(String.join("\t", List.of(item, operation, Double.toString(rounds[ROUNDS / 2]))));
    }
}
