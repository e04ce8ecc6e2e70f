// Package program compiles a program for several platforms and lists what it is made of.
// What it makes depends on the sources, the Go toolchain and the options, and on nothing
// else, so that others can make the same bytes again.
//
// It knows nothing of how the programs are packed.
package program
