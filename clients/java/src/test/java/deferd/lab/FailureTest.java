package deferd.lab;

import static deferd.lab.DeferdLab.accepted;
import static deferd.lab.DeferdLab.where;
import static deferd.lab.DeferdLab.within;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class FailureTest {
    @RegisterExtension DeferdLab lab = DeferdLab.withSeed(7);

    @Test
    void aFailedExpectationHasTheTimeline() throws IOException {
        Application.sendCode(lab, "ann@x.example");
        lab.settle(accepted(1));
        AssertionError failure = assertThrows(AssertionError.class, () -> lab.expect("ann@x.example").hasBounced(where("status", "5.1.1")));
        assertTrue(failure.getMessage().contains("to have bounced 5.1.1, but its last attempt was delivered"), failure.getMessage());
        assertTrue(failure.getMessage().contains("+0s accepted from"), failure.getMessage());
    }

    @Test
    void aRefusedCallHasItsKind() {
        LabException refused = assertThrows(LabException.class, () -> lab.settle(accepted(1), within("50ms")));
        assertEquals(List.of(409, "not-yet"), List.of(refused.status, refused.kind));
    }

    @Test
    void aWorldMustBeOpen() {
        assertThrows(IllegalStateException.class, () -> DeferdLab.withSeed(7).smtpPort());
    }

    @Test
    void aMailHasItsText() throws IOException {
        Application.send(lab, "app@us.example", List.of("ann@x.example"), "Subject: Sign up\r\n\r\nhttps://us.example/a?b=1\r\n");
        Mail mail = lab.waitFor("ann@x.example", where("advance", "2d"));
        assertEquals(List.of("Sign up", "https://us.example/a?b=1\n"), List.of(mail.subject(), mail.text()));
        assertEquals(List.of("https://us.example/a?b=1"), mail.links());
    }
}
