package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	for _, word := range os.Args[1:] {
		fmt.Println(word)
	}
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Print("got: ", line)
	fmt.Println(os.Getenv("GREETING"))
	text, err := os.ReadFile("data/input.txt")
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(text)
	os.Exit(7)
}
