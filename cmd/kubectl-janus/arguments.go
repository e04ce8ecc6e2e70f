package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// finish gives all commands below one what they have in common.
func (s *session) finish(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		s.finish(c)
	}
	if cmd.Flags().Lookup(accountFlag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(accountFlag, s.accounts)
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return plainArguments(cmd, check, args) }
	}
	if isGroup(cmd) {
		cmd.RunE, cmd.DisableFlagsInUseLine = noSuchCommand, true
	}
}

// isGroup reports whether a command does nothing itself, and has others below it that do.
func isGroup(cmd *cobra.Command) bool {
	return cmd.HasParent() && cmd.HasSubCommands() && cmd.Args == nil
}

// plainArguments says which argument of a command is missing, or is one too many, and keeps the exit code.
func plainArguments(cmd *cobra.Command, check cobra.PositionalArgs, args []string) error {
	err := check(cmd, args)
	if err == nil {
		return nil
	}
	_, wanted, _ := strings.Cut(cmd.Use, " ")
	text := "give " + wanted
	for n := range args {
		if check(cmd, args[:n]) == nil {
			text = fmt.Sprintf("it does not take the argument %q", args[n])
		}
	}
	plain := fmt.Errorf("%s: %s; see: %s --help", cmd.CommandPath(), text, cmd.CommandPath())
	if own := (*exitError)(nil); errors.As(err, &own) {
		return &exitError{own.code, plain}
	}
	return plain
}

// noSuchCommand is what a command does that has others below it, and none of them was named.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return fmt.Errorf("%s has no command %q; see: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// addConnection adds the flags by which kubectl finds a cluster, as kubectl has them. But -s is no
// --server here: it names the ServiceAccount, which nearly every run does.
func (s *session) addConnection(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.flags.AddFlags(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "server" {
			flag.Shorthand = ""
		}
		flags.AddFlag(flag)
	})
}
