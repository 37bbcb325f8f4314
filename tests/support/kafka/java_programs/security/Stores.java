package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509KeyManager;
import javax.net.ssl.X509TrustManager;

/** What Kafka and the JVM below it read in key stores and trust stores. */
final class Stores {
    private static final String[] KEY_TYPES = {"RSA", "EC", "EdDSA"};

    private Stores() { }

    /** Keys and trusted certificates of stores, which ssl.* properties name. */
    static void load(JsonNode question, ObjectNode answer) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        for (Map.Entry<String, JsonNode> field : question.get("properties").properties()) {
            String key = field.getKey();
            String value = field.getValue().asText();
            boolean isSecret = key.endsWith("password") || key.endsWith(".key")
                || key.endsWith(".chain") || key.endsWith(".certificates");
            configs.put(key, isSecret ? new Password(value) : value);
        }
        configs.putIfAbsent("ssl.keystore.type", "JKS");
        configs.putIfAbsent("ssl.truststore.type", "JKS");
        configs.put("ssl.protocol", "TLSv1.3");
        configs.put("ssl.enabled.protocols", List.of("TLSv1.3"));
        configs.put("ssl.cipher.suites", List.of());
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(configs);
            if (factory.keystore() != null) keys(factory, configs, answer);
            if (factory.truststore() != null) roots(factory, answer);
        }
    }

    private static void keys(
        DefaultSslEngineFactory factory, Map<String, Object> configs, ObjectNode answer
    ) throws Exception {
        KeyManagerFactory managers =
            KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        Password own = (Password) configs.get("ssl.key.password");
        Password password = own != null ? own : (Password) configs.get("ssl.keystore.password");
        managers.init(
            factory.keystore(), password == null ? null : password.value().toCharArray());
        X509KeyManager manager = (X509KeyManager) managers.getKeyManagers()[0];
        Map<String, ArrayNode> found = new TreeMap<>();
        for (String type : KEY_TYPES) {
            String[] aliases = manager.getServerAliases(type, (Principal[]) null);
            if (aliases == null) continue;
            for (String alias : aliases) {
                PrivateKey key = manager.getPrivateKey(alias);
                ArrayNode chain = answer.arrayNode();
                chain.add(HexFormat.of().formatHex(key.getEncoded()));
                for (X509Certificate each : manager.getCertificateChain(alias))
                    chain.add(HexFormat.of().formatHex(each.getEncoded()));
                found.put(alias, chain);
            }
        }
        ObjectNode all = answer.putObject("keys");
        found.forEach(all::set);
    }

    private static void roots(DefaultSslEngineFactory factory, ObjectNode answer) throws Exception {
        TrustManagerFactory managers =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        ArrayNode roots = answer.putArray("roots");
        managers.init(factory.truststore());
        X509TrustManager manager = (X509TrustManager) managers.getTrustManagers()[0];
        for (X509Certificate each : manager.getAcceptedIssuers())
            roots.add(HexFormat.of().formatHex(each.getEncoded()));
    }
}
