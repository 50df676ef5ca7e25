/**
 * `sendmail` and `mailq`: the submission interface of Postfix's sendmail(1). Mail is written to the maildrop, whether or not a daemon runs.
 * Exit code 0 means that the message is stored durably.
 */
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import { isInternational } from '../../mail/address.ts'
import { addressesIn } from '../../mail/address-list.ts'
import { parseNotify, type Envelope, type Notify } from '../../mail/envelope.ts'
import { fieldsOf } from '../../mail/headers.ts'
import { parseNamedTime, queueTimeOf, timeProblem, type NamedTime, type NamedTimes } from '../../mail/message-times.ts'
import type { Duration } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { WallView } from '../../system/wall-view.ts'
import { openNamed } from '../../rewriting/tables.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { getopt, type Parsed } from './getopt.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { fromField } from '../../mail/from-field.ts'
import { normalizeInput, readAddresses, recipientFields } from './sendmail-input.ts'
import { announce, awaitQueueIds, submit } from './submit.ts'
import { maskControls } from '../../presentation/text.ts'
import { configFor, flushAll, flushMessage, flushSite, printQueue } from './postqueue.ts'

/** Options of sendmail(1). A colon follows an option with a value. `-n` is refused as in Postfix. */
const SPEC = 'A:B:C:F:GIL:N:O:R:UV:X:b:ce:f:h:imo:p:r:tvq:x'

type Options = Parsed['options']

const valueOf = (options: Options, ...letters: readonly string[]): string | undefined =>
  options.findLast(({ name }) => letters.includes(name))?.value

const has = (options: Options, letter: string): boolean => options.some(({ name }) => name === letter)

const warn = (shell: Shell, text: string): Promise<void> => shell.stderr.write(`sendmail: warning: ${maskControls(text)}\n`)

/** Adds a placeholder value to a bare `-q` (flush all), because getopt requires a value. */
const markBareFlush = (args: readonly string[]): readonly string[] => args.map((word) => (word === '-q' ? '-q!' : word))

/** Distinguishes `-o name=value`, which sets a parameter, from sendmail options such as `-oi`. */
const isOurs = (value: string): boolean => /^[a-z0-9_]{3,}\s*=/.test(value)

export async function sendmail(shell: Shell, args: readonly string[]): Promise<void> {
  const parsed = getopt('sendmail', markBareFlush(args), SPEC)
  const ours = parsed.options
    .filter(({ name, value }) => name !== 'o' || isOurs(value))
    .map(({ name, value }) => ({ name: name === 'C' ? 'config' : name, value }))
  const loaded = await configFor(shell, 'sendmail', ours)
  const mode = has(parsed.options, 'I') ? 'i' : (valueOf(parsed.options, 'b') ?? 'm')
  assertNoRecipient(parsed, mode)
  assertNoVerp(parsed.options)
  if (has(parsed.options, 'q')) return flushAs(shell, loaded, valueOf(parsed.options, 'q') ?? '')
  switch (mode) {
    case 'm':
      return send(shell, loaded, parsed)
    case 'p':
      return printQueue(shell, loaded)
    case 's':
      return (await import('./sendmail-bs.ts')).standAlone(shell, loaded.config)
    case 'i':
      return readAliases(shell, loaded.config)
    case 'h':
    case 'H':
      // deferd has no host status.
      return
    default:
      throw new CommandError(EX.usage, `sendmail: fatal: ${UNSUPPORTED_MODES[mode] ?? `unsupported: -b${maskControls(mode)}`}`)
  }
}

/** Modes of Postfix that deferd lacks, with what to do instead. */
const UNSUPPORTED_MODES: Readonly<Record<string, string>> = {
  v: '-bv is not supported: see the route of an address with "deferd check domain DOMAIN", and its rewriting with "deferd map query"',
  d: '-bd is not supported: start the daemon with "deferd start"',
  l: '-bl is not supported: start the daemon with "deferd start"',
}

/** Modes of `-b` in which Postfix refuses recipients, as it names them. */
const MODE_NAMES: Readonly<Record<string, string>> = { i: 'alias initialization', p: 'display queue', s: 'stand-alone' }

/** Throws CommandError (64) for a recipient in a mode that sends nothing: `mailq ID` would otherwise list other mail too. */
function assertNoRecipient({ options, operands }: Parsed, mode: string): void {
  const name = has(options, 'q') ? 'flush queue' : MODE_NAMES[mode]
  if (name !== undefined && operands.length > 0) throw new CommandError(EX.usage, `sendmail: fatal: ${name} mode requires no recipient`)
}

export const mailq = (shell: Shell, args: readonly string[]): Promise<void> => sendmail(shell, ['-bp', ...args])

export const newaliases = (shell: Shell, args: readonly string[]): Promise<void> => sendmail(shell, ['-bi', ...args])

/**
 * Handles `-bi` and `-I`: reads the tables of alias_maps, because there is no database to build, and has the daemon read its files again.
 * Throws CommandError (78) for a table that the daemon would refuse.
 */
async function readAliases(shell: Shell, config: Config): Promise<void> {
  const { alias_maps: sources } = config
  try {
    for (const text of openNamed('alias_maps', sources, config).warnings) await warn(shell, text)
  } catch (cause) {
    throw new CommandError(EX.config, `newaliases: fatal: ${maskControls(errorMessage(cause))}`, { cause })
  }
  if (sources.length > 0) await shell.readFilesAgain(config)
}

/**
 * Handles `-q`, `-qI id` and `-qR site`. An interval (`-q15m`), which would start a daemon, has no effect. Throws CommandError
 * (64) for other values.
 */
async function flushAs(shell: Shell, loaded: LoadedConfig, value: string): Promise<void> {
  if (value === '!') return flushAll(shell, loaded)
  if (value.startsWith('I')) return flushMessage(shell, loaded, value.slice(1))
  if (value.startsWith('R')) return flushSite(shell, loaded, value.slice(1))
  if (!/^\d/.test(value)) throw new CommandError(EX.usage, `sendmail: -q${maskControls(value)} is not supported`)
}

async function send(shell: Shell, { config }: LoadedConfig, { options, operands }: Parsed): Promise<void> {
  const dotEnds = !has(options, 'i') && !options.some(({ name, value }) => name === 'o' && value === 'i')
  const content = normalizeInput(await readAll(shell.stdin, config.message_size_limit), dotEnds)
  if (content.includes('\0')) throw new CommandError(EX.data, 'sendmail: fatal: the message has NUL characters and was not sent')
  const fields = [...fieldsOf(Buffer.from(content, 'latin1'))]
  const origin = config.myorigin
  const addresses = recipientsOf(has(options, 't') ? [...operands, ...recipientFields(fields)] : operands, operands, origin)
  const sender = senderOf(valueOf(options, 'f', 'r') ?? shell.login, origin)
  const times = timesOf(shell, options, { sender, limit: config.smtpd_future_release_limit })
  const envelope = { ...(await envelopeOf(shell, options, sender, addresses)), ...times, ...attemptsOf(options) }
  const header = fields.some(({ name }) => name === 'from') || has(options, 'G') ? '' : missingFrom(shell, options, sender)
  // The empty line that a message without a header lacks.
  const gap = fields.length > 0 || header === '' || content.startsWith('\r\n') ? '' : '\r\n'
  // latin1 preserves every byte of the input.
  const whole = Buffer.concat([Buffer.from(header), Buffer.from(gap + content, 'latin1')])
  const names = await submit(shell, config, envelope, whole)
  if (has(options, 'v')) await shell.stdout.write(`${await awaitQueueIds(shell, config, names)}\n`)
  else await announce(shell, config)
}

/** Recipients of all lists. Throws when one is malformed, because a message is sent to all its recipients or to none. */
function recipientsOf(lists: readonly string[], operands: readonly string[], origin: string): readonly string[] {
  const { addresses, malformed } = readAddresses(lists, origin)
  const empty = operands.filter((operand) => addressesIn(operand).length === 0)
  const bad = [...malformed, ...empty].map((text) => `sendmail: fatal: bad recipient address syntax: ${maskControls(text)}`)
  if (bad.length > 0) throw new CommandError(EX.data, `${bad.join('\n')}\nsendmail: fatal: the message was not sent`)
  if (addresses.length === 0) throw new CommandError(EX.usage, 'sendmail: fatal: no recipient addresses')
  return addresses
}

/** Completes the sender address. The null sender `<>` gives an empty text. */
function senderOf(given: string, origin: string): string {
  if (addressesIn(given).length === 0) return ''
  const { addresses, malformed } = readAddresses([given], origin)
  const [sender] = addresses
  if (sender === undefined || addresses.length > 1 || malformed.length > 0)
    throw new CommandError(EX.data, `sendmail: fatal: bad sender address syntax: ${maskControls(given)}`)
  return sender
}

/** From field for mail without one. Mail from the null sender gets it from the daemon. */
function missingFrom(shell: Shell, options: Options, sender: string): string {
  if (sender === '') return ''
  return fromField(valueOf(options, 'F') ?? shell.env['NAME'] ?? shell.fullName(), sender)
}

/** Throws CommandError (64) for `-X`, which asks for VERP: without it, a list would not learn whose mail was returned. */
function assertNoVerp(options: Options): void {
  const value = valueOf(options, 'X')
  if (value === undefined) return
  const reason = value.startsWith('V')
    ? `-X${value} (VERP) is not supported: give each recipient a message with its own sender (-f)`
    : `unsupported: -X${value}`
  throw new CommandError(EX.usage, `sendmail: fatal: ${maskControls(reason)}`)
}

/**
 * The times of `-O not_before=TIME` and `-O expires=TIME`, as instants: a span ends by the time of this command. Throws CommandError (64) for a
 * time that cannot be granted. Other names of -O have no effect, as in Postfix.
 */
function timesOf(shell: Shell, options: Options, { sender, limit }: { readonly sender: string; readonly limit: Duration }): NamedTimes {
  // A command knows the wall clock only.
  const now: number = shell.clock.now()
  const moment = { now, wall: new WallView(() => now) }
  const given = (name: 'not_before' | 'expires'): NamedTime | undefined => {
    const text = valueOfO(options, name)
    if (text === undefined) return undefined
    const time = parseNamedTime(text)
    if (time === undefined) throw refused(name, `expected seconds since 1970, RFC 3339 or a time from now such as 2h, got ${text}`)
    const at: number = queueTimeOf(time, moment)
    return { kind: 'instant', at }
  }
  const [release, expires] = [given('not_before'), given('expires')]
  if (release !== undefined) {
    if (limit === 0) throw refused('not_before', 'messages are not held for later: smtpd_future_release_limit is 0')
    if (sender === '') throw refused('not_before', 'mail from the null sender is not held')
    const problem = timeProblem(release, moment, limit)
    if (problem === 'past') throw refused('not_before', 'the time is in the past')
    if (problem === 'too-far') throw refused('not_before', `the time is above smtpd_future_release_limit = ${formatDuration(limit)}`)
  }
  if (expires !== undefined && queueTimeOf(expires, moment) <= Math.max(now, release === undefined ? 0 : queueTimeOf(release, moment)))
    throw refused('expires', 'the time is not in the future, or not after not_before')
  return { ...(release === undefined ? {} : { release }), ...(expires === undefined ? {} : { expires }) }
}

/** The last `-O name=value` of a name. */
const valueOfO = (options: Options, name: string): string | undefined =>
  options.findLast((one) => one.name === 'O' && one.value.startsWith(`${name}=`))?.value.slice(name.length + 1)

/** The limit of `-O maximum_attempts=N`. Throws CommandError (64) for another value. */
function attemptsOf(options: Options): Pick<Envelope, 'maxAttempts'> {
  const text = valueOfO(options, 'maximum_attempts')
  if (text === undefined) return {}
  if (!/^[1-9]\d{0,5}$/.test(text)) throw refused('maximum_attempts', `expected a whole number of at least 1, got ${text}`)
  return { maxAttempts: Number(text) }
}

const refused = (name: string, why: string): CommandError => new CommandError(EX.usage, `sendmail: fatal: -O ${name}: ${maskControls(why)}`)

async function envelopeOf(shell: Shell, options: Options, sender: string, addresses: readonly string[]): Promise<Envelope> {
  const notify = await notifyOf(shell, valueOf(options, 'N'))
  const envid = valueOf(options, 'V')
  // -V is the envelope id; in old versions of Postfix it was VERP.
  const usable = envid === undefined || /^[!-~ ]{1,100}$/.test(envid)
  if (!usable) await warn(shell, `ignoring unusable envelope id: ${envid}`)
  return {
    sender,
    recipients: addresses.map((address) => ({ address, ...(notify === undefined ? {} : { notify }) })),
    ...(usable && envid !== undefined ? { envid } : {}),
    ...retOf(valueOf(options, 'R')),
    ...bodyOf(valueOf(options, 'B')),
    ...([sender, ...addresses].some(isInternational) ? { smtputf8: true } : {}),
  }
}

function retOf(value: string | undefined): Pick<Envelope, 'ret'> {
  const word = value?.toLowerCase()
  if (word === undefined) return {}
  if (word === 'full' || word === 'hdrs') return { ret: word }
  throw new CommandError(EX.usage, `sendmail: fatal: invalid -R option value: ${maskControls(word)}`)
}

function bodyOf(value: string | undefined): Pick<Envelope, 'body'> {
  const word = value?.toLowerCase()
  if (word === undefined) return {}
  if (word === '7bit' || word === '8bitmime') return { body: word }
  throw new CommandError(EX.usage, `sendmail: fatal: invalid -B option value: ${maskControls(word)}`)
}

async function notifyOf(shell: Shell, value: string | undefined): Promise<Notify | undefined> {
  if (value === undefined) return undefined
  const notify = parseNotify(value)
  if (notify === undefined) await warn(shell, `bad -N option value -- ignored: ${value}`)
  return notify
}

/** Reads the whole input as latin1, which preserves every byte. */
async function readAll(input: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of input) {
    size += chunk.length
    if (limit > 0 && size > limit)
      throw new CommandError(EX.unavailable, `sendmail: fatal: the message is larger than message_size_limit (${limit})`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('latin1')
}
