package deferd.lab;

import java.util.List;
import java.util.Map;

/** A refused request. The message is the detail of the lab. */
public final class LabException extends RuntimeException {
    private static final long serialVersionUID = 1;
    public final int status;
    /** The last part of the type of the problem, such as "not-yet". */
    public final String kind;
    /** Problems with a "pointer" to a member of the request each. */
    public final transient List<?> errors;

    LabException(int status, Map<?, ?> problem) {
        super(problem.containsKey("detail") ? (String) problem.get("detail") : "status " + status);
        String type = problem.containsKey("type") ? (String) problem.get("type") : "";
        this.status = status;
        this.kind = type.substring(type.lastIndexOf('/') + 1);
        this.errors = problem.containsKey("errors") ? (List<?>) problem.get("errors") : List.of();
    }
}
