/**
 * Preparation of a start, before the queue and the ports are opened: reads and validates the files named in the configuration,
 * and examines the queue folder. Start, `deferd check` and (for the files alone) reload share it, so that they agree. Changes
 * nothing.
 */
import { getServers } from 'node:dns'
import { dirname, isAbsolute } from 'node:path'
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs'
import { ConfigError, type LoadedConfig } from '../config/load.ts'
import type { OptionName } from '../config/options.ts'
import { sharedPlace } from '../config/values/queue-place.ts'
import { inLineOrder, type Problem } from '../config/values/problem.ts'
import { unusedHeadings } from '../config/destination-headings.ts'
import { DestinationPolicies } from '../config/destination-policies.ts'
import { ignoredFileWarning } from '../config/values/sources.ts'
import { formatNextHop, parseNextHop } from '../config/values/next-hop.ts'
import { parseNextHops } from '../config/transport-map.ts'
import { loadDkimKeys } from '../dkim/keys.ts'
import { daneWarnings } from '../delivery/dane/dane-warnings.ts'
import { keyWarnings, signingWarnings } from '../dkim/warnings.ts'
import { readOauthClients } from '../oauth/oauth-client.ts'
import { checkNodemailer } from '../delivery/smtp/client-connection.ts'
import { SaslCredentials } from '../delivery/tls/sasl-credentials.ts'
import { openClassMaps } from '../queue/intake/class-choice.ts'
import { openShareWeights } from '../queue/intake/share-weights.ts'
import { openRoutingTables } from '../delivery/routing/routing-tables.ts'
import { openAccess } from '../access/access-tables.ts'
import { openChecks } from '../checks/check-tables.ts'
import { openTables } from '../rewriting/tables.ts'
import { listenersOf, readCertificate } from '../config/smtpd-listeners.ts'
import { parseUsers } from '../access/users.ts'
import { folderProblem } from '../store/folder/queue-folder.ts'
import { volumeProblem } from '../store/folder/volume.ts'
import { errorMessage } from '../system/caught-error.ts'
import { logFileProblem } from '../telemetry/log-file.ts'
import { Account } from './account.ts'
import { adminCertificate } from './admin/admin.ts'
import { pickupPath, socketPathLimit } from './admin/socket-path.ts'
import { readableSecrets, readPasswords, readTlsFiles } from './delivery-secrets.ts'
import { templatesOf } from './notice-templates.ts'
import { oauthWarnings } from './oauth-warnings.ts'
import type { RelaySettings } from '../relay/rules.ts'
import { tokenCommand } from './token-command.ts'

/** Parts of the preparation. `deferd check` prints a line for each. */
export const PARTS = [
  'configuration',
  'notices',
  'certificate of the server',
  'admin port',
  'certificate of the client',
  'secrets',
  'logins',
  'next hops',
  'lookup tables',
  'DKIM keys',
  'users',
  'log',
  'queue folder',
] as const
export type Part = (typeof PARTS)[number]

interface PartProblem extends Problem {
  readonly part: Part
}

interface Warning {
  readonly part: Part
  readonly text: string
}

export type Preparation =
  | { readonly kind: 'ready'; readonly settings: RelaySettings; readonly warnings: readonly Warning[] }
  | { readonly kind: 'refused'; readonly problems: readonly PartProblem[]; readonly warnings: readonly Warning[] }

class Steps {
  readonly problems: PartProblem[] = []
  readonly warnings: Warning[] = []
  readonly #loaded: LoadedConfig

  constructor(loaded: LoadedConfig) {
    this.#loaded = loaded
  }

  /**
   * Returns the result of `step`. When `step` throws, returns undefined and records a problem at the parameter whose name begins
   * the error message, or at `parameter` when no name does.
   */
  take<T>(part: Part, parameter: OptionName, step: () => T): T | undefined {
    try {
      return step()
    } catch (error) {
      if (error instanceof ConfigError) this.problems.push(...error.problems.map((problem) => ({ ...problem, part })))
      else this.refuse(part, parameter, errorMessage(error))
      return undefined
    }
  }

  refuse(part: Part, parameter: OptionName, text: string): void {
    const { config, whereOf } = this.#loaded
    const named = /^\w+(?=: )/.exec(text)?.[0] ?? parameter
    const where = Object.hasOwn(config, named) ? whereOf(named as OptionName) : ''
    this.problems.push({ part, where: where === '' ? whereOf(parameter) : where, text })
  }

  warn(part: Part, ...texts: readonly string[]): void {
    this.warnings.push(...texts.map((text) => ({ part, text })))
  }
}

/** Prepares a reload: the files only, since the queue is open. */
export function prepareFiles(loaded: LoadedConfig): Preparation {
  const steps = new Steps(loaded)
  return result(steps, readFiles(loaded, steps))
}

/** Prepares a start as `account`, which reads the files; null for the user of the process. */
export function prepare(loaded: LoadedConfig, account: Account | null): Preparation {
  const steps = new Steps(loaded)
  const settings = account === null ? readFiles(loaded, steps) : account.acting(() => readFiles(loaded, steps))
  examineFolder(loaded, account?.uid ?? process.geteuid?.() ?? 0, steps)
  return result(steps, settings)
}

/**
 * Prepares as `prepare` does, and becomes `account` for good. An existing folder is examined as the account, which has to pass the folders
 * above it; a start by root creates a missing one.
 */
export function prepareAs(loaded: LoadedConfig, account: Account | null): Preparation {
  if (account === null) return prepare(loaded, null)
  const isMissing = !existsSync(loaded.config.queue_directory)
  const preparation = isMissing ? prepare(loaded, account) : null
  account.assume()
  return preparation ?? prepare(loaded, null)
}

/** The settings. Throws ConfigError with all problems. */
export function readySettings(preparation: Preparation): RelaySettings {
  if (preparation.kind === 'refused') throw new ConfigError(preparation.problems)
  return preparation.settings
}

function result({ problems, warnings }: Steps, settings: RelaySettings | undefined): Preparation {
  if (problems.length > 0 || settings === undefined) return { kind: 'refused', problems: inLineOrder(problems), warnings }
  return { kind: 'ready', settings, warnings }
}

function readFiles(loaded: LoadedConfig, steps: Steps): RelaySettings | undefined {
  const { config } = loaded
  checkNodemailer()
  for (const path of [...(loaded.file === null ? [] : [loaded.file]), ...loaded.variableFiles]) openAgain(path, steps)
  steps.warn('configuration', ...loaded.warnings)
  if (loaded.ignoredFile !== null) steps.warn('configuration', ignoredFileWarning(loaded.ignoredFile))
  const notices = steps.take('notices', 'bounce_template_file', () => templatesOf(loaded))
  steps.warn('notices', ...(notices?.warnings ?? []))
  steps.take('certificate of the server', 'smtpd_tls_cert_file', () =>
    listenersOf(config).forEach((listener) => readCertificate(config, listener)),
  )
  steps.take('admin port', 'admin_tls_cert_file', () => adminCertificate(config))
  const tls = steps.take('certificate of the client', 'smtp_tls_cert_file', () => readTlsFiles(config))
  const passwords = steps.take('logins', 'smtp_sasl_password_maps', () => ({ text: readPasswords(config) }))
  steps.warn('secrets', ...readableSecrets(config))
  const oauth = steps.take('logins', 'smtp_sasl_oauth', () => readOauthClients(loaded, tokenCommand))
  if (passwords !== undefined) steps.warn('logins', ...relayhostsWithoutLogin(loaded, passwords.text))
  if (passwords !== undefined && oauth !== undefined) steps.warn('logins', ...oauthWarnings(oauth, config, passwords.text ?? ''))
  steps.warn('next hops', ...wrapperHopsWithoutWrapper(loaded), ...tablesWithoutMail(loaded))
  const tables = steps.take('lookup tables', 'canonical_maps', () => openTables(config))
  const routingTables = steps.take('lookup tables', 'sender_dependent_relayhost_maps', () => openRoutingTables(config))
  const checks = steps.take('lookup tables', 'header_checks', () => openChecks(config))
  const access = steps.take('lookup tables', 'smtpd_recipient_restrictions', () => openAccess(config))
  const classMaps = steps.take('lookup tables', 'sender_class_maps', () => openClassMaps(config))
  const shareWeights = steps.take('lookup tables', 'share_weight_maps', () => openShareWeights(config))
  steps.warn(
    'lookup tables',
    ...[tables, routingTables, checks, access, classMaps, shareWeights].flatMap((opened) => opened?.warnings ?? []),
  )
  const dkimKeys = steps.take('DKIM keys', 'dkim_sign', () => loadDkimKeys(config))
  if (dkimKeys !== undefined) steps.warn('DKIM keys', ...keyWarnings(dkimKeys), ...signingWarnings(config, dkimKeys))
  steps.warn('next hops', ...daneWarnings(config, config.dns_servers.length > 0 ? config.dns_servers : getServers()))
  readUsers(loaded, steps)
  const unwritable = config.log_file === '' ? null : logFileProblem(config.log_file)
  if (unwritable !== null) steps.refuse('log', 'log_file', unwritable)
  if (notices === undefined || tls === undefined || passwords === undefined) return undefined
  if (tables === undefined || routingTables === undefined || dkimKeys === undefined || checks === undefined) return undefined
  if (access === undefined || oauth === undefined || classMaps === undefined || shareWeights === undefined) return undefined
  const lookups = {
    tables: tables.tables,
    routingTables: routingTables.tables,
    checks: checks.checks,
    access: access.access,
    classMaps: classMaps.maps,
    shareWeights: shareWeights.table,
  }
  const secrets = { passwords: passwords.text, tls, oauth }
  return { config, templates: notices.templates, secrets, dkimKeys, ...lookups }
}

/**
 * Notes a file of the configuration that root has read and the user of the daemon cannot read: a reload, and a start by systemd, read it as
 * this user. A relative path is that of a person's draft, since services name absolute ones.
 */
function openAgain(file: string, steps: Steps): void {
  try {
    closeSync(openSync(file, constants.O_RDONLY | constants.O_NONBLOCK))
  } catch (cause) {
    const text = `the user of the daemon cannot read it: ${errorMessage(cause)}; permit it, as a reload and systemd need it`
    if (isAbsolute(file)) steps.problems.push({ part: 'configuration', where: file, text })
    else steps.warn('configuration', `${file}: ${text}`)
  }
}

/** Ports of submission (RFC 6409, RFC 8314), which require a login. */
const SUBMISSION_PORTS: ReadonlySet<number> = new Set([465, 587])

/** A sentence for each relayhost that probably requires a login but has no credentials. */
function relayhostsWithoutLogin({ config }: LoadedConfig, passwords: string | undefined): readonly string[] {
  const logins = new SaslCredentials(passwords ?? '', config)
  const bySender = config.smtp_sender_dependent_authentication && passwords !== undefined
  return config.relayhost.flatMap((text) => {
    const hop = parseNextHop(text, { port: config.smtp_tcp_port, origin: 'relayhost', mx: true })
    if (hop === undefined || bySender || logins.find(hop, '', config) !== undefined) return []
    if (passwords === undefined && !SUBMISSION_PORTS.has(hop.port)) return []
    const remedy = passwords === undefined ? 'set smtp_sasl_password_maps to a file with' : 'add to smtp_sasl_password_maps'
    const password = config.smtp_sasl_oauth === '' ? 'PASSWORD' : ''
    return [`relayhost ${text} has no credentials: ${remedy} the line "${text} USER:${password}"`]
  })
}

/** Port at which TLS starts with the connection (RFC 8314 §3.3). */
const SUBMISSIONS_PORT = 465
const WRAPPER_REMEDY = 'set smtp_tls_wrappermode = "yes" and smtp_tls_security_level = "encrypt"'

/** A sentence for each relayhost at the port of implicit TLS for which deferd would wait for a greeting in clear. */
function wrapperHopsWithoutWrapper({ config }: LoadedConfig): readonly string[] {
  const hops = parseNextHops(config.relayhost, 'relayhost', config.smtp_tcp_port, true)
  const destination = `smtp:${hops.map((hop) => formatNextHop(hop, config.smtp_tcp_port)).join(',')}`
  if (new DestinationPolicies(config).for(destination).settings.smtp_tls_wrappermode) return []
  return hops
    .filter(({ port }) => port === SUBMISSIONS_PORT)
    .map((hop) => `relayhost ${formatNextHop(hop, 0)} expects TLS at once: ${WRAPPER_REMEDY}`)
}

/** A sentence for each table of a next hop to which no route leads. */
const tablesWithoutMail = ({ config }: LoadedConfig): readonly string[] =>
  unusedHeadings(config).map(
    (heading) =>
      `destination.${JSON.stringify(heading)} applies to no mail, because no route of the configuration leads to this next hop: correct the heading or remove the table`,
  )

function readUsers({ config }: LoadedConfig, steps: Steps): void {
  const path = config.smtpd_sasl_users_file
  const offering = listenersOf(config).filter(({ auth }) => auth !== 'none')
  const unprotected = offering.filter(({ tls }) => tls === 'none').map(({ address }) => address)
  if (unprotected.length > 0) steps.warn('users', `AUTH is offered over TLS only, and ${unprotected.join(', ')} has no TLS: set it to may`)
  if (path !== '') {
    steps.take('users', 'smtpd_sasl_users_file', () => {
      try {
        parseUsers(readFileSync(path, 'utf8'))
      } catch (cause) {
        throw new Error(`smtpd_sasl_users_file: cannot use ${path}: ${errorMessage(cause)}`, { cause })
      }
    })
  } else if (offering.length > 0) {
    const text = 'smtpd_sasl_users_file: a listener offers AUTH, but there is no file of users: set it, then deferd user add NAME'
    steps.refuse('users', config.smtpd_sasl_auth_enable ? 'smtpd_sasl_auth_enable' : 'smtpd', text)
  }
}

function examineFolder({ config, requiresVolume }: LoadedConfig, uid: number, steps: Steps): void {
  const directory = config.queue_directory
  // With a database, the folder has no mail for longer than a delivery to the queue takes.
  const lost = requiresVolume && sharedPlace(config) === null ? volumeProblem(directory) : null
  if (lost !== null) steps.refuse('queue folder', 'queue_directory', lost)
  const problem = folderProblem(directory, uid)
  if (problem !== null) steps.refuse('queue folder', 'queue_directory', `cannot use ${directory} as the queue folder: ${problem}`)
  const socket = pickupPath(directory)
  const limit = socketPathLimit()
  if (Buffer.byteLength(socket) <= limit) return
  const text = `the path of a socket in ${dirname(socket)} is longer than the ${limit} bytes of a socket address`
  steps.refuse('queue folder', 'queue_directory', `queue_directory: ${text}: name a shorter path`)
}
