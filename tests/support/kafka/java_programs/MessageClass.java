package kraftwire;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Schema;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Iterator;

/** A generated message class with its serializer and its JSON converter. */
final class MessageClass {
    /** A message and the number of bytes after it. */
    record Read(Message message, int rest) { }

    private final Class<?> type;
    private final Method toJson;
    private final Method fromJson;

    MessageClass(String className) throws ReflectiveOperationException {
        type = Class.forName(className);
        Class<?> converter = Class.forName(className + "JsonConverter");
        toJson = converter.getMethod("write", type, short.class);
        fromJson = converter.getMethod("read", JsonNode.class, short.class);
    }

    short low() throws ReflectiveOperationException {
        return type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    short high() throws ReflectiveOperationException {
        return type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    Schema schema(short version) throws ReflectiveOperationException {
        return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
    }

    Message create() throws ReflectiveOperationException {
        return (Message) type.getDeclaredConstructor().newInstance();
    }

    Read read(byte[] bytes, short version) throws ReflectiveOperationException {
        ByteBufferAccessor accessor = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        Message message = create();
        message.read(accessor, version);
        return new Read(message, accessor.remaining());
    }

    byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("announced more bytes than it wrote");
        }
        return buffer.array();
    }

    JsonNode toJson(Message message, short version) throws Throwable {
        JsonNode json = (JsonNode) invoke(toJson, message, version);
        showRecords(message, json);
        return json;
    }

    Message fromJson(JsonNode json, short version) throws Throwable {
        return (Message) invoke(fromJson, json, version);
    }

    private static Object invoke(Method method, Object... arguments) throws Throwable {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException wrapped) {
            throw wrapped.getCause();
        }
    }

    /** Kafka's converter prints an empty string for records; put their bytes there. */
    private static void showRecords(Message message, JsonNode json)
            throws ReflectiveOperationException {
        for (Field field : message.getClass().getDeclaredFields()) {
            JsonNode child = json.get(field.getName());
            if (child == null || child.isNull() || Modifier.isStatic(field.getModifiers())) {
                continue;
            }
            field.setAccessible(true);
            Object value = field.get(message);
            if (Records.isRecords(field)) {
                byte[] bytes = Records.bytes(value);
                ((ObjectNode) json).set(field.getName(), BinaryNode.valueOf(bytes));
            } else if (value instanceof Message nested) {
                showRecords(nested, child);
            } else if (value instanceof Collection<?> elements) {
                showRecordsOfAll(elements, child);
            }
        }
    }

    private static void showRecordsOfAll(Collection<?> elements, JsonNode json)
            throws ReflectiveOperationException {
        Iterator<JsonNode> nodes = json.elements();
        for (Object element : elements) {
            JsonNode node = nodes.next();
            if (element instanceof Message nested) {
                showRecords(nested, node);
            }
        }
    }
}
