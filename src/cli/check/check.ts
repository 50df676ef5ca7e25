/**
 * `deferd check`: does everything that `deferd start` does before it opens the queue and the ports, then examines the queue and
 * DNS. Read-only without --repair; prints one line per check.
 */
import { placeOf } from '../../config/values/queue-place.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { errorMessage } from '../../system/caught-error.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import { listenAt, openPort } from '../../config/values/endpoints.ts'
import { problemLine } from '../../config/values/problem.ts'
import { DAY, type WallTime } from '../../system/clock.ts'
import { queueLimitTerms } from '../../config/values/limit-terms.ts'
import { nearlyFull } from '../../queue/attention.ts'
import { limitText } from '../../queue/intake/queue-limits.ts'
import type { LiveStatus } from '../../queue/queue-status.ts'
import { submissions } from '../../queue/intake/maildrop-listing.ts'
import { refusedFolder } from '../../queue/intake/maildrop-reader.ts'
import { NoSuchQueue } from '../../store/errors.ts'
import { isOwned } from '../../store/folder/owner-lock.ts'
import { signOfDamage } from '../../store/sqlite/file/restore.ts'
import { repairLines } from '../../store/repair-report.ts'
import { ANY_MESSAGE } from '../../store/message-conditions.ts'
import { parseUsers } from '../../access/users.ts'
import { SENDER_TABLE_NAMES } from '../../delivery/routing/routing-tables.ts'
import { TABLE_NAMES } from '../../rewriting/tables.ts'
import { addCheckDomain, USER_HELP } from './check-domain.ts'
import { configOf, configToPrepare, subcommand } from '../shell/config-options.ts'
import { EX } from '../shell/exit.ts'
import { error, ok, warning, type Finding } from '../shell/check-finding.ts'
import { oauthCertificates } from '../oauth/oauth-findings.ts'
import { connectFindings, isOfConnection } from './check-connect.ts'
import { withReader, type Shell } from '../shell/shell.ts'
import { Account } from '../../daemon/account.ts'
import { PARTS, prepareAs, type Part, type Preparation } from '../../daemon/preparation.ts'
import { queueFile } from '../../store/folder/queue-folder.ts'
import type { QueueCount } from '../../store/counts/queue-tally.ts'
import { jsonLine, maskControls, plural, span } from '../../presentation/text.ts'

type Depth = 'quick' | 'full' | 'repair'

type Check = (shell: Shell, loaded: LoadedConfig, depth: Depth) => Promise<Finding | null> | Finding | null

const WARNED_VALIDITY = 21 * DAY

function certificate(what: string, path: string, now: WallTime): Finding | null {
  if (path === '') return null
  let found: X509Certificate
  try {
    found = new X509Certificate(readFileSync(path))
  } catch (cause) {
    // The preparation has read every certificate that a start needs, so this one is not used.
    return warning(what, `${path} is not used, and could not be: ${errorMessage(cause)}`)
  }
  const { validToDate, subject } = found
  const left = validToDate.getTime() - now
  const text = `${path} (${subject.replaceAll('\n', ', ')})`
  if (left <= 0) return warning(what, `${text} ended ${span(-left)} ago: renew it, then reload`)
  return left < WARNED_VALIDITY ? warning(what, `${text} ends in ${span(left)}`) : ok(what, `${text} holds for ${span(left)}`)
}

/** Finding for a part of the configuration without a problem or warning; null when the configuration does not use the part. */
function soundPart(part: Part, { config, file, given }: LoadedConfig, now: WallTime): Finding | null {
  switch (part) {
    case 'configuration':
      return ok(part, `${file ?? 'no file'}, ${plural(given.size, 'parameter')} given`)
    case 'notices':
      return ok(part, config.bounce_template_file || 'built-in texts')
    case 'certificate of the server':
      return certificate(part, config.smtpd_tls_cert_file, now)
    case 'admin port':
      if (config.admin_listen === '') return null
      return certificate(part, config.admin_tls_cert_file, now) ?? ok(part, `${config.admin_listen} without TLS`)
    case 'certificate of the client':
      return certificate(part, config.smtp_tls_cert_file, now)
    case 'secrets':
      return ok(part, 'readable by their owners only')
    case 'logins':
      return config.smtp_sasl_password_maps === '' ? null : ok(part, config.smtp_sasl_password_maps)
    case 'next hops':
      return null
    case 'users': {
      const path = config.smtpd_sasl_users_file
      return path === '' ? null : ok(part, plural(parseUsers(readFileSync(path, 'utf8')).size, 'user'))
    }
    case 'lookup tables': {
      const named = [...TABLE_NAMES, ...SENDER_TABLE_NAMES].filter((name) => config[name].length > 0)
      const used = config.transport_tables.length === 0 ? named : ['transport_maps', ...named]
      return used.length === 0 ? null : ok(part, used.join(', '))
    }
    case 'DKIM keys': {
      const domains = [...config.dkim.keys()]
      return domains.length === 0 ? null : ok(part, domains.join(', '))
    }
    case 'log':
      return config.log_file === '' ? null : ok(part, config.log_file)
    case 'queue folder': {
      const path = config.queue_directory
      return existsSync(path) ? ok(part, path) : warning(part, `${path} does not exist yet; deferd start creates it`)
    }
  }
}

/** Findings of the steps that `deferd start` takes before it opens the queue. */
function preparationFindings(preparation: Preparation, loaded: LoadedConfig, now: WallTime): readonly Finding[] {
  const problems = preparation.kind === 'refused' ? preparation.problems : []
  return PARTS.flatMap((part) => {
    const errors = problems.filter((problem) => problem.part === part).map((problem) => error(part, problemLine(problem)))
    const warnings = preparation.warnings.filter((one) => one.part === part).map(({ text }) => warning(part, text))
    if (errors.length + warnings.length > 0) return [...errors, ...warnings]
    return [soundPart(part, loaded, now)].filter((finding) => finding !== null)
  })
}

const queue: Check = (shell, { config }, depth) => {
  switch (placeOf(config)) {
    case 'folder':
      return fileQueue(config, depth)
    case 'database':
      return sharedQueue(shell, config, depth).catch(missingQueue)
  }
}

async function fileQueue(config: Config, depth: Depth): Promise<Finding | null> {
  if (!existsSync(config.queue_directory)) return null
  if (!existsSync(queueFile(config.queue_directory))) return warning('queue', NO_QUEUE)
  if (depth === 'repair') return repairFinding(config.queue_directory)
  if (depth === 'full' && !isOwned(config.queue_directory)) {
    const sign = signOfDamage(config.queue_directory)
    if (sign !== null) return error('queue', `${sign}; ${REMEDY}`)
  }
  const { openStoreReadOnly } = await import('../../store/sqlite/open-store.ts')
  const opened = openStoreReadOnly(config.queue_directory)
  try {
    const defects = depth === 'full' ? opened.damages() : opened.defects()
    if (defects.length > 0) return error('queue', `${defects.join('; ')}; ${REMEDY}`)
    return queueFinding(await opened.reader.counts())
  } finally {
    await opened.close()
  }
}

const NO_QUEUE = 'there is no queue yet; deferd start creates it'

/** The finding for a database without tables. Rethrows any other error. */
function missingQueue(cause: unknown): Finding {
  if (!(cause instanceof NoSuchQueue)) throw cause
  return warning('queue', NO_QUEUE)
}

/** Opens the database as a start does, and counts the mail. */
async function sharedQueue(shell: Shell, config: Config, depth: Depth): Promise<Finding> {
  if (depth !== 'quick')
    return warning('queue', 'PostgreSQL checks its own pages and indexes: use pg_amcheck, and a standby or a backup to repair')
  const directory = await shell.openNodes(config)
  const nodes = (await directory?.list()) ?? []
  await directory?.close()
  return withReader(shell, config, async ({ reader }) => {
    const { verdict, text } = queueFinding(await reader.counts())
    return { what: 'queue', verdict, text: `${text} in PostgreSQL, ${plural(nodes.length, 'node')}` }
  })
}

const REMEDY = 'stop the daemon and run deferd check --repair'

async function repairFinding(directory: string): Promise<Finding> {
  const { repairDamage } = await import('../../store/sqlite/file/restore.ts')
  const repair = repairDamage(directory)
  return repair === null ? ok('queue', 'no damage was found') : warning('queue', repairLines(repair).join('; '))
}

function queueFinding(mail: readonly QueueCount[]): Finding {
  const corrupt = mail.find((one) => one.queue === 'corrupt')?.messages ?? 0
  if (corrupt > 0) return warning('queue', `${plural(corrupt, 'message')} cannot be read; see deferd queue list --queue corrupt`)
  const total = mail.reduce((sum, one) => sum + one.messages, 0)
  return ok('queue', plural(total, 'message'))
}

/** The use of the limits of the queue, as the running daemon counts it. */
const limits: Check = async (shell, { config }) => {
  if (queueLimitTerms(config) === null) return null
  let live: LiveStatus | null
  try {
    live = await shell.liveStatus(config)
  } catch (cause) {
    return warning('limits', `the use of the limits is not known: ${errorMessage(cause)}`)
  }
  const states = live?.limits ?? []
  const found = nearlyFull(states)
  if (found.length > 0) return warning('limits', `${found.map(limitText).join('; ')}; see deferd queue causes`)
  return states.length === 0 ? null : ok('limits', states.map(limitText).join('; '))
}

const MOST_NAMED = 3

const maildrop: Check = async (shell, { config: { queue_directory: directory } }) => {
  let waiting = 0
  const stale: string[] = []
  for await (const batch of submissions(directory, ANY_MESSAGE, clockOf(null, shell.clock).wall)) {
    for (const { name, reason } of batch) {
      if (reason === null) waiting++
      else stale.push(`${name} (${reason})`)
    }
  }
  const refused = existsSync(refusedFolder(directory)) ? readdirSync(refusedFolder(directory)).length : 0
  if (stale.length === 0 && refused === 0) return waiting === 0 ? null : ok('maildrop', `${plural(waiting, 'message')} not taken in yet`)
  const more = stale.length > MOST_NAMED ? ` and ${stale.length - MOST_NAMED} more, see deferd queue list --queue maildrop` : ''
  const problems = [
    ...(stale.length === 0 ? [] : [`${stale.slice(0, MOST_NAMED).join(', ')}${more}`]),
    ...(refused === 0 ? [] : [`${plural(refused, 'refused file')} in ${refusedFolder(directory)}: inspect and remove`]),
  ]
  return warning('maildrop', problems.join('; '))
}

/** Looks up an MX record to test DNS. Skipped when all mail is routed to relay hosts in brackets, which need no MX lookup. */
const names: Check = async (_shell, { config }) => {
  if (config.relayhost.length > 0 && config.relayhost.every((host) => host.startsWith('['))) return null
  const { SystemNet } = await import('../../system/system-net.ts')
  const net = new SystemNet({ dnsServers: config.dns_servers })
  const found = await net.lookupMx('gmail.com')
  if (found.kind === 'failed') return warning('names', `mail exchangers cannot be looked up: ${found.reason}`)
  if (config.smtp_dns_support_level !== 'dnssec') return ok('names', 'mail exchangers can be looked up')
  // The name servers of the root are authentic in each validating resolver (Postfix dnssec_probe).
  const root = await net.lookupSecure('.', 'MX')
  if (root.kind !== 'failed' && root.secure) return ok('names', 'mail exchangers can be looked up, with DNSSEC validation')
  return warning('names', 'DNSSEC validation may be unavailable: an answer about the root was not authentic, so that DANE has no effect')
}

/** False for a queue that no daemon has created yet, too. */
const isRunning = (shell: Shell, config: Config): Promise<boolean> =>
  shell.liveDestinations(config).then(
    (live) => live !== null,
    (cause: unknown) => {
      if (cause instanceof NoSuchQueue) return false
      throw cause
    },
  )

/** Opens and closes the port of admin_listen. Skipped while a daemon runs, because the daemon has the port open. */
const adminPort: Check = async (shell, { config }) => {
  if (config.admin_listen === '' || (await isRunning(shell, config))) return null
  const { SystemNet } = await import('../../system/system-net.ts')
  const at = listenAt(config.admin_listen, 'admin_listen', config.inet_protocols)
  const listener = await openPort('admin_listen', at, () => new SystemNet().listen(at, (socket) => socket.destroy()))
  await listener.close()
  return null
}

const CHECKS: readonly (readonly [string, Check])[] = [
  ['queue', queue],
  ['limits', limits],
  ['maildrop', maildrop],
  ['names', names],
]

interface Subject {
  readonly shell: Shell
  readonly loaded: LoadedConfig
  readonly depth: Depth
}

async function lookAt([what, check]: readonly [string, Check], { shell, loaded, depth }: Subject): Promise<Finding | null> {
  try {
    return await check(shell, loaded, depth)
  } catch (cause) {
    return error(what, errorMessage(cause))
  }
}

/** States as whom root examines; null for the user of the process. */
function userFinding(account: Account | null, directory: string): Finding | null {
  if (account === null) return null
  const { name, uid } = account
  return ok('user', `${name} (id ${uid}) of ${directory}: files are read as this user, as a reload and systemd read them`)
}

async function* findings(subject: Subject, { user, connect }: CheckOptions): AsyncGenerator<Finding> {
  const { shell, loaded } = subject
  const account = Account.ofDaemon(loaded.config.queue_directory, user)
  // Root and systemd may open ports below 1024, the user of the daemon may not.
  const port = await lookAt(['admin port', adminPort], subject)
  const preparation = prepareAs(loaded, account)
  const prepared = preparationFindings(preparation, loaded, shell.clock.now())
  const acting = userFinding(account, loaded.config.queue_directory)
  if (acting !== null) yield acting
  yield* prepared
  yield* oauthCertificates(loaded.config, shell.clock.now())
  const folderIsUsable = !prepared.some(({ what, verdict }) => what === 'queue folder' && verdict === 'error')
  for (const entry of folderIsUsable ? CHECKS : CHECKS.filter(([what]) => what === 'names')) {
    const finding = await lookAt(entry, subject)
    if (finding !== null) yield finding
  }
  if (folderIsUsable && port !== null) yield port
  if (connect === true && preparation.kind === 'ready') yield* connectFindings(shell, loaded, preparation.settings)
}

interface CheckOptions {
  readonly connect?: true
  readonly json?: true
  readonly full?: true
  readonly repair?: true
  readonly user?: string
  readonly running?: true
}

const lineOf = (finding: Finding, { json }: CheckOptions): string =>
  json === true ? jsonLine(finding) : `${finding.verdict.padEnd(8)}${finding.what.padEnd(27)}${maskControls(finding.text)}\n`

/** Whether the daemon of the queue answers. */
async function daemonFinding(shell: Shell, called: Command): Promise<Finding> {
  const { config } = await configOf(shell, called)
  const place = `with queue_directory = ${config.queue_directory}`
  return (await shell.isDaemonRunning(config)) ? ok('daemon', `runs ${place}`) : error('daemon', `none runs ${place}: deferd start`)
}

export function addCheck(program: Command, shell: Shell, end: (code: number) => void): void {
  const command = subcommand(program, 'check', 'check configuration, certificates and queue as start would')
    .option('--json', 'one JSON object per check')
    .option('--full', 'check every page, index, row and content of the queue')
    .option('--repair', 'the same, and rebuild a damaged queue from its readable pages; needs a stopped daemon')
    .option('--connect', 'connect to each relayhost and to each next hop with access tokens, start TLS and log in, without sending mail')
    .option('--user <name>', USER_HELP)
    .addOption(
      new Option('--running', 'whether the daemon of queue_directory runs, and nothing else').conflicts([
        'full',
        'repair',
        'connect',
        'user',
      ]),
    )
    .addHelpText(
      'after',
      `
Takes the steps of deferd start up to the opening of the queue and of the ports, as the same user, with the same sentences and
exit codes: called by root, it acts as the owner of queue_directory, or as --user NAME. It changes nothing, and a running daemon is no obstacle. With --connect, a token is requested by each [oauth.NAME] table in use, as by
deferd oauth test. Exit code 78 when a check fails, 69 when a relayhost or an access token fails with --connect, 0 otherwise; a warning is not a failure.

With --running, for scripts that wait and for health checks of containers, it asks the daemon at the socket of queue_directory, which is open
when all ports are. Exit code 0 when it answers, 69 when no daemon runs, 75 when it has not answered for 5 s, 77 when another user runs it.`,
    )
    .action(async (options: CheckOptions, called: Command) => {
      if (options.running === true) {
        const finding = await daemonFinding(shell, called)
        if (finding.verdict === 'error') end(EX.unavailable)
        return shell.stdout.write(lineOf(finding, options))
      }
      const loaded = configToPrepare(shell, called)
      const depth = options.repair === true ? 'repair' : options.full === true ? 'full' : 'quick'
      for await (const finding of findings({ shell, loaded, depth }, options)) {
        if (finding.verdict === 'error') end(isOfConnection(finding) ? EX.unavailable : EX.config)
        await shell.stdout.write(lineOf(finding, options))
      }
    })
  addCheckDomain(command, shell, end)
}
