package kraftwire;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/**
 * Fills a generated class with random values. Which fields a version has, and which of them may be
 * null, comes only from the Schema constants of the class itself.
 */
final class RandomMessage {
    private static final String[] LETTERS =
        {"a", "Z", "0", "-", "_", ".", " ", "\"", "\\", "\u0000", "é", "λ", "漢", "😀"};
    private static final double[] DOUBLES =
        {0.0, -0.0, 1.0, -1.5, 1e-300, 1.7976931348623157e308, 4.9e-324, 0.1, 123456789.125};
    private static final int UNKNOWN_TAG_MIN = 100;

    private final Random random;
    private final boolean hasUnknownTags;

    RandomMessage(long seed, boolean hasUnknownTags) {
        this.random = new Random(seed);
        this.hasUnknownTags = hasUnknownTags;
    }

    Message message(MessageClass type, short version) throws ReflectiveOperationException {
        Message message = type.create();
        fill(message, type.schema(version));
        return message;
    }

    private void fill(Message message, Schema schema) throws ReflectiveOperationException {
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields tagged) {
                fillTagged(message, tagged);
            } else {
                set(message, field.def.name, field.def.type);
            }
        }
    }

    private void fillTagged(Message message, TaggedFields tagged)
            throws ReflectiveOperationException {
        for (org.apache.kafka.common.protocol.types.Field field : fields(tagged).values()) {
            if (random.nextInt(3) > 0) {
                set(message, field.name, field.type);
            }
        }
        if (hasUnknownTags && random.nextInt(3) > 0) {
            addUnknownTags(message);
        }
    }

    /** The accessor exists in the newer releases only, the member in all of them. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> fields(
            TaggedFields tagged) throws ReflectiveOperationException {
        Field member = TaggedFields.class.getDeclaredField("fields");
        member.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) member.get(tagged);
    }

    /** Kafka refuses to write unknown tags out of order or below a known one. */
    private void addUnknownTags(Message message) {
        Set<Integer> tags = new TreeSet<>();
        for (int count = 1 + random.nextInt(3); count > 0; count--) {
            tags.add(UNKNOWN_TAG_MIN + random.nextInt(1 << random.nextInt(28)));
        }
        for (int tag : tags) {
            message.unknownTaggedFields().add(new RawTaggedField(tag, bytes()));
        }
    }

    private void set(Message message, String name, Type type) throws ReflectiveOperationException {
        Field field = field(message.getClass(), name);
        field.set(message, value(field, type));
    }

    /** Schemas spell names in snake case, classes in camel case. */
    private static Field field(Class<?> type, String name) {
        String wanted = name.replace("_", "");
        for (Field field : type.getDeclaredFields()) {
            boolean isMember = !Modifier.isStatic(field.getModifiers());
            if (isMember && field.getName().toLowerCase(Locale.ROOT).equals(wanted)) {
                field.setAccessible(true);
                return field;
            }
        }
        throw new IllegalStateException(type + " has no field for " + name);
    }

    private Object value(Field field, Type type) throws ReflectiveOperationException {
        if (type.isNullable() && random.nextInt(4) == 0) {
            return null;
        }
        if (type.isArray()) {
            return array(field, type.arrayElementType().orElseThrow());
        }
        if (type instanceof Schema schema) {
            return struct(field.getType(), schema);
        }
        return Records.isRecords(field)
            ? Records.of(field, bytes())
            : primitive(type, field.getType() == ByteBuffer.class);
    }

    @SuppressWarnings("unchecked")
    private Object array(Field field, Type element) throws ReflectiveOperationException {
        boolean isList = field.getType().isInterface();
        Collection<Object> all = isList
            ? new ArrayList<>()
            : (Collection<Object>) field.getType().getDeclaredConstructor().newInstance();
        // A hundred and thirty elements need a second length byte; only cheap ones come in such numbers.
        boolean isLong = !(element instanceof Schema) && random.nextInt(40) == 0;
        for (int count = isLong ? 130 : random.nextInt(4); count > 0; count--) {
            all.add(element instanceof Schema schema
                ? struct(elementClass(field), schema)
                : primitive(element, false));
        }
        return all;
    }

    private Message struct(Class<?> type, Schema schema) throws ReflectiveOperationException {
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        fill(message, schema);
        return message;
    }

    /** The element class of a List or of a generated collection keyed by its map keys. */
    private static Class<?> elementClass(Field field) {
        java.lang.reflect.Type declared = field.getType().isInterface()
            ? field.getGenericType()
            : field.getType().getGenericSuperclass();
        return (Class<?>) ((ParameterizedType) declared).getActualTypeArguments()[0];
    }

    private Object primitive(Type type, boolean isZeroCopy) {
        String name = type.toString().replaceFirst("^COMPACT_", "").replaceFirst("^NULLABLE_", "");
        return switch (name) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) integer(8);
            case "INT16" -> (short) integer(16);
            case "UINT16" -> (int) integer(16) & 0xFFFF;
            case "INT32" -> (int) integer(32);
            case "UINT32" -> integer(32) & 0xFFFFFFFFL;
            case "INT64" -> integer(64);
            case "FLOAT64" -> DOUBLES[random.nextInt(DOUBLES.length)];
            case "UUID" -> uuid();
            case "STRING" -> string();
            case "BYTES" -> isZeroCopy ? ByteBuffer.wrap(bytes()) : bytes();
            default -> throw new IllegalStateException("no random value for type " + type);
        };
    }

    /** Extremes, small numbers (defaults are among them) and any number, equally often. */
    private long integer(int bits) {
        long highest = -1L >>> (65 - bits);
        return switch (random.nextInt(3)) {
            case 0 -> random.nextBoolean() ? highest : -highest - 1;
            case 1 -> random.nextInt(4) - 1;
            default -> random.nextLong() >> (64 - bits);
        };
    }

    private Uuid uuid() {
        return random.nextInt(4) == 0
            ? Uuid.ZERO_UUID
            : new Uuid(random.nextLong(), random.nextLong());
    }

    private String string() {
        StringBuilder text = new StringBuilder();
        for (int count = length(); count > 0; count--) {
            text.append(LETTERS[random.nextInt(LETTERS.length)]);
        }
        return text.toString();
    }

    private byte[] bytes() {
        byte[] bytes = new byte[length()];
        random.nextBytes(bytes);
        return bytes;
    }

    /** Mostly short; sometimes long enough for a second and a third length byte. */
    private int length() {
        int choice = random.nextInt(400);
        if (choice == 0) {
            return 11_000 + random.nextInt(1_000);
        }
        return choice < 12 ? 100 + random.nextInt(200) : random.nextInt(8);
    }
}
