module github.com/bullpenhq/bullpen/tools/depcheck

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.51.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
