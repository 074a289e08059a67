import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

public class NetServer {
    public static void main(String[] args) throws Exception {
        HttpServer s = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        s.createContext("/hello", x -> { byte[] b = ("hello " + x.getRequestURI().getQuery()).getBytes(); x.sendResponseHeaders(200, b.length); x.getResponseBody().write(b); x.close(); });
        s.start();
        String base = "http://localhost:" + s.getAddress().getPort();
        var r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(base + "/hello?x=1")).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println(r.statusCode() + " " + r.body());
        System.out.println(((HttpURLConnection) new URL(base + "/none").openConnection()).getResponseCode());
        s.stop(0);
        try (ServerSocketChannel l = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0)); SocketChannel c = SocketChannel.open(l.getLocalAddress()); SocketChannel p = l.accept()) {
            c.write(ByteBuffer.wrap("nio".getBytes()));
            ByteBuffer b = ByteBuffer.allocate(10);
            p.read(b);
            System.out.println(new String(b.array(), 0, b.position(), StandardCharsets.UTF_8));
        }
        try { new Socket("127.0.0.1", 1); } catch (ConnectException e) { System.out.println("refused"); }
        Path dir = Files.createTempDirectory("x");
        Files.writeString(dir.resolve("a.txt"), "one\ntwo\n");
        try (var lines = Files.lines(dir.resolve("a.txt"))) { System.out.println(lines.count()); }
        Process p = new ProcessBuilder("sh", "-c", "cat; exit 4").start();
        p.getOutputStream().write("piped".getBytes());
        p.getOutputStream().close();
        System.out.println(new String(p.getInputStream().readAllBytes()) + " " + p.waitFor());
        int sum = 0;
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) sum += Integer.parseInt(line);
        System.out.println(args.length + " " + sum);
        throw new IllegalStateException("last words");
    }
}
