// Package site is the site of docs/, which `make docs` builds with Hugo: hugo.yaml says what
// is on it, layouts how a page is laid out, and assets how it looks. The pages stay Markdown
// that reads well in the repository, without anything of Hugo's.
//
// Invariant: every page of docs/ is on the site, and every link on it that leads to the site
// has a target. The site loads nothing from elsewhere, can be read from a disk, and all of it
// but the search works without JavaScript.
//
// It is a module of its own, so that Hugo and what it needs stay out of the program's
// go.sum, and names Hugo as its tool.
package site
