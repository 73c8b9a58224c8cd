package compose_test

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/run"
)

const (
	// commandLine is the one service that runs a command and ends.
	commandLine = "cli"
	// tokenService is called by every process: it verifies API tokens.
	tokenService = "company"
)

func TestEveryServiceHasAHealthCheck(t *testing.T) {
	t.Parallel()
	for name, service := range project(t).Services {
		require.NotNil(t, service.HealthCheck, name)
		if name == commandLine {
			require.Contains(t, service.Profiles, commandLine, "a command is started by name alone")
			continue
		}
		require.False(t, service.HealthCheck.Disable, name)
		require.NotEmpty(t, service.HealthCheck.Test, name)
	}
}

func TestNothingIsPublishedBeyondThisMachine(t *testing.T) {
	t.Parallel()
	published := map[string]string{}
	for name, service := range project(t).Services {
		require.Empty(t, service.NetworkMode, name)
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
			require.Empty(t, published[port.Published], "port %s of %s is taken", port.Published, name)
			published[port.Published] = name
		}
	}
	require.Len(t, published, 5, "the addresses that the guide lists")
}

func TestOnlyTheCompanyServiceIsGivenWhatTheDocumentNames(t *testing.T) {
	t.Parallel()
	secrets := variables(t, secretsFile+".example")
	for name, service := range project(t).Services {
		values := map[string]bool{}
		var servable []string
		for key, value := range service.Environment {
			require.NotNil(t, value, "%s: %s would come from whoever starts it", name, key)
			values[*value] = true
			if !strings.HasPrefix(key, "BULLPEN_") {
				servable = append(servable, key)
			}
		}
		if name == tokenService {
			// company answers any name of its environment that is not the suite's own: there must be no other.
			require.Len(t, servable, len(secrets))
			for key := range secrets {
				require.Equal(t, secret(key), *service.Environment[key])
			}
			continue
		}
		require.Empty(t, service.EnvFiles, name)
		for key := range secrets {
			require.NotContains(t, values, secret(key), "%s is given %s", name, key)
		}
	}
}

func TestEverySettingIsOneThatItsServiceHas(t *testing.T) {
	t.Parallel()
	for name, service := range ours(t, project(t)) {
		flags := run.NewFlags(name, service.module)
		settings := map[string]bool{}
		for _, flag := range flagNames(flags) {
			settings[config.EnvName(flag)] = true
		}
		for key := range service.Environment {
			if strings.HasPrefix(key, "BULLPEN_") {
				require.True(t, settings[key], "%s has no setting %s", name, key)
			}
		}
		options, err := flags.Parse(nil, service.getenv)
		require.NoError(t, err, name)
		require.NotEmpty(t, options.DatabaseURL, name)
		require.NotEmpty(t, options.Brokers, name)
		require.Len(t, options.PrincipalKeys, 1, name)
		if settings := options.Configs[name]; settings != nil {
			require.NoError(t, settings.Validate(), name)
		}
	}
}

func TestTheCommandLineIsToldWhereEveryServiceIs(t *testing.T) {
	t.Parallel()
	p := project(t)
	command := deployed{ServiceConfig: p.Services[commandLine]}
	known := map[string]bool{}
	for _, flag := range flagNames(suite.NewFlags(commandLine)) {
		known[config.EnvName(flag)] = true
	}
	for name := range ours(t, p) {
		variable := config.EnvName("peer." + name + "-url")
		known[variable] = true
		requireAddress(t, p, name, command.getenv(variable))
	}
	for key := range command.Environment {
		require.True(t, known[key], "the command line does not read %s", key)
	}
}

func TestEveryPeerIsGivenAndIsThere(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, service := range ours(t, p) {
		peers := service.module.Peers
		if name != tokenService && !slices.Contains(peers, tokenService) {
			peers = append(slices.Clone(peers), tokenService)
		}
		for _, peer := range peers {
			if peer == name {
				continue // a process finds its own module in itself
			}
			requireAddress(t, p, peer, service.getenv(config.EnvName("peer."+peer+"-url")))
		}
	}
}

// requireAddress requires that an address is that of the container that runs a module, on the port that it listens on.
func requireAddress(t *testing.T, p *types.Project, module, address string) {
	t.Helper()
	require.NotEmpty(t, address, "the address of %s is not given", module)
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	service := ours(t, p)[module]
	require.Equal(t, service.Name, parsed.Hostname())
	_, port, err := net.SplitHostPort(service.getenv(config.EnvName("listen")))
	require.NoError(t, err)
	require.Equal(t, port, parsed.Port())
}

func TestMetricsAreServedOnAPortOfTheirOwnThatIsNotPublished(t *testing.T) {
	t.Parallel()
	for name, service := range ours(t, project(t)) {
		_, port, err := net.SplitHostPort(service.getenv(config.EnvName("metrics-listen")))
		require.NoError(t, err, name)
		for _, published := range service.Ports {
			require.NotEqual(t, port, published.Target, name)
		}
	}
}

func TestContainersMayDoLittle(t *testing.T) {
	t.Parallel()
	for name, service := range ours(t, project(t)) {
		require.True(t, service.ReadOnly, name)
		require.False(t, service.Privileged, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Empty(t, service.CapAdd, name)
		require.Contains(t, service.SecurityOpt, "no-new-privileges:true", name)
	}
}

func TestEveryServiceStartsAfterWhatItCannotDoWithout(t *testing.T) {
	t.Parallel()
	for name, service := range ours(t, project(t)) {
		for _, needed := range []string{"postgres", "kafka"} {
			require.Equal(t, types.ServiceConditionHealthy, service.DependsOn[needed].Condition, "%s and %s", name, needed)
		}
	}
}

func TestVolumesAreDeclaredAndUsed(t *testing.T) {
	t.Parallel()
	p := project(t)
	used := map[string]bool{}
	for name, service := range p.Services {
		for _, mount := range service.Volumes {
			if mount.Type == types.VolumeTypeVolume {
				require.Contains(t, p.Volumes, mount.Source, name)
				used[mount.Source] = true
			}
		}
	}
	require.Len(t, used, len(p.Volumes), "a volume that nothing mounts")
}

func TestKafkaDealsOutPartitionsAtOnceAndMakesNoTopicByItself(t *testing.T) {
	t.Parallel()
	kafka := deployed{ServiceConfig: project(t).Services["kafka"]}
	require.Equal(t, "0", kafka.getenv("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS"))
	require.Equal(t, "false", kafka.getenv("KAFKA_AUTO_CREATE_TOPICS_ENABLE"))
}
