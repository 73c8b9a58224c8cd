package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
	"github.com/bullpenhq/bullpen/services/company/internal/template"
)

// ownPrefix begins the names of the suite's own settings, which are never served: they hold its keys.
const ownPrefix = "BULLPEN_"

func noKey() error {
	return fault.New(fault.Unavailable, "Secrets can neither be sealed nor opened: the company service was started without "+
		"-company.sealing-key (BULLPEN_COMPANY_SEALING_KEY). Give it 32 bytes in base64, as `openssl rand -base64 32` prints.").
		WithReason("NO_SEALING_KEY")
}

// PutSecret implements the RPC.
func (h *Handler) PutSecret(ctx context.Context, req *companyv1.PutSecretRequest) (*companyv1.PutSecretResponse, error) {
	if _, err := writer(ctx); err != nil {
		return nil, err
	}
	if h.box == nil {
		return nil, noKey()
	}
	kept := h.box.Seal(req.GetName(), req.GetValue())
	out := &companyv1.PutSecretResponse{}
	op := sealedOperation(ctx, "PutSecret", req, h.box)
	_, err := h.store.Write(ctx, op, out, func(ctx context.Context, tx *store.Tx) error {
		return tx.PutSecret(ctx, req.GetName(), kept, h.now())
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ListSecrets implements the RPC.
func (h *Handler) ListSecrets(ctx context.Context, _ *companyv1.ListSecretsRequest) (*companyv1.ListSecretsResponse, error) {
	if _, err := writer(ctx); err != nil {
		return nil, err
	}
	names, err := h.store.ListSecrets(ctx)
	if err != nil {
		return nil, err
	}
	out := &companyv1.ListSecretsResponse{}
	for _, n := range names {
		out.Secrets = append(out.Secrets, &companyv1.SecretName{Name: n.Name, UpdateTime: timestamppb.New(n.UpdatedAt)})
	}
	return out, nil
}

// DeleteSecret implements the RPC.
func (h *Handler) DeleteSecret(ctx context.Context, req *companyv1.DeleteSecretRequest) (*companyv1.DeleteSecretResponse, error) {
	if _, err := writer(ctx); err != nil {
		return nil, err
	}
	out := &companyv1.DeleteSecretResponse{}
	_, err := h.store.Write(ctx, operation(ctx, "DeleteSecret", req), out, func(ctx context.Context, tx *store.Tx) error {
		found, err := tx.DeleteSecret(ctx, req.GetName())
		if err == nil && !found {
			return fault.New(fault.NotFound, "No secret is sealed under this name. List the secrets to see the names.").WithField("name")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ResolveSecrets implements the RPC.
func (h *Handler) ResolveSecrets(ctx context.Context, req *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error) {
	if err := service(ctx, "mcphost", "notification", "turn"); err != nil {
		return nil, err
	}
	templates := make([]template.Template, 0, len(req.GetTemplates()))
	var names []string
	for i, text := range req.GetTemplates() {
		t, err := template.Parse(text)
		if err != nil {
			field := fmt.Sprintf("templates[%d]", i)
			return nil, fault.New(fault.Invalid, "`%s` %s.", field, err).WithField(field)
		}
		templates = append(templates, t)
		for _, name := range t.Names() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	values, err := h.resolve(ctx, names)
	if err != nil {
		return nil, err
	}
	out := &companyv1.ResolveSecretsResponse{}
	for _, t := range templates {
		out.Values = append(out.Values, t.Fill(values))
	}
	for _, name := range names {
		if !slices.Contains(out.GetSecrets(), values[name]) {
			out.Secrets = append(out.Secrets, values[name])
		}
	}
	return out, nil
}

// resolve answers a value for each name: the sealed one, or else the environment's. All names that neither has are refused
// together.
func (h *Handler) resolve(ctx context.Context, names []string) (map[string]string, error) {
	values := map[string]string{}
	if len(names) == 0 {
		return values, nil
	}
	kept, err := h.store.Sealed(ctx, names)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range names {
		box, isSealed := kept[name]
		switch {
		case isSealed:
			if values[name], err = h.open(name, box); err != nil {
				return nil, err
			}
		case served(name) && h.getenv(name) != "":
			values[name] = h.getenv(name)
		default:
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.NotFound, "No value is known for %s. Seal one under that name, or set the variable in the "+
			"environment of the company service; names that begin with %s are never taken from there.",
			strings.Join(missing, ", "), ownPrefix).WithReason("SECRET_UNRESOLVED").WithFact("names", strings.Join(missing, ","))
	}
	return values, nil
}

func (h *Handler) open(name string, box []byte) (string, error) {
	if h.box == nil {
		return "", noKey()
	}
	value, err := h.box.Open(name, box)
	switch {
	case errors.Is(err, sealed.ErrOtherKey):
		return "", fault.New(fault.Unavailable, "The secret %s was sealed with another key. Start the company service with that "+
			"one, or put the secret again.", name).WithReason("OTHER_SEALING_KEY")
	case err != nil:
		return "", fault.New(fault.Unavailable, "The secret %s cannot be opened: what is stored is not what was sealed. Put it "+
			"again.", name).WithReason("SECRET_DAMAGED").WithCause(err)
	}
	return value, nil
}

// served reports whether a name may be looked for in the environment: capitals, digits and underscores, and not one of ours.
func served(name string) bool {
	if strings.HasPrefix(name, ownPrefix) {
		return false
	}
	for i, r := range []byte(name) {
		capital := r >= 'A' && r <= 'Z' || r == '_'
		if !capital && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
