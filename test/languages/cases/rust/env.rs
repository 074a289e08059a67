fn main() {
    println!("{}", std::env::var("GREETING").unwrap());
}
