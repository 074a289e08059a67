package main

import (
	"os"
)

func main() {
	text, err := os.ReadFile("data/input.txt")
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(text)
}
