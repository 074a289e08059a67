package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"strings"
)

type Arith int

func (Arith) Multiply(args [2]int, reply *int) error { *reply = args[0] * args[1]; return nil }

func main() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path, "body": string(body), "method": r.Method})
	}))
	defer s.Close()
	for _, path := range []string{"/a", "/b?c=d"} {
		r, err := http.Post(s.URL+path, "text/plain", strings.NewReader("hello"))
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		fmt.Print(r.StatusCode, " ", string(text))
	}
	l, _ := net.Listen("tcp", "localhost:0")
	rpc.Register(Arith(0))
	go rpc.Accept(l)
	c, err := rpc.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	var reply int
	fmt.Println(c.Call("Arith.Multiply", [2]int{6, 7}, &reply), reply)
	_, err = net.Dial("tcp", "127.0.0.1:1")
	fmt.Println(strings.Contains(err.Error(), "refused"))
}
