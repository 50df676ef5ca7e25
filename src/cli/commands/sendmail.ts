/**
 * `sendmail` and `mailq`: a drop-in for programs that have always handed their mail to sendmail. Mail goes to the daemon
 * over SMTP, or to the maildrop while no daemon takes it; either way it is safe when the command ends with 0.
 */
import type { LoadedConfig } from '../../config/load.ts'
import { isInternational } from '../../mail/address.ts'
import type { Envelope, Notify } from '../../mail/envelope.ts'
import { parseAddress } from '../../smtpd/path.ts'
import { getopt, type Parsed } from '../getopt.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { completeAddress, fromField, headerFields, headerRecipients, normalizeInput } from '../submission.ts'
import { bridge } from '../smtp-bridge.ts'
import { submit } from '../submit.ts'
import { harmless } from '../text.ts'
import { configFor, flushAll, flushMessage, flushSite, printQueue } from './postqueue.ts'

/** Letters of sendmail; a colon where a value follows. `-n` is wrong usage in Postfix too. */
const SPEC = 'A:B:C:F:GIL:N:O:R:UV:X:b:ce:f:h:imo:p:r:tvq:x'

type Options = Parsed['options']

const valueOf = (options: Options, ...letters: readonly string[]): string | undefined =>
  options.findLast(({ name }) => letters.includes(name))?.value

const has = (options: Options, letter: string): boolean => options.some(({ name }) => name === letter)

const warn = (shell: Shell, text: string): Promise<void> => shell.stderr.write(`sendmail: warning: ${harmless(text)}\n`)

/** `-q` alone flushes all; getopt wants a value for it, so a bare one gets a mark. */
const markBareFlush = (args: readonly string[]): readonly string[] => args.map((word) => (word === '-q' ? '-q!' : word))

/** `-o name=value` is ours, `-oi` and its kin are sendmail's. */
const isOurs = (value: string): boolean => /^[a-z0-9_]{3,}\s*=/.test(value)

export async function sendmail(shell: Shell, args: readonly string[]): Promise<void> {
  const parsed = getopt('sendmail', markBareFlush(args), SPEC)
  const ours = parsed.options
    .filter(({ name, value }) => name !== 'o' || isOurs(value))
    .map(({ name, value }) => ({ name: name === 'C' ? 'config' : name, value }))
  const loaded = await configFor(shell, 'sendmail', ours)
  const mode = valueOf(parsed.options, 'b') ?? 'm'
  if (has(parsed.options, 'q')) return flushAs(shell, loaded, valueOf(parsed.options, 'q') ?? '')
  switch (mode) {
    case 'm':
      return send(shell, loaded, parsed)
    case 'p':
      return printQueue(shell, loaded)
    case 's':
      return bridge(shell, loaded.config)
    case 'h':
    case 'H':
    case 'i':
      // Host status and alias files: there is nothing to do.
      return
    default:
      throw new CommandError(EX.usage, `sendmail: -b${harmless(mode)} is not supported; start the daemon with "deferd start"`)
  }
}

export const mailq = (shell: Shell, args: readonly string[]): Promise<void> => sendmail(shell, ['-bp', ...args])

/** `-q`, `-qI id`, `-qR site`; an interval (`-q15m`) means a daemon that has its own clock. */
async function flushAs(shell: Shell, loaded: LoadedConfig, value: string): Promise<void> {
  if (value === '!') return flushAll(shell, loaded)
  if (value.startsWith('I')) return flushMessage(shell, loaded, value.slice(1))
  if (value.startsWith('R')) return flushSite(shell, loaded, value.slice(1))
  if (!/^\d/.test(value)) throw new CommandError(EX.usage, `sendmail: -q${harmless(value)} is not supported`)
}

async function send(shell: Shell, { config }: LoadedConfig, { options, operands }: Parsed): Promise<void> {
  const dotEnds = !has(options, 'i') && !options.some(({ name, value }) => name === 'o' && value === 'i')
  const content = normalizeInput(await readAll(shell.stdin, config.message_size_limit), dotEnds)
  const fields = headerFields(Buffer.from(content, 'latin1').toString())
  const complete = (address: string) => completeAddress(address, config.myorigin)
  const named = has(options, 't') ? [...operands, ...headerRecipients(fields)] : operands
  const everybody = [...new Set(named.map(complete))].filter((address) => address !== '')
  if (everybody.length === 0) throw new CommandError(EX.usage, 'sendmail: fatal: no recipient addresses')
  const given = valueOf(options, 'f', 'r')
  const sender = complete(given ?? shell.login)
  if (sender !== '' && !isUsable(sender)) throw new CommandError(EX.data, `sendmail: fatal: bad sender address syntax: ${harmless(sender)}`)
  const addresses = everybody.filter(isUsable)
  const envelope = await envelopeOf(shell, options, sender, addresses)
  const header =
    fields.some(({ name }) => name === 'from') || has(options, 'G') ? '' : missingFrom(shell, options, sender || complete(shell.login))
  // Mail without any header gets the line that ends it.
  const gap = fields.length > 0 || header === '' || content.startsWith('\r\n') ? '' : '\r\n'
  // Bytes went in as they were and come out as they were.
  const whole = Buffer.concat([Buffer.from(header), Buffer.from(gap + content, 'latin1')])
  if (addresses.length > 0) await submit(shell, config, envelope, whole)
  // Who can be reached has been served; the others are named.
  const unusable = everybody.filter((address) => !isUsable(address))
  if (unusable.length > 0) throw new CommandError(EX.data, unusable.map((address) => `bad recipient address syntax: ${address}`).join('\n'))
}

const isUsable = (address: string): boolean => parseAddress(address, '') !== undefined

const missingFrom = (shell: Shell, options: Options, address: string): string =>
  fromField(valueOf(options, 'F') ?? shell.env['NAME'], address)

async function envelopeOf(shell: Shell, options: Options, sender: string, addresses: readonly string[]): Promise<Envelope> {
  const notify = await notifyOf(shell, valueOf(options, 'N'))
  const envid = valueOf(options, 'V')
  // -XV and the old -V… ask for VERP, which is for mailing lists.
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
  throw new CommandError(EX.usage, `sendmail: fatal: invalid -R option value: ${harmless(word)}`)
}

function bodyOf(value: string | undefined): Pick<Envelope, 'body'> {
  const word = value?.toLowerCase()
  if (word === undefined) return {}
  if (word === '7bit' || word === '8bitmime') return { body: word }
  throw new CommandError(EX.usage, `sendmail: fatal: invalid -B option value: ${harmless(word)}`)
}

async function notifyOf(shell: Shell, value: string | undefined): Promise<Notify | undefined> {
  if (value === undefined) return undefined
  const words = value.toLowerCase().split(',')
  if (words.length === 1 && words[0] === 'never') return 'never'
  const known = (['success', 'failure', 'delay'] as const).filter((word) => words.includes(word))
  if (known.length === new Set(words).size) return known
  await warn(shell, `bad -N option value -- ignored: ${value}`)
  return undefined
}

/** All of the input, as text of single bytes, so that any encoding passes unchanged. */
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
