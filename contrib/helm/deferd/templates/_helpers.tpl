{{- define "deferd.labels" -}}
app.kubernetes.io/name: deferd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "deferd.selector" -}}
app.kubernetes.io/name: deferd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "deferd.pod" -}}
metadata:
  labels:
    {{- include "deferd.labels" . | nindent 4 }}
spec:
  terminationGracePeriodSeconds: 120
  automountServiceAccountToken: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: deferd
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - name: DEFERD_HTTP_LISTEN
          value: 0.0.0.0:2580
        {{- range $name, $value := .Values.config }}
        - name: DEFERD_{{ $name | upper }}
          value: {{ $value | quote }}
        {{- end }}
        {{- if eq .Values.queue "postgresql" }}
        - name: DEFERD_QUEUE_DATABASE_FILE
          value: /etc/deferd/database/{{ .Values.postgresql.key }}
        {{- end }}
      ports:
        - name: smtp
          containerPort: 2525
        - name: http
          containerPort: 2580
      startupProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 5
        failureThreshold: 12
      livenessProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
      {{- if eq .Values.queue "postgresql" }}
      lifecycle:
        preStop:
          exec:
            command: [/usr/bin/deferd, node, drain]
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: queue
          mountPath: /var/lib/deferd
        - name: tmp
          mountPath: /tmp
        {{- if eq .Values.queue "postgresql" }}
        - name: database
          mountPath: /etc/deferd/database
          readOnly: true
        {{- end }}
        {{- with .Values.secretFiles }}
        - name: secrets
          mountPath: /etc/deferd/secrets
          readOnly: true
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if eq .Values.queue "postgresql" }}
    - name: queue
      emptyDir: {}
    - name: database
      secret:
        secretName: {{ .Values.postgresql.secret }}
        defaultMode: 288
    {{- end }}
    {{- with .Values.secretFiles }}
    - name: secrets
      secret:
        secretName: {{ . }}
        defaultMode: 288
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
