// Package haspgrpc runs gRPC methods under a lock of hasp.
//
//	key, err := haspgrpc.Fields[*shop.PayRequest]("order:{order.id}")
//	locks, err := haspgrpc.New(client, map[string]haspgrpc.Key{"/shop.Orders/Pay": key}, nil)
//	server := grpc.NewServer(grpc.UnaryInterceptor(locks.Unary), grpc.StreamInterceptor(locks.Stream))
//	shop.RegisterOrdersServer(server, orders)
//	err = locks.Check(server) // a method that is misspelt would not be locked
//
// The handler's context carries the lease: [hasp.FromContext] answers it, and with it the
// fencing token. The context ends when the lease is lost. Of a method that is no key's
// nothing is changed. The key of a stream comes from the first message of its client.
//
// Unlike the locks of package hasp a call does not wait unless [Options].Wait says so. A
// client that goes away while its call waits takes it out of the line.
//
// # Codes
//
//	Aborted          somebody else has the lock, with a RetryInfo where it is known when
//	                 that expires; or the lease was lost before the answer
//	InvalidArgument  a value for the key is missing or cannot stand in a key
//	Unavailable      the store is unreachable or refuses, or the client is closed
//	Internal         the lock cannot be right, such as one that would wait for itself
package haspgrpc
