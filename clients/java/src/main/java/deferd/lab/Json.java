package deferd.lab;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON texts as Map, List, String, Long, Double, Boolean and null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Throws IllegalArgumentException for a text that is no JSON. */
    static Object read(String text) {
        Json reader = new Json(text);
        Object value = reader.value();
        reader.skipSpace();
        if (reader.at < text.length()) throw reader.unexpected();
        return value;
    }

    /** Throws IllegalArgumentException for a value that has no form in JSON. */
    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean || isFinite(value)) {
            out.append(value);
        } else if (value instanceof CharSequence) {
            writeString(value.toString(), out);
        } else if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> member : ((Map<?, ?>) value).entrySet()) {
                writeString(member.getKey().toString(), out.append(separator));
                write(member.getValue(), out.append(':'));
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String separator = "[";
            for (Object element : (Iterable<?>) value) {
                write(element, out.append(separator));
                separator = ",";
            }
            out.append(separator.equals("[") ? "[]" : "]");
        } else {
            throw new IllegalArgumentException(value.getClass().getName() + " has no form in JSON: " + value);
        }
    }

    private static boolean isFinite(Object value) {
        return value instanceof Number && Double.isFinite(((Number) value).doubleValue());
    }

    private static void writeString(String value, StringBuilder out) {
        out.append('"');
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        out.append('"');
    }

    private Object value() {
        skipSpace();
        char c = peek();
        if (c == '{') return object();
        if (c == '[') return list();
        if (c == '"') return string();
        if (c == 't') return word("true", true);
        if (c == 'f') return word("false", false);
        if (c == 'n') return word("null", null);
        return number();
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (ends('}')) return members;
        do {
            skipSpace();
            String name = string();
            skipSpace();
            expect(':');
            members.put(name, value());
        } while (continues('}'));
        return members;
    }

    private List<Object> list() {
        List<Object> elements = new ArrayList<>();
        expect('[');
        if (ends(']')) return elements;
        do elements.add(value());
        while (continues(']'));
        return elements;
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        expect('"');
        while (peek() != '"') {
            char c = next();
            if (c < ' ') throw unexpectedAt(at - 1);
            found.append(c == '\\' ? escaped() : c);
        }
        at++;
        return found.toString();
    }

    private char escaped() {
        char c = next();
        if (c == 'u') {
            String digits = text.substring(at, Math.min(at + 4, text.length()));
            if (!digits.matches("[0-9a-fA-F]{4}")) throw unexpected();
            at += 4;
            return (char) Integer.parseInt(digits, 16);
        }
        int index = "\"\\/bfnrt".indexOf(c);
        if (index < 0) throw unexpectedAt(at - 1);
        return "\"\\/\b\f\n\r\t".charAt(index);
    }

    private Object number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
        String found = text.substring(from, at);
        if (found.matches("-?(0|[1-9]\\d{0,17})")) return Long.valueOf(found);
        if (found.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?")) return Double.valueOf(found);
        throw unexpectedAt(from);
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw unexpected();
        at += word.length();
        return value;
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    /** True, past the end, when an object or list has no element. */
    private boolean ends(char end) {
        skipSpace();
        if (peek() != end) return false;
        at++;
        return true;
    }

    /** True after a comma, false after the end of an object or list. */
    private boolean continues(char end) {
        if (ends(end)) return false;
        expect(',');
        return true;
    }

    private void expect(char wanted) {
        if (peek() != wanted) throw unexpected();
        at++;
    }

    private char next() {
        char c = peek();
        at++;
        return c;
    }

    private char peek() {
        if (at >= text.length()) throw unexpected();
        return text.charAt(at);
    }

    private IllegalArgumentException unexpected() {
        return unexpectedAt(at);
    }

    private IllegalArgumentException unexpectedAt(int position) {
        String found = position < text.length() ? "character '" + text.charAt(position) + "'" : "end";
        return new IllegalArgumentException("no JSON: unexpected " + found + " at offset " + position);
    }
}
