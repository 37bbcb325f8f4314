import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Batches written by Kafka's own client, with what the client reads from them.
 *
 * Without arguments: one JSON object per case. With a file: what Kafka reads from the batches in it.
 */
public class GoldenRecords {
    static final long TIME = 1_700_000_000_000L;
    static final Header[] NONE = {};
    static final Header[] SOME = {
        new RecordHeader("trace", bytes("abc")),
        new RecordHeader("", new byte[0]),
        new RecordHeader("\u00e4\u00f6\u00fc-\u20ac", null),
    };

    /** What was passed to the builder, which a batch stamped by the broker does not keep. */
    static final List<Long> created = new ArrayList<>();

    static PrintStream out;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        if (args.length > 0) {
            print("file", ByteBuffer.wrap(Files.readAllBytes(Path.of(args[0]))));
        } else {
            plain();
            headers();
            control();
            compressed();
            legacy();
        }
        out.flush();
    }

    static void plain() throws Exception {
        Fields f = new Fields();
        f.baseOffset = 1000;
        MemoryRecordsBuilder b = builder(f);
        add(b, 1000, TIME, "key", "value", NONE);
        add(b, 1001, TIME + 1, null, "no key", NONE);
        add(b, 1002, TIME - 70, "no value", null, NONE);
        add(b, 1003, TIME + 1, null, null, NONE);
        add(b, 1004, TIME + 8200, "", "", SOME);
        add(b, 1005, TIME + (1L << 33), "k".repeat(64), "v".repeat(9000), NONE);
        print("nulls, empty strings, headers, deltas of every length", b);

        f = new Fields();
        f.baseOffset = 5;
        b = builder(f);
        for (int i = 0; i < 300; i++)
            add(b, 5 + i, TIME + i / 3, String.format("key-%05d", i), "value of " + i % 10, NONE);
        print("three hundred records of equal lengths", b);

        f = new Fields();
        f.baseOffset = 1L << 40;
        f.epoch = 7;
        b = builder(f);
        for (int i = 0; i < 40; i++)
            add(b, (1L << 40) + 3L * i, TIME, null, "x".repeat(i), i % 9 == 4 ? SOME : NONE);
        b.overrideLastOffset((1L << 40) + 500);
        print("gaps between offsets, as after compaction", b);

        f = new Fields();
        b = builder(f);
        add(b, 0, Long.MAX_VALUE, "a", "b", NONE);
        add(b, 1, 0, "a", "b", NONE);
        print("timestamps far apart", b);
    }

    static void headers() throws Exception {
        Fields f = new Fields();
        f.producerId = 4711;
        f.producerEpoch = 3;
        f.sequence = Integer.MAX_VALUE - 1;
        MemoryRecordsBuilder b = builder(f);
        for (int i = 0; i < 4; i++)
            add(b, i, TIME + i, "k" + i, "v" + i, NONE);
        print("sequences wrap around", b);

        f.sequence = 12;
        f.transactional = true;
        f.epoch = 9;
        b = builder(f);
        for (int i = 0; i < 40; i++)
            add(b, i, TIME + i, "k" + i % 10, "v" + i % 10, NONE);
        print("a transaction", b);

        f = new Fields();
        f.type = TimestampType.LOG_APPEND_TIME;
        f.appendTime = TIME + 5000;
        f.baseOffset = 77;
        b = builder(f);
        for (int i = 0; i < 50; i++)
            add(b, 77 + i, TIME + i, null, "stamped " + i / 10, NONE);
        print("stamped by the broker", b);

        f = new Fields();
        f.deleteHorizon = TIME + 86_400_000L;
        b = builder(f);
        add(b, 0, TIME, "deleted", null, NONE);
        add(b, 1, TIME + 10, "deleted too", null, NONE);
        print("a delete horizon", b);

        created.clear();
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.MAGIC_VALUE_V2, 15, (short) 2, 100,
            500, 540, 6, TimestampType.CREATE_TIME, TIME, true, false);
        empty.flip();
        print("emptied by compaction", empty);
    }

    static void control() throws Exception {
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.ABORT, ControlRecordType.COMMIT}) {
            created.clear();
            created.add(TIME);
            print("end of a transaction: " + type, MemoryRecords.withEndTransactionMarker(
                31, TIME, 4, 15, (short) 2, new EndTransactionMarker(type, 8)).buffer());
        }
        Fields f = new Fields();
        f.control = true;
        f.epoch = 4;
        MemoryRecordsBuilder b = builder(f);
        LeaderChangeMessage.Voter one = new LeaderChangeMessage.Voter().setVoterId(1);
        LeaderChangeMessage.Voter two = new LeaderChangeMessage.Voter().setVoterId(2);
        for (int i = 0; i < 5; i++)
            created.add(TIME);
        b.appendLeaderChangeMessage(TIME, new LeaderChangeMessage().setVersion((short) 0).setLeaderId(1)
            .setVoters(List.of(one, two)).setGrantingVoters(List.of(one)));
        b.appendSnapshotHeaderMessage(TIME, new SnapshotHeaderRecord().setVersion((short) 0)
            .setLastContainedLogTimestamp(TIME - 1));
        b.appendKRaftVersionMessage(TIME, new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1));
        b.appendVotersMessage(TIME, new VotersRecord().setVersion((short) 0).setVoters(List.of(
            new VotersRecord.Voter().setVoterId(1).setEndpoints(endpoints()))));
        b.appendSnapshotFooterMessage(TIME, new SnapshotFooterRecord().setVersion((short) 0));
        print("control records of a quorum", b);
    }

    static VotersRecord.EndpointCollection endpoints() {
        VotersRecord.EndpointCollection all = new VotersRecord.EndpointCollection();
        all.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("localhost").setPort(9093));
        return all;
    }

    static void compressed() throws Exception {
        Map<String, Compression> kinds = new TreeMap<>(Map.of("gzip", Compression.gzip().build(),
            "snappy", Compression.snappy().build(), "lz4", Compression.lz4().build(),
            "zstd", Compression.zstd().build()));
        for (Map.Entry<String, Compression> kind : kinds.entrySet()) {
            Fields f = new Fields();
            f.compression = kind.getValue();
            f.baseOffset = 300;
            MemoryRecordsBuilder b = builder(f);
            for (int i = 0; i < 60; i++)
                add(b, 300 + i, TIME + i, i % 7 == 0 ? null : "key-" + i, "{\"id\":" + i * i + "}", i == 30 ? SOME : NONE);
            print("compressed by " + kind.getKey(), b);
            b = builder(f);
            add(b, 300, TIME, "large", "0123456789abcdef".repeat(12_000), NONE);
            print("several blocks of " + kind.getKey(), b);
        }
    }

    static void legacy() throws Exception {
        for (byte magic = 0; magic < 2; magic++) {
            for (CompressionType type : List.of(CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)) {
                Fields f = new Fields();
                f.magic = magic;
                f.compression = Compression.of(type).build();
                f.baseOffset = 200;
                MemoryRecordsBuilder b = builder(f);
                for (int i = 0; i < 5; i++)
                    add(b, 200 + i, magic == 0 ? -1 : TIME + i, i == 1 ? null : "key-" + i, i == 2 ? null : "value " + i, NONE);
                print("magic " + magic + ", " + type.name, b);
                if (magic == 0)
                    continue;
                f.type = TimestampType.LOG_APPEND_TIME;
                f.appendTime = TIME + 9;
                b = builder(f);
                for (int i = 0; i < 3; i++)
                    add(b, 200 + i, TIME + i, null, "stamped " + i, NONE);
                print("magic 1, " + type.name + ", stamped by the broker", b);
            }
        }
    }

    /** All options of a builder. */
    static class Fields {
        byte magic = RecordBatch.MAGIC_VALUE_V2;
        Compression compression = Compression.NONE;
        TimestampType type = TimestampType.CREATE_TIME;
        long baseOffset = 0;
        long appendTime = RecordBatch.NO_TIMESTAMP;
        long producerId = RecordBatch.NO_PRODUCER_ID;
        short producerEpoch = RecordBatch.NO_PRODUCER_EPOCH;
        int sequence = RecordBatch.NO_SEQUENCE;
        boolean transactional = false;
        boolean control = false;
        int epoch = RecordBatch.NO_PARTITION_LEADER_EPOCH;
        long deleteHorizon = RecordBatch.NO_TIMESTAMP;
    }

    static MemoryRecordsBuilder builder(Fields f) {
        created.clear();
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), f.magic, f.compression, f.type,
            f.baseOffset, f.appendTime, f.producerId, f.producerEpoch, f.sequence, f.transactional, f.control,
            f.epoch, Integer.MAX_VALUE, f.deleteHorizon);
    }

    static void add(MemoryRecordsBuilder b, long offset, long timestamp, String key, String value, Header[] headers) {
        created.add(timestamp);
        b.appendWithOffset(offset, timestamp, bytes(key), bytes(value), headers);
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.ISO_8859_1);
    }

    static void print(String name, MemoryRecordsBuilder builder) {
        print(name, builder.build().buffer());
    }

    static void print(String name, ByteBuffer buffer) {
        StringBuilder line = new StringBuilder("{\"name\":\"" + name + "\",\"hex\":\"" + hex(buffer) + "\",\"created\":" + created + ",\"batches\":[");
        String comma = "";
        for (RecordBatch batch : MemoryRecords.readableRecords(buffer.duplicate()).batches()) {
            line.append(comma).append(batch(batch));
            comma = ",";
        }
        out.println(line.append("]}"));
    }

    static String batch(RecordBatch batch) {
        batch.ensureValid();
        StringBuilder text = new StringBuilder("{");
        text.append("\"lastOffset\":" + batch.lastOffset());
        text.append(",\"baseOffset\":" + batch.baseOffset());
        text.append(",\"count\":" + batch.countOrNull());
        text.append(",\"baseSequence\":" + batch.baseSequence() + ",\"lastSequence\":" + batch.lastSequence());
        text.append(",\"producerId\":" + batch.producerId() + ",\"producerEpoch\":" + batch.producerEpoch());
        text.append(",\"partitionLeaderEpoch\":" + batch.partitionLeaderEpoch());
        text.append(",\"isTransactional\":" + batch.isTransactional() + ",\"isControl\":" + batch.isControlBatch());
        text.append(",\"deleteHorizonMs\":" + (batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "null"));
        text.append(",\"timestampType\":\"" + batch.timestampType() + "\",\"maxTimestamp\":" + batch.maxTimestamp());
        text.append(",\"size\":" + batch.sizeInBytes() + ",\"magic\":" + batch.magic());
        text.append(",\"compression\":\"" + batch.compressionType().name + "\",\"crc\":" + batch.checksum());
        text.append(",\"records\":[");
        String comma = "";
        for (Record record : batch) {
            text.append(comma).append("{\"offset\":" + record.offset() + ",\"timestamp\":" + record.timestamp() + ",\"sequence\":" + record.sequence());
            text.append(",\"key\":" + quoted(record.key()) + ",\"value\":" + quoted(record.value()) + ",\"headers\":[");
            String inner = "";
            for (Header header : record.headers()) {
                byte[] value = header.value();
                text.append(inner).append("[\"" + header.key() + "\"," + quoted(value == null ? null : ByteBuffer.wrap(value)) + "]");
                inner = ",";
            }
            text.append("]}");
            comma = ",";
        }
        return text.append("]}").toString();
    }

    static String quoted(ByteBuffer data) {
        if (data == null)
            return "null";
        // Long payloads would make the file large: their size and CRC-32 are enough.
        if (data.remaining() > 9000) {
            java.util.zip.CRC32 crc = new java.util.zip.CRC32();
            int size = data.remaining();
            crc.update(data.duplicate());
            return "\"" + size + " bytes, CRC-32 " + crc.getValue() + "\"";
        }
        return "\"" + hex(data) + "\"";
    }

    static String hex(ByteBuffer data) {
        byte[] copy = new byte[data.remaining()];
        data.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
