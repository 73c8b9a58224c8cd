package authorize

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// exchangeTime bounds one request to an issuer or for metadata.
const exchangeTime = 15 * time.Second

// reach is how far inwards an address lies.
type reach int

const (
	public reach = iota
	private
	loopback
)

// outbound makes the client for what a server names. It follows the server inwards and no further: one on the public network
// cannot name an address of a private one, and nobody can name the addresses at which clouds hand out credentials.
func (a *Authorizer) outbound(server *url.URL) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return err
		}
		return allowed(ip, reachOf(ctx, server.Hostname()))
	}}
	return &http.Client{
		Timeout: exchangeTime,
		Transport: &http.Transport{
			Proxy:       nil, // the environment of this process is nobody else's business
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			DisableKeepAlives: true, ForceAttemptHTTP2: true, // a handful of requests an hour
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			const most = 3
			switch {
			case via[0].Method != http.MethodGet:
				return errors.New("it redirects a request with credentials, which is not followed")
			case len(via) > most:
				return fmt.Errorf("it redirects more than %d times", most)
			case !secure(r.URL):
				return errors.New("it redirects to an address that is not https")
			}
			return nil
		},
	}
}

// reachOf answers the innermost of a host's addresses. It is the operator's own word, so a name that does not resolve is as good as
// a public one.
func reachOf(ctx context.Context, host string) reach {
	if ip, err := netip.ParseAddr(host); err == nil {
		return innermost(ip)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return public
	}
	return innermost(ips...)
}

func innermost(ips ...netip.Addr) reach {
	found := public
	for _, ip := range ips {
		switch ip = ip.Unmap(); {
		case ip.IsLoopback():
			found = max(found, loopback)
		case inside(ip):
			found = max(found, private)
		}
	}
	return found
}

// inside reports whether an address is of a private network, the shared space of carriers (RFC 6598) included.
func inside(ip netip.Addr) bool {
	return ip.IsPrivate() || netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10).Contains(ip)
}

func allowed(ip netip.Addr, limit reach) error {
	ip = ip.Unmap()
	switch {
	case !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast():
		return errors.New("it leads to an address that is nobody's to name")
	case innermost(ip) > limit:
		return errors.New("it leads into a network that its server is not in")
	}
	return nil
}

// secure reports whether nobody on the way reads what is sent to an address: https, or one that is on this machine.
func secure(u *url.URL) bool {
	switch u.Scheme {
	case "https":
		return true
	case "http":
		return onLoopback(u)
	default:
		return false
	}
}

func onLoopback(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
