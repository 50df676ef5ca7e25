package deferd.lab;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** A parsed mail. */
public final class Mail {
    /** Everything that the lab answers about it. */
    public final Map<?, ?> members;

    Mail(Map<?, ?> members) {
        this.members = members;
    }

    public String subject() {
        return (String) members.get("subject");
    }

    public String text() {
        return (String) members.get("text");
    }

    /** The confirmation code; null unless the mail has exactly one. */
    public String code() {
        return (String) members.get("code");
    }

    /** URLs, in their order. */
    public List<String> links() {
        List<?> links = (List<?>) members.get("links");
        return links.stream().map(link -> (String) ((Map<?, ?>) link).get("url")).collect(Collectors.toList());
    }
}
