// Definitions of others' kinds that the chart has objects of: the Gateway API's and the Prometheus Operator's.
module controlplane.test/crds

go 1.26.0

require (
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.5.1
)
