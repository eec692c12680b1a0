{{- define "eastgate.labels" -}}
app.kubernetes.io/name: eastgate
app.kubernetes.io/part-of: eastgate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "eastgate.selector" -}}
app.kubernetes.io/name: eastgate
app.kubernetes.io/component: controller
{{- end }}

{{- define "eastgate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A generated file of deploy/generate.py, for the namespace of this release. */}}
{{- define "eastgate.generated" -}}
{{- $content := .root.Files.Get (printf "generated/%s" .file) -}}
{{- if not $content -}}
{{- fail (printf "the chart has no generated/%s" .file) -}}
{{- end -}}
{{- $content | replace "eastgate-system" .root.Release.Namespace -}}
{{- end }}

{{- define "eastgate.subject" -}}
- kind: ServiceAccount
  name: eastgate
  namespace: {{ .Release.Namespace }}
{{- end }}
