use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::cell::RefCell;

#[derive(Debug, Clone, PartialEq)]
enum Expr { Num(f64), Add(Box<Expr>, Box<Expr>), Mul(Box<Expr>, Box<Expr>) }
impl Expr { fn eval(&self) -> f64 { match self { Expr::Num(n) => *n, Expr::Add(a, b) => a.eval() + b.eval(), Expr::Mul(a, b) => a.eval() * b.eval() } } }
trait Shape { fn area(&self) -> f64; fn name(&self) -> String { "shape".into() } }
struct Square(f64);
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
struct Matrix<const N: usize>([[i32; N]; N]);
impl<const N: usize> fmt::Display for Matrix<N> { fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { for r in &self.0 { writeln!(f, "{:?}", r)?; } Ok(()) } }
fn parse(s: &str) -> Result<i32, std::num::ParseIntError> { let n: i32 = s.trim().parse()?; Ok(n * 2) }
#[derive(Debug)] struct Node { v: i32, kids: RefCell<Vec<Rc<Node>>> }

fn main() {
    let mut words: HashMap<&str, usize> = HashMap::new();
    for w in "the cat and the hat".split_whitespace() { *words.entry(w).or_default() += 1; }
    let sorted: BTreeMap<_, _> = words.iter().collect();
    println!("{:?}", sorted);
    let mut heap: BinaryHeap<_> = [3, 1, 4, 1, 5].into_iter().collect();
    println!("{:?} {:?}", heap.pop(), heap.len());
    let set: HashSet<i32> = (1..5).chain(3..8).collect();
    let mut q: VecDeque<_> = (0..5).collect();
    q.rotate_left(2);
    println!("{} {:?} {}", set.len(), q, (1..=10).filter(|n| n % 2 == 0).map(|n| n * n).sum::<i32>());
    println!("{}", Expr::Add(Box::new(Expr::Num(1.5)), Box::new(Expr::Mul(Box::new(Expr::Num(2.0)), Box::new(Expr::Num(3.0))))).eval());
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(3.0))];
    println!("{} {}", shapes[0].area(), shapes[0].name());
    print!("{}", Matrix([[1, 2], [3, 4]]));
    println!("{:?} {}", parse(" 21 "), parse("x").unwrap_err());
    let leaf = Rc::new(Node { v: 3, kids: RefCell::new(vec![]) });
    let top = Node { v: 1, kids: RefCell::new(vec![Rc::clone(&leaf)]) };
    top.kids.borrow_mut().push(Rc::new(Node { v: 9, kids: Default::default() }));
    println!("{} {} {}", top.v, Rc::strong_count(&leaf), top.kids.borrow().iter().map(|k| k.v).sum::<i32>());
    println!("{:>8.3}|{:<5}|{:#x}|{:?}|{}", 3.14159, "ab", 255, "q\"", "añ🎉".chars().rev().collect::<String>());
    let v: Vec<i32> = Vec::new();
    std::process::exit(if v.get(3).is_none() { 19 } else { 0 });
}
