// SPDX-License-Identifier: Apache-2.0
// A Java virtual machine that was started before its program was known (`warm: kind: start` in languages/).
//
// The launcher finds this class in a jar behind the boot class path, so that the program's class path is its own. It
// loads what nearly every program uses, waits for a program in a read of the control descriptor, and runs the
// program's main class on the launcher's own thread: what the launcher does when main() ends, with an exception or
// without, with threads still running or not, happens behind the program as it would have anyway. The agent
// (src/broker/warm) does what only C can: descriptors 0-2, files and variables are the program's when the read returns.
//
// Classes of the boot class path may hide their frames, which is why no stack trace shows this one. The program's class
// is loaded and checked by the launcher's own helper and called through a hidden class beside it.
//
// Known to differ from a cold run: identity hash codes (Object.toString()), also of `unnamed module @...`; hidden frames in
// a caught OutOfMemoryError; -Xbootclasspath/a among the machine's arguments.
package atoll;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import jdk.internal.vm.annotation.Hidden;
import sun.misc.Unsafe;

public final class Start {
	private static final int CONTROL = 100;
	private static final int CLASS_BY_NAME = 1; // LM_CLASS of the launcher
	private static final MethodType MAIN_TYPE = MethodType.methodType(void.class, String[].class);

	private static final Unsafe unsafe = findUnsafe();

	private Start() {
	}

	@Hidden
	public static void main(String[] none) throws Throwable {
		FileInputStream control = new FileInputStream(descriptor(CONTROL));
		MethodHandles.Lookup lookup = findLookup();
		MethodHandle load = lookup.findStatic(Class.forName("sun.launcher.LauncherHelper"), "checkAndLoadMain",
				MethodType.methodType(Class.class, boolean.class, int.class, String.class));

		if (control.read() == 'w')
			warmUp(lookup);
		String[] words = read(control);
		int at = mainClassIndex(words);
		int end = 1 + Integer.parseInt(words[0]);
		String[] args = Arrays.copyOfRange(words, at + 1, end);

		System.setProperty("sun.java.command", String.join(" ", Arrays.copyOfRange(words, at, end)));
		/* The launcher's own way to a main class: it checks it and says what is wrong with it. */
		Class<?> program = (Class<?>) load.invokeExact(true, CLASS_BY_NAME, words[at]);
		MethodHandle main = entry(lookup.in(program), program);
		try {
			main.invokeExact(args);
		} catch (OutOfMemoryError e) {
			throw trimmed(e);
		}
	}

	private static Unsafe findUnsafe() {
		try {
			Field field = Unsafe.class.getDeclaredField("theUnsafe");

			field.setAccessible(true);
			return (Unsafe) field.get(null);
		} catch (ReflectiveOperationException e) {
			throw new LinkageError(e.getMessage(), e);
		}
	}

	private static FileDescriptor descriptor(int fd) throws ReflectiveOperationException {
		FileDescriptor descriptor = new FileDescriptor();

		unsafe.putInt(descriptor, unsafe.objectFieldOffset(FileDescriptor.class.getDeclaredField("fd")), fd);
		return descriptor;
	}

	private static MethodHandles.Lookup findLookup() throws ReflectiveOperationException {
		Field field = MethodHandles.Lookup.class.getDeclaredField("IMPL_LOOKUP");

		return (MethodHandles.Lookup) unsafe.getObject(unsafe.staticFieldBase(field), unsafe.staticFieldOffset(field));
	}

	// A class beside the program's with one method that calls its main(), so that the class is initialized by that call,
	// as by the launcher's. Frames of such a class are hidden too.
	private static MethodHandle entry(MethodHandles.Lookup lookup, Class<?> program)
			throws IOException, ReflectiveOperationException {
		String name = program.getName().replace('.', '/');
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		DataOutputStream out = new DataOutputStream(bytes);

		out.writeInt(0xcafebabe);
		out.writeInt(55); // Java 11
		out.writeShort(12); // constants, from 1
		utf8(out, name);
		reference(out, 7, 1); // 2: the new class has the program's name and gets one of its own
		utf8(out, "java/lang/Object");
		reference(out, 7, 3);
		utf8(out, name);
		reference(out, 7, 5);
		utf8(out, "main");
		utf8(out, MAIN_TYPE.toMethodDescriptorString());
		reference(out, 12, 7, 8);
		reference(out, program.isInterface() ? 11 : 10, 6, 9);
		utf8(out, "Code");
		shorts(out, Modifier.FINAL, 2, 4, 0, 0, 1); // flags, class, superclass; interfaces, fields, methods
		shorts(out, Modifier.STATIC, 7, 8, 1, 11); // flags, name, type, attributes, Code
		out.writeInt(17);
		shorts(out, 1, 1); // stack, locals
		out.writeInt(5);
		out.write(new byte[] { 0x2a, (byte) 0xb8, 0, 10, (byte) 0xb1 }); // aload_0, invokestatic, return
		shorts(out, 0, 0, 0); // handlers; attributes of the code, of the class

		MethodHandles.Lookup hidden = lookup.defineHiddenClass(bytes.toByteArray(), false);

		return hidden.findStatic(hidden.lookupClass(), "main", MAIN_TYPE);
	}

	private static void utf8(DataOutputStream out, String text) throws IOException {
		out.writeByte(1);
		out.writeUTF(text);
	}

	private static void reference(DataOutputStream out, int tag, int... indices) throws IOException {
		out.writeByte(tag);
		shorts(out, indices);
	}

	private static void shorts(DataOutputStream out, int... values) throws IOException {
		for (int value : values)
			out.writeShort(value);
	}

	// The virtual machine made this one beforehand, and such a trace has hidden frames in it.
	private static OutOfMemoryError trimmed(OutOfMemoryError e) {
		StackTraceElement[] trace = e.getStackTrace();
		int n = trace.length;

		if (n > 0 && trace[n - 1].getClassName().equals(Start.class.getName())) {
			do
				n--;
			while (n > 0 && (trace[n - 1].getClassName().indexOf('/') >= 0));
			e.setStackTrace(Arrays.copyOf(trace, n));
		}
		return e;
	}

	// The launch text: number of words, words, variables.
	private static String[] read(FileInputStream control) throws IOException {
		ByteArrayOutputStream text = new ByteArrayOutputStream();
		byte[] block = new byte[65536];

		for (int n = control.read(block); n > 0; n = control.read(block))
			text.write(block, 0, n);
		return text.toString(System.getProperty("sun.jnu.encoding")).split("\0", -1);
	}

	// Behind the program's path: options, of which -cp has a value.
	private static int mainClassIndex(String[] words) {
		int at = 2;

		while (words[at].startsWith("-"))
			at += words[at].equals("-cp") ? 2 : 1;
		return at;
	}

	// On a thread of its own: the main thread's numbers, as in Object.toString(), begin where they always do.
	private static void warmUp(MethodHandles.Lookup lookup) throws Exception {
		Field numbers = Thread.class.getDeclaredField("threadSeqNumber");
		Object base = unsafe.staticFieldBase(numbers);
		long offset = unsafe.staticFieldOffset(numbers);
		Thread thread = new Thread(null, Start::useLibrary, "warm-up");

		entry(lookup.in(Start.class), Start.class);
		thread.start();
		thread.join();
		unsafe.putLong(base, offset, unsafe.getLong(base, offset) - 1);
	}

	private static void useLibrary() {
		try {
			for (int i = 0; i < 3; i++) {
				useText(i);
				useCollections(i);
			}
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}

	private static void useText(int i) throws IOException {
		PrintStream out = new PrintStream(new ByteArrayOutputStream(), true);
		String text = "i = " + i + ", twice " + 2.5 * i + " " + 'c' + 1L + true;
		Scanner scanner = new Scanner(new ByteArrayInputStream("1 two 3.5\nline\n".getBytes(StandardCharsets.UTF_8)));
		BufferedReader reader = new BufferedReader(new InputStreamReader(new ByteArrayInputStream(new byte[] { 'a', '\n' })));
		StringBuilder builder = new StringBuilder(text).append(i).append(1.5).reverse();

		out.println(text + builder);
		out.println(i);
		out.printf("%d %s %.2f %5d|%-5s|%n", i, text, 1.5, i, "x");
		out.println(String.format("%05d", i) + String.join(",", "a b c".split(" ")) + text.replace("i", "j").toUpperCase());
		out.println(scanner.nextInt() + scanner.next() + scanner.nextDouble() + scanner.nextLine() + reader.readLine());
		out.println(Integer.parseInt("12") + Double.parseDouble("1.5") + Math.sqrt(i) + Long.MAX_VALUE + text.hashCode());
		new RuntimeException("warm-up").printStackTrace(out);
	}

	private static void useCollections(int i) {
		Map<String, List<Integer>> groups = new HashMap<>();
		Map<Integer, String> sorted = new TreeMap<>(new LinkedHashMap<>(Map.of(1, "a")));
		List<Integer> list = new ArrayList<>(List.of(3, 1, 2));
		ArrayDeque<Integer> queue = new ArrayDeque<>(new LinkedList<>(list));
		PriorityQueue<Integer> heap = new PriorityQueue<>((a, b) -> b - a);

		Collections.sort(list);
		list.sort((a, b) -> Integer.compare(b, a));
		for (int n : list)
			groups.computeIfAbsent("k" + n % 2, (key) -> new ArrayList<>()).add(n);
		heap.addAll(queue);
		heap.poll();
		new HashSet<>(sorted.keySet()).forEach((n) -> groups.remove("k" + n));
		sorted.merge(i, "b", String::concat);
		Arrays.toString(IntStream.rangeClosed(1, 5).map((n) -> n * n).filter((n) -> n > 3).toArray());
		list.stream().map(String::valueOf).sorted().collect(Collectors.joining(", "));
		groups.entrySet().stream().collect(Collectors.groupingBy((e) -> e.getValue().size(), Collectors.counting()));
	}
}
