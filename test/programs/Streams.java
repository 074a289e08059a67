import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.function.*;
import java.util.stream.*;

public class Streams {
    record Person(String name, int age, String team) {}
    sealed interface Shape permits Circle, Square {}
    record Circle(double r) implements Shape {}
    record Square(double side) implements Shape {}
    enum Op implements IntBinaryOperator { ADD { public int applyAsInt(int a, int b) { return a + b; } }, MUL { public int applyAsInt(int a, int b) { return a * b; } } }
    static double area(Shape s) { return s instanceof Circle c ? Math.PI * c.r() * c.r() : s instanceof Square q ? q.side() * q.side() : 0; }
    static <T extends Comparable<T>> Optional<T> best(List<? extends T> list) { return list.stream().map(x -> (T) x).max(Comparator.naturalOrder()); }

    public static void main(String[] args) throws Exception {
        var people = List.of(new Person("Ada", 36, "red"), new Person("Bo", 41, "blue"), new Person("Cy", 7, "red"));
        Map<String, Double> means = people.stream().collect(Collectors.groupingBy(Person::team, Collectors.averagingInt(Person::age)));
        System.out.println(new TreeMap<>(means));
        System.out.println(IntStream.rangeClosed(1, 20).boxed().filter(n -> n % 3 == 0).map(String::valueOf).collect(Collectors.joining("|")));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        var counter = new AtomicInteger();
        List<Future<Integer>> futures = new ArrayList<>();
        for (int i = 0; i < 10; i++) { int n = i; futures.add(pool.submit(() -> { counter.incrementAndGet(); return n * n; })); }
        int sum = 0;
        for (var f : futures) sum += f.get();
        pool.shutdown();
        System.out.println(sum + " " + counter + " " + pool.awaitTermination(5, TimeUnit.SECONDS));
        System.out.println(CompletableFuture.supplyAsync(() -> 6).thenCombine(CompletableFuture.supplyAsync(() -> 7), (a, b) -> a * b).get());
        var map = new ConcurrentHashMap<String, LongAdder>();
        "a b a c a".chars().parallel().filter(c -> c != ' ').forEach(c -> map.computeIfAbsent("" + (char) c, k -> new LongAdder()).increment());
        System.out.println(new TreeMap<>(map) + " " + Arrays.stream(Op.values()).mapToInt(o -> o.applyAsInt(3, 4)).sum());
        System.out.printf("%.3f %s %s%n", area(new Circle(2)), best(List.of(3, 9, 4)).get(), "añ🎉".codePointCount(0, "añ🎉".length()));
        Iterator<Integer> fib = Stream.iterate(new int[] { 0, 1 }, p -> new int[] { p[1], p[0] + p[1] }).map(p -> p[0]).iterator();
        for (int i = 0; i < 10; i++) System.out.print(fib.next() + (i < 9 ? "," : "\n"));
        try { Object o = "s"; Integer i = (Integer) o; } catch (ClassCastException e) { System.out.println("cast"); }
        System.exit(23);
    }
}
