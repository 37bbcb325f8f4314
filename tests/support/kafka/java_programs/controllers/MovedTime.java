package kraftwire;

import org.apache.kafka.common.utils.Time;

import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A clock that runs as the system's does, or stands still and moves when it is told to. */
final class MovedTime implements Time {
    private static final long WAIT_MS = 10;
    private volatile long aheadNs = 0;
    /** Where it stands, as nanoseconds of the system's clock. */
    private volatile Long stoppedNs = null;
    private final long originMs = Time.SYSTEM.milliseconds();
    private final long originNs = Time.SYSTEM.nanoseconds();

    synchronized void stop() {
        stoppedNs = nanoseconds();
    }

    synchronized void run() {
        if (stoppedNs != null) {
            aheadNs = stoppedNs - Time.SYSTEM.nanoseconds();
            stoppedNs = null;
        }
    }

    synchronized void move(long ms) {
        stoppedNs = nanoseconds() + TimeUnit.MILLISECONDS.toNanos(ms);
    }

    @Override
    public long milliseconds() {
        return originMs + TimeUnit.NANOSECONDS.toMillis(nanoseconds() - originNs);
    }

    @Override
    public long nanoseconds() {
        Long stopped = stoppedNs;
        return stopped == null ? Time.SYSTEM.nanoseconds() + aheadNs : stopped;
    }

    @Override
    public void sleep(long ms) {
        Time.SYSTEM.sleep(ms);
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs)
            throws InterruptedException {
        synchronized (object) {
            while (!condition.get()) {
                if (milliseconds() >= deadlineMs) {
                    throw new org.apache.kafka.common.errors.TimeoutException("not in time");
                }
                object.wait(WAIT_MS);
            }
        }
    }
}
