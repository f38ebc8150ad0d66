/* Pawl.java - leases with fencing tokens, from JDK 17 on; this one file, and nothing but the JDK.
 *
 *     Pawl pawl = new Pawl();                  // PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
 *     Pawl.Lease lease = pawl.lease("orders:42", new Pawl.Ask().ttl(Duration.ofSeconds(30)).holder("billing-7"));
 *     lease.lock();                            // a java.util.concurrent.locks.Lock
 *     try {
 *         lease.put("orders:42", "packed".getBytes(UTF_8)); // refused (Pawl.Lost) when another has been granted it since
 *     } finally {
 *         lease.unlock();
 *     }
 *     try (Pawl.Session session = pawl.session(new Pawl.Ask().ttl(Duration.ofSeconds(15)))) { // one keep-alive for many
 *         session.lease("shard:17").lock();
 *     }
 *     try (Pawl.Several both = pawl.acquireAll(List.of("account:1", "account:2"), new Pawl.Ask(), wait)) { ... }  // or none
 *     pawl.events("orders:42", null, item -> { ...; return true; });      // what happens to it, as it happens
 *
 * Every call ends in one of five ways: it returns (granted, or done), or it throws
 *     Pawl.Held      certainly not granted: another holds it, or the wait is over (tryLock says false instead)
 *     Pawl.Lost      this hold is over: stop what it protected
 *     Pawl.NotDone   certainly not done; retryable() says whether the same may help later
 *     Pawl.Unknown   it may have happened, or may yet happen. Never told as one of the others; tryLock throws it, too
 * An IllegalArgumentException is a mistake of the caller's: nothing was sent. docs/clients.md says what to do about each.
 *
 * A hold is certainly ours until its deadline: the moment the answered request was *sent*, plus what was waited, plus what the
 * service says is left, on System.nanoTime(). On Linux that clock stands still while the machine sleeps: after a sleep
 * remaining() says too much, by the length of the sleep, until a renewal or a write is refused. */
package pawl;

import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.TrustManagerFactory;

public final class Pawl {
    private static final int ANSWER_BYTES_MAX = 64 << 20;
    /** Of one request's wait in line, before a proxy ends it; of the place's keeping; of sitting out a restart. */
    private static final long SLICE_MS = 20_000;
    private static final long WAIT_MS_MAX = 600_000; // docs/contract.md, "Limits": of several leases, of which no place is kept
    private static final long LISTEN_MS = 60_000; // a stream of events says something every 15 s
    private static final long TTL_MS_MAX = 86_400_000;
    private static final long TOKEN_MAX = 999_999_999_999_999L;
    private static final Duration FOREVER = Duration.ofDays(36_500);
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}");
    private static final Pattern LEASE_ID = Pattern.compile("[A-Za-z0-9_-]{22,64}");
    private static final Pattern SESSION = Pattern.compile("[A-Za-z0-9_-]{16,64}");
    private static final Pattern FENCING_TOKEN = Pattern.compile("[!-~]{1,1024}");
    private static final Pattern ACCESS_TOKEN = Pattern.compile("[!-~]{1,4094}");
    private static final Pattern LOOPBACK =
        Pattern.compile("localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\]", Pattern.CASE_INSENSITIVE);
    private static final Set<String> HELD = Set.of("lease-held", "wait-timeout");
    private static final Set<String> LOST =
        Set.of("lease-lost", "hold-over", "session-lost", "stale-token", "lease-expired");
    private static final SecureRandom RANDOM = new SecureRandom();

    // -- how a call ends

    /** What kept a call from its end. code, detail: of the service (api/problems.def), or this client's own ("not-sent",
     * "no-answer", "bad-answer", "deadline-passed", "released", "cancelled"). */
    public abstract static sealed class Problem extends RuntimeException permits Held, Lost, NotDone, Unknown {
        private static final long serialVersionUID = 1;
        private final String code;
        private final String detail;
        private final int status;
        private final transient Map<String, Object> members;

        Problem(String code, String detail, int status, Map<String, Object> members, Throwable cause) {
            super(code + ": " + detail, cause);
            this.code = code;
            this.detail = detail;
            this.status = status;
            this.members = members;
        }

        public String code() { return code; }
        public String detail() { return detail; }
        /** Of HTTP; 0: there was none. */
        public int status() { return status; }
        /** The same again, later, may help. */
        public boolean retryable() { return members != null && Boolean.TRUE.equals(members.get("retryable")); }
        /** Who holds it, if told; else null. */
        public String holder() { return text("holder"); }
        /** Of a lost hold, how, if told: "expired", "forced", "session", "store-restarted", "unknown"; else null. */
        public String ended() { return text("ended"); }

        boolean placeKept() {
            return members != null && members.get("place_kept_ms") instanceof Long kept && kept > 0;
        }

        private String text(String name) {
            return members != null && members.get(name) instanceof String text ? text : null;
        }
    }

    /** Certainly not granted: another holds it, or the wait is over. */
    public static final class Held extends Problem {
        private static final long serialVersionUID = 1;
        Held(String code, String detail, int status, Map<String, Object> members) {
            super(code, detail, status, members, null);
        }
    }

    /** This hold is over. Stop what it protected, and acquire anew. */
    public static final class Lost extends Problem {
        private static final long serialVersionUID = 1;
        Lost(String code, String detail, int status, Map<String, Object> members) {
            super(code, detail, status, members, null);
        }
    }

    /** Certainly not done. */
    public static final class NotDone extends Problem {
        private static final long serialVersionUID = 1;
        NotDone(String code, String detail, int status, Map<String, Object> members) {
            super(code, detail, status, members, null);
        }
    }

    /** It may have happened, or may yet happen. The cause is what was said to a later attempt, if anything was. */
    public static final class Unknown extends Problem {
        private static final long serialVersionUID = 1;
        Unknown(String code, String detail, int status, Map<String, Object> members, Throwable cause) {
            super(code, detail, status, members, cause);
        }
    }

    // -- the services

    private HttpClient client;
    private List<String> files; // by what is in them client was made
    private final Access access;
    private final String leaseUrl;
    private final String gatewayUrl;
    private final Map<String, Path> sockets = new HashMap<>(); // of the hosts that stand for one
    private final Duration timeout;
    private final int attempts;

    public Pawl() {
        this(null, null, Duration.ofSeconds(5), 3);
    }

    /** A URL that is null comes from the environment, or is the usual one; it may be unix:/path. timeout: of one attempt, without its wait in line;
     * attempts: at most, of what is safe to repeat. Safe for use by several threads. */
    public Pawl(String leaseUrl, String gatewayUrl, Duration timeout, int attempts) {
        this(leaseUrl, gatewayUrl, timeout, attempts, new Access());
    }

    public Pawl(String leaseUrl, String gatewayUrl, Duration timeout, int attempts, Access access) {
        this.access = access;
        this.leaseUrl = base(leaseUrl, "PAWL_LEASE_URL", "http://127.0.0.1:8700");
        this.gatewayUrl = base(gatewayUrl, "PAWL_GATEWAY_URL", "http://127.0.0.1:8701");
        this.timeout = timeout;
        this.attempts = Math.max(1, attempts);
        try {
            connect();
        } catch (GeneralSecurityException | java.io.IOException | IllegalArgumentException error) {
            throw new IllegalArgumentException("ca, cert and key cannot be used: " + error, error);
        }
    }

    /** Makes the client anew when the files of TLS have. Its connections live on. It repeats only GET behind our back
     * (jdk.httpclient.enableAllMethodRetry is off). */
    private synchronized void connect() throws GeneralSecurityException, java.io.IOException {
        List<String> now = access.files();
        if (client != null && now.equals(files))
            return;
        HttpClient.Builder made = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .proxy(HttpClient.Builder.NO_PROXY).followRedirects(HttpClient.Redirect.NEVER)
            .connectTimeout(timeout.multipliedBy(9).dividedBy(10)); // before send() knows no more than that it took too long
        if (!now.isEmpty())
            made.sslContext(access.tls());
        client = made.build();
        files = now;
    }

    /** By what the files have now; while that cannot be used (one is new, another is not yet), by what they had before. */
    private HttpClient client() {
        try {
            connect();
        } catch (GeneralSecurityException | java.io.IOException | IllegalArgumentException error) {
            // later
        }
        return client;
    }

    /** Who asks, and whom it trusts; what is not set comes from the environment: PAWL_ACCESS_TOKEN_FILE or PAWL_ACCESS_TOKEN,
     * PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY. */
    public static final class Access {
        private String token = variable("PAWL_ACCESS_TOKEN");
        private String tokenFile = variable("PAWL_ACCESS_TOKEN_FILE");
        private String ca = variable("PAWL_CACERT");
        private String cert = variable("PAWL_CERT");
        private String key = variable("PAWL_CERT_KEY");
        private boolean plaintext;

        public Access token(String value) { token = value; tokenFile = null; return this; }
        /** It is read for each request. */
        public Access tokenFile(String path) { tokenFile = path; return this; }
        public Access ca(String path) { ca = path; return this; }
        /** PEM; the key in PKCS #8. */
        public Access cert(String path, String keyPath) { cert = path; key = keyPath; return this; }
        /** The access token goes over http:// to other machines, too. */
        public Access allowPlaintext() { plaintext = true; return this; }

        private static String variable(String name) {
            String value = System.getenv(name);
            return value == null || value.isEmpty() ? null : value;
        }

        /** The access token that there is now, or null; it is in no message. */
        private String now() {
            String now = token;
            try {
                if (tokenFile != null)
                    now = Files.readString(Path.of(tokenFile), StandardCharsets.ISO_8859_1).replaceAll("[\r\n]+$", "");
            } catch (java.io.IOException error) {
                throw notSent("cannot be read: " + error);
            }
            if (now != null && !ACCESS_TOKEN.matcher(now).matches())
                throw notSent("is none");
            return now;
        }

        private static NotDone notSent(String why) {
            return new NotDone("not-sent", "the access token " + why + "; nothing was sent", 0, Map.of("retryable", true));
        }

        /** What authorities, certificate and key are now. */
        private List<String> files() throws java.io.IOException {
            List<String> found = new ArrayList<>();
            for (String path : new String[] {ca, cert, cert == null ? null : key})
                if (path != null)
                    found.add(Files.readString(Path.of(path), StandardCharsets.ISO_8859_1));
            return found;
        }

        private SSLContext tls() throws GeneralSecurityException, java.io.IOException {
            TrustManagerFactory trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            KeyManagerFactory shown = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            KeyStore authorities = ca == null ? null : store(); // null: the system's
            for (Certificate one : ca == null ? new Certificate[0] : certificates(ca))
                authorities.setCertificateEntry("ca" + authorities.size(), one);
            trusted.init(authorities);
            KeyStore own = store();
            Certificate[] chain = cert == null ? null : certificates(cert); // read once: the next moment it may be another
            if (cert != null)
                own.setKeyEntry("own", privateKey(chain[0].getPublicKey()), new char[0], chain);
            shown.init(own, new char[0]);
            SSLContext made = SSLContext.getInstance("TLS");
            made.init(shown.getKeyManagers(), trusted.getTrustManagers(), null);
            return made;
        }

        private static KeyStore store() throws GeneralSecurityException, java.io.IOException {
            KeyStore made = KeyStore.getInstance("PKCS12");
            made.load(null, null);
            return made;
        }

        private static Certificate[] certificates(String path) throws GeneralSecurityException, java.io.IOException {
            try (java.io.InputStream in = Files.newInputStream(Path.of(path))) {
                Certificate[] found = CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
                if (found.length == 0)
                    throw new CertificateException("no certificate in " + path);
                return found;
            }
        }

        private PrivateKey privateKey(PublicKey its) throws GeneralSecurityException, java.io.IOException {
            String text = Files.readString(Path.of(String.valueOf(key))).replaceAll("-----[^-]*-----", "");
            PrivateKey found = KeyFactory.getInstance(its.getAlgorithm())
                .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(text)));
            Signature tried = Signature.getInstance(Map.of("EC", "SHA256withECDSA", "RSA", "SHA256withRSA")
                .getOrDefault(its.getAlgorithm(), its.getAlgorithm()));
            tried.initSign(found);
            byte[] signed = tried.sign();
            tried.initVerify(its);
            if (!tried.verify(signed))
                throw new SignatureException("the key is another's");
            return found;
        }
    }

    private String base(String given, String variable, String usual) {
        String url = given != null ? given : System.getenv(variable);
        url = url == null || url.isEmpty() ? usual : url;
        if (url.startsWith("unix:/")) {
            String host = variable.equals("PAWL_LEASE_URL") ? "lease.invalid" : "gateway.invalid"; // within this object
            sockets.put(host, Path.of(url.substring("unix:".length())));
            return "http://" + host;
        }
        URI parts = URI.create(url);
        boolean http = "http".equals(parts.getScheme()) || "https".equals(parts.getScheme());
        if (!http || parts.getHost() == null || parts.getUserInfo() != null || parts.getQuery() != null
            || parts.getFragment() != null || parts.getPort() > 65535)
            throw new IllegalArgumentException("not the address of a service: " + url);
        if ((access.token != null || access.tokenFile != null) && "http".equals(parts.getScheme()) && !access.plaintext
            && !LOOPBACK.matcher(parts.getHost()).matches())
            throw new IllegalArgumentException(
                "an access token is sent over https:// and loopback alone, not to " + url + ": allowPlaintext");
        return url.replaceAll("/+$", "");
    }

    /** How a lease is asked for. */
    public static final class Ask {
        private Duration ttl = Duration.ofSeconds(30);
        private Duration lockDelay = Duration.ZERO;
        private String holder;
        private String mode = "exclusive";
        private int permits;
        private String meta;
        private String leaseId;
        private BiConsumer<Lease, Lost> onLost;

        public Ask ttl(Duration value) { ttl = value; return this; }
        public Ask lockDelay(Duration value) { lockDelay = value; return this; }
        /** A label for people. */
        public Ask holder(String value) { holder = value; return this; }
        /** "exclusive" or "shared". */
        public Ask mode(String value) { mode = value; return this; }
        /** A counting semaphore, instead of a mode. */
        public Ask permits(int value) { permits = value; return this; }
        /** A JSON object, as text. */
        public Ask meta(String json) { meta = json; return this; }
        /** To propose, for one hold; without it each hold has a random one. */
        public Ask leaseId(String value) { leaseId = value; return this; }
        /** Called once, from the hold's own thread, if it is lost before it is released. */
        public Ask onLost(BiConsumer<Lease, Lost> value) { onLost = value; return this; }

        /** names: of several at once, else null. */
        private String json(String id, long waitMs, long keepMs, List<String> names, Session session) {
            StringBuilder text = new StringBuilder("{\"ttl_ms\":" + ttl.toMillis() + ",\"wait_ms\":" + waitMs
                + ",\"lease_id\":" + Json.quoted(id));
            if (names != null)
                text.append(names.stream().map(Json::quoted).collect(Collectors.joining(",", ",\"names\":[", "]")));
            if (keepMs > 0)
                text.append(",\"keep_place_ms\":" + keepMs);
            if (session != null)
                text.append(",\"session\":" + Json.quoted(session.id()));
            text.append(permits > 0 ? ",\"permits\":" + permits : ",\"mode\":" + Json.quoted(mode));
            if (!lockDelay.isZero())
                text.append(",\"lock_delay_ms\":" + lockDelay.toMillis());
            if (holder != null)
                text.append(",\"holder\":" + Json.quoted(holder));
            if (meta != null)
                text.append(",\"meta\":" + meta);
            return text.append('}').toString();
        }
    }

    public Lease lease(String name) {
        return lease(name, new Ask());
    }

    /** Nothing is sent yet. */
    public Lease lease(String name, Ask ask) {
        return lease(name, ask, null);
    }

    private Lease lease(String name, Ask ask, Session session) {
        if (!NAME.matcher(name).matches())
            throw new IllegalArgumentException("not the name of a lease: " + name);
        if (ask.leaseId != null && !LEASE_ID.matcher(ask.leaseId).matches())
            throw new IllegalArgumentException("leaseId: 22 to 64 of A-Z a-z 0-9 _ -");
        checkTtl(ask.ttl);
        return new Lease(name, ask, session);
    }

    /** All or none, each locked by this thread. No place in line outlives its connection; otherwise as Lease.acquire(). */
    public Several acquireAll(List<String> names, Ask ask, Duration wait) throws InterruptedException {
        return acquireAll(names, ask, wait, null);
    }

    private Several acquireAll(List<String> names, Ask ask, Duration wait, Session session) throws InterruptedException {
        List<Lease> leases = names.stream().map(name -> lease(name, ask, session)).toList();
        List<Hold> holds = acquire(leases, true, wait, true);
        for (int i = 0; i < leases.size(); i++) {
            leases.get(i).local.lock();
            leases.get(i).hold = holds.get(i);
        }
        return new Several(leases);
    }

    /** Several leases that are held, in the order of their names. close() unlocks each; then a loss is thrown, if there was one. */
    public record Several(List<Lease> leases) implements AutoCloseable {
        @Override
        public void close() {
            Lost loss = null;
            for (Lease lease : leases) {
                try {
                    lease.unlock();
                } catch (Lost error) {
                    loss = error;
                } catch (NotDone | Unknown error) {
                    lease.releaseProblem = error;
                }
            }
            if (loss != null)
                throw loss;
        }
    }

    private static long checkTtl(Duration ttl) {
        if (ttl.compareTo(Duration.ofMillis(100)) < 0 || ttl.compareTo(Duration.ofMillis(TTL_MS_MAX)) > 0)
            throw new IllegalArgumentException("ttl must be 100 ms to 24 h, not " + ttl);
        return ttl.toMillis();
    }

    // -- one request, sent once

    private record Answer(int status, HttpHeaders headers, byte[] body, long sent, long received) {
        String header(String name) { return headers.firstValue(name).orElse(null); }
        Map<String, Object> json() { return Json.object(new String(body, StandardCharsets.UTF_8)); }
    }

    /** The whole answer. Throws NotDone while nothing has left, Unknown after that. An interrupt gives up when wanted, else it
     * waits until the end. */
    private Answer send(String method, String url, Map<String, String> headers, byte[] body, long limitNanos,
                        boolean interruptible) throws InterruptedException {
        HttpRequest.BodyPublisher publisher = body == null ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofByteArray(body);
        HttpRequest.Builder request = request(url).method(method, publisher);
        headers.forEach((name, value) -> {
            if (value != null)
                request.header(name, value);
        });
        HttpRequest built = request.build();
        long sent = System.nanoTime();
        CompletableFuture<HttpResponse<byte[]>> coming = begin(built, body, Pawl::whole);
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    HttpResponse<byte[]> http = coming.get(sent + limitNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
                    return new Answer(http.statusCode(), http.headers(), http.body(), sent, System.nanoTime());
                } catch (InterruptedException error) {
                    if (interruptible)
                        throw error;
                    interrupted = true;
                }
            }
        } catch (ExecutionException error) {
            Throwable why = error.getCause();
            if (why instanceof ConnectException || why instanceof HttpConnectTimeoutException
                || why instanceof SSLHandshakeException && why.getCause() instanceof CertificateException) // nobody we trust
                throw new NotDone("not-sent", url + ": " + why + "; nothing was sent", 0, Map.of("retryable", true));
            throw new Unknown("no-answer", url + ": " + why + "; it may have happened", 0, null, null);
        } catch (TimeoutException | CancellationException error) {
            throw new Unknown("no-answer", url + ": no whole answer in time; it may have happened", 0, null, null);
        } finally {
            coming.cancel(true); // closes the connection, if it has not ended
            if (interrupted)
                Thread.currentThread().interrupt();
        }
    }

    private HttpRequest.Builder request(String url) {
        String now = access.now();
        HttpRequest.Builder made = HttpRequest.newBuilder(URI.create(url));
        return now == null ? made : made.header("Authorization", "Bearer " + now);
    }

    /** body: of the request, once more. Whoever cancels what comes closes the connection. */
    private CompletableFuture<HttpResponse<byte[]>> begin(HttpRequest request, byte[] body,
                                                          HttpResponse.BodyHandler<byte[]> handler) {
        Path socket = sockets.get(request.uri().getHost());
        try {
            return socket == null ? client().sendAsync(request, handler)
                : new Local(socket, request, body == null ? new byte[0] : body, handler).coming;
        } catch (java.io.IOException error) {
            return CompletableFuture.failedFuture(new ConnectException("no socket: " + error.getMessage()));
        }
    }

    /** One exchange over a unix socket, which java.net.http does not have: a connection and a thread of its own. */
    private static final class Local implements Flow.Subscription, HttpResponse.ResponseInfo {
        private static final int HEAD_BYTES_MAX = 64 << 10;
        private static final Pattern STATUS = Pattern.compile("HTTP/1\\.[01] ([1-5][0-9][0-9])( .*)?");
        private static final Pattern FIELD = Pattern.compile("([!#-'*+.^-z|~A-Z0-9-]+):[ \t]*(.*?)[ \t]*");
        private static final Pattern LENGTH = Pattern.compile("[0-9]{1,15}");
        private static final Pattern NOTHING = Pattern.compile("");
        private static final Pattern CHUNK = Pattern.compile("([0-9A-Fa-f]{1,8})[ \t]*(;.*)?");
        private final CompletableFuture<HttpResponse<byte[]>> coming = new CompletableFuture<>();
        private final Semaphore wanted = new Semaphore(0);
        private final SocketChannel channel;
        private int status;
        private HttpHeaders headers;

        private record Told(int statusCode, HttpHeaders headers, byte[] body, HttpRequest request) implements HttpResponse<byte[]> {
            @Override public Optional<HttpResponse<byte[]>> previousResponse() { return Optional.empty(); }
            @Override public Optional<javax.net.ssl.SSLSession> sslSession() { return Optional.empty(); }
            @Override public URI uri() { return request.uri(); }
            @Override public HttpClient.Version version() { return HttpClient.Version.HTTP_1_1; }
        }

        private Local(Path socket, HttpRequest request, byte[] body, HttpResponse.BodyHandler<byte[]> handler)
            throws java.io.IOException {
            channel = SocketChannel.open(java.net.StandardProtocolFamily.UNIX);
            coming.whenComplete((answer, broken) -> cancel());
            Thread made = new Thread(() -> {
                try {
                    channel.connect(UnixDomainSocketAddress.of(socket));
                } catch (java.io.IOException | RuntimeException error) { // nothing was sent, whatever it was
                    coming.completeExceptionally(new ConnectException(socket + ": " + error.getMessage()));
                }
                try {
                    say(request, body);
                    hear(request, handler);
                } catch (Exception error) {
                    coming.completeExceptionally(error);
                }
            }, "pawl-socket");
            made.setDaemon(true);
            made.start();
        }

        private void say(HttpRequest request, byte[] body) throws java.io.IOException {
            String query = request.uri().getRawQuery();
            StringBuilder head = new StringBuilder(request.method() + " " + request.uri().getRawPath() + (query == null ? "" : "?" + query)
                + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " + body.length + "\r\n");
            request.headers().map().forEach((name, values) -> values.forEach(value -> head.append(name + ": " + value + "\r\n")));
            byte[] first = head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1);
            ByteBuffer all = ByteBuffer.allocate(first.length + body.length).put(first).put(body).flip();
            while (all.hasRemaining())
                channel.write(all);
        }

        private void hear(HttpRequest request, HttpResponse.BodyHandler<byte[]> handler) throws Exception {
            InputStream in = new java.io.BufferedInputStream(Channels.newInputStream(channel));
            do {
                Matcher first = matched(STATUS, line(in));
                status = Integer.parseInt(first.group(1));
                headers = fields(in);
            } while (status / 100 == 1);
            HttpResponse.BodySubscriber<byte[]> body = handler.apply(this);
            body.getBody().whenComplete((bytes, broken) -> {
                if (broken != null)
                    coming.completeExceptionally(broken);
                else
                    coming.complete(new Told(status, headers, bytes, request));
            });
            body.onSubscribe(this);
            List<String> coded = headers.allValues("Transfer-Encoding"), lengths = headers.allValues("Content-Length");
            if (coded.size() == 1 && coded.get(0).equalsIgnoreCase("chunked")) {
                for (long left; (left = Long.parseLong(matched(CHUNK, line(in)).group(1), 16)) > 0; matched(NOTHING, line(in)))
                    pieces(in, left, body);
                fields(in);
            } else if (status != 204 && status != 304) {
                String length = coded.isEmpty() && lengths.size() == 1 ? lengths.get(0) : "";
                pieces(in, Long.parseLong(matched(LENGTH, length).group()), body);
            }
            body.onComplete();
        }

        private void pieces(InputStream in, long left, HttpResponse.BodySubscriber<byte[]> body) throws Exception {
            while (left > 0) {
                byte[] piece = new byte[(int) Math.min(left, 16 << 10)];
                int got = in.read(piece);
                if (got < 0)
                    throw new java.io.EOFException("the answer was cut");
                left -= got;
                wanted.acquire();
                body.onNext(List.of(ByteBuffer.wrap(piece, 0, got)));
            }
        }

        private static HttpHeaders fields(InputStream in) throws java.io.IOException {
            Map<String, List<String>> found = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
            int left = HEAD_BYTES_MAX;
            for (String line; !(line = line(in)).isEmpty();) {
                Matcher field = matched(FIELD, (left -= line.length()) >= 0 ? line : "");
                found.computeIfAbsent(field.group(1), name -> new ArrayList<>()).add(field.group(2));
            }
            return HttpHeaders.of(found, (name, value) -> true);
        }

        private static String line(InputStream in) throws java.io.IOException {
            StringBuilder text = new StringBuilder();
            for (int c; (c = in.read()) != '\n'; text.append((char) c))
                if (c < 0 || text.length() > HEAD_BYTES_MAX)
                    throw new java.io.IOException("the answer was cut, or is none of HTTP");
            int end = text.length() - 1;
            return end >= 0 && text.charAt(end) == '\r' ? text.substring(0, end) : text.toString();
        }

        private static Matcher matched(Pattern pattern, String line) throws java.io.IOException {
            Matcher found = pattern.matcher(line);
            if (!found.matches())
                throw new java.io.IOException("the answer is none of HTTP");
            return found;
        }

        @Override public void request(long pieces) { wanted.release((int) Math.min(pieces, 1 << 28)); }
        @Override public int statusCode() { return status; }
        @Override public HttpHeaders headers() { return headers; }
        @Override public HttpClient.Version version() { return HttpClient.Version.HTTP_1_1; }

        @Override
        public void cancel() {
            wanted.release();
            try {
                channel.close();
            } catch (java.io.IOException error) {
                // it is of no use any more
            }
        }
    }

    /** The body, all of it: with an end that is told, and not more than there is room for. */
    private static HttpResponse.BodySubscriber<byte[]> whole(HttpResponse.ResponseInfo head) {
        long length = head.headers().firstValueAsLong("Content-Length").orElse(-1);
        boolean ends = length >= 0 || head.statusCode() == 204 || head.statusCode() == 304
            || head.headers().firstValue("Transfer-Encoding").isPresent();
        return new Whole(!ends ? "an answer without a length" : length > ANSWER_BYTES_MAX ? "the answer is too long" : null);
    }

    private static final class Whole implements HttpResponse.BodySubscriber<byte[]> {
        private final CompletableFuture<byte[]> body = new CompletableFuture<>();
        private final java.io.ByteArrayOutputStream pieces = new java.io.ByteArrayOutputStream();
        private final String wrong;
        private Flow.Subscription coming;

        private Whole(String wrong) {
            this.wrong = wrong;
        }

        @Override
        public CompletableFuture<byte[]> getBody() { return body; }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            coming = subscription;
            if (wrong != null)
                fail(wrong);
            else
                coming.request(Long.MAX_VALUE);
        }

        private void fail(String why) {
            coming.cancel();
            body.completeExceptionally(new java.io.IOException(why));
        }

        @Override
        public void onNext(List<ByteBuffer> more) {
            for (ByteBuffer one : more) {
                if (pieces.size() + one.remaining() > ANSWER_BYTES_MAX) {
                    fail("the answer is too long");
                    return;
                }
                byte[] piece = new byte[one.remaining()];
                one.get(piece);
                pieces.write(piece, 0, piece.length);
            }
        }

        @Override
        public void onError(Throwable why) { body.completeExceptionally(why); }

        @Override
        public void onComplete() { body.complete(pieces.toByteArray()); }
    }

    private static Unknown foreign(Answer answer) {
        return new Unknown("bad-answer", "status " + answer.status + ", not as Pawl answers; it may have happened",
            answer.status, null, null);
    }

    /** The answer when it is done, as Pawl says it, else the exception that it means. A problem counts only as Pawl tells it:
     * somebody between, who does not know what became of the request, may have answered. */
    private static Answer judge(Answer answer, Integer... done) {
        int status = answer.status;
        if (Set.of(done).contains(status))
            return answer;
        String type = answer.header("Content-Type");
        Map<String, Object> problem = type != null && type.startsWith("application/problem+json") ? answer.json() : null;
        if (problem == null || !(problem.get("code") instanceof String code)
            || !("/problems/" + code).equals(problem.get("type")) || !Long.valueOf(status).equals(problem.get("status")))
            throw foreign(answer);
        String said = problem.get("detail") instanceof String text ? text : code;
        if (HELD.contains(code))
            throw new Held(code, said, status, problem);
        if (LOST.contains(code))
            throw new Lost(code, said, status, problem);
        if (status == 501 || status == 503 || status >= 400 && status < 500 || code.equals("upstream-unavailable"))
            throw new NotDone(code, said, status, problem);
        throw new Unknown(code, said, status, problem, null); // 504, 500, and what we do not know
    }

    /** Of a session as well: then lost are the names that it has lost. deadline: when it ends, at the earliest:
     * the store's clock is cut to milliseconds. */
    private record Grant(long token, String fencingToken, long ttlNanos, long leftNanos, long deadline, List<?> lost) {
        long begun() { return deadline - leftNanos; }
    }

    private static Grant granted(Answer answer, Map<?, ?> told, String name, String leaseId) {
        if (told == null || !name.equals(told.get("lease")) || !leaseId.equals(told.get("lease_id"))
            || !(told.get("fencing_token") instanceof String fencing) || !(told.get("token") instanceof Long token)
            || !(told.get("ttl_ms") instanceof Long ttl) || !(told.get("expires_in_ms") instanceof Long left)
            || !(told.get("waited_ms") instanceof Long waited) || token < 1 || token > TOKEN_MAX || ttl < 1
            || ttl > TTL_MS_MAX || left < 0 || left > TTL_MS_MAX || waited < 0 || waited > 1_000_000_000_000L
            || !FENCING_TOKEN.matcher(fencing).matches())
            throw new Unknown("bad-answer", "the answer is not a grant of this lease; it may have happened",
                answer.status, null, null);
        long waitedNanos = Math.min(waited * 1_000_000, answer.received - answer.sent);
        return new Grant(token, fencing, ttl * 1_000_000, left * 1_000_000,
            answer.sent + waitedNanos + (left - 1) * 1_000_000, List.of());
    }

    private static Grant alive(Answer answer, Map<?, ?> told, String id) {
        if (told == null || !(told.get("ttl_ms") instanceof Long ttl) || !(told.get("expires_in_ms") instanceof Long left)
            || ttl < 0 || ttl > TTL_MS_MAX || left < 0 || left > TTL_MS_MAX || !id.equals(told.get("session"))
            || !(told.containsKey("session_secret") || told.get("lost") instanceof List))
            throw foreign(answer);
        return new Grant(0, null, ttl * 1_000_000, left * 1_000_000, answer.sent + (left - 1) * 1_000_000,
            told.get("lost") instanceof List<?> lost ? lost : List.of());
    }

    private interface Attempt<T> {
        T make() throws InterruptedException;
    }

    /** Makes attempts until the end is known. lossIsCertain: a Lost speaks of the hold, which is over whatever an earlier attempt
     * did. */
    private static <T> T settle(Attempt<T> attempt, int attempts, boolean lossIsCertain) throws InterruptedException {
        Unknown doubt = null;
        for (int number = 1;; number++) {
            try {
                return attempt.make();
            } catch (Problem error) {
                if (error instanceof Lost && lossIsCertain)
                    throw error;
                doubt = error instanceof Unknown unknown ? unknown : doubt;
                if (number >= attempts || !(error instanceof Unknown || error instanceof NotDone && error.retryable()))
                    throw inDoubt(doubt, error);
            }
            pause(number, false);
        }
    }

    /** How it ended: once something may have happened, a refusal is no proof that nothing was done, for the earlier request may be
     * done after the later one was refused. */
    private static Problem inDoubt(Unknown doubt, Problem last) {
        return doubt == null || last instanceof Unknown ? last
            : new Unknown(doubt.code(), doubt.detail() + "; asked again: " + last.getMessage(), doubt.status(), null, last);
    }

    /** An interrupt gives up when wanted, else it waits until the end. */
    private static void pause(int tried, boolean interruptible) throws InterruptedException {
        double most = 100_000_000 << Math.min(tried - 1, 3);
        long end = System.nanoTime() + (long) (most * ThreadLocalRandom.current().nextDouble(0.5, 1.0));
        boolean interrupted = false;
        for (long left; (left = end - System.nanoTime()) > 0;) {
            try {
                TimeUnit.NANOSECONDS.sleep(left);
            } catch (InterruptedException error) {
                if (interruptible)
                    throw error;
                interrupted = true;
            }
        }
        if (interrupted)
            Thread.currentThread().interrupt();
    }

    /** For what is not given up by an interrupt. */
    private static <T> T whole(Attempt<T> attempt, int attempts, boolean lossIsCertain) {
        try {
            return settle(attempt, attempts, lossIsCertain);
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
    }

    private static String random(int bytes) {
        byte[] made = new byte[bytes];
        RANDOM.nextBytes(made);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(made);
    }

    private static Map<String, String> headers(String... pairs) {
        Map<String, String> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2)
            made.put(pairs[i], pairs[i + 1]);
        return made;
    }

    private String leaseAt(String name) {
        return leaseUrl + "/v1/leases/" + name;
    }

    /** The key makes a repeated release count once, however often it was entered. */
    private void release(String name, String leaseId, String fencingToken, int times, long limitNanos) {
        Map<String, String> headers =
            headers("Lease-Id", leaseId, "Fencing-Token", fencingToken, "Idempotency-Key", random(16));
        whole(() -> {
            Answer answer = judge(send("DELETE", leaseAt(name), headers, null, limitNanos, false), 200, 204);
            Map<String, Object> told = answer.status == 200 ? answer.json() : null;
            if (answer.status == 200 && (told == null || !(told.get("holds") instanceof Long holds) || holds < 1))
                throw foreign(answer);
            return answer;
        }, times, true);
    }

    private void giveBack(String name, String leaseId, String fencingToken, long limitNanos) {
        try {
            release(name, leaseId, fencingToken, 1, limitNanos);
        } catch (Problem ignored) {
            // it ends by its ttl
        }
    }

    // -- acquire

    private List<Hold> acquire(List<Lease> leases, boolean several, Duration wait, boolean interruptible)
        throws InterruptedException {
        Lease first = leases.get(0);
        String id = first.ask.leaseId != null ? first.ask.leaseId : random(24);
        boolean clear = false;
        try {
            List<Grant> grants = obtain(leases, several, id, wait, interruptible);
            List<Hold> made = new ArrayList<>();
            for (int i = 0; i < leases.size(); i++)
                made.add(new Hold(leases.get(i), id, grants.get(i)));
            made.forEach(Hold::check);
            if (first.session == null)
                made.forEach(Hold::start); // an Error where no thread can be had: then it is given back
            clear = true;
            return made;
        } catch (Held | NotDone error) {
            clear = true;
            throw error;
        } finally {
            // Also when interrupted: then it may have been granted in that moment.
            if (!clear && first.ask.leaseId == null)
                forget(leases, several, id, !wait.isZero());
        }
    }

    /** Waits in slices, and keeps the place in line between them; while nobody of Pawl's answers, as long as the place is kept. */
    private List<Grant> obtain(List<Lease> leases, boolean several, String id, Duration wait, boolean interruptible)
        throws InterruptedException {
        long end = System.nanoTime() + (wait.compareTo(FOREVER) > 0 ? FOREVER : wait).toNanos();
        long most = several ? WAIT_MS_MAX : SLICE_MS;
        long heard = System.nanoTime();
        Unknown doubt = null;
        for (int tried = 0;;) {
            long sent = System.nanoTime();
            long left = (end - sent) / 1_000_000;
            long part = Math.max(1, Math.min(left, most));
            try {
                return wait.isZero() ? grants(leases, several, id, 0, 0, interruptible)
                    : grants(leases, several, id, part, several || left <= 0 ? 0 : SLICE_MS, interruptible);
            } catch (Lost error) {
                throw error;
            } catch (Held error) {
                if (!error.code().equals("wait-timeout") || left <= most && !error.placeKept())
                    throw inDoubt(doubt, error);
                tried = 0;
                heard = System.nanoTime();
                continue;
            } catch (NotDone | Unknown error) {
                boolean ours = doubt != null && error.code().equals("superseded"); // by our own request, late
                doubt = error instanceof Unknown unknown ? unknown : doubt;
                tried++;
                long took = System.nanoTime() - sent;
                if (left > 0 && !error.code().equals("not-sent") && took >= 1_000_000_000
                    && took < part * 1_000_000 + timeout.toNanos()) { // somebody was there until it broke
                    tried = 1;
                    heard = System.nanoTime();
                }
                if (error instanceof NotDone && !error.retryable() && !ours
                    || tried >= attempts && (left <= 0 || System.nanoTime() - heard > SLICE_MS * 1_000_000))
                    throw inDoubt(doubt, error);
            }
            pause(tried, interruptible);
        }
    }

    private List<Grant> grants(List<Lease> leases, boolean several, String id, long waitMs, long keepMs, boolean interruptible)
        throws InterruptedException {
        Lease first = leases.get(0);
        List<String> names = several ? leases.stream().map(Lease::name).toList() : null;
        byte[] body = first.ask.json(id, waitMs, keepMs, names, first.session).getBytes(StandardCharsets.UTF_8);
        Map<String, String> headers = headers("Content-Type", "application/json", "Session-Secret",
            first.session == null ? null : first.session.secret);
        Answer answer = judge(send("POST", several ? leaseUrl + "/v1/leases" : leaseAt(first.name), headers, body,
            waitMs * 1_000_000 + timeout.toNanos(), interruptible), 200, 201);
        Map<String, Object> told = answer.json();
        List<?> all = !several ? told == null ? null : List.of(told)
            : told != null && told.get("grants") instanceof List<?> list ? list : null;
        if (all == null || all.size() != leases.size())
            throw foreign(answer);
        List<Grant> made = new ArrayList<>();
        for (int i = 0; i < leases.size(); i++)
            made.add(granted(answer, all.get(i) instanceof Map<?, ?> map ? map : Map.of(), leases.get(i).name, id));
        return made;
    }

    /** Gives the place in line back, by a request that takes it and keeps it no more, and what may be held: as far as the time
     * of one attempt goes for each of the two. */
    private void forget(List<Lease> leases, boolean several, String id, boolean waited) {
        try {
            if (waited)
                grants(leases, several, id, 1, 0, false);
        } catch (Problem | InterruptedException ignored) {
            // it ends by its ttl
        }
        long end = System.nanoTime() + timeout.toNanos();
        long left;
        for (int i = 0; i < leases.size() && (left = end - System.nanoTime()) > 0; i++)
            giveBack(leases.get(i).name, id, null, left); // the token of what may be held is not known
    }

    // -- sessions and events

    /** Opens a session, which keeps itself alive; of the ask ttl, holder and meta count. Asked for once: one whose answer was lost
     * holds nothing, and ends by its ttl. onLost: called once, if it is lost before it is closed; may be null. */
    public Session session(Ask ask, Consumer<Lost> onLost) {
        StringBuilder text = new StringBuilder("{\"ttl_ms\":" + checkTtl(ask.ttl));
        if (ask.holder != null)
            text.append(",\"holder\":" + Json.quoted(ask.holder));
        if (ask.meta != null)
            text.append(",\"meta\":" + ask.meta);
        byte[] body = text.append('}').toString().getBytes(StandardCharsets.UTF_8);
        return whole(() -> {
            Answer answer = judge(send("POST", leaseUrl + "/v1/sessions", headers("Content-Type", "application/json"), body,
                timeout.toNanos(), false), 201);
            Map<String, Object> told = answer.json();
            if (told == null || !(told.get("session") instanceof String id) || !SESSION.matcher(id).matches()
                || !(told.get("session_secret") instanceof String secret) || !LEASE_ID.matcher(secret).matches())
                throw foreign(answer);
            Session made = new Session(id, secret, alive(answer, told, id), onLost);
            made.start();
            return made;
        }, 1, true);
    }

    public Session session(Ask ask) {
        return session(ask, null);
    }

    /** Calls each with what happens to this lease, or to all (null), as it happens, the items of the history, until it says false,
     * or this thread is interrupted. After a break it goes on behind the last one (at first behind since, if that is not null); what
     * cannot be made up for is told as an item whose type is "missed". Throws what kept the first connection, and a refusal of
     * Pawl's that stays. A convenience, never the safety: the fence is. */
    public void events(String name, String since, Predicate<Map<String, Object>> each) throws InterruptedException {
        if (name != null && !NAME.matcher(name).matches())
            throw new IllegalArgumentException("not the name of a lease: " + name);
        Stream stream = new Stream(leaseUrl + "/v1/events" + (name == null ? "" : "?lease=" + name), since);
        while (true) {
            try {
                if (!stream.listen(each))
                    return;
            } catch (Problem error) {
                if (error.code().equals("cursor-expired")) {
                    stream.last = null;
                    stream.listens = true;
                } else if (!stream.listens || !(error instanceof Unknown) && error.status() / 100 == 4 && !error.retryable()) {
                    throw error;
                }
            }
            pause(3, true);
        }
    }

    private final class Stream {
        private final String url;
        private String last;
        private boolean listens;

        private Stream(String url, String since) {
            this.url = url;
            last = since;
        }

        /** One connection, until it breaks; false: until each has said so. */
        private boolean listen(Predicate<Map<String, Object>> each) throws InterruptedException {
            HttpRequest.Builder request = request(url).header("Accept", "text/event-stream");
            if (last != null)
                request.header("Last-Event-ID", last);
            Lines lines = new Lines();
            long sent = System.nanoTime();
            CompletableFuture<HttpResponse<byte[]>> coming =
                begin(request.build(), null, head -> head.statusCode() == 200 ? lines.body() : whole(head));
            coming.whenComplete((answer, broken) -> lines.told.add(Optional.empty()));
            try {
                if (lines.next(timeout.toMillis()) == null) {
                    if (!coming.isDone() || coming.isCompletedExceptionally())
                        throw new NotDone("not-sent", url + ": no answer", 0, Map.of("retryable", true)); // it only reads
                    HttpResponse<byte[]> http = coming.join();
                    judge(new Answer(http.statusCode(), http.headers(), http.body(), sent, System.nanoTime()));
                }
                if (listens && last == null && !each.test(Map.of("type", "missed")))
                    return false;
                listens = true;
                return read(lines, each);
            } finally {
                coming.cancel(true); // closes the connection
            }
        }

        private boolean read(Lines lines, Predicate<Map<String, Object>> each) throws InterruptedException {
            String coming = last;
            StringBuilder data = new StringBuilder();
            for (String line; (line = lines.next(LISTEN_MS)) != null;) {
                if (line.startsWith("id: "))
                    coming = line.substring(4);
                if (line.startsWith("data: "))
                    data.append(line, 6, line.length());
                if (!line.isEmpty())
                    continue;
                last = coming; // half an event has not been seen
                Map<String, Object> item = data.length() == 0 ? null : Json.object(data.toString());
                data.setLength(0);
                if (item != null && !each.test(item))
                    return false;
            }
            return true;
        }
    }

    /** Of a stream, for a thread that can be interrupted, which the client's own InputStream does not allow. The first is empty, and
     * tells that there is one. */
    private static final class Lines implements Flow.Subscriber<String> {
        private final BlockingQueue<Optional<String>> told = new LinkedBlockingQueue<>(); // an empty one: the end
        private Flow.Subscription coming;

        private HttpResponse.BodySubscriber<byte[]> body() {
            return HttpResponse.BodySubscribers.fromLineSubscriber(this, lines -> new byte[0], StandardCharsets.UTF_8, null);
        }

        /** Null: it has ended, or was silent for too long. */
        private String next(long ms) throws InterruptedException {
            Optional<String> line = told.poll(ms, TimeUnit.MILLISECONDS);
            if (line == null || line.isEmpty())
                return null;
            coming.request(1);
            return line.get();
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            coming = subscription;
            told.add(Optional.of(""));
            coming.request(1000); // the end of the answer does not wait for lines that nobody has asked for yet
        }

        @Override
        public void onNext(String line) { told.add(Optional.of(line)); }

        @Override
        public void onError(Throwable why) { } // the answer ends with it

        @Override
        public void onComplete() { }
    }

    // -- resources, through the gateway

    /** What goes with a write; all may be null. */
    public record Write(String contentType, String ifMatch, String ifNoneMatch, String idempotencyKey) {
        public static final Write PLAIN = new Write(null, null, null, null);
        public static Write withKey(String idempotencyKey) { return new Write(null, null, null, idempotencyKey); }
    }

    public record Resource(byte[] body, String etag, String contentType) {
    }

    private String resourceAt(String key) {
        StringBuilder made = new StringBuilder(gatewayUrl + "/v1/resources");
        String[] parts = key.split("/", -1);
        if (!NAME.matcher(parts[0]).matches() || !StandardCharsets.UTF_8.newEncoder().canEncode(key)) // which makes it another key
            throw new IllegalArgumentException("not the key of a resource: " + key);
        for (String part : parts) {
            if (part.isEmpty() || part.equals(".") || part.equals(".."))
                throw new IllegalArgumentException("not the key of a resource: " + key);
            made.append('/');
            for (byte one : part.getBytes(StandardCharsets.UTF_8)) {
                boolean plain = one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9'
                    || "-._~:".indexOf(one) >= 0;
                made.append(plain ? String.valueOf((char) one) : String.format("%%%02X", one & 0xff));
            }
        }
        return made.toString();
    }

    private Answer write(String method, String key, byte[] body, String fencingToken, Write with) {
        Map<String, String> headers = headers("Fencing-Token", fencingToken, "Content-Type", with.contentType, "If-Match",
            with.ifMatch, "If-None-Match", with.ifNoneMatch, "Idempotency-Key", with.idempotencyKey);
        String url = resourceAt(key);
        boolean put = method.equals("PUT");
        return whole(() -> {
            Answer answer = send(method, url, headers, body, timeout.toNanos(), false);
            answer = put ? judge(answer, 201, 204) : judge(answer, 204);
            String status = answer.header("Fencing-Status"); // what the gateway always says of a write that was done
            if (status == null || !status.startsWith("pawl;") || put && answer.header("ETag") == null)
                throw foreign(answer);
            return answer;
        }, with.idempotencyKey == null ? 1 : attempts, false);
    }

    /** Writes; the etag of the new version. Sent once, unless it has an idempotencyKey: a second copy of a write may arrive
     * late, and undo what came after the first. */
    public String put(String key, byte[] body, String fencingToken, Write with) {
        return write("PUT", key, body, fencingToken, with).header("ETag");
    }

    /** Removes; NotDone, "not-found", when there is none. Sent once, unless it has an idempotencyKey. */
    public void delete(String key, String fencingToken, Write with) {
        write("DELETE", key, null, fencingToken, with);
    }

    /** With a fencingToken (which may be null) the read is fenced: after it no older write lands. */
    public Resource get(String key, String fencingToken) {
        String url = resourceAt(key);
        Answer answer = whole(() -> {
            Answer got = judge(send("GET", url, headers("Fencing-Token", fencingToken), null, timeout.toNanos(), false),
                200);
            if (got.header("ETag") == null || got.header("Fencing-Mark") == null)
                throw foreign(got);
            return got;
        }, attempts, true);
        return new Resource(answer.body, answer.header("ETag"), answer.header("Content-Type"));
    }

    // -- a lease

    /** What is ours until its deadline, and is renewed by a thread of its own; guarded by itself. Lost stays lost: once the deadline
     * has passed here, no late answer brings it back. */
    private abstract class Kept {
        final String name;
        final Session session; // which it lives as long as; or null
        private final Consumer<Lost> onLost;
        private final Object renewing = new Object();
        private long deadline;
        private long ttl;
        private long least = Long.MAX_VALUE; // the shortest ttl of a renewal that may still be on its way
        private long renewAt;
        private boolean released;
        private Lost lost;

        Kept(String name, Session session, Grant grant, Consumer<Lost> onLost) {
            this.name = name;
            this.session = session;
            this.onLost = onLost;
            told(grant);
        }

        /** One renewal; a ttl below 0: as before. */
        abstract Grant ask(long ttlMs, long limitNanos) throws InterruptedException;

        abstract void letGo(int times, Lost was);

        private synchronized void told(Grant grant) {
            deadline = grant.begun() + Math.min(grant.leftNanos, least);
            ttl = Math.min(grant.ttlNanos, least);
            renewAt = grant.begun() + (long) (ttl / 3.0 * ThreadLocalRandom.current().nextDouble(0.8, 1.0));
            notifyAll();
        }

        synchronized long end() {
            long its = session == null ? deadline : session.end();
            return its - deadline > 0 ? its : deadline;
        }

        synchronized boolean isReleased() {
            released = released || session != null && session.isReleased() && session.lost() == null;
            return released;
        }

        synchronized Lost lost() {
            Lost its = session == null || isReleased() ? null : session.lost();
            if (its != null)
                lose(its);
            if (lost == null && !isReleased() && System.nanoTime() - end() >= 0)
                lose(new Lost("deadline-passed", name + " could not be renewed in time: it may be another's now", 0, null));
            return lost;
        }

        synchronized void lose(Lost error) {
            if (lost != null || isReleased())
                return;
            lost = error;
            notifyAll();
            if (session != null && onLost != null) // it has no thread of its own
                start("pawl loss of ", () -> onLost.accept(error));
        }

        synchronized long remainingNanos() {
            return isReleased() || lost() != null ? 0 : Math.max(0, end() - System.nanoTime());
        }

        synchronized void check() {
            if (isReleased())
                throw new Lost("released", name + " has been released here", 0, null);
            if (lost() != null)
                throw lost;
        }

        final void start(String what, Runnable work) {
            Thread made = new Thread(work, what + name);
            made.setDaemon(true);
            made.start();
        }

        void start() {
            start("pawl ", this::keep);
        }

        /** True when it is time to renew, false when it is over. */
        private synchronized boolean waitToRenew() throws InterruptedException {
            while (!isReleased() && lost() == null) {
                long pause = Math.min(renewAt, deadline) - System.nanoTime();
                if (pause <= 0)
                    return true;
                TimeUnit.NANOSECONDS.timedWait(this, pause + 1_000_000);
            }
            return false;
        }

        void keep() {
            try {
                while (waitToRenew()) {
                    try {
                        renewOnce(-1);
                    } catch (Lost ignored) {
                        // it is marked
                    } catch (RuntimeException | Error ignored) { // whatever it is, the loss must be told in time: no thread, too
                        again();
                    }
                }
            } catch (InterruptedException error) {
                return; // nobody has this thread
            }
            Lost told;
            synchronized (this) {
                told = lost; // also when it was released since
            }
            if (told != null && onLost != null)
                onLost.accept(told);
        }

        private synchronized void again() {
            long left = Math.max(0, deadline - System.nanoTime());
            long pause = (long) (Math.min(ttl / 10, left / 4) * ThreadLocalRandom.current().nextDouble(0.5, 1.0));
            renewAt = System.nanoTime() + Math.max(10_000_000, pause);
        }

        /** Of one renewal: one that hangs leaves time for another. */
        private synchronized long limitNanos() {
            return Math.max(10_000_000, Math.min(Math.min(timeout.toNanos(), ttl / 3), remainingNanos()));
        }

        /** One at a time: of two ttls the one that was told last must be the one that counts. */
        Grant renewOnce(long ttlMs) {
            synchronized (renewing) {
                check();
                long begun = System.nanoTime();
                long before;
                synchronized (this) {
                    before = deadline;
                    if (ttlMs >= 0 && begun + ttlMs * 1_000_000 < before) { // if it is done, the end is nearer from now on
                        deadline = begun + ttlMs * 1_000_000;
                        renewAt = begun + ttlMs * 1_000_000 / 3;
                        notifyAll();
                    }
                }
                try {
                    Grant grant = ask(ttlMs, limitNanos());
                    synchronized (this) {
                        check();
                        told(grant);
                    }
                    return grant;
                } catch (Lost error) {
                    lose(error);
                    throw error;
                } catch (Unknown error) {
                    synchronized (this) {
                        least = ttlMs < 0 ? least : Math.min(least, ttlMs * 1_000_000);
                    }
                    throw error;
                } catch (NotDone error) {
                    synchronized (this) {
                        deadline = before;
                    }
                    throw error;
                } catch (InterruptedException error) {
                    throw new AssertionError(error);
                }
            }
        }

        void finish() {
            Lost was;
            synchronized (this) {
                if (isReleased())
                    return;
                was = lost();
                released = true;
                notifyAll();
            }
            letGo(was == null ? attempts : 1, was);
            if (was != null)
                throw was;
        }
    }

    /** One hold, from its grant to its end. */
    private final class Hold extends Kept {
        final String leaseId;
        final long token;
        final String fencingToken;

        Hold(Lease lease, String leaseId, Grant grant) {
            super(lease.name, lease.session, grant,
                lease.ask.onLost == null ? null : error -> lease.ask.onLost.accept(lease, error));
            this.leaseId = leaseId;
            token = grant.token;
            fencingToken = grant.fencingToken;
            if (session != null)
                session.holds.add(this);
        }

        @Override
        Grant ask(long ttlMs, long limit) throws InterruptedException {
            byte[] body = ttlMs < 0 ? null : ("{\"ttl_ms\":" + ttlMs + "}").getBytes(StandardCharsets.UTF_8);
            Map<String, String> headers = headers("Lease-Id", leaseId, "Fencing-Token", fencingToken,
                "Content-Type", body == null ? null : "application/json");
            Answer answer = judge(send("PUT", leaseAt(name), headers, body, limit, false), 200);
            Grant grant = granted(answer, answer.json(), name, leaseId);
            if (grant.token != token)
                throw new Unknown("bad-answer", "the answer is not about this hold; it may have happened", 0, null, null);
            return grant;
        }

        private void look() {
            try {
                renewOnce(-1);
            } catch (Problem ignored) {
                // it is marked, or is asked for again with the session's next renewal
            }
        }

        @Override
        void letGo(int times, Lost was) {
            if (session != null)
                session.holds.remove(this);
            if (was != null)
                giveBack(name, leaseId, fencingToken, timeout.toNanos());
            else
                release(name, leaseId, fencingToken, times, timeout.toNanos());
        }
    }

    /** One keep-alive for many leases: what is locked with it lives as long as it does; their ttl does not count. close() releases all
     * of them; Lost: it was over before. */
    public final class Session extends Kept implements AutoCloseable {
        private final String id;
        private final String secret;
        private final Set<Hold> holds = ConcurrentHashMap.newKeySet();

        private Session(String id, String secret, Grant grant, Consumer<Lost> onLost) {
            super("session " + id, null, grant, onLost);
            this.id = id;
            this.secret = secret;
        }

        public String id() { return id; }

        /** As Pawl.lease(). */
        public Lease lease(String name, Ask ask) { return Pawl.this.lease(name, ask, this); }

        public Lease lease(String name) { return lease(name, new Ask()); }

        /** As Pawl.acquireAll(). */
        public Several acquireAll(List<String> names, Ask ask, Duration wait) throws InterruptedException {
            return Pawl.this.acquireAll(names, ask, wait, this);
        }

        /** How long it certainly lives yet, and with it its leases. */
        public Duration remaining() { return Duration.ofNanos(remainingNanos()); }

        /** Throws Lost when it is over. */
        @Override
        public synchronized void check() { super.check(); }

        @Override
        public void close() { finish(); }

        @Override
        Grant ask(long ttlMs, long limit) throws InterruptedException {
            Answer answer =
                judge(send("PUT", leaseUrl + "/v1/sessions/" + id, headers("Session-Secret", secret), null, limit, false), 200);
            return alive(answer, answer.json(), id);
        }

        @Override
        Grant renewOnce(long ttlMs) {
            Grant grant = super.renewOnce(-1);
            // Which of our holds of that name it was, and whether it was acquired anew meanwhile, a renewal of its own tells.
            for (Hold hold : holds)
                if (grant.lost.contains(hold.name))
                    hold.start("pawl look at ", hold::look);
            return grant;
        }

        @Override
        void keep() {
            super.keep();
            holds.forEach(Hold::lost); // looks, and tells
        }

        @Override
        void letGo(int times, Lost was) {
            try {
                whole(() -> judge(send("DELETE", leaseUrl + "/v1/sessions/" + id, headers("Session-Secret", secret), null,
                    timeout.toNanos(), false), 204), times, true);
            } catch (Problem error) {
                if (was == null)
                    throw error; // else it ends by its ttl
            }
        }
    }

    /** A lease as a Lock: reentrant, owned by the thread that locked it. Between the threads of this process it is an ordinary
     * fair lock; one of them at a time asks the service. token(), fencingToken(), remaining() and the calls that write may be
     * used by every thread that works for the owner. */
    public final class Lease implements Lock {
        private final String name;
        private final Ask ask;
        private final Session session;
        private final ReentrantLock local = new ReentrantLock(true);
        private volatile Hold hold;
        private volatile Problem releaseProblem;

        private Lease(String name, Ask ask, Session session) {
            this.name = name;
            this.ask = ask;
            this.session = session;
        }

        // -- Lock

        /** Waits as long as it takes, also when interrupted. NotDone, Unknown: it is not locked here. */
        @Override
        public void lock() {
            local.lock();
            try {
                entered(FOREVER, false);
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        }

        @Override
        public void lockInterruptibly() throws InterruptedException {
            local.lockInterruptibly();
            entered(FOREVER, true);
        }

        /** False only when it is certainly not granted. */
        @Override
        public boolean tryLock() {
            if (!local.tryLock())
                return false;
            try {
                entered(Duration.ZERO, false);
                return true;
            } catch (Held error) {
                return false;
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        }

        /** False only when it is certainly not granted. */
        @Override
        public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
            try {
                acquire(Duration.ofNanos(unit.toNanos(time)));
                return true;
            } catch (Held error) {
                return false;
            }
        }

        /** Leaves once; the last one releases. IllegalMonitorStateException: this thread does not own it. Lost: it was over
         * before, perhaps while you worked. NotDone, Unknown: the hold ends by its ttl at the latest. Whatever it throws but
         * the first, it is unlocked. */
        @Override
        public void unlock() {
            if (!local.isHeldByCurrentThread())
                throw new IllegalMonitorStateException(name + " is not locked by this thread");
            try {
                if (local.getHoldCount() == 1)
                    hold.finish();
            } finally {
                local.unlock();
            }
        }

        /** There are none: no condition of one process is known to another. */
        @Override
        public Condition newCondition() {
            throw new UnsupportedOperationException("a lease has no conditions");
        }

        // -- and more

        /** As tryLock(), but who holds it is told (Held), and the block that it is the resource of releases it. */
        public Scope acquire(Duration wait) throws InterruptedException {
            long begun = System.nanoTime();
            if (!local.tryLock(wait.compareTo(FOREVER) > 0 ? Long.MAX_VALUE : wait.toNanos(), TimeUnit.NANOSECONDS))
                throw new Held("wait-timeout", "another thread of this process holds " + name, 0, null);
            Duration left = wait.minusNanos(System.nanoTime() - begun);
            entered(left.isNegative() ? Duration.ZERO : left, true);
            return new Scope(this);
        }

        /** Locked here: asks the service if this is the first entry. Unlocks again when it fails. */
        private void entered(Duration wait, boolean interruptible) throws InterruptedException {
            boolean good = false;
            try {
                if (local.getHoldCount() == 1)
                    hold = Pawl.this.acquire(List.of(this), false, wait, interruptible).get(0);
                else
                    hold.check();
                good = true;
            } finally {
                if (!good)
                    local.unlock();
            }
        }

        private Hold held() {
            Hold now = hold;
            if (now == null)
                throw new IllegalStateException(name + " has not been locked");
            return now;
        }

        public String name() { return name; }

        /** The fencing token of the hold. */
        public long token() { return held().token; }

        /** The value of the Fencing-Token header. */
        public String fencingToken() { return held().fencingToken; }

        /** How long it is certainly held yet, by the clock read in this very call; zero when it is lost, released or past its
         * deadline, and from then on always zero. */
        public Duration remaining() {
            Hold now = hold;
            return now == null ? Duration.ZERO : Duration.ofNanos(now.remainingNanos());
        }

        /** The loss, or null. */
        public Lost lost() {
            Hold now = hold;
            return now == null ? null : now.lost();
        }

        /** Throws Lost when it is over. */
        public void check() { held().check(); }

        /** Why leaving a block could not release; the hold then ends by its ttl. Else null. */
        public Problem releaseProblem() { return releaseProblem; }

        /** Now, longer or shorter. It is renewed without this, too. What is in a session lives as long as that, and is only asked
         * for. */
        public void renew(Duration ttl) {
            long ms = session == null ? checkTtl(ttl) : -1;
            Hold now = held();
            whole(() -> {
                now.renewOnce(ms);
                return null;
            }, attempts, true);
        }

        private <T> T fenced(java.util.function.Function<Hold, T> call) {
            Hold now = held();
            now.check();
            try {
                return call.apply(now);
            } catch (Lost error) {
                now.lose(error);
                throw error;
            } catch (Unknown error) {
                if (error.getCause() instanceof Lost lost)
                    now.lose(lost);
                throw error;
            }
        }

        /** As those of Pawl, with this hold's token. */
        public String put(String key, byte[] body) { return put(key, body, Write.PLAIN); }

        public String put(String key, byte[] body, Write with) {
            return fenced(now -> Pawl.this.put(key, body, now.fencingToken, with));
        }

        public Resource get(String key) { return fenced(now -> Pawl.this.get(key, now.fencingToken)); }

        public void delete(String key) { delete(key, Write.PLAIN); }

        public void delete(String key, Write with) {
            fenced(now -> {
                Pawl.this.delete(key, now.fencingToken, with);
                return null;
            });
        }

        @Override
        public String toString() { return "Pawl.Lease " + name; }
    }

    /** For try-with-resources. close() unlocks: a loss is thrown (and is a suppressed exception when the block has thrown);
     * what else kept the release is lease.releaseProblem(). */
    public static final class Scope implements AutoCloseable {
        private final Lease lease;

        private Scope(Lease lease) {
            this.lease = lease;
        }

        public Lease lease() { return lease; }

        @Override
        public void close() {
            try {
                lease.unlock();
            } catch (NotDone | Unknown error) {
                lease.releaseProblem = error;
            }
        }
    }

    // -- JSON: as much as the services speak

    private static final class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static String quoted(String text) {
            StringBuilder made = new StringBuilder("\"");
            text.chars().forEach(one -> {
                if (one == '"' || one == '\\')
                    made.append('\\').append((char) one);
                else if (one < 0x20)
                    made.append(String.format("\\u%04x", one));
                else
                    made.append((char) one);
            });
            return made.append('"').toString();
        }

        /** Integers are Long. Null when the text is no JSON object. */
        static Map<String, Object> object(String text) {
            try {
                Json json = new Json(text);
                Map<String, Object> made = json.members();
                json.blanks();
                return json.at == text.length() ? made : null;
            } catch (RuntimeException | StackOverflowError error) {
                return null;
            }
        }

        private void blanks() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0)
                at++;
        }

        private boolean takes(String wanted) {
            blanks();
            if (!text.startsWith(wanted, at))
                return false;
            at += wanted.length();
            return true;
        }

        private void needs(String wanted) {
            if (!takes(wanted))
                throw new IllegalArgumentException(wanted + " at " + at);
        }

        private Map<String, Object> members() {
            Map<String, Object> made = new LinkedHashMap<>();
            needs("{");
            if (takes("}"))
                return made;
            do {
                String name = string();
                needs(":");
                made.put(name, value());
            } while (takes(","));
            needs("}");
            return made;
        }

        private Object value() {
            blanks();
            char first = text.charAt(at);
            if (first == '{')
                return members();
            if (first == '"')
                return string();
            if (takes("true"))
                return true;
            if (takes("false"))
                return false;
            if (takes("null"))
                return null;
            if (takes("[")) {
                java.util.List<Object> made = new java.util.ArrayList<>();
                if (takes("]"))
                    return made;
                do {
                    made.add(value());
                } while (takes(","));
                needs("]");
                return made;
            }
            int begin = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0)
                at++;
            String number = text.substring(begin, at);
            return number.matches("-?[0-9]+") ? (Object) Long.valueOf(number) : (Object) Double.valueOf(number);
        }

        private String string() {
            StringBuilder made = new StringBuilder();
            needs("\"");
            for (char one; (one = text.charAt(at++)) != '"';) {
                if (one != '\\') {
                    made.append(one);
                    continue;
                }
                char kind = text.charAt(at++);
                int which = "bfnrt".indexOf(kind);
                if (kind == 'u') {
                    made.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                } else {
                    made.append(which < 0 ? kind : "\b\f\n\r\t".charAt(which));
                }
            }
            return made.toString();
        }
    }
}
