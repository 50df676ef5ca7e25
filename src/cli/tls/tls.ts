/** `deferd tls`: the MTA-STS policies that the queue keeps. */
import { stsPolicies } from '../../queries/records/kept-records.ts'
import { stsPolicyJson, type StsPolicyJson } from '../../resources/records/sts-policy-json.ts'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import { readTlsFiles } from '../../daemon/delivery-secrets.ts'
import { fetchPolicy } from '../../delivery/sts/policy-fetch.ts'
import { policyFrom } from '../../delivery/sts/sts-policies.ts'
import { announcementIn, asciiName, recordName } from '../../delivery/sts/sts-record.ts'
import { instantOf, jsonLine, localTime, maskControls, relative } from '../../presentation/text.ts'
import type { Clock, WallTime } from '../../system/clock.ts'
import { tableHeading, tableRow } from '../render/table.ts'
import type { Display } from '../render/style.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { resourceOf, withSource, type Shell } from '../shell/shell.ts'

interface ShowOptions {
  readonly fetch?: true
  readonly json?: true
}

function domainArgument(given: string): string {
  const domain = asciiName(given)
  if (domain === undefined) throw new CommandError(EX.usage, `${maskControls(JSON.stringify(given))} is not the name of a domain`)
  return domain
}

const keptPolicy = (shell: Shell, config: Config, domain: string) =>
  withSource(shell, config, async (source) => {
    const { policies } = await resourceOf(source, '/sts-policies', stsPolicies)
    return { kept: policies.find((one) => one.domain === domain), clock: source.clock }
  })

/** The policy that the domain publishes now, or why there is none. */
async function publishedPolicy(config: Config, domain: string, clock: Clock): Promise<StsPolicyJson | { readonly reason: string }> {
  const { SystemNet } = await import('../../system/system-net.ts')
  const net = new SystemNet({ dnsServers: config.dns_servers })
  const announced = announcementIn(await net.lookupTxt(recordName(domain)))
  const name = recordName(domain)
  switch (announced.kind) {
    case 'failed':
      return { reason: `the look-up of ${name} failed: ${announced.reason}` }
    case 'invalid':
      return { reason: `the MTA-STS record at ${name} cannot be used: ${announced.reason}` }
    case 'none':
      return { reason: `no MTA-STS record is published at ${name}` }
    case 'id':
      break
  }
  const terms = { ca: readTlsFiles(config).policyHostCa, allowPrivate: config.smtp_allow_private_addresses }
  const now = clock.now()
  const policy = policyFrom(await fetchPolicy(domain, { net, clock, ...terms }), { domain, id: announced.id, usedAt: now, now })
  return 'reason' in policy ? policy : stsPolicyJson(policy, clock.wall)
}

function policyText(policy: StsPolicyJson, clock: Clock): string {
  const { domain, id, mode, mx, fetched_time: fetched, expire_time: expires, used_time: used, failed_time: failed, failure } = policy
  const at = (seconds: number) => `${localTime(instantOf(seconds), clock)} (${relative(instantOf(seconds), clock.wall.now())})`
  const facts = [
    ['id', id],
    ['mx', mx.join(', ')],
    ['fetched', at(fetched)],
    ['expires', at(expires)],
    ['used', at(used)],
    ...(failed === null ? [] : [['last failure', `${at(failed)}: ${failure ?? ''}`]]),
  ]
  return maskLines([`${domain}  ${mode}`, ...facts.map(([name = '', value = '']) => `  ${name.padEnd(14)}${value}`)])
}

const maskLines = (lines: readonly string[]): string => lines.map((line) => `${maskControls(line)}\n`).join('')

async function show(shell: Shell, given: string, { fetch, json }: ShowOptions, command: Command): Promise<void> {
  if (fetch === true && shell.api !== null)
    throw new CommandError(EX.usage, '--fetch asks the domain from this machine, not from that of the relay: leave --host out')
  const { config } = await configOf(shell, command)
  const domain = domainArgument(given)
  const { kept, clock } = await keptPolicy(shell, config, domain)
  const published = fetch === true ? await publishedPolicy(config, domain, clock) : undefined
  if (kept === undefined && published === undefined)
    throw new CommandError(EX.data, `no MTA-STS policy of ${domain} is kept; --fetch shows the one that it publishes`)
  if (json === true) {
    const now = published === undefined ? {} : { published: 'reason' in published ? { failure: published.reason } : published }
    await shell.stdout.write(jsonLine({ ...(kept ?? { domain }), ...now }))
    return
  }
  await shell.stdout.write(kept === undefined ? `No policy of ${domain} is kept.\n` : policyText(kept, clock))
  if (published === undefined) return
  const text = 'reason' in published ? maskLines([published.reason]) : policyText(published, clock)
  await shell.stdout.write(`\npublished now:\n${text}`)
}

const HEADINGS = ['DOMAIN', 'MODE', 'ID', 'EXPIRES', 'MX']

function policyTable(policies: readonly StsPolicyJson[], now: WallTime, display: Display): string {
  if (policies.length === 0) return 'No MTA-STS policies are kept.\n'
  const rows = policies.map(({ domain, mode, id, mx, ...one }) => [
    domain,
    mode,
    id,
    relative(instantOf(one.expire_time), now),
    mx.join(','),
  ])
  const columns = HEADINGS.map((heading, i) => ({ heading, width: Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)) }))
  return [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].map((line) => `${line}\n`).join('')
}

async function list(shell: Shell, { json }: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const { policies } = await resourceOf(source, '/sts-policies', stsPolicies)
    await shell.stdout.write(
      json === true ? policies.map(jsonLine).join('') : policyTable(policies, source.clock.wall.now(), displayOf(shell)),
    )
  })
}

async function forget(shell: Shell, given: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const domain = domainArgument(given)
  const client = await shell.openQueueClient(config)
  try {
    if (!(await client.removeStsPolicy({ domain, who: shell.user })))
      throw new CommandError(EX.data, `no MTA-STS policy of ${domain} is kept; deferd tls list shows all`)
  } finally {
    await client.close()
  }
  await shell.stdout.write(`${domain}: forgotten\n`)
}

export function addTls(program: Command, shell: Shell): void {
  const parent = program.command('tls').description('MTA-STS policies of recipient domains')
  subcommand(parent, 'show', 'print the policy of a domain')
    .argument('<domain>', 'recipient domain')
    .option('--fetch', 'print the policy that the domain publishes now, too; it is not kept')
    .option('--json', 'one JSON object')
    .addHelpText('after', '\nExample:\n  deferd tls show example.com --fetch')
    .action((domain: string, options: ShowOptions, command: Command) => show(shell, domain, options, command))
  subcommand(parent, 'list', 'list the policies that are kept')
    .option('--json', 'one JSON object per policy')
    .action((options: { readonly json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'forget', 'remove a policy, which the next delivery fetches again if the domain announces one')
    .argument('<domain>', 'recipient domain')
    .addHelpText(
      'after',
      `
A domain that has changed its mail exchangers and not its policy gets no mail until the policy expires. Other nodes of a shared queue
follow within a minute. An entry of smtp_tls_policy_maps overrides a policy that is published still.`,
    )
    .action((domain: string, _options: unknown, command: Command) => forget(shell, domain, command))
}
