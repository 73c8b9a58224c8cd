package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
)

func (a *app) tokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke API tokens",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	request := &companyv1.CreateTokenRequest{}
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token; its text is shown once",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Name = args[0]
			return a.createToken(cmd, request)
		},
	}
	create.Flags().StringVar(&request.Seat, "seat", "", "the human seat whose token it is; none for a machine")
	create.Flags().Int32Var(&request.Days, "days", 90, "how many days it lives; 0 for no end")
	list := &cobra.Command{Use: "list", Short: "List tokens without their text", Args: cobra.NoArgs, RunE: a.listTokens}
	revoke := &cobra.Command{Use: "revoke ID", Short: "End a token; a service that saw it lately takes it for up to half a minute more", Args: cobra.ExactArgs(1), RunE: a.revokeToken}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

func (a *app) companyClient() (companyv1connect.CompanyServiceClient, error) {
	client, err := a.client("company")
	if err != nil {
		return nil, err
	}
	return companyv1connect.NewCompanyServiceClient(client), nil
}

func (a *app) createToken(cmd *cobra.Command, request *companyv1.CreateTokenRequest) error {
	client, err := a.companyClient()
	if err != nil {
		return err
	}
	response, err := client.CreateToken(cmd.Context(), request)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	// The token alone goes to standard output, so that it can be caught in a variable.
	fmt.Fprintf(a.Err, "Token %s, shown only this once; set it as BULLPEN_TOKEN.\n", response.GetDetails().GetTokenId())
	_, err = fmt.Fprintln(a.Out, response.GetToken())
	return err
}

func (a *app) listTokens(cmd *cobra.Command, _ []string) error {
	client, err := a.companyClient()
	if err != nil {
		return err
	}
	response, err := client.ListTokens(cmd.Context(), &companyv1.ListTokensRequest{})
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	rows := make([][]string, 0, len(response.GetTokens()))
	for _, t := range response.GetTokens() {
		rows = append(rows, []string{t.GetTokenId(), t.GetHint(), t.GetName(), t.GetSeat(), moment(t.GetCreateTime()), moment(t.GetExpireTime()), moment(t.GetRevokeTime())})
	}
	return table(a.Out, []string{"ID", "BEGINS", "NAME", "SEAT", "MADE", "ENDS", "REVOKED"}, rows)
}

func (a *app) revokeToken(cmd *cobra.Command, args []string) error {
	client, err := a.companyClient()
	if err != nil {
		return err
	}
	if _, err := client.RevokeToken(cmd.Context(), &companyv1.RevokeTokenRequest{TokenId: args[0]}); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"revoked": args[0]})
	}
	_, err = fmt.Fprintln(a.Out, "Revoked. A service that took it in the last half minute may do so until that is over.")
	return err
}
