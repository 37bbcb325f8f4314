package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Kafka's own image of metadata records: one JSON line {"batches": [[hex, ...], ...]} in, each
 * batch a delta as in Kafka's loader; one JSON line {"records": [hex, ...]} out, what Kafka would
 * write into a snapshot, or {"error": text} if it refuses a record.
 */
public final class Images {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private Images() { }

    public static void main(String[] args) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        try {
            MetadataImage image = MetadataImage.EMPTY;
            long offset = 0;
            for (JsonNode batch : question.get("batches")) {
                MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
                for (JsonNode value : batch) {
                    ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(value.asText()));
                    delta.replay(MetadataRecordSerde.INSTANCE.read(
                        new ByteBufferAccessor(bytes), bytes.remaining()).message());
                    offset++;
                }
                image = delta.apply(new MetadataProvenance(offset - 1, 1, 1000, true));
            }
            written(image, answer.putArray("records"));
        } catch (RuntimeException refused) {
            answer.removeAll();
            answer.put("error", refused.toString());
        }
        return answer;
    }

    private static void written(MetadataImage image, ArrayNode records) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes =
                ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
            records.add(HEX.formatHex(bytes.array()));
        }
    }
}
