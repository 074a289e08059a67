fn main() {
    let block = vec![b'x'; 64 << 20];
    // Looked at in a way that the optimiser must respect.
    let all = block.iter().step_by(4096).all(|byte| unsafe { std::ptr::read_volatile(byte) } == b'x');
    println!("allocated {}", if all { block.len() } else { 0 });
}
