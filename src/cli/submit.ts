/**
 * Hands a message to the daemon over SMTP, or leaves it in the maildrop while no daemon takes it.
 */
import { connect } from 'node:net'
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

/** What nodemailer tells of a failure. */
interface SubmissionError extends Error {
  readonly responseCode?: number
  readonly response?: string
}

async function overSmtp({ address, port }: Endpoint, envelope: Envelope, content: Buffer): Promise<void> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({ host: address, port, secure: false, ignoreTLS: true, connectionTimeout: 5_000 })
  const { sender, recipients, ret, envid, body } = envelope
  const [notify] = recipients.map((recipient) => recipient.notify)
  const dsn = {
    ...(ret === undefined ? {} : { ret }),
    ...(envid === undefined ? {} : { id: envid }),
    ...(notify === undefined ? {} : { notify: notify === 'never' ? 'NEVER' : notify.map((word) => word.toUpperCase()) }),
  }
  await transport.sendMail({
    raw: content,
    envelope: { from: sender, to: recipients.map((recipient) => recipient.address), use8BitMime: body === '8bitmime' },
    ...(Object.keys(dsn).length > 0 ? { dsn } : {}),
  })
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

/** The message is in the queue, or in the maildrop, when this resolves. */
export async function submit(shell: Shell, config: Config, envelope: Envelope, content: Buffer): Promise<void> {
  const endpoint = localEndpoint(config)
  if (endpoint !== null) {
    try {
      await overSmtp(endpoint, envelope, content)
      return
    } catch (error) {
      const { responseCode, response } = error as SubmissionError
      // It said no for good. Anything else, silence included, is no answer: better twice than never.
      if (responseCode !== undefined && responseCode >= 500)
        throw new CommandError(EX.unavailable, harmless(response ?? ''), { cause: error })
    }
  }
  await intoMaildrop(shell, config.queue_directory, envelope, content)
}

/** `sendmail -bs`: SMTP on standard input and output, spoken by the daemon. */
export async function bridge(shell: Shell, config: Config): Promise<void> {
  const endpoint = localEndpoint(config)
  if (endpoint === null) throw new CommandError(EX.unavailable, 'the daemon takes no mail over SMTP')
  const socket = connect({ host: endpoint.address, port: endpoint.port })
  // Who talks before the greeting is taken for a spammer.
  const greeted = new Promise<void>((resolve) => socket.once('data', () => resolve()))
  const sending = greeted.then(async () => {
    for await (const chunk of shell.stdin) socket.write(chunk)
    socket.end()
  })
  try {
    for await (const chunk of socket as AsyncIterable<Uint8Array>) await shell.stdout.write(chunk)
    await sending
  } catch (cause) {
    throw new CommandError(EX.unavailable, `the daemon cannot be reached: ${(cause as Error).message}`, { cause })
  } finally {
    socket.destroy()
  }
}
