package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;

/** Signed tokens as Kafka's listener validates them; many tokens for one configuration. */
final class Tokens {
    private Tokens() { }

    static void validate(JsonNode question, ObjectNode answer) throws Exception {
        String url = question.get("keys").asText();
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        List<String> audiences = new ArrayList<>();
        question.get("audiences").forEach(audience -> audiences.add(audience.asText()));
        Map<String, Object> configuration = new HashMap<>();
        configuration.put(SaslConfigs.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL, url);
        configuration.put(SaslConfigs.SASL_OAUTHBEARER_EXPECTED_AUDIENCE, audiences);
        configuration.put(SaslConfigs.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS, question.get("skew").asInt());
        configuration.put(SaslConfigs.SASL_OAUTHBEARER_SCOPE_CLAIM_NAME, question.get("scope").asText());
        configuration.put(SaslConfigs.SASL_OAUTHBEARER_SUB_CLAIM_NAME, question.get("subject").asText());
        if (question.hasNonNull("issuer")) {
            configuration.put(
                SaslConfigs.SASL_OAUTHBEARER_EXPECTED_ISSUER, question.get("issuer").asText());
        }
        for (String claim : List.of("audience", "issuer")) {
            configuration.put("sasl.oauthbearer.allow.unverified." + claim, true);
        }
        try (BrokerJwtValidator validator = new BrokerJwtValidator()) {
            AppConfigurationEntry entry = new AppConfigurationEntry(
                OAuthBearerLoginModule.class.getName(), LoginModuleControlFlag.REQUIRED, Map.of());
            validator.configure(configuration, "OAUTHBEARER", List.of(entry));
            ArrayNode results = answer.putArray("results");
            for (JsonNode token : question.get("tokens")) {
                decide(validator, token.asText(), results.addObject());
            }
        }
    }

    private static void decide(BrokerJwtValidator validator, String text, ObjectNode result) {
        try {
            OAuthBearerToken token = validator.validate(text);
            result.put("name", token.principalName());
            result.put("end", token.lifetimeMs());
            new TreeSet<>(token.scope()).forEach(result.putArray("scopes")::add);
        } catch (RuntimeException refused) {
            result.removeAll();
            result.put("error", refused.toString());
        }
    }
}
