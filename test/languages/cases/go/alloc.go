package main

import "fmt"

func main() {
	block := make([]byte, 64<<20)
	for i := range block {
		block[i] = 'x'
	}
	fmt.Println("allocated", len(block))
}
