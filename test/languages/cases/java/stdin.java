import java.io.BufferedReader;
import java.io.InputStreamReader;

public class Stdin {
	public static void main(String[] args) throws Exception {
		String line = new BufferedReader(new InputStreamReader(System.in)).readLine();
		System.out.println("got: " + line);
	}
}
