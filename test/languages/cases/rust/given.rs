fn main() {
    for word in std::env::args().skip(1) {
        println!("{word}");
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    print!("got: {line}");
    println!("{}", std::env::var("GREETING").unwrap());
    print!("{}", std::fs::read_to_string("data/input.txt").unwrap());
    std::process::exit(7);
}
