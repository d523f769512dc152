// Package handlers tests the locks of hasphttp and haspgrpc in servers of net/http, chi,
// gin, echo and gRPC, on a real store. It holds nothing but tests.
package handlers
