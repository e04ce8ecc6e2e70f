window.janusPages = [
{{- range site.RegularPages }}
{{ dict "title" (partial "title.html" .) "path" (strings.TrimPrefix "/" .RelPermalink) "text" (.Plain | htmlUnescape | replaceRE `\s+` " ") | jsonify }},
{{- end }}
];
