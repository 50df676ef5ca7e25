/** `deferd tls`: the MTA-STS policies that the queue keeps. */
import { stsPolicyJson } from '../../resources/sts-policy-json.ts'
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import { readTlsFiles } from '../../daemon/delivery-secrets.ts'
import { fetchPolicy } from '../../delivery/sts/policy-fetch.ts'
import { policyFrom } from '../../delivery/sts/sts-policies.ts'
import { announcementIn, asciiName, recordName } from '../../delivery/sts/sts-record.ts'
import { jsonLine, localTime, maskControls, relative } from '../../presentation/text.ts'
import type { StsPolicy } from '../../store/records/sts-policy.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import { tableHeading, tableRow } from '../render/table.ts'
import type { Display } from '../render/style.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withReader, type Shell } from '../shell/shell.ts'

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
  withReader(shell, config, async ({ reader, clock }) => ({ kept: await reader.records.stsPolicies.of(domain), clock }))

/** The policy that the domain publishes now, or why there is none. */
async function publishedPolicy(config: Config, domain: string, clock: Clock): Promise<StsPolicy | { readonly reason: string }> {
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
  return policyFrom(await fetchPolicy(domain, { net, clock, ...terms }), { domain, id: announced.id, usedAt: now, now })
}

function policyText(policy: StsPolicy, clock: Clock): string {
  const { domain, id, mode, mx, fetchedAt, expiresAt, usedAt, failedAt, failure } = policy
  const at = (instant: QueueTime) => `${localTime(clock.wall.of(instant), clock)} (${relative(instant, clock.now())})`
  const facts = [
    ['id', id],
    ['mx', mx.join(', ')],
    ['fetched', at(fetchedAt)],
    ['expires', at(expiresAt)],
    ['used', at(usedAt)],
    ...(failedAt === null ? [] : [['last failure', `${at(failedAt)}: ${failure ?? ''}`]]),
  ]
  return maskLines([`${domain}  ${mode}`, ...facts.map(([name = '', value = '']) => `  ${name.padEnd(14)}${value}`)])
}

const maskLines = (lines: readonly string[]): string => lines.map((line) => `${maskControls(line)}\n`).join('')

async function show(shell: Shell, given: string, { fetch, json }: ShowOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const domain = domainArgument(given)
  const { kept, clock } = await keptPolicy(shell, config, domain)
  const published = fetch === true ? await publishedPolicy(config, domain, clock) : undefined
  if (kept === undefined && published === undefined)
    throw new CommandError(EX.data, `no MTA-STS policy of ${domain} is kept; --fetch shows the one that it publishes`)
  if (json === true) {
    const now =
      published === undefined
        ? {}
        : { published: 'reason' in published ? { failure: published.reason } : stsPolicyJson(published, clock.wall) }
    await shell.stdout.write(jsonLine({ ...(kept === undefined ? { domain } : stsPolicyJson(kept, clock.wall)), ...now }))
    return
  }
  await shell.stdout.write(kept === undefined ? `No policy of ${domain} is kept.\n` : policyText(kept, clock))
  if (published === undefined) return
  const text = 'reason' in published ? maskLines([published.reason]) : policyText(published, clock)
  await shell.stdout.write(`\npublished now:\n${text}`)
}

const HEADINGS = ['DOMAIN', 'MODE', 'ID', 'EXPIRES', 'MX']

function policyTable(policies: readonly StsPolicy[], now: QueueTime, display: Display): string {
  if (policies.length === 0) return 'No MTA-STS policies are kept.\n'
  const rows = policies.map(({ domain, mode, id, expiresAt, mx }) => [domain, mode, id, relative(expiresAt, now), mx.join(',')])
  const columns = HEADINGS.map((heading, i) => ({ heading, width: Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)) }))
  return [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].map((line) => `${line}\n`).join('')
}

async function list(shell: Shell, { json }: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withReader(shell, config, async ({ reader, clock }) => {
    const policies = await reader.records.stsPolicies.all()
    if (json === true) await shell.stdout.write(policies.map((policy) => jsonLine(stsPolicyJson(policy, clock.wall))).join(''))
    else await shell.stdout.write(policyTable(policies, clock.now(), displayOf(shell)))
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
