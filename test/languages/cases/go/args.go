package main

import (
	"fmt"
	"os"
)

func main() {
	for _, word := range os.Args[1:] {
		fmt.Println(word)
	}
}
