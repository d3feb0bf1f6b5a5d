{{- define "holdfast.guards.replicas" -}}
{{- $problems := list -}}
{{- $autoscaling := .Values.autoscaling -}}
{{- $shared := has .Values.store.type (list "redis" "valkey") -}}
{{- $replicas := int (ternary $autoscaling.minReplicas .Values.replicaCount $autoscaling.enabled) -}}
{{- if and (not $autoscaling.enabled) (gt $replicas 1) (not $shared) -}}
{{- $problems = append $problems (printf "replicaCount: is %d, and store.type %s is for one replica; set store.type to redis or valkey, so that one can go on with what another began" $replicas .Values.store.type) -}}
{{- end -}}
{{- if $autoscaling.enabled -}}
{{- if not $shared -}}
{{- $problems = append $problems (printf "autoscaling.enabled: store.type %s is for one replica; set store.type to redis or valkey" .Values.store.type) -}}
{{- end -}}
{{- if gt $replicas (int $autoscaling.maxReplicas) -}}
{{- $problems = append $problems (printf "autoscaling.minReplicas: %d is more than autoscaling.maxReplicas, %d" $replicas (int $autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if not (or (int $autoscaling.targetActiveRuns) (int $autoscaling.targetCPUUtilizationPercentage)) -}}
{{- $problems = append $problems "autoscaling: targetActiveRuns and targetCPUUtilizationPercentage are both 0; set one of them" -}}
{{- end -}}
{{- if and (int $autoscaling.targetCPUUtilizationPercentage) (not (dig "requests" "cpu" "" .Values.resources)) -}}
{{- $problems = append $problems "autoscaling.targetCPUUtilizationPercentage: is a share of resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- end -}}
{{- $problems = concat $problems (include "holdfast.guards.keda" $autoscaling | fromJsonArray) -}}
{{- $problems = concat $problems (include "holdfast.guards.disruption" (dict "budget" .Values.podDisruptionBudget "replicas" $replicas) | fromJsonArray) -}}
{{- if and (ne .Values.store.type "file") .Values.store.file.persistence.enabled -}}
{{- $problems = append $problems (printf "store.file.persistence: is not used, because store.type is %s" .Values.store.type) -}}
{{- end -}}
{{- if and .Values.store.file.persistence.existingClaim (not .Values.store.file.persistence.enabled) -}}
{{- $problems = append $problems "store.file.persistence.existingClaim: is not used; set store.file.persistence.enabled=true" -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{/* With the values of `autoscaling`. */}}
{{- define "holdfast.guards.keda" -}}
{{- $problems := list -}}
{{- if .keda.enabled -}}
{{- if not .enabled -}}
{{- $problems = append $problems "autoscaling.keda.enabled: is not used; set autoscaling.enabled=true" -}}
{{- end -}}
{{- if not .keda.serverAddress -}}
{{- $problems = append $problems "autoscaling.keda.serverAddress: is empty; name Prometheus, like autoscaling.keda.serverAddress=http://prometheus.monitoring:9090" -}}
{{- end -}}
{{- if not (int .targetActiveRuns) -}}
{{- $problems = append $problems "autoscaling.targetActiveRuns: is 0, and autoscaling.keda scales by it; set the streams of one replica" -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{/* (dict "budget" … "replicas" …): a node could never be drained. */}}
{{- define "holdfast.guards.disruption" -}}
{{- $problems := list -}}
{{- $budget := .budget -}}
{{- if $budget.enabled -}}
{{- $least := $budget.minAvailable -}}
{{- $most := $budget.maxUnavailable -}}
{{- if not (or (kindIs "invalid" $least) (kindIs "invalid" $most)) -}}
{{- $problems = append $problems "podDisruptionBudget: has both minAvailable and maxUnavailable; keep one of them" -}}
{{- end -}}
{{- if not (kindIs "invalid" $most) -}}
{{- if has (toString $most) (list "0" "0%") -}}
{{- $problems = append $problems (printf "podDisruptionBudget.maxUnavailable: %v lets nothing be evicted, so that no node can be drained; set 1" $most) -}}
{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $least) -}}
{{- $blocks := false -}}
{{- if kindIs "string" $least -}}
{{/* A share is rounded up to whole pods. */}}
{{- $pods := divf (mulf (trimSuffix "%" $least | float64) .replicas) 100 | ceil -}}
{{- $blocks = ge (int $pods) (int .replicas) -}}
{{- else -}}
{{- $blocks = ge (int $least) (int .replicas) -}}
{{- end -}}
{{- if $blocks -}}
{{- $problems = append $problems (printf "podDisruptionBudget.minAvailable: %v of %d replicas lets nothing be evicted, so that no node can be drained; set maxUnavailable=1 instead" $least (int .replicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
