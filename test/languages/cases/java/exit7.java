public class Exit7 {
	public static void main(String[] args) throws Exception {
		System.exit(7);
	}
}
