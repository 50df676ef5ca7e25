package deferd.lab;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void readsValues() {
        Object found = Json.read(" {\"a\": [1, -2.5, 1e3, 12345678901234567890, true, false, null, {}, []], \"\": \"\"} ");
        List<?> list = Arrays.asList(1L, -2.5, 1000.0, 12345678901234567890.0, true, false, null, Map.of(), List.of());
        assertEquals(Map.of("a", list, "", ""), found);
    }

    @Test
    void readsEscapes() {
        assertEquals("\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\u00e9", Json.read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\ude00\u00e9\""));
    }

    @Test
    void writesTheValuesThatItReads() {
        String text = "{\"a\":[1,-2.5,true,null,{},[]],\"b\":\"\\\"\\\\\\u000a\u00e9\"}";
        assertEquals(text, Json.write(Json.read(text)));
        assertThrows(IllegalArgumentException.class, () -> Json.write(Double.NaN));
        assertThrows(IllegalArgumentException.class, () -> Json.write(new Object()));
    }

    @Test
    void refusesOtherTexts() {
        String[] texts = {
            "", " ", "{", "[", "[1,]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "-", "tru", "nul", "\"", "\"\\", "\"\\x\"",
            "\"\\u12g4\"", "\"\\u12", "\"\n\"", "1 2", "[1 2]", "]", "'a'",
        };
        for (String text : texts) assertThrows(IllegalArgumentException.class, () -> Json.read(text), text);
    }
}
