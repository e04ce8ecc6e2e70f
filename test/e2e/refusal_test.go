package e2e

// refusedAtCommit are two changes to end a list with. Both pass their dry run; the
// second is refused when it is made, if Env.Refuse was called.
const refusedAtCommit = `
  - {target: {apiVersion: v1, kind: Service, name: a}, type: Create, content: {spec: {ports: [{port: 80}]}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: refused-b}, type: Create, content: {data: {a: b}}}
`
