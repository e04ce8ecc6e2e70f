package v1alpha1

import "strings"

// DescribeOwners names the owners of a Transaction, such as the PackageTransaction that it was
// made for; empty if it has none.
func (t *Transaction) DescribeOwners() string {
	var owners []string
	for _, o := range t.OwnerReferences {
		owners = append(owners, o.Kind+" "+o.Name)
	}
	return strings.Join(owners, ", ")
}
