package deferd.lab;

/** A member of a new world, or of a call. DeferdLab.where makes one. */
public final class Member {
    final String name;
    final Object value;

    Member(String name, Object value) {
        this.name = name;
        this.value = value;
    }
}
