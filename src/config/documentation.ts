/**
 * docs/configuration.md, out of the option table: what is documented is what there is.
 */
import { OPTIONS } from './options.ts'

const INTRODUCTION = `# Configuration

<!-- Written by scripts/docs.ts out of src/config/options.ts; do not edit. -->

deferd needs no configuration. What it has is TOML, looked for in this order: \`--config FILE\`, \`$DEFERD_CONFIG\`,
\`./deferd.toml\` (not for root, nor for commands under Postfix’s names), \`/etc/deferd/deferd.toml\`. Single parameters
are overridden in the environment (\`DEFERD_MYHOSTNAME=relay.example.com\`) and, above all, on the command line
(\`-o myhostname=relay.example.com\`).

- Names are those of Postfix’s main.cf wherever Postfix has the parameter.
- Times are \`"300s"\`, \`"5m"\`, \`"1.5h"\`, \`"2d"\`, or a number of seconds. Sizes are bytes, or \`"10M"\`.
- Lists are TOML lists, or a text with commas or blanks.
- \`$name\` in a text stands for the value of another parameter, \`$$\` for a dollar sign.
- All problems are told at once, with file and line; nothing falls back silently. \`deferd check\` looks further.
- \`deferd config\` prints what holds, \`deferd config -n\` what differs from the defaults.
- SIGHUP makes a running daemon read its configuration again; when that has problems, the old one stays.

## Tables

\`\`\`toml
# recipient domain, .parent or * → transport:nexthop, as in Postfix
[transport_maps]
"example.com" = "smtp:[127.0.0.1]:2526" # [host] for no MX lookup
".example.com" = "lmtp:unix:/run/lmtp.sock"
"old.example" = "error:5.1.2 this domain is closed"
"null.example" = "discard:"

# domain, .parent or next hop: what differs there
[destination."gmail.com"]
destination_concurrency_limit = 5 # names lose default_
minimal_backoff_time = "60s"
\`\`\`

## Parameters

Those marked ● may stand in a \`[destination."…"]\` table, there without \`default_\`.

| parameter | default | |
| --- | --- | --- |
`

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

export function configurationPage(): string {
  const rows = Object.entries(OPTIONS).map(([name, option]) => {
    const value = option.default === '' ? '' : `\`${cell(option.default)}\``
    return `| \`${name}\` | ${value} | ${option.perDestination ? '● ' : ''}${cell(option.about)} |`
  })
  return `${INTRODUCTION}${rows.join('\n')}\n`
}
