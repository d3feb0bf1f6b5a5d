{{- define "holdfast.guards.service" -}}
{{- $problems := list -}}
{{- $service := .Values.service -}}
{{- $node_ports := $service.nodePorts -}}
{{- $of_balancers := dict
  "loadBalancerClass" $service.loadBalancerClass
  "loadBalancerSourceRanges" $service.loadBalancerSourceRanges
  "allocateLoadBalancerNodePorts" (not (kindIs "invalid" $service.allocateLoadBalancerNodePorts)) -}}
{{- range $name, $given := $of_balancers -}}
{{- if and $given (ne $service.type "LoadBalancer") -}}
{{- $problems = append $problems (printf "service.%s: is for service.type LoadBalancer, and it is %s; set that, or remove this" $name $service.type) -}}
{{- end -}}
{{- end -}}
{{- $of_nodes := dict
  "nodePorts.api" $node_ports.api
  "nodePorts.admin" $node_ports.admin
  "externalTrafficPolicy" $service.externalTrafficPolicy -}}
{{- range $name, $given := $of_nodes -}}
{{- if and $given (eq $service.type "ClusterIP") -}}
{{- $problems = append $problems (printf "service.%s: is for service.type NodePort or LoadBalancer, and it is ClusterIP; set one of them, or remove this" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $node_ports.admin (not $service.exposeAdmin) -}}
{{- $problems = append $problems "service.nodePorts.admin: the admin port is not on the Service; set service.exposeAdmin=true, or remove this" -}}
{{- end -}}
{{- if and $node_ports.api (eq (int $node_ports.api) (int $node_ports.admin)) -}}
{{- $problems = append $problems (printf "service.nodePorts.admin: is %d, as service.nodePorts.api is; take another one" (int $node_ports.admin)) -}}
{{- end -}}
{{- if and (eq $service.ipFamilyPolicy "SingleStack") (gt (len $service.ipFamilies) 1) -}}
{{- $problems = append $problems "service.ipFamilies: are two, and service.ipFamilyPolicy SingleStack has room for one; set PreferDualStack or RequireDualStack" -}}
{{- end -}}
{{- $takes_ipv6 := or (has "IPv6" $service.ipFamilies) (hasSuffix "DualStack" $service.ipFamilyPolicy) -}}
{{- if and $takes_ipv6 (not (contains ":" .Values.bindAddress)) -}}
{{- $problems = append $problems (printf "bindAddress: %s takes no connections over IPv6, which service.ipFamilyPolicy or service.ipFamilies asks for; set bindAddress=\"::\", which takes both" .Values.bindAddress) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
