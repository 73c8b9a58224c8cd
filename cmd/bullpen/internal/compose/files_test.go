package compose_test

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/run"
)

func flagNames(flags *run.Flags) []string {
	var names []string
	flags.Set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// named answers the names that a text takes from its environment, comments left out.
func named(text, pattern string) []string {
	var names []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(line, -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func names(set map[string]string) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestTheExampleEnvironmentIsWhatTheComposeFileReads(t *testing.T) {
	t.Parallel()
	require.Equal(t, named(text(t, composeFile), `\$\{([A-Z0-9_]+)`), names(variables(t, envFile+".example")))
}

func TestTheExampleSecretsAreWhatTheExampleCompanyNames(t *testing.T) {
	t.Parallel()
	secrets := names(variables(t, secretsFile+".example"))
	require.Equal(t, named(text(t, "deploy/company.example.yaml"), `\$\{([A-Z0-9_]+)\}`), secrets)
	for _, name := range secrets {
		require.NotContains(t, name, "BULLPEN_", "such names are never served")
		require.NotContains(t, variables(t, envFile+".example"), name, "the two files have nothing in common")
	}
}

func TestTheGuideGivesTheAddressesThatThereAre(t *testing.T) {
	t.Parallel()
	guide := text(t, "docs/guides/deploy.md")
	published := map[string]string{}
	var scraped []string
	p := project(t)
	for _, service := range ours(t, p) {
		for _, port := range service.Ports {
			published[service.Name] = port.HostIP + ":" + port.Published
		}
		_, port, err := net.SplitHostPort(service.getenv(config.EnvName("metrics-listen")))
		require.NoError(t, err)
		scraped = append(scraped, service.Name+":"+port)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([a-z-]+) \\| `(127[^`]+)` \\|").FindAllStringSubmatch(guide, -1) {
		told[row[1]] = row[2]
	}
	require.Equal(t, published, told)
	slices.Sort(scraped)
	require.Contains(t, guide, "targets: ["+strings.Join(scraped, ", ")+"]")
}

func TestFilledInFilesAreNeitherCommittedNorBuiltIn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{envFile, secretsFile} {
		require.Contains(t, strings.Split(text(t, ".gitignore"), "\n"), "/"+name)
		require.Contains(t, strings.Split(text(t, ".dockerignore"), "\n"), name)
	}
}

func TestWhatIsDeployedIsWhatIsTested(t *testing.T) {
	t.Parallel()
	kafka := regexp.MustCompile(`<kafka.version>([^<]+)<`).FindStringSubmatch(text(t, "deploy/kafka/pom.xml"))
	require.NotNil(t, kafka)
	require.Equal(t, "apache/kafka:"+kafka[1], project(t).Services["kafka"].Image)
	release := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(text(t, "go.work"))
	require.NotNil(t, release)
	require.Contains(t, text(t, "deploy/Dockerfile"), "FROM golang:"+release[1]+"-")
}

func TestEveryContainerRunsTheProgramOfItsStage(t *testing.T) {
	t.Parallel()
	stages := map[string]string{}
	var stage string
	for line := range strings.Lines(text(t, "deploy/Dockerfile")) {
		if match := regexp.MustCompile(`^FROM \S+ AS (\S+)`).FindStringSubmatch(line); match != nil {
			stage = match[1]
			stages[stage] = ""
		}
		if match := regexp.MustCompile(`^COPY --from=build /out/(\S+) /usr/local/bin/`).FindStringSubmatch(line); match != nil {
			stages[stage] = match[1]
		}
		if match := regexp.MustCompile(`^ENTRYPOINT \["([^"]+)"\]`).FindStringSubmatch(line); match != nil {
			require.Equal(t, stages[stage], match[1], "stage %s starts what it copies", stage)
		}
	}
	built := regexp.MustCompile(`for service in ([a-z ]+);`).FindStringSubmatch(text(t, "deploy/Dockerfile"))
	require.NotNil(t, built)
	for name, service := range project(t).Services {
		if service.Build == nil {
			require.Regexp(t, `:[0-9]`, service.Image, "%s: an image of others is pinned", name)
			continue
		}
		program := stages[service.Build.Target]
		require.NotEmpty(t, program, "%s is built from %s, which is no stage with a program", name, service.Build.Target)
		folder := filepath.Join("services", program, "cmd", program)
		if name == commandLine {
			folder = filepath.Join("cmd", program)
		} else {
			require.Contains(t, strings.Fields(built[1]), program)
		}
		_, err := os.Stat(filepath.Join(root, folder, "main.go"))
		require.NoError(t, err)
	}
}
