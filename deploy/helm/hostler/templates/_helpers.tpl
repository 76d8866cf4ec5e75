{{- define "hostler.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The agents' image: their own where it is named, else everybody's. */}}
{{- define "hostler.agentImage" -}}
{{- $own := .Values.agent.image -}}
{{- printf "%s:%s" ($own.repository | default .Values.image.repository) ($own.tag | default .Values.image.tag) -}}
{{- end -}}

{{- define "hostler.image" -}}
{{- printf "%s:%s" .Values.image.repository .Values.image.tag -}}
{{- end -}}

{{/* Labels of every object; the argument is a list of the root and the component. */}}
{{- define "hostler.labels" -}}
{{- $root := index . 0 -}}
{{ include "hostler.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- define "hostler.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: hostler
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "hostler.scheme" -}}
{{- ternary "https" "http" (ne .Values.controller.tls.existingSecret "") -}}
{{- end -}}

{{/* The clusters and Slurm clusters whose access comes from a Secret: folder, Secret and key of each. */}}
{{- define "hostler.access" -}}
{{- $found := list -}}
{{- with .Values.controller.bmcSecret }}{{ $found = append $found (dict "volume" "bmc" "secret" . "key" "bmc.json" "to" "bmc.json") }}{{ end -}}
{{- with .Values.controller.secretPlaces }}{{ $found = append $found (dict "volume" "places" "secret" . "key" "secrets.json" "to" "secrets.json") }}{{ end -}}
{{- range $i, $one := .Values.controller.clusters }}{{ $found = append $found (dict "volume" (printf "cluster-%d" $i) "secret" $one.existingSecret "key" (default "kubeconfig" $one.key) "to" (printf "%s.kubeconfig" $one.name)) }}{{ end -}}
{{- range $i, $one := .Values.controller.slurm }}{{ if $one.existingSecret }}{{ $found = append $found (dict "volume" (printf "slurm-%d" $i) "secret" $one.existingSecret "key" (default "slurm.yaml" $one.key) "to" (printf "%s.slurm.yaml" $one.name)) }}{{ end }}{{ end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Where agents find the controllers; an agent alone has to be told. */}}
{{- define "hostler.server" -}}
{{- if .Values.agent.server -}}
{{- .Values.agent.server -}}
{{- else -}}
{{- printf "%s://%s.%s.svc:%v" (include "hostler.scheme" .) (include "hostler.name" .) .Release.Namespace .Values.controller.service.port -}}
{{- end -}}
{{- end -}}

{{/* Names that requests may be sent to, once one from outside is given; without one no name is checked. */}}
{{- define "hostler.called" -}}
{{- $c := .Values.controller -}}
{{- $outside := concat $c.hostNames (ternary .Values.ingress.hosts list .Values.ingress.enabled) (ternary .Values.gateway.hosts list .Values.gateway.enabled) -}}
{{- $found := list -}}
{{- if $outside -}}
{{- $service := printf "%s.%s" (include "hostler.name" .) .Release.Namespace -}}
{{- $found = concat $outside (list (include "hostler.name" .) $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) "$(POD_IP)") -}}
{{- if .Values.agent.server }}{{ range splitList "," .Values.agent.server }}{{ $found = append $found (get (urlParse .) "hostname") }}{{ end }}{{ end -}}
{{- end -}}
{{- uniq $found | toJson -}}
{{- end -}}
