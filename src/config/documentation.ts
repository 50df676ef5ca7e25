/** Renders docs/configuration.md from the option table. */
import { DEPRECATIONS, deprecationText } from './values/option.ts'
import { GRANTS_OF, membersOf, OAUTH_MEMBERS } from './values/tables/oauth-members.ts'
import { PROVIDERS } from './values/tables/oauth-table.ts'
import { CHANGED_BY_RESTART } from './fixed-parameters.ts'
import { OPTIONS } from './options.ts'
import { QUOTA_MEMBERS } from './values/tables/quota-table.ts'
import { ACTION_MEMBERS, SCHEDULE_MEMBERS } from './values/tables/schedule-table.ts'
import type { TimeUnit } from './values/values.ts'

const UNIT_NAMES: Readonly<Record<TimeUnit, string>> = { s: 'seconds', h: 'hours', d: 'days' }

const unitOf = ({ unit }: { readonly unit?: TimeUnit }): string => (unit === undefined ? '' : ` Unit: ${UNIT_NAMES[unit]}.`)

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const memberRows = Object.entries(OAUTH_MEMBERS)
  .map(([name, { about }]) => `| \`${name}\` | ${cell(about)} |`)
  .join('\n')

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')

const grantRows = PROVIDERS.flatMap((provider) =>
  GRANTS_OF[provider].map((grant) => {
    const { required, optional } = membersOf(provider, grant)
    return `| ${provider} | ${provider === 'command' ? '' : grant} | ${listed(required)} | ${listed(optional)} |`
  }),
).join('\n')

const INTRODUCTION = `# Configuration

<!-- Written by scripts/docs.ts from src/config/options.ts; do not edit. -->

deferd runs without configuration. The configuration file is TOML; the first of these is read: \`--config FILE\`,
\`$DEFERD_CONFIG\`, \`./deferd.toml\` (not by root: \`deferd start\`, \`check\` and \`config\` then name it;
nor by commands under Postfix’s names), \`/etc/deferd/deferd.toml\`. The environment (\`DEFERD_MYHOSTNAME=relay.example.com\`) overrides the file, the command line
(\`-o myhostname=relay.example.com\`) overrides both. \`DEFERD_NAME_FILE\` names a file with the value of \`DEFERD_NAME\`, for secrets that a container gets as files:
\`DEFERD_QUEUE_DATABASE_FILE=/run/secrets/queue\`. Line breaks at its end are left out, a reload reads it again, and both variables together are refused (78). \`DEFERD_NATIVE_DIR\` ([operations.md](operations.md#as-one-file)), \`DEFERD_REQUIRE_VOLUME\` ([operations.md](operations.md#as-a-container)) and variables that begin with \`DEFERD_TEST_\` are not parameters.

- Names are Postfix’s (postconf(5)) wherever Postfix has the parameter.
- Times are \`"300s"\`, \`"5m"\`, \`"1.5h"\`, \`"1h30m"\`, \`"2d"\`, or a number in the unit that the table gives. Sizes are bytes, or \`"10M"\`.
- Lists are TOML lists, or a text separated by commas or blanks.
- \`$name\` in a text is the value of another parameter, \`$$\` a dollar sign.
- All problems are reported at once, with file and line and in their order; no value falls back silently. A parameter or lookup
  table (\`hash:\`) that only Postfix has is answered with what to write instead.
- \`deferd check\` takes the steps of \`deferd start\` up to the opening of the queue and of the ports: files, certificates, keys,
  folder rights. Both report the same sentences with the same exit code.
- \`deferd config\` prints the effective values, \`deferd config -n\` those that differ from the defaults.
- A running daemon reads its configuration again on SIGHUP and at \`deferd reload\`, with listeners, certificates, keys and log; with problems, or when a
  port cannot be opened, the old one stays in effect. These change at a restart: ${listed(CHANGED_BY_RESTART)};
  so does a listener whose new address overlaps the old one (\`127.0.0.1:25\` to \`*:25\`).

`

const TABLES = `## Tables

\`\`\`toml
# recipient domain, .parent or * → transport:nexthop, as in Postfix; or one text: texthash:/path, regexp:/path, pcre:/path
[transport_maps]
"example.com" = "smtp:[127.0.0.1]:2526" # [host] for no MX lookup
".example.com" = "lmtp:unix:/run/lmtp.sock"
"old.example" = "error:5.1.2 this domain is closed"
"null.example" = "discard:"

# lookup table for addresses (docs/rewriting.md); or one text: inline:{key=value}, texthash:/path, regexp:/path, pcre:/path, static:value
[canonical_maps]
"ann@example.com" = "ann.example@example.com"

# sender, @domain or <> → relayhost of its mail; DUNNO for that of all mail
[sender_dependent_relayhost_maps]
"@customer.example" = "[smtp.customer.example]:587"

# source of access tokens for smtp_sasl_oauth and logins "user:oauth=m365" (docs/configuration.md#access-tokens)
[oauth.m365]
provider = "microsoft" # or google, other, command
tenant = "contoso.example"
grant = "client_credentials" # or refresh_token, service_account
client_id = "00000000-0000-0000-0000-000000000000"
client_secret_file = "/etc/deferd/m365.secret"

# work at times of the calendar: backup, report, suspend, resume, flush, check domain (docs/schedules.md)
[schedule.nightly-backup]
at = "30 2 * * *" # minute, hour, day of month, month, day of week; a sixth field before them has seconds
zone = "Europe/Berlin" # default: UTC
do = "backup"
to = "/var/backups/deferd-{date}.db"
keep = 14

# messages and recipients of each login, token, sender, sender domain or client in a span of time (docs/quotas.md)
[quota.app]
keys = "login" # or token, sender, sender_domain, client
limits = ["1000/1h", "20000 recipients/1d"]
match = ["*@example.com"] # default: all
action = "refuse" # or hold: accept, and hold the mail until there is room

# listener beside those of smtpd_listen: parameters that differ there
[[smtpd]]
address = "0.0.0.0:587"
tls = "encrypt" # or none (default), may, wrapper (TLS from the first byte)
auth = "required" # or none (default), may
upstream_proxy_protocol = "haproxy" # default: none
class = "fast" # class of its mail; default: that of the lookup tables
smtpd_client_restrictions = ["permit_sasl_authenticated", "reject"]

# recipient domain, .parent or next hop: parameters that differ there
[destination."gmail.com"]
destination_concurrency_limit = 5 # names lose default_
minimal_backoff_time = "60s"

# group of destinations by their mail exchangers: limits that they share, and parameters of each (docs/providers.md)
[provider.google]
mx = [".google.com", ".googlemail.com"]
provider_concurrency_limit = 5

# class of mail: its part of the deliveries, and parameters of its mail (docs/classes.md)
[class.fast]
weight = 100 # relative to the weights of the other classes, 1 to 1000
reserve = "5%" # part of the places that classes of less weight leave free; default: none
allow = ["app", "token:shop", "10.0.0.0/24"] # clients that may ask for it; default: none
priority = 4 # value of MT-PRIORITY (RFC 6710) that stands for it, -9 to 9; default: none
maximal_queue_lifetime = "1h" # also maximal_delivery_attempts, minimal_ and maximal_backoff_time, delay_warning_time

# From domain or .parent: keys that sign its mail (docs/dkim.md)
[dkim."example.com"]
keys = ["r2026a:/etc/deferd/dkim/example.com.r2026a.pem", "e2026a:/etc/deferd/dkim/example.com.e2026a.pem"]
expire = "0" # time after which signatures are invalid; 0 for none

# events for programs, kept in the queue until each subscription has had them (docs/admin-http.md)
[events.app]
to = "https://app.example.com/mail-events" # or file:/path, stdout; empty: read through the admin API only
types = ["recipient.*", "message.removed"] # default: all
destinations = [] # patterns; empty for all
senders = [] # patterns; empty for all
secret = "whsec_…" # signs the events; a list while it is changed, the newest first
allow_private = false # true: private addresses, and http://
format = "deferd" # or cloudevents
batch = 1 # events in one request
size = 0 # bytes of a file after which a new one is begun; 0 for no limit
keep = 5 # old files that are kept
\`\`\`

The heading of a \`[destination."…"]\` table is one of these, in lower or upper case:

- a recipient domain, \`example.com\`, or the parent of domains, \`.example.com\`. The table of the domain itself comes before those of its parents, and the
  longest parent before the others; the tables are not added up. Domains that are not ASCII are written with A-labels (\`xn--…\`).
- a next hop, as the route has it: \`example.net\`, \`example.net:587\`, \`[relay.example.net]:587\`, \`[192.0.2.25]:2525\`, \`unix:/run/lmtp.sock\`, or a list with
  commas; \`[relay.example.net]\` alone stands for the default port of the transport.
- the name that \`deferd destination list\` shows, with the transport: \`smtp:[relay.example.net]:587\`, \`lmtp:[192.0.2.25]:24\`. Its table comes before that of the
  next hop alone.

Any other heading is refused. \`deferd check\` and the log of a start name a table of a next hop to which no route leads; where routes are in files, they
cannot tell.

A \`[[smtpd]]\` table may have each parameter that is marked ◆ below, under its full name, as \`-o\` of a service in Postfix’s master.cf; for this listener it
takes the place of the parameter of the relay. Only TLS, AUTH and the PROXY protocol are not taken over from the relay: \`tls\`, \`auth\` and
\`upstream_proxy_protocol\` are other names of \`smtpd_tls_security_level\`, \`smtpd_sasl_auth_enable\` and \`smtpd_upstream_proxy_protocol\`, with more values. What is
counted or shared over all listeners is refused in a table: \`smtpd_process_limit\`, the limits of clients, users and senders, \`smtpd_sasl_users_file\`,
\`smtpd_policy_service_timeout\` and \`smtpd_restriction_classes\`.

`

const ACCESS_TOKENS = `## Access tokens

A next hop that wants OAuth 2 (RFC 6749) instead of a password gets access tokens by an \`[oauth.NAME]\` table. A login of \`smtp_sasl_password_maps\` uses it
when its password is empty (\`[smtp.office365.com]:587 relay@contoso.example:\`) and \`smtp_sasl_oauth\` names the table, or when it names the table itself
(\`relay@contoso.example:oauth=m365\`). Guides: [Microsoft 365](microsoft-365.md), [Google](google.md).

| member | |
| --- | --- |
${memberRows}

| provider | grant | must have | may have |
| --- | --- | --- | --- |
${grantRows}

With \`client_credentials\` a table has exactly one of \`client_secret_file\`, \`client_certificate_file\` and the variable
\`DEFERD_OAUTH_NAME_CLIENT_SECRET\` (name in upper case, hyphens as underscores); with \`refresh_token\` at most one. With \`provider = "microsoft"\` a table
has \`tenant\`, or the \`token_url\` of another cloud. Secrets are read from their files at the start and on SIGHUP; a file that others than its owner can read is
reported. A new secret is used at the next request, and tables that are as before keep their tokens. \`smtp_sasl_oauth_token_command\` stands for the table
\`[oauth.command]\` with \`provider = "command"\`.

\`deferd oauth test NAME\` requests a token, logs in with it and names what is missing; \`deferd oauth login NAME\` writes the \`refresh_token_file\` of a table
with a \`device_url\`; \`deferd oauth list\` has the tables with their uses and tokens ([commands](commands.md#deferd-oauth-list)). A table that no login uses is reported.

`

const scheduleRows = Object.entries(SCHEDULE_MEMBERS)
  .map(([name, about]) => `| \`${name}\` | ${cell(about)} |`)
  .join('\n')

const workRows = Object.entries(ACTION_MEMBERS)
  .map(([name, members]: readonly [string, readonly string[]]) => {
    const [optional, required] = [true, false].map((isOptional) => members.filter((one) => one.endsWith('?') === isOptional))
    return `| \`${name}\` | ${listed(required ?? [])} | ${listed((optional ?? []).map((one) => one.replace('?', '')))} |`
  })
  .join('\n')

const quotaRows = Object.entries(QUOTA_MEMBERS)
  .map(([name, about]) => `| \`${name}\` | ${cell(about)} |`)
  .join('\n')

const QUOTAS = `## Quotas

Each \`[quota.NAME]\` table limits the mail of a key in spans of time ([quotas](quotas.md)).

| member | |
| --- | --- |
${quotaRows}

`

const SCHEDULES = `## Schedules

Each \`[schedule.NAME]\` table is work at times of the calendar ([schedules](schedules.md)).

| member | |
| --- | --- |
${scheduleRows}

| \`do\` | must have | may have |
| --- | --- | --- |
${workRows}

`

const PARAMETERS = `## Parameters

Those marked ● are also allowed in a \`[destination."…"]\` or \`[provider.NAME]\` table, there without \`default_\`.
Those marked ◆ are also allowed in a \`[[smtpd]]\` table.

| parameter | default | |
| --- | --- | --- |
`

/** The end of the row of a deprecated parameter. */
const deprecated = (name: string, deprecations: typeof DEPRECATIONS): string => {
  const found = deprecations[name]
  return found === undefined ? '' : ` _${deprecationText(found).replace('d', 'D')}._`
}

export function configurationPage(deprecations = DEPRECATIONS): string {
  const rows = Object.entries(OPTIONS).map(([name, option]) => {
    const value = option.default === '' ? '' : `\`${cell(option.default)}\``
    return `| \`${name}\` | ${value} | ${option.perDestination ? '● ' : 'perListener' in option ? '◆ ' : ''}${cell(option.about)}${unitOf(option.kind)}${deprecated(name, deprecations)} |`
  })
  return `${INTRODUCTION}${TABLES}${ACCESS_TOKENS}${SCHEDULES}${QUOTAS}${PARAMETERS}${rows.join('\n')}\n`
}
