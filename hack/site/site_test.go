package site_test

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

const root = "../.."

// page is what the tests look at of a page of the site.
type page struct {
	title   string
	anchors map[string]bool
	links   []string // what it links to, and what it loads
	loads   []string
	escaped []string // text that was to be an element of a table
}

// build builds the site, and returns its pages and files by path.
func build(t *testing.T, repository string) (pages map[string]page, files map[string]bool) {
	t.Helper()
	site := t.TempDir()
	hugo, err := filepath.Abs(filepath.Join(root, "bin", "hugo"))
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), hugo, "--source=.", "--destination="+site, "--noBuildLock", "--panicOnWarning", "--quiet")
	command.Env = append(os.Environ(), "HUGO_PARAMS_REPOSITORY="+repository)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "make bin/hugo builds Hugo: %s", out)

	pages, files = map[string]page{}, map[string]bool{}
	require.NoError(t, fs.WalkDir(os.DirFS(site), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name] = true
		if path.Ext(name) != ".html" {
			return nil
		}
		file, err := os.Open(filepath.Join(site, name))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		node, err := html.Parse(file)
		pages[name] = read(node)
		return err
	}))
	return pages, files
}

func read(document *html.Node) page {
	out := page{anchors: map[string]bool{}}
	for node := range document.Descendants() {
		if node.Type == html.TextNode && strings.Contains(node.Data, "</t") {
			out.escaped = append(out.escaped, node.Data)
		}
		if node.Type != html.ElementNode {
			continue
		}
		if node.Data == "title" {
			out.title = node.FirstChild.Data
		}
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "id":
				out.anchors[attribute.Val] = true
			case "href", "src":
				out.links = append(out.links, attribute.Val)
				if node.Data != "a" {
					out.loads = append(out.loads, attribute.Val)
				}
			}
		}
	}
	return out
}

func TestEveryPageIsOnTheSite(t *testing.T) {
	pages, files := build(t, "")
	docs := os.DirFS(filepath.Join(root, "docs"))
	found := 0
	require.NoError(t, fs.WalkDir(docs, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		found++
		text, err := fs.ReadFile(docs, name)
		require.NoError(t, err)
		on := strings.TrimSuffix(name, ".md") + ".html"
		if path.Base(name) == "README.md" {
			on = path.Join(path.Dir(name), "index.html")
		}
		assert.Empty(t, pages[on].escaped, on)
		if assert.Contains(t, pages, on) && name != "README.md" {
			heading, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
			assert.Equal(t, strings.ReplaceAll(heading, "`", "")+" · Janus", pages[on].title, "%s has the title of its first heading", on)
		}
		return nil
	}))
	assert.Greater(t, found, 40, "the pages are looked for in the wrong place")
	assert.Len(t, pages, found, "there is a page that docs/ does not have")
	for name := range files {
		assert.Contains(t, []string{".html", ".css", ".js", ".png", ".svg"}, path.Ext(name), "%s is not for readers", name)
	}
}

// It is so too for the pages to which a page links by its navigation.
func TestLinksOnTheSiteHaveTargets(t *testing.T) {
	pages, files := build(t, "")
	links := 0
	for name, p := range pages {
		for _, link := range p.links {
			parsed, err := url.Parse(link)
			require.NoError(t, err, "%s links to %s", name, link)
			if parsed.Scheme != "" || parsed.Host != "" {
				continue
			}
			links++
			target := name
			if parsed.Path != "" {
				target = path.Join(path.Dir(name), parsed.Path)
			}
			if assert.True(t, files[target], "%s links to %s, which is not there", name, link) && parsed.Fragment != "" {
				assert.True(t, pages[target].anchors[parsed.Fragment], "%s links to %s, which has no such heading", name, link)
			}
		}
	}
	assert.Greater(t, links, 1000, "the links are looked for in the wrong place")
}

// A page that loads something tells its host who reads it.
func TestAPageLoadsNothingFromElsewhere(t *testing.T) {
	pages, _ := build(t, "")
	for name, p := range pages {
		assert.NotEmpty(t, p.loads)
		for _, load := range p.loads {
			assert.NotContains(t, load, "//", "%s loads it", name)
		}
	}
	for _, asset := range []string{"style.css", "search.js", "pages.js"} {
		text, err := os.ReadFile(filepath.Join("assets", asset))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "://", "%s names another host", asset)
	}
}

// Without the address of a repository, what lies outside of docs/ has none.
func TestFilesOutsideOfDocsAreInTheRepository(t *testing.T) {
	const repository = "https://example.com/janus/blob/main/"
	leading := func(pages map[string]page) (out []string) {
		for _, p := range pages {
			for _, link := range p.links {
				if file, ok := strings.CutPrefix(link, repository); ok && file != "" {
					out = append(out, file)
				}
			}
		}
		return out
	}
	with, _ := build(t, repository)
	files := leading(with)
	assert.Contains(t, files, "CONTRIBUTING.md")
	for _, file := range files {
		name, _, _ := strings.Cut(file, "#")
		assert.FileExists(t, filepath.Join(root, name))
	}
	without, _ := build(t, "")
	assert.Empty(t, leading(without))
}
