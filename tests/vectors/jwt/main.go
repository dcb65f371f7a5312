// Makes the tokens of chain.json with the jwt library that nsc is built on: `go run . > chain.json` in a module that requires
// github.com/nats-io/jwt/v2 v2.7.4 and github.com/nats-io/nkeys v0.4.11.
package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	operator, signer := must(nkeys.CreateOperator()), must(nkeys.CreateOperator())
	system, account, scoped := must(nkeys.CreateAccount()), must(nkeys.CreateAccount()), must(nkeys.CreateAccount())
	plain, limited, bearer := must(nkeys.CreateUser()), must(nkeys.CreateUser()), must(nkeys.CreateUser())
	pub := func(key nkeys.KeyPair) string { return must(key.PublicKey()) }

	o := jwt.NewOperatorClaims(pub(operator))
	o.Name, o.SystemAccount = "acme", pub(system)
	o.SigningKeys.Add(pub(signer))
	s := jwt.NewAccountClaims(pub(system))
	s.Name = "SYS"
	a := jwt.NewAccountClaims(pub(account))
	a.Name = "orders"
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 1 << 20, MemoryStorage: -1, Streams: 5, Consumer: -1}
	a.Mappings = jwt.Mapping{"old.*": {{Subject: "new.{{wildcard(1)}}", Weight: 100}}}
	a.Exports.Add(&jwt.Export{Subject: "events.>", Type: jwt.Stream, Name: "events"})
	scope := jwt.NewUserScope()
	scope.Key, scope.Role = pub(scoped), "reader"
	scope.Template.Sub.Allow.Add("orders.{{name()}}.>", "_INBOX.>")
	scope.Template.Pub.Deny.Add(">")
	a.SigningKeys.AddScopedSigner(scope)
	u := jwt.NewUserClaims(pub(plain))
	u.Name = "ann"
	u.Pub.Allow.Add("orders.>", "$JS.API.>", "old.>", "new.>")
	u.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	l := jwt.NewUserClaims(pub(limited))
	l.Name, l.IssuerAccount = "bob", pub(account)
	l.SetScoped(true)
	b := jwt.NewUserClaims(pub(bearer))
	b.Name, b.BearerToken = "eve", true

	user := must(u.Encode(account))
	tokens := map[string]any{
		"operator":  must(o.Encode(operator)),
		"accounts":  map[string]string{pub(system): must(s.Encode(operator)), pub(account): must(a.Encode(signer))},
		"account":   pub(account),
		"creds":     string(must(jwt.FormatUserConfig(user, must(plain.Seed())))),
		"scoped":    string(must(jwt.FormatUserConfig(must(l.Encode(scoped)), must(limited.Seed())))),
		"bearer":    must(b.Encode(account)),
		"decorated": string(must(jwt.DecorateJWT(must(o.Encode(operator))))),
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(tokens); err != nil {
		panic(err)
	}
}
