public class Failing {
	public static void main(String[] args) throws Exception {
		throw new IllegalStateException("boom");
	}
}
