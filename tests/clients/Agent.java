/* Agent.java - does with Pawl.java what it is told, for tests/clients/scenarios.py. */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import pawl.Pawl;

public final class Agent {
    private static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false,
        StandardCharsets.UTF_8);
    private static final BufferedReader IN =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private static final Map<String, Pawl.Lease> LEASES = new HashMap<>();
    private static final Map<String, Pawl.Session> SESSIONS = new HashMap<>();
    private static final Map<String, Pawl.Several> SEVERAL = new HashMap<>();
    private static final Map<String, Thread> LISTENERS = new HashMap<>();

    private static synchronized void say(String line) {
        OUT.print(line.replace('\n', ' ') + "\n");
        OUT.flush();
    }

    private static String failed(Pawl.Problem error) {
        String outcome = error instanceof Pawl.Held ? "held" : error instanceof Pawl.Lost ? "lost"
            : error instanceof Pawl.NotDone ? "not-done" : "unknown";
        return "outcome=" + outcome + "\tcode=" + error.code() + "\tretryable=" + (error.retryable() ? 1 : 0) + "\tholder="
            + (error.holder() == null ? "" : error.holder()) + "\tended=" + (error.ended() == null ? "" : error.ended());
    }

    private static Duration ms(Map<String, String> given, String name, String usual) {
        String value = given.getOrDefault(name, usual);
        return value.equals("ever") ? ChronoUnit.FOREVER.getDuration() : Duration.ofMillis(Long.parseLong(value));
    }

    private static String acquire(Pawl pawl, Map<String, String> given) throws InterruptedException {
        String called = given.get("hold");
        Pawl.Ask ask = new Pawl.Ask().ttl(ms(given, "ttl_ms", "30000")).holder(given.get("holder"))
            .mode(given.getOrDefault("mode", "exclusive")).leaseId(given.get("lease_id"))
            .onLost((lease, error) -> say("!\thold=" + called + "\tcode=" + error.code()));
        if (given.containsKey("names")) {
            Pawl.Several all = pawl.acquireAll(List.of(given.get("names").split(" ")), ask, ms(given, "wait_ms", "0"));
            SEVERAL.put(called, all);
            return "tokens=" + all.leases().stream().map(one -> "" + one.token()).collect(Collectors.joining(" "));
        }
        Pawl.Session session = SESSIONS.get(given.get("session"));
        Pawl.Lease lease = session == null ? pawl.lease(given.get("name"), ask) : session.lease(given.get("name"), ask);
        if ("forever".equals(given.get("wait_ms")))
            lease.lock();
        else if (given.containsKey("try"))
            return "granted=" + (lease.tryLock(Long.parseLong(given.get("try")), TimeUnit.MILLISECONDS) ? 1 : 0);
        else
            lease.acquire(ms(given, "wait_ms", "0"));
        LEASES.put(called, lease);
        return "token=" + lease.token() + "\tfencing=" + lease.fencingToken() + "\tremaining_ms="
            + lease.remaining().toMillis();
    }

    private static String inside(Pawl pawl, Map<String, String> given) throws InterruptedException, IOException {
        Pawl.Lease lease = pawl.lease(given.get("name"), new Pawl.Ask().ttl(ms(given, "ttl_ms", "30000")));
        try (Pawl.Scope scope = lease.acquire(Duration.ZERO)) {
            scope.lease().lock();
            scope.lease().unlock();
            say("=\toutcome=ok\tstill=" + (lease.remaining().isZero() ? 0 : 1));
            IN.readLine();
            if (given.get("body").equals("badly"))
                throw new IllegalStateException("body");
        } catch (IllegalStateException error) {
            return "raised=body";
        }
        return "raised=nothing";
    }

    private static String session(Pawl pawl, Map<String, String> given) {
        String called = given.get("hold");
        SESSIONS.put(called, pawl.session(new Pawl.Ask().ttl(ms(given, "ttl_ms", "30000")),
            error -> say("!\thold=" + called + "\tcode=" + error.code())));
        return "x=x";
    }

    private static String listen(Pawl pawl, Map<String, String> given) {
        String called = given.get("hold");
        Thread made = new Thread(() -> {
            try {
                pawl.events(given.get("name"), given.get("since"), item -> {
                    say("!\thold=" + called + "\tcode=" + item.get("type"));
                    return true;
                });
            } catch (InterruptedException error) {
                say("!\thold=" + called + "\tcode=interrupted");
            } catch (Pawl.Problem error) {
                say("!\thold=" + called + "\tcode=" + error.code());
            }
        });
        LISTENERS.put(called, made);
        made.setDaemon(true);
        made.start();
        return "x=x";
    }

    private static String act(Pawl pawl, String verb, Map<String, String> given) throws InterruptedException, IOException {
        Pawl.Lease lease = LEASES.get(given.get("hold"));
        switch (verb) {
        case "acquire", "acquire_all": return acquire(pawl, given);
        case "session": return session(pawl, given);
        case "events": return listen(pawl, given);
        case "interrupt": LISTENERS.get(given.get("hold")).interrupt(); return "x=x";
        case "lock_interrupted":
            Thread.currentThread().interrupt();
            Pawl.Lease interrupted = pawl.lease(given.get("name"));
            interrupted.lock();
            interrupted.unlock();
            return "interrupted=" + (Thread.interrupted() ? 1 : 0);
        case "inside": return inside(pawl, given);
        case "remaining": return "remaining_ms=" + lease.remaining().toMillis();
        case "renew":
            lease.renew(ms(given, "ttl_ms", "30000"));
            return "remaining_ms=" + lease.remaining().toMillis();
        case "enter": lease.lock(); return "x=x";
        case "check": lease.check(); return "x=x";
        case "release":
            AutoCloseable it = SESSIONS.containsKey(given.get("hold")) ? SESSIONS.get(given.get("hold"))
                : SEVERAL.containsKey(given.get("hold")) ? SEVERAL.get(given.get("hold")) : lease::unlock;
            close(it);
            return "x=x";
        case "put":
            return "etag=" + lease.put(given.get("key").replace("NO-UTF-8", "\ud800"), given.get("body").getBytes(StandardCharsets.UTF_8),
                Pawl.Write.withKey(given.get("idempotency_key")));
        case "get": return "body=" + new String(lease.get(given.get("key")).body(), StandardCharsets.UTF_8);
        case "delete": lease.delete(given.get("key")); return "x=x";
        default: throw new AssertionError(verb);
        }
    }

    private static void close(AutoCloseable it) {
        try {
            it.close();
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    public static void main(String[] args) throws Exception {
        Pawl pawl = null;
        for (String line; (line = IN.readLine()) != null;) {
            String[] words = line.split("\t");
            Map<String, String> given = new HashMap<>();
            for (int i = 1; i < words.length; i++)
                given.put(words[i].substring(0, words[i].indexOf('=')), words[i].substring(words[i].indexOf('=') + 1));
            try {
                Pawl.Access access = new Pawl.Access();
                if (System.getenv("ALLOW_PLAINTEXT") != null)
                    access.allowPlaintext();
                if (pawl == null)
                    pawl = new Pawl(args[0], args[1], Duration.ofMillis(Long.parseLong(args[2])), 3, access);
                say("=\toutcome=ok\t" + act(pawl, words[0], given));
            } catch (Pawl.Problem error) {
                say("=\t" + failed(error));
            } catch (IllegalArgumentException error) {
                say("=\toutcome=mistake\tcode=" + error.getMessage());
            } catch (IllegalMonitorStateException error) {
                say("=\toutcome=not-owner");
            }
        }
    }
}
