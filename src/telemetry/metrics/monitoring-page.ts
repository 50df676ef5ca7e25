/** Renders docs/monitoring.md from the events, the members of the JSON log and the help texts of the metrics. */
import { KINDS } from '../events.ts'
import type { MetricText } from './metric-set.ts'

const LOG = `# Monitoring

<!-- Written by scripts/docs.ts from src/telemetry; do not edit. -->

## Log

The log is written to standard error, or to \`log_file\`, which SIGHUP opens again: let logrotate(8) move the file and run
\`systemctl kill --signal=HUP --kill-whom=main deferd\`.

A start, a reload and a stop are lines of \`master\`: \`daemon started -- version …, configuration …\`, \`reload -- version …, configuration
…\`, \`terminating\`, and \`stopped\` when the queue is closed. A start without \`stopped\` before it follows a kill or a crash.

Under systemd the log is in the journal. Its lines of the format \`postfix\` have no time and no host, because the journal adds
them: \`Nov 20 10:00:00 relay deferd[42]: deferd/smtp[42]: …\`. pflogsumm reads them with both names. pflogsumm 1.1.5, of Debian 12, does not
count lines with the \`tls=\` of Postfix 3.11, nor those with \`oauth=\`: leave both out with sed, or \`tls=\` with
\`smtp_log_tls_feature_status = "no"\`:

\`\`\`
journalctl -u deferd --since yesterday | sed -E 's/, (tls|oauth)=[^,]+//g' | pflogsumm --syslog-name='deferd\\[[0-9]+\\]: deferd'
\`\`\`

\`log_format = "postfix"\` (default) writes Postfix’s log lines, so that pflogsumm, log shippers and dashboards for Postfix
read them: \`pflogsumm --syslog-name=deferd\`. Set \`syslog_name = "postfix"\` for tools that accept no other name.

\`log_format = "json"\` writes one JSON object per line. Every record has \`level\` (\`info\`, \`warn\`, \`error\`, \`fatal\`), \`time\`
(ISO 8601, UTC), \`program\`, \`host\`, \`pid\` and \`event\`; the other members depend on the event. Times are in seconds.
Members and events are added, never removed or renamed.

\`log_addresses = "hashed"\` or \`"domain"\` writes no address in either format: [erasure.md](erasure.md#log-and-events).

| event | level | meaning | members |
| --- | --- | --- | --- |
`

const METRICS = `
\`delays\` are the four parts of an attempt, as in Postfix: before the queue manager, in the queue manager, connection setup,
transmission. \`tls\` tells what became of TLS, in the log as \`tls=\`; [tls.md](tls.md) has its values. \`oauth\` is the table \`[oauth.NAME]\` whose access token logs in, in the log as \`oauth=\` before \`dsn=\`. \`outcome\` is \`delivered\`, \`deferred\`, \`bounced\` or \`expired\`.

## Metrics

With \`http_listen\` set, \`/metrics\` serves Prometheus’ text format. \`contrib/\` has alerts and a dashboard for these metrics:

| metric | type | meaning | labels |
| --- | --- | --- | --- |
`

const HEALTH = `
The metrics of prom-client for Node processes are served too: \`nodejs_eventloop_lag_seconds\`,
\`process_resident_memory_bytes\` and others.

## Health

With \`http_listen\` set, \`/healthz\` answers 200 while the store commits, its reader and its writer answer, there is disk space for new
mail, and the scheduler runs, otherwise 503; the JSON object in the response has \`ok\` or the reason for each of these (\`store\`,
\`reader\`, \`writer\`, \`space\`, \`scheduler\`, and on a shared queue \`node\` and \`standby\`). \`deferd check\` checks configuration,
certificates, secrets, the queue and DNS once.

| probe | 200 means | for |
| --- | --- | --- |
| \`/livez\` | the process runs and its event loop answers; nothing else is examined | liveness probes, which restart a process: a database that is away is no reason |
| \`/readyz\` | this relay accepts mail now: the store commits, there is space, the node is not drained, and has reached the database | readiness probes and balancers; 503 has the reasons |
| \`/healthz\` | all parts work, deliveries and searches too | people and alerts |

A check of the store costs a commit; its result is served for a second, so that many clients cost no more than one. A node that is drained is
not ready at once.

The event loop, which accepts and delivers, is watched by systemd: the unit has \`WatchdogSec=60s\`, and a timer of the event loop sends the
notifications, so that systemd restarts a daemon whose event loop stands still for a minute. Elsewhere, let the supervisor ask \`/livez\`.

The reader and the writer of the store are two threads beside it, on PostgreSQL two sessions. One that has a call and answers none for
10 s, as on a disk that hangs, is reported: by \`/healthz\`, by \`deferd_store_silence_seconds\`, and by a line of the log at the begin and another
one when it answers again. Without the reader, the API, the page and operations wait, while mail is accepted and delivered; without the writer, no
mail is. A PostgreSQL that cannot be reached is also reported as \`store\` and \`node\`, within seconds.

SIGTERM ends the daemon within 10 s even then: after 8.5 s a side that does not answer is ended. What was acknowledged is in the queue; mail
in transfer may be delivered again. The log names the side, has no \`stopped\`, and the exit code is 70; when a system call of the thread does not
return, the process ends itself by SIGKILL.
`

const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(' ')

const row = (...cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`

/** Returns Markdown. `metrics` are the registry's help texts. */
export function monitoringPage(metrics: readonly MetricText[]): string {
  const events = Object.entries(KINDS).map(([event, kind]) =>
    kind.record === null ? '' : row(code([event]), kind.level, kind.about, code(Object.keys(kind.record))),
  )
  const rows = metrics.map(({ name, type, help, labels }) => row(code([name]), type, help.replace(/\.$/, ''), code(labels)))
  return [LOG, ...events, METRICS, ...rows, HEALTH].join('')
}
