// Package fanout runs pieces of work side by side.
package fanout

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Do runs n pieces of work, which begin in order and at most limit at a time, and waits for
// all. If one panics, so does the caller, who can say for which Transaction; the first panic
// counts, and its text has the stack. It waits by channels and a WaitGroup, for which virtual
// time passes.
func Do(limit, n int, work func(i int)) {
	if n == 1 {
		work(0)
		return
	}
	var all sync.WaitGroup
	var once sync.Once
	var panicked any
	slots := make(chan struct{}, max(limit, 1))
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { panicked = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
				<-slots
			}()
			work(i)
		})
	}
	all.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
