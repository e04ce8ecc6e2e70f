package snapshot

// Labels are those of every object that Janus makes for a Transaction. A label
// value stops at 63 characters where a name may have 253, so a longer name is cut
// and hashed; the annotation of the same key has it whole.
func Labels(transaction string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelTransaction: shorten(transaction, maxLabel)}
}
