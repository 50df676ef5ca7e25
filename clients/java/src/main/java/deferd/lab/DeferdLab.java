package deferd.lab;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * deferd lab from Java: a relay in virtual time, with remote servers that fail as a test says (docs/lab.md of deferd). As an extension
 * of JUnit, it is a new world for each test. Times are texts such as "5m" or "2d". A refused call throws LabException.
 */
public final class DeferdLab implements BeforeEachCallback, AfterEachCallback, AutoCloseable {
    /** Any member: where("status", "5.1.1"). */
    public static Member where(String name, Object value) { return new Member(name, value); }
    public static Member config(Map<String, ?> config) { return where("config", config); }
    public static Member within(String time) { return where("within", time); }
    public static Member accepted(int count) { return where("after", Map.of("accepted", count)); }

    // A lab is on this machine: no proxy leads to it.
    private static final HttpClient HTTP =
        HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).version(HttpClient.Version.HTTP_1_1).build();
    private static String base = System.getenv("DEFERD_LAB_URL");
    private static Process process; // the lab ends when its standard input closes, with this process

    /** The lab of DEFERD_LAB_URL, or else one that ends with this process. */
    private static synchronized String base() {
        if (base != null && !base.isEmpty()) return base;
        String[] folders = System.getenv("PATH").split(File.pathSeparator);
        boolean installed = Arrays.stream(folders).anyMatch(folder -> new File(folder, "deferd").canExecute());
        // --no: npx runs the deferd of the project, and never one that it would get from a registry.
        String command = (installed ? "" : "npx --no ") + "deferd lab --http 0 --parent";
        try {
            process = new ProcessBuilder(command.split(" ")).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            String line = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
            if (line == null) throw new IOException(command + " ended with " + process.waitFor() + " before its port was open");
            return base = (String) ((Map<?, ?>) Json.read(line)).get("http");
        } catch (IOException error) {
            String reason = "no lab can be started (" + error.getMessage() + ")";
            throw new IllegalStateException(reason + ": install deferd, or set DEFERD_LAB_URL to the URL of a lab", error);
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    private static IllegalStateException interrupted(InterruptedException error) {
        Thread.currentThread().interrupt();
        return new IllegalStateException("interrupted while the lab was called", error);
    }

    private final Map<String, Object> options;
    private Map<?, ?> world;

    private DeferdLab(Map<String, Object> options) { this.options = options; }

    public static DeferdLab with(Member... options) { return new DeferdLab(members(options)); }
    public static DeferdLab withSeed(long seed) { return with(where("seed", seed)); }

    private static Map<String, Object> members(Member[] members, Member... more) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (Member[] list : List.of(members, more)) for (Member member : list) object.put(member.name, member.value);
        return object;
    }

    /** Creates the world, for use without an extension. */
    public DeferdLab open() {
        world = (Map<?, ?>) request("POST", "/worlds", options);
        return this;
    }

    @Override public void close() {
        call("DELETE", "", null);
        world = null;
    }

    @Override public void beforeEach(ExtensionContext context) { open(); }
    @Override public void afterEach(ExtensionContext context) { if (world != null) close(); }

    private Map<?, ?> world() {
        if (world == null) throw new IllegalStateException("no world is open: make the field a @RegisterExtension, or call open()");
        return world;
    }

    public String smtpHost() { return (String) ((Map<?, ?>) world().get("smtp")).get("host"); }
    public int smtpPort() { return ((Long) ((Map<?, ?>) world().get("smtp")).get("port")).intValue(); }

    /** Sends a request below the path of the world. Returns a Map, List, String, Long, Double, Boolean or null. */
    public Object call(String method, String path, Object body) {
        return request(method, "/worlds/" + world().get("id") + path, body);
    }

    private static Object request(String method, String path, Object body) {
        URI uri = URI.create(base() + "/lab/v1" + path);
        HttpRequest.Builder request = HttpRequest.newBuilder(uri).header("Content-Type", "application/json");
        String token = System.getenv("DEFERD_LAB_TOKEN");
        if (token != null && !token.isEmpty()) request.header("Authorization", "Bearer " + token);
        request.method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.write(body)));
        try {
            HttpResponse<String> answer = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
            boolean isJson = answer.headers().firstValue("content-type").orElse("").matches("application/(problem\\+)?json.*");
            Object found = isJson ? Json.read(answer.body()) : answer.body();
            if (answer.statusCode() < 300) return found;
            throw new LabException(answer.statusCode(), isJson ? (Map<?, ?>) found : Map.of());
        } catch (IOException error) {
            throw new UncheckedIOException("no answer from " + uri + ": set DEFERD_LAB_URL to a lab that runs, or unset it", error);
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    private static String quoted(Object text) {
        return URLEncoder.encode(text.toString(), StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Advances the clock until the queue is empty: settle(accepted(1)) after one message was accepted. */
    public void settle(Member... options) { call("POST", "/clock/settle", members(options)); }

    public void advance(String by, Member... options) { call("POST", "/clock/advance", members(options, where("by", by))); }

    public void crash(String downFor) { call("POST", "/crash", Map.of("down_for", downFor)); }

    /** Waits for a mail that satisfies the conditions, such as where("subject", "*code*") or where("advance", "2d"). */
    public Mail waitFor(String address, Member... conditions) {
        String query = Arrays.stream(conditions).map(one -> quoted(one.name) + "=" + quoted(one.value)).collect(Collectors.joining("&"));
        return new Mail((Map<?, ?>) call("GET", "/mailboxes/" + quoted(address) + "/wait?" + query, null));
    }

    /** Adds a webhook: where("types", List.of("recipient.bounced")), and where("url", …) of an application that gets the requests. */
    public Webhook webhook(String name, Member... options) {
        return new Webhook(this, "/webhooks/" + quoted(name), call("POST", "/webhooks", members(options, where("name", name))));
    }

    /** A remote domain, whose methods add rules (docs/lab.md). */
    public Destination destination(String domain) { return new Destination("/destinations/" + quoted(domain) + "/"); }

    public final class Destination {
        private final String path;

        Destination(String path) { this.path = path; }

        /** Any verb of docs/lab.md: does("is_slow", where("time", "90s")). */
        public Destination does(String verb, Member... options) {
            call("POST", path + verb, members(options));
            return this;
        }

        public Destination greylists(String delay) { return does("greylists", where("delay", delay)); }
        public Destination isDown() { return does("is_down"); }
        public Destination isDownFor(String time) { return does("is_down_for", where("time", time)); }
        public Destination rejects(Member... options) { return does("rejects", options); }
        public Destination defers(Member... options) { return does("defers", options); }
        public Destination recovers() { return does("recovers"); }
    }

    public Expectation expect(String address) { return new Expectation(address, false); }

    /** Asserts something about a recipient. A failure is an AssertionError with the timeline. */
    public final class Expectation {
        private final String address;
        private final boolean not;

        Expectation(String address, boolean not) {
            this.address = address;
            this.not = not;
        }

        /** Negates the next matcher. */
        public Expectation never() { return new Expectation(address, !not); }

        /** Any matcher of docs/lab.md, with a Map or List of arguments. */
        public void that(String matcher, Object args) {
            Object body = Map.of("recipient", address, "matcher", matcher, "args", args, "not", not);
            Map<?, ?> found = (Map<?, ?>) call("POST", "/asserts", body);
            if (!Boolean.TRUE.equals(found.get("holds"))) throw new AssertionError(found.get("message"));
        }

        public void wasDelivered() { that("was_delivered", Map.of()); }
        public void wasDeliveredOnce() { that("was_delivered_once", Map.of()); }
        public void hasExpired() { that("has_expired", Map.of()); }
        public void wasDelayed() { that("was_delayed", Map.of()); }
        public void hasBounced(Member... options) { that("has_bounced", members(options)); }
        public void wasDeferred(Member... options) { that("was_deferred", members(options)); }
        public void wasSuppressed(Member... options) { that("was_suppressed", members(options)); }
        public void hasStartedWithin(String time) { that("has_started_within", Map.of("time", time)); }
        public void wasAttemptedAt(Number... seconds) { that("was_attempted_at", List.of(seconds)); }
        public void causedNotices(String... kinds) { that("caused_notices", List.of(kinds)); }
    }
}
