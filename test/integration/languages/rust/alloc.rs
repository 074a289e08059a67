fn main() {
    let block = std::hint::black_box(vec![b'x'; 64 << 20]);
    println!("allocated {}", block.len());
}
