use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{atomic::{AtomicUsize, Ordering}, mpsc, Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    let server = thread::spawn(move || for c in listener.incoming().take(3) {
        let mut c = c.unwrap();
        let mut line = String::new();
        BufReader::new(c.try_clone().unwrap()).read_line(&mut line).unwrap();
        c.write_all(line.to_uppercase().as_bytes()).unwrap();
    });
    for i in 0..3 {
        let mut s = TcpStream::connect(at)?;
        s.set_nodelay(true)?;
        writeln!(s, "client {i}")?;
        let mut text = String::new();
        s.read_to_string(&mut text)?;
        print!("{text}");
    }
    server.join().unwrap();
    let u = UdpSocket::bind("[::1]:0")?;
    u.set_read_timeout(Some(Duration::from_secs(2)))?;
    u.send_to(b"six", u.local_addr()?)?;
    let mut buf = [0; 10];
    println!("{}", u.recv(&mut buf)?);
    println!("{:?}", TcpStream::connect("127.0.0.1:1").unwrap_err().kind());
    let (mut a, mut b) = UnixStream::pair()?;
    a.write_all(b"unix")?;
    drop(a);
    let mut text = String::new();
    b.read_to_string(&mut text)?;
    let (tx, rx) = mpsc::channel();
    let total = Arc::new(Mutex::new(0));
    let seen = Arc::new(AtomicUsize::new(0));
    let config = Arc::new(RwLock::new(2));
    let handles: Vec<_> = (0..4).map(|i| { let (tx, total, seen, config) = (tx.clone(), total.clone(), seen.clone(), config.clone()); thread::spawn(move || { *total.lock().unwrap() += i * *config.read().unwrap(); seen.fetch_add(1, Ordering::SeqCst); tx.send(i).unwrap(); }) }).collect();
    drop(tx);
    for h in handles { h.join().unwrap(); }
    println!("{} {} {} {}", text, rx.iter().sum::<i32>(), total.lock().unwrap(), seen.load(Ordering::SeqCst));
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().unwrap().write_all(b"through cat")?;
    println!("{}", String::from_utf8(child.wait_with_output()?.stdout).unwrap());
    println!("{:?}", thread::spawn(|| { if true { panic!("in a thread") } }).join().is_err());
    std::fs::write("f.txt", "a\nb\n")?;
    println!("{} {}", std::fs::read_to_string("f.txt")?.lines().count(), std::env::args().count());
    let stdin = io::stdin().lock().lines().map(|l| l.unwrap().parse::<i32>().unwrap()).sum::<i32>();
    println!("{stdin}");
    let v = vec![1];
    println!("{}", v[std::env::args().count() + 5]);
    Ok(())
}
