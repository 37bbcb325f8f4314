import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * The responses with which Kafka refuses requests: a line for each line of standard input, which is
 * "API-key version error-code body". The body of the response is in hexadecimal; "-" if there is
 * none, "!" and the reason if Kafka cannot read the request.
 */
final class Refusals {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(refusal(line.split(" ", -1))).append('\n');
        }
        System.out.print(out);
    }

    private static String refusal(String[] parts) {
        short version = Short.parseShort(parts[1]);
        Errors error = Errors.forCode(Short.parseShort(parts[2]));
        ByteBuffer body = ByteBuffer.wrap(HEX.parseHex(parts[3]));
        try {
            AbstractRequest request = AbstractRequest.parseRequest(
                ApiKeys.forId(Integer.parseInt(parts[0])), version,
                new ByteBufferAccessor(body)).request;
            AbstractResponse response = request.getErrorResponse(0, error.exception());
            return response == null ? "-" : hex(response, version);
        } catch (RuntimeException | AssertionError refused) {
            return "! " + refused.toString().replace('\n', ' ');
        }
    }

    private static String hex(AbstractResponse response, short version) {
        ByteBuffer written =
            MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return HEX.formatHex(bytes);
    }
}
