public class Loop {
	public static void main(String[] args) throws Exception {
		while (args != null)
			Thread.onSpinWait();
	}
}
