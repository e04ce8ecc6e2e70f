package testcluster

import "testing"

func TestNamePrefixIsAValidStartOfAName(t *testing.T) {
	for test, want := range map[string]string{
		"TestApply":             "testapply-",
		"TestApply/with_a name": "testapply-with-a-name-",
		"TestÜber":              "test-ber-",
		"TestANameThatIsLongerThanANamespaceMayBeInAnyCluster": "testanamethatislongerthananamespacemaybe-",
	} {
		if got := namePrefix(test); got != want {
			t.Errorf("%s: got %s, want %s", test, got, want)
		}
	}
}
