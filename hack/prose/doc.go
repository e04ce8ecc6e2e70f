// Command prose checks the words of pages, of the comments of Go files, and of what programs
// say, by the rules of .vale.ini:
//
//	go run ./hack/prose FILE...
//
// Vale reads pages and comments by itself. Errors, hints, events, warnings and the help of
// commands and flags it is given as text: every string of more than two words in a Go file is
// taken for a message, since one that is not is rare and seldom breaks a rule.
package main
