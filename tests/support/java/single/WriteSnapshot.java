import java.io.DataInputStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
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
 * Writes a snapshot with Kafka's own writer: arguments directory, end offset, epoch, largest batch,
 * last contained timestamp, clock, and a VotersRecord in hex (missing for kraft.version 0). Standard
 * input has lists of values: their number, then the length and the bytes of each.
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
        OffsetAndEpoch id = new OffsetAndEpoch(Long.parseLong(args[1]), Integer.parseInt(args[2]));
        Optional<VoterSet> voters = Optional.empty();
        if (args.length > 6) {
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(args[6]));
            VotersRecord record = new VotersRecord(new ByteBufferAccessor(bytes), (short) 0);
            voters = Optional.of(VoterSet.fromVotersRecord(record));
        }
        try (RecordsSnapshotWriter<byte[]> writer = new RecordsSnapshotWriter.Builder()
                .setRawSnapshotWriter(FileRawSnapshotWriter.create(Path.of(args[0]), id))
                .setMaxBatchSizeBytes(Integer.parseInt(args[3]))
                .setLastContainedLogTimestamp(Long.parseLong(args[4]))
                .setTime(clock(Long.parseLong(args[5])))
                .setMemoryPool(MemoryPool.NONE)
                .setKraftVersion(
                    voters.isPresent() ? KRaftVersion.KRAFT_VERSION_1 : KRaftVersion.KRAFT_VERSION_0)
                .setVoterSet(voters)
                .build(new Values())) {
            DataInputStream in = new DataInputStream(System.in);
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
