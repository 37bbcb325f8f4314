package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** Whether the JVM takes a certificate for a host, as Kafka's clients ask it: a handshake in memory. */
final class Hosts {
    private Hosts() { }

    static void check(JsonNode question, ObjectNode answer) throws Exception {
        char[] password = question.get("password").asText().toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(question.get("store").asText())) {
            store.load(in, password);
        }
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(question.get("trusted").asText())) {
            trusted.load(in, password);
        }
        KeyManagerFactory keys =
            KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        TrustManagerFactory trust =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        SSLEngine server = context.createSSLEngine();
        server.setUseClientMode(false);
        String host = question.get("host").asText();
        SSLEngine client = context.createSSLEngine(host, 1);
        client.setUseClientMode(true);
        SSLParameters parameters = client.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("https");
        client.setSSLParameters(parameters);
        client.beginHandshake();
        server.beginHandshake();
        answer.put("accepted", shake(client, server));
    }

    private static boolean shake(SSLEngine client, SSLEngine server) throws Exception {
        ByteBuffer toServer = ByteBuffer.allocate(1 << 16);
        ByteBuffer toClient = ByteBuffer.allocate(1 << 16);
        ByteBuffer nothing = ByteBuffer.allocate(0);
        ByteBuffer rest = ByteBuffer.allocate(1 << 16);
        try {
            for (int turn = 0; turn < 20; turn++) {
                step(client, nothing, toServer, toClient, rest);
                step(server, nothing, toClient, toServer, rest);
            }
        } catch (javax.net.ssl.SSLException refused) {
            return false;
        }
        return client.getHandshakeStatus() == SSLEngineResult.HandshakeStatus.NOT_HANDSHAKING;
    }

    private static void step(
        SSLEngine engine, ByteBuffer nothing, ByteBuffer out, ByteBuffer in, ByteBuffer rest
    ) throws Exception {
        for (int turn = 0; turn < 20; turn++) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK: engine.getDelegatedTask().run(); break;
                case NEED_WRAP: engine.wrap(nothing, out); break;
                case NEED_UNWRAP:
                    in.flip();
                    boolean hasAny = in.hasRemaining();
                    if (hasAny) engine.unwrap(in, rest);
                    in.compact();
                    if (!hasAny) return;
                    break;
                default: return;
            }
        }
    }
}
