import java.nio.file.Path;

public class Files {
	public static void main(String[] args) throws Exception {
		System.out.print(java.nio.file.Files.readString(Path.of("data/input.txt")));
	}
}
