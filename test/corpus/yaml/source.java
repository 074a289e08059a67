// class No {}
/* public class No */ class A { String s = "public class B {"; char c = '"'; }
class C { static void main(String[] a) {} }
