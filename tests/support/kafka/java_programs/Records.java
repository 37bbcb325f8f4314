package kraftwire;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;

/**
 * Fields of type records, whose classes moved to another package between releases: everything is
 * found from the field's own type.
 */
final class Records {
    private Records() { }

    static boolean isRecords(Field field) {
        return field.getType().getSimpleName().equals("BaseRecords");
    }

    static byte[] bytes(Object memoryRecords) throws ReflectiveOperationException {
        Object buffer = memoryRecords.getClass().getMethod("buffer").invoke(memoryRecords);
        ByteBuffer view = ((ByteBuffer) buffer).duplicate();
        byte[] bytes = new byte[view.remaining()];
        view.get(bytes);
        return bytes;
    }

    /** A value for the field that holds these bytes, whether or not they are record batches. */
    static Object of(Field field, byte[] bytes) throws ReflectiveOperationException {
        String name = field.getType().getPackageName() + ".MemoryRecords";
        return Class.forName(name)
            .getMethod("readableRecords", ByteBuffer.class)
            .invoke(null, ByteBuffer.wrap(bytes));
    }
}
