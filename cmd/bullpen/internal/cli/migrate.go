package cli

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

func (a *app) migrate() *cobra.Command {
	var dsn string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring every service's schema up to date, and start nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dsn == "" {
				dsn = a.getenv(config.EnvName("database-url"))
			}
			if dsn == "" {
				return usageError{fmt.Errorf("which Postgres? Give --database-url or %s", config.EnvName("database-url"))}
			}
			sources := map[string]fs.FS{}
			for _, m := range suite.Modules() {
				if m.Migrations != nil {
					sources[m.Name] = m.Migrations
				}
			}
			schemas := slices.Sorted(maps.Keys(sources))
			err := pg.EnsureSchemas(cmd.Context(), dsn, schemas...)
			if err == nil {
				err = pg.Migrate(cmd.Context(), dsn, sources)
			}
			if f, ok := fault.As(err); ok && f.Class == fault.Unavailable {
				return fmt.Errorf("%s Check that Postgres runs and what %s says", f.Message, config.EnvName("database-url"))
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"schemas": schemas})
			}
			_, err = fmt.Fprintf(a.Out, "%d schemas are up to date.\n", len(schemas))
			return err
		},
	}
	cmd.Flags().StringVar(&dsn, "database-url", "", "Postgres; better given by its environment twin, which process lists do not show")
	return cmd
}
