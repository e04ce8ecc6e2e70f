package engine

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// together runs n pieces of work side by side, and waits for all. If one panics, so does
// the caller, who can say for which Transaction.
func together(n int, work func(i int)) {
	if n == 1 {
		work(0)
		return
	}
	var all sync.WaitGroup
	var once sync.Once
	var panicked any
	for i := range n {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { panicked = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
			}()
			work(i)
		})
	}
	all.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
