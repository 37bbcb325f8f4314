package kraftwire;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Every generated message class on the class path, by the name of its schema. */
final class Catalog {
    private static final String CONVERTER = "JsonConverter.class";

    // Schema name to class name; a class is loaded on first use.
    private final Map<String, String> classNames = new TreeMap<>();
    private final Map<String, MessageClass> loaded = new TreeMap<>();

    /** Looks into the jars of the class path: every generated message has a JSON converter. */
    static Catalog ofClassPath() {
        Catalog catalog = new Catalog();
        for (String entry : System.getProperty("java.class.path").split(":")) {
            if (Path.of(entry).getFileName().toString().matches("kafka.*\\.jar")) {
                catalog.addJar(entry);
            }
        }
        return catalog;
    }

    MessageClass find(String name) throws ReflectiveOperationException {
        if (!loaded.containsKey(name)) {
            loaded.put(name, new MessageClass(classNames.get(name)));
        }
        return loaded.get(name);
    }

    ObjectNode describe() throws ReflectiveOperationException {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        ArrayNode messages = answer.putArray("messages");
        for (String name : classNames.keySet()) {
            MessageClass type = find(name);
            messages.addObject().put("name", name).put("low", type.low()).put("high", type.high());
        }
        return answer;
    }

    private void addJar(String file) {
        try (JarFile jar = new JarFile(file)) {
            jar.stream().map(JarEntry::getName).forEach(this::addEntry);
        } catch (IOException unreadable) {
            throw new IllegalStateException("cannot read " + file, unreadable);
        }
    }

    private void addEntry(String entry) {
        if (entry.endsWith(CONVERTER) && entry.indexOf('$') < 0) {
            String name = entry.replace('/', '.').substring(0, entry.length() - CONVERTER.length());
            classNames.put(schemaName(name.substring(name.lastIndexOf('.') + 1)), name);
        }
    }

    /** Kafka's generator appends Data to the names of requests, responses and headers only. */
    private static String schemaName(String simpleName) {
        return simpleName.replaceFirst("(Request|Response|Header)Data$", "$1");
    }
}
