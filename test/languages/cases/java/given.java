import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;

public class Given {
	public static void main(String[] args) throws Exception {
		for (String word : args)
			System.out.println(word);
		System.out.println("got: " + new BufferedReader(new InputStreamReader(System.in)).readLine());
		System.out.println(System.getenv("GREETING"));
		System.out.print(Files.readString(Path.of("data/input.txt")));
		System.exit(7);
	}
}
