use std::collections::BTreeMap;
use std::io::{self, Read};
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suit { Clubs, Hearts }
impl FromStr for Suit { type Err = String; fn from_str(s: &str) -> Result<Self, String> { match s { "c" => Ok(Suit::Clubs), "h" => Ok(Suit::Hearts), other => Err(format!("no suit {other:?}")) } } }
struct Fib(u64, u64);
impl Iterator for Fib { type Item = u64; fn next(&mut self) -> Option<u64> { let r = self.0; (self.0, self.1) = (self.1, self.0 + self.1); Some(r) } }
fn longest<'a>(a: &'a str, b: &'a str) -> &'a str { if a.len() >= b.len() { a } else { b } }
fn compose<A, B, C>(f: impl Fn(A) -> B, g: impl Fn(B) -> C) -> impl Fn(A) -> C { move |x| g(f(x)) }

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let numbers: Vec<i64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
    println!("{numbers:?} {:?} {:?}", numbers.iter().max(), std::env::args().skip(1).collect::<Vec<_>>());
    println!("{:?} {:?}", "h".parse::<Suit>(), Suit::from_str("x"));
    println!("{:?} {}", Fib(0, 1).skip_while(|&n| n < 10).step_by(2).take(4).collect::<Vec<_>>(), longest("long", "er"));
    println!("{}", compose(|x: i32| x + 1, |x: i32| x.to_string() + "!")(41));
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for w in ["a", "bb", "cc", "ddd"] { groups.entry(w.len()).or_default().push(w); }
    println!("{groups:?} {:?} {}", i32::MAX.checked_add(1), 250u8.wrapping_add(10));
    let bad: i32 = "zz".parse()?;
    println!("{bad}");
    Ok(())
}
