package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type Number interface{ ~int | ~float64 }

func Map[T, U any](xs []T, f func(T) U) []U {
	out := make([]U, 0, len(xs))
	for _, x := range xs {
		out = append(out, f(x))
	}
	return out
}
func Sum[T Number](xs ...T) (t T) {
	for _, x := range xs {
		t += x
	}
	return
}

type Shape interface{ Area() float64 }
type Square struct{ side float64 }

func (s Square) Area() float64 { return s.side * s.side }

func main() {
	var wg sync.WaitGroup
	var n int64
	jobs, results := make(chan int), make(chan int, 100)
	for w := 0; w < 4; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range jobs {
				atomic.AddInt64(&n, 1)
				results <- j * j
			}
		}()
	}
	for i := 0; i < 100; i++ {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	close(results)
	all := []int{}
	for r := range results {
		all = append(all, r)
	}
	sort.Ints(all)
	fmt.Println(n, Sum(all...), Map([]int{1, 2}, func(i int) string { return strings.Repeat("x", i) }), Shape(Square{3}).Area())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	select {
	case <-ctx.Done():
		fmt.Println(errors.Is(ctx.Err(), context.DeadlineExceeded))
	case <-time.After(5 * time.Second):
		fmt.Println("late")
	}
	out, err := exec.Command("sh", "-c", "echo child; exit 3").Output()
	var exit *exec.ExitError
	fmt.Printf("%q %v %d\n", out, errors.As(err, &exit), exit.ExitCode())
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-c)
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var m map[string]int
		m["x"] = 1
	}()
	os.Exit(17)
}
