import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;
import java.util.regex.*;

public class Words {
    interface Visitor<R> { R number(int n); R sum(Node a, Node b); }
    interface Node { <R> R accept(Visitor<R> v); }
    static Node number(int n) { return new Node() { public <R> R accept(Visitor<R> v) { return v.number(n); } }; }
    static Node sum(Node a, Node b) { return new Node() { public <R> R accept(Visitor<R> v) { return v.sum(a, b); } }; }
    static class Resource implements AutoCloseable { public void close() { System.out.println("closed"); } }
    static int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }

    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in);
        int total = 0;
        while (in.hasNextInt()) total += in.nextInt();
        System.out.println(total + " " + Arrays.toString(args));
        Node tree = sum(number(1), sum(number(2), number(3)));
        System.out.println(tree.<Integer>accept(new Visitor<>() { public Integer number(int n) { return n; } public Integer sum(Node a, Node b) { return a.accept(this) + b.accept(this); } }));
        Matcher m = Pattern.compile("(?<k>\\w+)=(\\d+)").matcher("a=1, b=22");
        while (m.find()) System.out.print(m.group("k") + m.group(2) + " ");
        System.out.println(ZonedDateTime.of(2024, 2, 29, 12, 0, 0, 0, ZoneId.of("UTC")).withZoneSameInstant(ZoneId.of("Asia/Tokyo")).format(DateTimeFormatter.ISO_OFFSET_DATE_TIME));
        try (Resource r = new Resource()) { System.out.println("open"); throw new IllegalArgumentException("inside"); } catch (IllegalArgumentException e) { System.out.println(e.getMessage()); } finally { System.out.println("finally"); }
        PriorityQueue<String> q = new PriorityQueue<>(Comparator.comparing(String::length).thenComparing(Comparator.reverseOrder()));
        q.addAll(List.of("bb", "a", "cc"));
        StringBuilder b = new StringBuilder();
        while (!q.isEmpty()) b.append(q.poll()).append(',');
        System.out.println(b.reverse() + " " + depth(3000) + " " + String.format("%05.1f|%-4s|%x", 3.14, "ab", 255) + " " + Long.MAX_VALUE + " " + (char) ('a' + 1));
        Thread t = new Thread(() -> System.out.println("thread"));
        t.start(); t.join();
        System.out.println(Objects.hash(1, 2) + " " + new int[0].length + " " + Integer.toBinaryString(10) + " " + "x".repeat(3) + " " + "  trim ".strip());
        int[] none = new int[1];
        none[2] = 1;
    }
}
