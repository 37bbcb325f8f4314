import java.io.DataInputStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.serialization.RecordSerde;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

/**
 * Writes snapshots with Kafka's own writer. Standard input has for each: its directory, end offset,
 * epoch, largest batch, last contained timestamp, clock, the length and the bytes of a VotersRecord
 * (none for kraft.version 0), then lists of values: their number, the length and the bytes of each.
 * A list of no values is the end of a snapshot, a directory without a name the end of them all.
 */
final class WriteSnapshot {
    private static final class Values implements RecordSerde<byte[]> {
        @Override
        public int recordSize(byte[] data, ObjectSerializationCache cache) {
            return data.length;
        }

        @Override
        public void write(byte[] data, ObjectSerializationCache cache, Writable out) {
            out.writeByteArray(data);
        }

        @Override
        public byte[] read(org.apache.kafka.common.protocol.Readable in, int size) {
            return in.readArray(size);
        }
    }

    /** A clock that stands still. */
    private static Time clock(long now) {
        return (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(),
            new Class<?>[] {Time.class},
            (self, method, arguments) -> {
                switch (method.getName()) {
                    case "milliseconds": return now;
                    case "timer": return Time.SYSTEM.timer(Long.MAX_VALUE / 2);
                    default: return method.invoke(Time.SYSTEM, arguments);
                }
            }
        );
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        for (String folder = in.readUTF(); !folder.isEmpty(); folder = in.readUTF()) {
            write(folder, in);
        }
    }

    private static void write(String folder, DataInputStream in) throws Exception {
        OffsetAndEpoch id = new OffsetAndEpoch(in.readLong(), in.readInt());
        int largest = in.readInt();
        long lastContained = in.readLong();
        Time clock = clock(in.readLong());
        ByteBuffer bytes = ByteBuffer.wrap(in.readNBytes(in.readInt()));
        Optional<VoterSet> voters = Optional.empty();
        if (bytes.hasRemaining()) {
            VotersRecord record = new VotersRecord(new ByteBufferAccessor(bytes), (short) 0);
            voters = Optional.of(VoterSet.fromVotersRecord(record));
        }
        try (RecordsSnapshotWriter<byte[]> writer = new RecordsSnapshotWriter.Builder()
                .setRawSnapshotWriter(FileRawSnapshotWriter.create(Path.of(folder), id))
                .setMaxBatchSizeBytes(largest)
                .setLastContainedLogTimestamp(lastContained)
                .setTime(clock)
                .setMemoryPool(MemoryPool.NONE)
                .setKraftVersion(
                    voters.isPresent() ? KRaftVersion.KRAFT_VERSION_1 : KRaftVersion.KRAFT_VERSION_0)
                .setVoterSet(voters)
                .build(new Values())) {
            for (int count = in.readInt(); count > 0; count = in.readInt()) {
                List<byte[]> values = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    values.add(in.readNBytes(in.readInt()));
                }
                writer.append(values);
            }
            writer.freeze();
        }
    }
}
