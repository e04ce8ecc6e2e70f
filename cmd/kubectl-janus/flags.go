package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// ofGo are the words in which Go says that the value of a flag cannot be read, and those for people.
var ofGo = []struct {
	words *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`strconv\.ParseBool: parsing .*: invalid syntax$`), "want true or false"},
	{regexp.MustCompile(`strconv\.Parse(Int|Uint|Float): parsing .*: invalid syntax$`), "want a number"},
	{regexp.MustCompile(`strconv\.Parse(Int|Uint|Float): parsing .*: value out of range$`), "the number is too large"},
	{regexp.MustCompile(`time: (invalid duration|missing unit in duration|unknown unit .* in duration) ".*"$`), "want a time such as 30s or 5m"},
}

// plainFlagError is an error about a flag in plain words.
func plainFlagError(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	}
	for _, one := range ofGo {
		if text := err.Error(); one.words.MatchString(text) {
			return errors.New(one.words.ReplaceAllString(text, one.plain))
		}
	}
	return err
}

// limit is how long to wait at most; zero is as long as it takes. A negative one would be
// over before it begins, or never.
type limit time.Duration

// String implements pflag.Value. Without a limit there is nothing to say of it.
func (l *limit) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

// Set implements pflag.Value.
func (l *limit) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("%s is over already: want a time such as 30s, or 0 for no limit", text)
	}
	*l = limit(d)
	return nil
}

// Type implements pflag.Value.
func (l *limit) Type() string { return "duration" }

// dryRun is a flag without a value. kubectl has one of this name that takes one.
type dryRun bool

// addDryRun adds the flag.
func addDryRun(cmd *cobra.Command, on *bool) {
	f := cmd.Flags().VarPF((*dryRun)(on), "dry-run", "", "print the Transaction, and create nothing")
	f.NoOptDefVal = "true"
}

// String implements pflag.Value.
func (d *dryRun) String() string { return strconv.FormatBool(bool(*d)) }

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "bool" }

// Set implements pflag.Value.
func (d *dryRun) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("it prints the Transaction and takes no value; to try the changes on the server: kubectl janus plan")
	}
	*d = dryRun(on)
	return nil
}

// oneOf is a flag that takes one of some words.
type oneOf struct {
	to    *string
	words []string
}

// choose adds a flag that takes one of some words.
func choose[T ~string](cmd *cobra.Command, to *string, flag, usage string, words ...T) {
	one := &oneOf{to: to}
	for _, word := range words {
		one.words = append(one.words, string(word))
	}
	cmd.Flags().Var(one, flag, usage)
	completeOf(cmd, flag, words...)
}

// String implements pflag.Value.
func (o *oneOf) String() string {
	if o.to == nil {
		return ""
	}
	return *o.to
}

// Type implements pflag.Value.
func (o *oneOf) Type() string { return "string" }

// Set implements pflag.Value.
func (o *oneOf) Set(text string) error {
	if text != "" && !slices.Contains(o.words, text) {
		return fmt.Errorf("want %s", strings.Join(o.words, " or "))
	}
	*o.to = text
	return nil
}

// completeOf completes a flag that takes one of some words.
func completeOf[T ~string](cmd *cobra.Command, flag string, words ...T) {
	var out []string
	for _, word := range words {
		out = append(out, string(word))
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(out, cobra.ShellCompDirectiveNoFileComp))
}

// completeOutput completes -o.
func completeOutput(cmd *cobra.Command, flags *genericclioptions.PrintFlags, more ...string) {
	completeOf(cmd, "output", append(flags.AllowedFormats(), more...)...)
}
