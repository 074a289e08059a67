public class Env {
	public static void main(String[] args) throws Exception {
		System.out.println(System.getenv("GREETING"));
	}
}
