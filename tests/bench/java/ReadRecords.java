import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads a segment with Kafka's own classes, once for each line on standard input: CRCs, and every
 * field of every record. With the line "arrays" keys and values become arrays, as the consumer
 * returns them, otherwise they stay views of the segment. Answers with the number of records and the
 * nanoseconds of CPU of the thread that reads; compiling and collecting garbage are other threads'
 * work.
 */
final class ReadRecords {
    /** Keeps the compiler from concluding that the fields are not needed. */
    static long sum;

    private static long lengthOf(ByteBuffer bytes, boolean asArrays) {
        return asArrays ? Utils.toArray(bytes).length : bytes.remaining();
    }

    private static long read(byte[] data, boolean asArrays) {
        long count = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                sum += record.offset() + record.timestamp() + record.headers().length;
                sum += record.hasKey() ? lengthOf(record.key(), asArrays) : 0;
                sum += record.hasValue() ? lengthOf(record.value(), asArrays) : 0;
                count++;
            }
        }
        return count;
    }

    public static void main(String[] args) throws Exception {
        var data = Files.readAllBytes(Path.of(args[0]));
        var threads = ManagementFactory.getThreadMXBean();
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            boolean asArrays = line.equals("arrays");
            long before = threads.getCurrentThreadCpuTime();
            long count = read(data, asArrays);
            System.out.println(count + " " + (threads.getCurrentThreadCpuTime() - before));
        }
    }
}
