/** Mail that a test submits without an SMTP client, as the API would. */
import { parseNamedTime, timeProblem, type NamedTime } from '../mail/message-times.ts'
import type { Notify, Ret } from '../mail/envelope.ts'
import type { Relay } from '../relay/relay.ts'
import { shown } from '../system/shown-value.ts'
import type { Clock } from '../system/clock.ts'
import { toDuration, type Time } from './options/time.ts'

/** A message for `World.submit`. */
export interface SubmitOptions {
  readonly from?: string
  readonly to: string | readonly string[]
  readonly subject?: string
  readonly text?: string
  /** A time from now such as `'2h'`, or an instant such as `'2026-01-01T08:00:00Z'`: no delivery begins before. */
  readonly notBefore?: Time
  /** The same, for the time at which undelivered mail is given up. */
  readonly expires?: Time
  /** Failed attempts after which the message is returned; see maximal_delivery_attempts. */
  readonly maximumAttempts?: number
  readonly envid?: string
  readonly notify?: Notify
  readonly ret?: Ret
  /** Class for which the message asks ([class.NAME]). */
  readonly class?: string
  /** The login, or token, that submits the message and may cancel it. */
  readonly by?: string
}

export const SUBMIT_OPTIONS = [
  'from',
  'to',
  'subject',
  'text',
  'notBefore',
  'expires',
  'maximumAttempts',
  'envid',
  'notify',
  'ret',
  'class',
  'by',
] as const

/** A number is a time from now, as in all calls of the kit. */
export function timeOf(name: string, given: Time | undefined): NamedTime | undefined {
  if (given === undefined) return undefined
  const time = typeof given === 'number' ? { kind: 'span' as const, span: toDuration(given) } : parseNamedTime(given)
  if (time === undefined) throw new TypeError(`${name} expects a time such as "2h" or "2026-01-01T08:00:00Z", got ${shown(given)}`)
  return time
}

/** Queues a message, and resolves with its queue id. Rejects with a TypeError for times that the relay does not grant. */
export async function submitTo(relay: Relay, clock: Clock, options: SubmitOptions): Promise<string> {
  const {
    from = 'app@us.example',
    to,
    subject = 'hi',
    text = 'hi',
    maximumAttempts,
    envid,
    notify,
    ret,
    class: asked,
    by = 'app',
  } = options
  if (maximumAttempts !== undefined && !(Number.isInteger(maximumAttempts) && maximumAttempts >= 1))
    throw new TypeError(`maximumAttempts expects a whole number of at least 1, got ${shown(maximumAttempts)}`)
  if (asked !== undefined && !relay.config.class.has(asked))
    throw new TypeError(`class ${shown(asked)} is not among the [class.NAME] tables of the configuration`)
  const recipients = (typeof to === 'string' ? [to] : to).map((address) => ({ address, notify }))
  const release = timeOf('notBefore', options.notBefore)
  const { smtpd_future_release_limit: limit } = relay.config
  if (release !== undefined && timeProblem(release, { now: clock.now(), wall: clock.wall }, limit) !== null)
    throw new TypeError(`notBefore ${shown(options.notBefore)} is in the past, or above smtpd_future_release_limit`)
  const receiver = relay.acceptor.open({
    envelope: {
      sender: from,
      recipients,
      envid,
      ret,
      release,
      expires: timeOf('expires', options.expires),
      maxAttempts: maximumAttempts,
      class: asked,
    },
    client: {
      name: 'localhost',
      address: '127.0.0.1',
      helo: '',
      protocol: 'HTTP',
      saslUsername: by,
      saslMethod: 'http',
      local: true,
      own: true,
    },
  })
  await receiver.write([Buffer.from(`Subject: ${subject}\r\n\r\n${text}\r\n`)])
  const acceptance = await receiver.end()
  if (acceptance.kind !== 'queued') throw new Error(`the relay did not accept the message: ${JSON.stringify(acceptance)}`)
  return acceptance.queueId
}
