fn main() {
    print!("{}", std::fs::read_to_string("data/input.txt").unwrap());
}
