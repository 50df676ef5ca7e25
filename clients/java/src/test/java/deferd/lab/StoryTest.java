package deferd.lab;

import static deferd.lab.DeferdLab.accepted;
import static deferd.lab.DeferdLab.config;
import static deferd.lab.DeferdLab.where;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Five days of mail: greylisting, a crash, an outage, a webhook of the application, and a code that is waited for. */
class StoryTest {
    @RegisterExtension DeferdLab lab = DeferdLab.with(where("seed", 7), config(Map.of("maximal_queue_lifetime", "5d")));

    @Test
    void fiveDays() throws Exception {
        HttpServer application = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        application.createContext("/", request -> request.sendResponseHeaders(204, -1));
        application.start();
        String url = "http://127.0.0.1:" + application.getAddress().getPort() + "/";
        Webhook webhook = lab.webhook("app", where("types", List.of("recipient.expired")), where("url", url));
        lab.destination("slow.example").greylists("5m");
        lab.destination("gone.example").isDown();
        for (String to : List.of("ann@slow.example", "eve@gone.example")) Application.sendCode(lab, to);
        lab.advance("1m", accepted(2));
        lab.crash("2m");
        lab.settle();
        application.stop(0);
        lab.expect("ann@slow.example").wasDeliveredOnce();
        assertEquals("4711", lab.waitFor("ann@slow.example", where("subject", "*code*")).code());
        lab.expect("eve@gone.example").hasExpired();
        assertEquals(204L, ((Map<?, ?>) webhook.requests().get(0)).get("status"));
    }
}
