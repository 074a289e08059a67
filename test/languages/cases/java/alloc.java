import java.util.Arrays;

public class Alloc {
	public static void main(String[] args) throws Exception {
		byte[] block = new byte[64 << 20];
		Arrays.fill(block, (byte) 'x');
		System.out.println("allocated " + block.length);
	}
}
