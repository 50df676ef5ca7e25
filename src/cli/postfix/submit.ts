/**
 * Submits a message to the daemon over SMTP, or writes it to the maildrop when no daemon accepts it.
 */
import type { SMTPEnvelope, SMTPError } from 'nodemailer/lib/smtp-connection'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import type { Config } from '../../config/options.ts'
import type { Envelope } from '../../mail/envelope.ts'
import type { Endpoint } from '../../system/net.ts'
import { submitToMaildrop } from '../../queue/intake/maildrop-writer.ts'
import { QueueIncompatible, QueueTooNew } from '../../store/errors.ts'
import { listenAt } from '../../config/values/endpoints.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls } from '../../presentation/text.ts'

/** Address of the daemon on this machine; null when it has no usable listener. */
export function localEndpoint({ smtpd_listen: [first], inet_protocols }: Pick<Config, 'smtpd_listen' | 'inet_protocols'>): Endpoint | null {
  if (first === undefined) return null
  const { address, port, ipv6Only = false } = listenAt(first, 'smtpd_listen', inet_protocols)
  const anywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': ipv6Only ? '::1' : '127.0.0.1' }
  return port === 0 ? null : { address: anywhere[address] ?? address, port }
}

/** Replies for refused recipients, when other recipients were accepted. */
type Rejections = readonly SMTPError[]

/** Answer of the daemon: its reply to the content, and the refused recipients. */
interface Taken {
  readonly reply: string
  readonly rejections: Rejections
}

/**
 * Sends the message. Resolves when at least one recipient was accepted. Rejects when all recipients or the content were refused,
 * or when the connection failed.
 */
async function overSmtp({ address, port }: Endpoint, envelope: Envelope, content: Buffer): Promise<Taken> {
  const { default: SMTPConnection } = await import('nodemailer/lib/smtp-connection')
  const connection = new SMTPConnection({ host: address, port, secure: false, ignoreTLS: true, connectionTimeout: 5_000 })
  try {
    return await new Promise<Taken>((resolve, reject) => {
      connection.once('error', reject)
      connection.connect((failed) => {
        if (failed !== undefined) return reject(failed)
        connection.send(smtpEnvelope(envelope), content, (error, sent) => {
          if (error === null) resolve({ reply: sent?.response ?? '', rejections: sent?.rejectedErrors ?? [] })
          else reject(error)
        })
      })
    })
  } finally {
    connection.quit()
  }
}

function smtpEnvelope({ sender, recipients, ret, envid, body }: Envelope): SMTPEnvelope {
  const [notify] = recipients.map((recipient) => recipient.notify)
  const dsn: SMTPEnvelope['dsn'] = {
    ...(ret === undefined ? {} : { ret }),
    ...(envid === undefined ? {} : { id: envid }),
    ...(notify === undefined ? {} : { notify: notify === 'never' ? 'NEVER' : notify.map((word) => word.toUpperCase()) }),
  }
  return {
    from: sender,
    to: recipients.map((recipient) => recipient.address),
    use8BitMime: body === '8bitmime',
    ...(Object.keys(dsn).length > 0 ? { dsn } : {}),
  }
}

/**
 * Throws when the queue in the folder exists and this program will not open it. A queue that is missing, or that this user cannot read, is
 * accepted.
 */
async function assertCompatible(shell: Shell, config: Config): Promise<void> {
  // The daemon takes the maildrop, whether or not the database can be reached now.
  if (config.queue_database !== '') return
  try {
    const reader = await shell.openReader(config)
    await reader.close()
  } catch (error) {
    if (error instanceof QueueIncompatible || error instanceof QueueTooNew) throw error
  }
}

/** Writes maildrop files; throws CommandError with sendmail's exit codes. */
async function intoMaildrop(shell: Shell, config: Config, envelope: Envelope, content: Buffer): Promise<void> {
  await assertCompatible(shell, config)
  const { queue_directory: queueDirectory } = config
  const draw = shell.random.stream('maildrop')
  const newName = () => {
    const unguessable = [1, 2].map(() => Math.floor(draw() * 2 ** 48).toString(36)).join('')
    return `${shell.clock.now()}-${shell.pid}-${unguessable}`
  }
  try {
    await submitToMaildrop(shell.files, queueDirectory, { newName, envelope, content })
  } catch (cause) {
    const missing = errorCode(cause) === 'ENOENT'
    throw new CommandError(
      missing ? EX.unavailable : EX.temporary,
      missing ? `no daemon takes mail, and there is no maildrop in ${queueDirectory}` : `cannot queue mail: ${errorMessage(cause)}`,
      { cause },
    )
  }
}

/**
 * Submits the message to the daemon. Null means that the message must be written to the maildrop. Throws CommandError when the
 * daemon refuses the message permanently.
 */
async function offer(endpoint: Endpoint, envelope: Envelope, content: Buffer): Promise<Taken | null> {
  try {
    return await overSmtp(endpoint, envelope, content)
  } catch (error) {
    const { responseCode, response, rejectedErrors } = error as SMTPError
    if (rejectedErrors !== undefined) return { reply: '', rejections: rejectedErrors }
    if (!isFinal(responseCode)) return null
    throw new CommandError(EX.unavailable, maskControls(response ?? ''), { cause: error })
  }
}

const isFinal = (code: number | undefined): boolean => code !== undefined && code >= 500

/**
 * Submits a message. Resolves when it is in the queue or in the maildrop, with text for the user: the queue id, or the reason why
 * there is none yet. Temporarily refused recipients are submitted through the maildrop. For permanently refused ones, throws
 * CommandError after the others were accepted.
 */
export async function submit(shell: Shell, config: Config, envelope: Envelope, content: Buffer): Promise<string> {
  const endpoint = localEndpoint(config)
  const taken = endpoint === null ? null : await offer(endpoint, envelope, content)
  if (taken === null) {
    await intoMaildrop(shell, config, envelope, content)
    return 'stored in the maildrop; the daemon assigns the queue id'
  }
  const { reply, rejections } = taken
  const refused = rejections.filter(({ responseCode }) => isFinal(responseCode))
  const later = new Set(rejections.filter((one) => !refused.includes(one)).map(({ recipient }) => recipient))
  const recipients = envelope.recipients.filter(({ address }) => later.has(address))
  if (recipients.length > 0) await intoMaildrop(shell, config, { ...envelope, recipients }, content)
  if (refused.length === 0) return /queued as \w+/.exec(reply)?.[0] ?? maskControls(reply)
  throw new CommandError(EX.unavailable, refused.map(({ recipient, response }) => `${recipient}: ${response}`).join('\n'))
}
