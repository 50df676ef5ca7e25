/**
 * Hands a message to the daemon over SMTP, or leaves it in the maildrop while no daemon takes it.
 */
import type { SMTPEnvelope, SMTPError } from 'nodemailer/lib/smtp-connection'
import type { Config } from '../config/options.ts'
import type { Envelope } from '../mail/envelope.ts'
import type { Endpoint } from '../delivery/net.ts'
import { leaveMail } from '../queue/maildrop.ts'
import { parseListen } from '../config/endpoints.ts'
import { CommandError, EX, type Shell } from './shell.ts'
import { harmless } from './text.ts'

/** Where the daemon of this configuration can be reached from this machine; null when it takes no mail over SMTP. */
export function localEndpoint({ smtpd_listen: [first] }: Pick<Config, 'smtpd_listen'>): Endpoint | null {
  if (first === undefined) return null
  const { address, port } = parseListen(first, 'smtpd_listen')
  const anywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '127.0.0.1' }
  return port === 0 ? null : { address: anywhere[address] ?? address, port }
}

/** Recipients that were refused while others were taken, with what was said. */
type Rejections = readonly SMTPError[]

/** Resolves with those that were refused when the message was taken for the others; rejects when it was taken for nobody. */
async function overSmtp({ address, port }: Endpoint, envelope: Envelope, content: Buffer): Promise<Rejections> {
  const { default: SMTPConnection } = await import('nodemailer/lib/smtp-connection')
  const connection = new SMTPConnection({ host: address, port, secure: false, ignoreTLS: true, connectionTimeout: 5_000 })
  try {
    return await new Promise<Rejections>((resolve, reject) => {
      connection.once('error', reject)
      connection.connect((failed) => {
        if (failed !== undefined) return reject(failed)
        connection.send(smtpEnvelope(envelope), content, (error, sent) => {
          if (error === null) resolve(sent?.rejectedErrors ?? [])
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

/** Leaves it for the next start; says in sendmail's codes why it could not. */
async function intoMaildrop(shell: Shell, queueDirectory: string, envelope: Envelope, content: Buffer): Promise<void> {
  const unguessable = [1, 2].map(() => Math.floor(shell.random.draw('maildrop') * 2 ** 48).toString(36)).join('')
  const name = `${shell.clock.now()}-${shell.pid}-${unguessable}`
  try {
    await leaveMail(queueDirectory, name, envelope, content)
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw new CommandError(
      missing ? EX.unavailable : EX.temporary,
      missing ? `no daemon takes mail, and there is no maildrop in ${queueDirectory}` : `cannot queue mail: ${(cause as Error).message}`,
      { cause },
    )
  }
}

/** Which recipients were refused; null when the message must be offered again, which is better than never. */
async function offer(endpoint: Endpoint, envelope: Envelope, content: Buffer): Promise<Rejections | null> {
  try {
    return await overSmtp(endpoint, envelope, content)
  } catch (error) {
    const { responseCode, response, rejectedErrors } = error as SMTPError
    if (rejectedErrors !== undefined) return rejectedErrors
    if (!isFinal(responseCode)) return null
    throw new CommandError(EX.unavailable, harmless(response ?? ''), { cause: error })
  }
}

const isFinal = (code: number | undefined): boolean => code !== undefined && code >= 500

/**
 * The message is in the queue, or in the maildrop, when this resolves. Who is refused for good is told when the others
 * have been served; who is refused for now (there are too many, say) finds the message in the maildrop.
 */
export async function submit(shell: Shell, config: Config, envelope: Envelope, content: Buffer): Promise<void> {
  const endpoint = localEndpoint(config)
  const rejections = endpoint === null ? null : await offer(endpoint, envelope, content)
  if (rejections === null) return intoMaildrop(shell, config.queue_directory, envelope, content)
  const refused = rejections.filter(({ responseCode }) => isFinal(responseCode))
  const later = new Set(rejections.filter((one) => !refused.includes(one)).map(({ recipient }) => recipient))
  const recipients = envelope.recipients.filter(({ address }) => later.has(address))
  if (recipients.length > 0) await intoMaildrop(shell, config.queue_directory, { ...envelope, recipients }, content)
  if (refused.length === 0) return
  throw new CommandError(EX.unavailable, refused.map(({ recipient, response }) => `${recipient}: ${response}`).join('\n'))
}
