/** `deferd check domain`: what happens to mail for a domain now, and why. */
import { sleep, type Duration } from '../../system/clock.ts'
import { clockOf } from '../../system/queue-clock.ts'
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import { problemLine } from '../../config/values/problem.ts'
import { Account } from '../../daemon/account.ts'
import { prepareAs, readySettings } from '../../daemon/preparation.ts'
import { asciiName } from '../../delivery/sts/sts-record.ts'
import { loadDkimKeys } from '../../dkim/keys.ts'
import { openRoutingTables } from '../../delivery/routing/routing-tables.ts'
import { gatherFacts, type DomainCheckDeps } from '../../domain-check/domain-facts.ts'
import { domainJson, domainReport } from '../../domain-check/domain-report.ts'
import type { Verdict } from '../../domain-check/finding.ts'
import type { DomainCheckJson, DomainReportJson } from '../../resources/domains/domain-check-json.ts'
import type { KnownDestination } from '../../presentation/destination-state.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { savedProviders } from '../../store/records/saved-providers.ts'
import { queryOf, segment } from '../queue-client/api-connection.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { OpenedReader, RelayApi, Shell } from '../shell/shell.ts'
import { domainScreen } from './domain-screen.ts'

interface DomainOptions {
  readonly from?: string
  readonly json?: true
  readonly user?: string
}

/** Text of --user, which `deferd check` has too. */
export const USER_HELP = 'user of the daemon, as whom root examines (default: owner of queue_directory)'

const EXIT: Readonly<Record<Exclude<Verdict, 'note'>, number>> = { ok: 0, unknown: EX.temporary, wrong: EX.data }

/** The queue for reading; null when there is none yet. */
async function openedReader(shell: Shell, loaded: LoadedConfig): Promise<OpenedReader | null> {
  try {
    return await shell.openReader(loaded.config)
  } catch (error) {
    if (error instanceof NoSuchQueue) return null
    throw error
  }
}

function settingsOf(
  loaded: LoadedConfig,
  user: string | undefined,
): Pick<DomainCheckDeps, 'config' | 'secrets' | 'routingTables' | 'dkimKeys'> {
  const { config } = loaded
  const preparation = prepareAs(loaded, Account.ofDaemon(config.queue_directory, user))
  if (preparation.kind === 'refused') throw new CommandError(EX.config, preparation.problems.map(problemLine).join('\n'))
  const { secrets = {}, routingTables, dkimKeys } = readySettings(preparation)
  const tables = routingTables ?? openRoutingTables(config).tables
  return { config, secrets, routingTables: tables, dkimKeys: dkimKeys ?? loadDkimKeys(config) }
}

async function stateOf(shell: Shell, loaded: LoadedConfig, reader: QueueReader | null, name: string): Promise<KnownDestination> {
  const live = reader === null ? null : await shell.liveDestinations(loaded.config)
  const records = (await reader?.destinationRecords()) ?? []
  return { live: live?.find(({ destination }) => destination === name), record: records.find((one) => one.name === name) }
}

/** The domain of the argument, and the sender as written, with its domain in A-labels. Throws CommandError. */
function questionOf(given: string, from: string | undefined): { readonly domain: string; readonly from: string | undefined } {
  const domain = asciiName(given)
  if (domain === undefined) throw new CommandError(EX.usage, `${maskControls(JSON.stringify(given))} is not the name of a domain`)
  if (from === undefined) return { domain, from }
  const at = from.lastIndexOf('@') + 1
  const senderDomain = asciiName(from.slice(at))
  if (senderDomain === undefined) throw new CommandError(EX.usage, `--from ${maskControls(from)} is neither an address nor a domain`)
  return { domain, from: from.slice(0, at) + senderDomain }
}

/** The report of a check from this machine. */
async function checkHere(shell: Shell, given: string, { from, user }: DomainOptions, command: Command): Promise<DomainReportJson> {
  const loaded = await configOf(shell, command)
  const { config } = loaded
  const { domain, from: sender = config.myorigin } = questionOf(given, from ?? config.myorigin)
  const settings = settingsOf(loaded, user)
  const { SystemNet } = await import('../../system/system-net.ts')
  const opened = await openedReader(shell, loaded)
  const { reader, clock } = opened ?? { reader: null, clock: clockOf(null, shell.clock) }
  try {
    const facts = await gatherFacts(domain, sender, {
      ...settings,
      net: new SystemNet({ dnsServers: config.dns_servers }),
      clock,
      random: shell.random,
      signal: new AbortController().signal,
      policyOf: async (name) => reader?.records.stsPolicies.of(name),
      providerOf: async (name) => (await reader?.records.providerMembers.providerOf(name)) ?? null,
      providerState: async (name) =>
        reader === null ? { name, effects: [], suspension: null } : (await savedProviders(reader.records))(name),
      destination: (name) => stateOf(shell, loaded, reader, name),
    })
    return domainJson(facts, domainReport(facts, config))
  } finally {
    await reader?.close()
  }
}

/** In ms, between two questions whether a check has ended. */
const ASKED_EVERY: Duration = 500

/** Has the relay of `--host` check, and waits for its report. */
async function checkThere(shell: Shell, api: RelayApi, given: string, { from, user }: DomainOptions): Promise<DomainReportJson> {
  if (user !== undefined) throw new CommandError(EX.usage, 'the daemon of --host checks as its own user: leave out --user')
  const question = questionOf(given, from)
  let ordered = (await api.json({ method: 'POST', path: '/domain-checks', body: question })) as DomainCheckJson
  const path = `/domain-checks/${segment(ordered.domain)}${queryOf({ from: ordered.sender_domain })}`
  while (ordered.state === 'running') {
    await sleep(shell.clock, ASKED_EVERY)
    ordered = await api.get<DomainCheckJson>(path)
  }
  if (ordered.state === 'done' && ordered.report !== null) return ordered.report
  throw new CommandError(EX.temporary, maskControls(`no report: ${ordered.failure ?? 'the relay has one in another form'}`))
}

async function check(shell: Shell, given: string, options: DomainOptions, command: Command): Promise<number> {
  const report = await (shell.api === null ? checkHere(shell, given, options, command) : checkThere(shell, shell.api, given, options))
  await shell.stdout.write(
    options.json === true ? jsonLine(report) : domainScreen(report, { clock: shell.clock, display: displayOf(shell) }),
  )
  return EXIT[report.verdict]
}

/** Adds `check domain`. `end` ends the command with an exit code. */
export function addCheckDomain(parent: Command, shell: Shell, end: (code: number) => void): void {
  subcommand(parent, 'domain', 'show what happens to mail for a domain now, and why')
    .argument('<name>', 'recipient domain')
    .option('--from <address>', 'sender, or its domain, whose SPF, DKIM and DMARC are checked (default: $myorigin)')
    .option('--json', 'one JSON object')
    .option('--user <name>', USER_HELP)
    .addHelpText(
      'after',
      `
Looks up the domain as a delivery does, opens a session with each of its hosts up to MAIL, and sends nothing. The last line is the
outcome of a delivery. With --host, the relay checks from its own network, and keeps the report for its page. Exit code 0 when all is good, 65 when something is wrong, 75 when a look-up failed for now. Example:
  deferd check domain example.com --from app@example.org`,
    )
    .action(async (given: string, _options: DomainOptions, command: Command) => {
      end(await check(shell, given, command.optsWithGlobals<DomainOptions>(), command))
    })
}
