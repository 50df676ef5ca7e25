package deferd.lab;

import java.util.List;
import java.util.Map;

/** A webhook of a world, which gets its events. */
public final class Webhook {
    /** Verifies the signatures of its requests: whsec_ and base64 (Standard Webhooks). */
    public final String secret;
    private final DeferdLab lab;
    private final String path;

    Webhook(DeferdLab lab, String path, Object created) {
        this.lab = lab;
        this.path = path;
        this.secret = (String) ((Map<?, ?>) created).get("secret");
    }

    /** Requests so far, oldest first: Maps with "at" (seconds), "headers", "body" and "status" (null when there was no answer). */
    public List<?> requests() {
        return (List<?>) ((Map<?, ?>) lab.call("GET", path + "/requests", null)).get("requests");
    }

    /** Refuses connections for a time. */
    public void isDownFor(String time) {
        lab.call("POST", path + "/script", Map.of("is_down_for", time));
    }

    /** Answers the next requests with a status. */
    public void replies(int status, int first) {
        lab.call("POST", path + "/script", Map.of("replies", status, "first", first));
    }

    /** Ends what isDownFor and replies began. */
    public void recovers() {
        lab.call("POST", path + "/script", Map.of("recovers", true));
    }
}
