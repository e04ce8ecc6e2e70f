// Package ui is the page on which people look at Transactions: one document, one style sheet
// and some scripts, embedded, and the JSON that they ask for.
//
// It reads with a Reader that it is given, and so with the rights of the user that it acts as.
//
// # Invariant
//
// Nothing is written, whatever the request. What is sent has no content of any object but that
// of differences: of a change the names of its fields; of differences what janusd has written
// into the status, and what a Past reads of before-images, where there is one. Both mask the
// values of confidential kinds; those of Secrets are masked here once more. What comes from
// objects is text to the page and never markup, and quoted in commands.
//
// # What it does not do
//
// It does not read before-images or revisions itself: a Past and a History do, for those who
// may see what these read. It knows nobody: who may ask is up to anyone who serves the Handler.
// OnLoopback and Below are for one who serves it to the user of this machine alone, Under and
// Shared for one who serves it to many, and asks who they are.
package ui
