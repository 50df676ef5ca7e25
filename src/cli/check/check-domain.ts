/** `deferd check domain`: what happens to mail for a domain now, and why. */
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
import type { KnownDestination } from '../../presentation/destination-state.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { OpenedReader, Shell } from '../shell/shell.ts'
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
): Omit<DomainCheckDeps, 'net' | 'clock' | 'random' | 'policyOf' | 'destination' | 'providerOf' | 'effectsOf'> {
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

async function check(shell: Shell, given: string, { from, json, user }: DomainOptions, command: Command): Promise<number> {
  const domain = asciiName(given)
  if (domain === undefined) throw new CommandError(EX.usage, `${maskControls(JSON.stringify(given))} is not the name of a domain`)
  const loaded = await configOf(shell, command)
  const { config } = loaded
  const written = from ?? config.myorigin
  const at = written.lastIndexOf('@') + 1
  const senderDomain = asciiName(written.slice(at))
  if (senderDomain === undefined) throw new CommandError(EX.usage, `--from ${maskControls(written)} is neither an address nor a domain`)
  const settings = settingsOf(loaded, user)
  const { SystemNet } = await import('../../system/system-net.ts')
  const opened = await openedReader(shell, loaded)
  const { reader, clock } = opened ?? { reader: null, clock: clockOf(null, shell.clock) }
  try {
    const facts = await gatherFacts(domain, written.slice(0, at) + senderDomain, {
      ...settings,
      net: new SystemNet({ dnsServers: config.dns_servers }),
      clock,
      random: shell.random,
      policyOf: async (name) => reader?.records.stsPolicies.of(name),
      providerOf: async (name) => (await reader?.records.providerMembers.providerOf(name)) ?? null,
      effectsOf: async (provider) => (await reader?.records.providers.all())?.find((one) => one.provider === provider)?.effects ?? [],
      destination: (name) => stateOf(shell, loaded, reader, name),
    })
    const report = domainReport(facts, config)
    await shell.stdout.write(
      json === true ? jsonLine(domainJson(facts, report)) : domainScreen(facts, report, { clock, display: displayOf(shell) }),
    )
    return EXIT[report.verdict]
  } finally {
    await reader?.close()
  }
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
outcome of a delivery. Exit code 0 when all is good, 65 when something is wrong, 75 when a look-up failed for now. Example:
  deferd check domain example.com --from app@example.org`,
    )
    .action(async (given: string, _options: DomainOptions, command: Command) => {
      end(await check(shell, given, command.optsWithGlobals<DomainOptions>(), command))
    })
}
