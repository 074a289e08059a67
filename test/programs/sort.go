package main

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

type queue []int

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i] < q[j] }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(int)) }
func (q *queue) Pop() any          { o := *q; x := o[len(o)-1]; *q = o[:len(o)-1]; return x }

type notFound struct{ name string }

func (e *notFound) Error() string { return e.name + " is not there" }

func find(name string) error { return fmt.Errorf("find: %w", &notFound{name}) }

func main() {
	q := &queue{5, 2, 8}
	heap.Init(q)
	heap.Push(q, 1)
	for q.Len() > 0 {
		fmt.Print(heap.Pop(q), " ")
	}
	var e *notFound
	fmt.Println(errors.As(find("x"), &e), e)
	n, _ := io.Copy(os.Stdout, io.LimitReader(strings.NewReader(strings.Repeat("ab", 10)), 7))
	fmt.Println("", n)
	_, err := os.Open("none")
	fmt.Println(errors.Is(err, os.ErrNotExist))
	panic(fmt.Sprintf("%v %T", []any{1, "a", nil}, err))
}
