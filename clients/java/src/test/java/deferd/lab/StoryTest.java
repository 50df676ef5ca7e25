package deferd.lab;

import static deferd.lab.DeferdLab.accepted;
import static deferd.lab.DeferdLab.config;
import static deferd.lab.DeferdLab.where;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Five days of mail in one file: greylisting, a crash, an outage, and a code that is waited for. */
class StoryTest {
    @RegisterExtension DeferdLab lab = DeferdLab.with(where("seed", 7), config(Map.of("maximal_queue_lifetime", "5d")));

    @Test
    void greylisted() throws IOException {
        lab.destination("slow.example").greylists("5m");
        Application.sendCode(lab, "ann@slow.example");
        lab.settle(accepted(1));
        lab.expect("ann@slow.example").wasAttemptedAt(0, 300);
        assertEquals("4711", lab.waitFor("ann@slow.example", where("subject", "*code*")).code());
    }

    @Test
    void expiresAfterFiveDays() throws IOException {
        lab.destination("gone.example").isDown();
        Application.sendCode(lab, "eve@gone.example");
        lab.settle(accepted(1));
        lab.expect("eve@gone.example").hasExpired();
        lab.expect("eve@gone.example").never().wasDelivered();
    }

    @Test
    void crash() throws IOException {
        lab.destination("x.example").isDownFor("1h");
        Application.sendCode(lab, "ann@x.example");
        lab.crash("10m");
        lab.settle();
        lab.expect("ann@x.example").wasDeliveredOnce();
    }
}
