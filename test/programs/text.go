package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

type Item struct {
	Name  string  `json:"name"`
	Price float64 `json:"price,omitempty"`
	Tags  []string
}

func main() {
	sc, total := bufio.NewScanner(os.Stdin), 0
	for sc.Scan() {
		var n int
		fmt.Sscan(sc.Text(), &n)
		total += n
	}
	fmt.Println(os.Args[1:], total)
	b, _ := json.Marshal([]Item{{"a", 1.5, nil}, {"b", 0, []string{"x"}}})
	fmt.Println(string(b))
	rows, _ := csv.NewReader(strings.NewReader("a,b\n\"x, y\",2\n")).ReadAll()
	fmt.Println(rows, len(rows))
	fmt.Println(regexp.MustCompile(`(\w+)@(\w+)`).ReplaceAllString("ada@site bo@home", "$2:$1"))
	template.Must(template.New("t").Parse("{{range $i, $x := .}}{{$i}}={{$x | printf \"%q\"}} {{end}}\n")).Execute(os.Stdout, []string{"a", "b"})
	fmt.Printf("%x %d %v\n", sha256.Sum256([]byte("x")), utf8.RuneCountInString("añ🎉"), new(big.Int).Exp(big.NewInt(2), big.NewInt(100), nil))
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	fmt.Println(time.Unix(0, 0).In(tokyo).Format(time.RFC1123Z), err)
	dir, _ := os.MkdirTemp("", "x")
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o644)
	found, _ := filepath.Glob(filepath.Join(dir, "*"))
	fmt.Println(len(found), os.Getenv("HOME") != "")
	var list []int
	fmt.Println(list[5])
}
