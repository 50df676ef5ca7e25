package deferd.lab;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The cases that the clients of all languages run. */
class ContractTest {
    @TestFactory
    Stream<DynamicTest> contract() throws IOException {
        Map<?, ?> contract = (Map<?, ?>) Json.read(Files.readString(Path.of("../contract.json")));
        Stream<Map<?, ?>> cases = ((List<?>) contract.get("cases")).stream().map(one -> (Map<?, ?>) one);
        return cases.map(one -> dynamicTest((String) one.get("name"), () -> run(one)));
    }

    private static void run(Map<?, ?> one) throws IOException {
        Map<?, ?> options = one.containsKey("world") ? (Map<?, ?>) one.get("world") : Map.of();
        Member[] members =
            options.entrySet().stream().map(option -> DeferdLab.where((String) option.getKey(), option.getValue())).toArray(Member[]::new);
        try (DeferdLab lab = DeferdLab.with(members).open()) {
            for (Object step : (List<?>) one.get("steps")) run(lab, (Map<?, ?>) step);
        }
    }

    private static void run(DeferdLab lab, Map<?, ?> step) throws IOException {
        if (step.containsKey("send")) {
            Map<?, ?> mail = (Map<?, ?>) step.get("send");
            Application.send(lab, (String) mail.get("from"), (List<?>) mail.get("to"), (String) mail.get("content"));
            return;
        }
        String[] call = ((String) step.get("call")).split(" ", 2);
        Long status = null;
        Object found;
        try {
            found = lab.call(call[0], call[1], step.get("body"));
        } catch (LabException refused) {
            status = (long) refused.status;
            found = Map.of("kind", refused.kind, "detail", refused.getMessage(), "errors", refused.errors);
        }
        String answer = step.get("call") + ": " + found;
        assertEquals(step.get("status"), status, answer);
        assertTrue(!step.containsKey("match") || matches(step.get("match"), found), answer);
    }

    /** True when found has all that expected has; objects may have more members. */
    private static boolean matches(Object expected, Object found) {
        if (expected instanceof Map && found instanceof Map) {
            Map<?, ?> members = (Map<?, ?>) found;
            Stream<Map.Entry<?, ?>> wanted = ((Map<?, ?>) expected).entrySet().stream().map(one -> one);
            return wanted.allMatch(one -> members.containsKey(one.getKey()) && matches(one.getValue(), members.get(one.getKey())));
        }
        if (expected instanceof List && found instanceof List) {
            List<?> wanted = (List<?>) expected;
            List<?> list = (List<?>) found;
            return wanted.size() == list.size() && IntStream.range(0, list.size()).allMatch(i -> matches(wanted.get(i), list.get(i)));
        }
        return expected == null ? found == null : expected.equals(found);
    }
}
