package deferd.lab;

import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/** An application that sends mail by SMTP. */
final class Application {
    private Application() {}

    static void sendCode(DeferdLab lab, String to) throws IOException {
        send(lab, "app@us.example", List.of(to), "Subject: Your code\r\n\r\nYour code is 4711.\r\n");
    }

    static void send(DeferdLab lab, String from, List<?> to, String content) throws IOException {
        List<String> lines = new ArrayList<>(List.of("HELO us.example", "MAIL FROM:<" + from + ">"));
        for (Object address : to) lines.add("RCPT TO:<" + address + ">");
        lines.addAll(List.of("DATA", content + ".", "QUIT"));
        try (Socket socket = new Socket(lab.smtpHost(), lab.smtpPort());
            Scanner replies = new Scanner(socket.getInputStream(), StandardCharsets.UTF_8)) {
            OutputStream out = socket.getOutputStream();
            replies.nextLine();
            for (String line : lines) {
                out.write((line + "\r\n").getBytes(StandardCharsets.UTF_8));
                String reply = replies.nextLine();
                if (reply.charAt(0) > '3') throw new IOException(reply);
            }
        }
    }
}
