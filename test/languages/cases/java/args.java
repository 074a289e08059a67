public class Args {
	public static void main(String[] args) throws Exception {
		for (String word : args)
			System.out.println(word);
	}
}
