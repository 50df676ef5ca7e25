/**
 * What happens, in the words and shapes of Postfix's log, so that tools made for it read ours: which program says it,
 * and what. Postfix never logs some of our events; those are put in its manner.
 */
import type { RecipientOutcome } from '../delivery/delivery-agent.ts'
import { isoInstant } from '../mail/mail-date.ts'
import { formatReply } from '../mail/reply.ts'
import { queueIdOf, type DeliveryRequest, type Message, type LeasedRecipient } from '../queue/message.ts'
import type { AttemptRecord } from '../queue/store.ts'
import { formatDelay } from './delay.ts'
import type { ClientName, QueueEvent } from './events.ts'

export interface LogLine {
  /** Postfix's program: smtpd, pickup, cleanup, qmgr, smtp, lmtp, discard, error, bounce, postsuper, master. */
  readonly program: string
  readonly text: string
}

type Of<Kind extends QueueEvent['kind']> = Extract<QueueEvent, { readonly kind: Kind }>

const line = (program: string, text: string): readonly LogLine[] => [{ program, text }]

const aboutClient = ({ name, address }: ClientName): string => `${name}[${address}]`

/** `5`, or `3/5` when two of five failed. */
const tally = ([ok, all]: readonly [number, number]): string => (ok === all ? String(all) : `${ok}/${all}`)

function disconnected({ client, commands }: Of<'disconnected'>): readonly LogLine[] {
  const used = Object.entries(commands)
  const sum = used.reduce<[number, number]>(([ok, all], [, counts]) => [ok + counts[0], all + counts[1]], [0, 0])
  const counts = [...used, ['commands', sum] as const].map(([name, count]) => ` ${name}=${tally(count)}`)
  return line('smtpd', `disconnect from ${aboutClient(client)}${counts.join('')}`)
}

function refused(event: Of<'refused'>): readonly LogLine[] {
  const { client, stage, reply, queueId = 'NOQUEUE', sender, recipient, protocol, helo } = event
  const about = [
    ...(sender === undefined ? [] : [`from=<${sender}>`]),
    ...(recipient === undefined ? [] : [`to=<${recipient}>`]),
    `proto=${protocol}`,
    ...(helo === '' ? [] : [`helo=<${helo}>`]),
  ]
  return line('smtpd', `${queueId}: reject: ${stage} from ${aboutClient(client)}: ${formatReply(reply)}; ${about.join(' ')}`)
}

function clientTrouble({ client, what }: Of<'client-trouble'>): readonly LogLine[] {
  // A client that was turned away at the door was told so with a reply.
  const turnedAway = /^[45]\d\d /.test(what)
  return line(
    'smtpd',
    turnedAway ? `NOQUEUE: reject: CONNECT from ${aboutClient(client)}: ${what}; proto=SMTP` : `${what} from ${aboutClient(client)}`,
  )
}

function accepted(event: Of<'accepted'>): readonly LogLine[] {
  const { message, client, uid, originalId, saslMethod, saslUsername } = event
  const id = queueIdOf(message)
  const cleanup = { program: 'cleanup', text: `${id}: message-id=${message.messageId ?? '<>'}` }
  if (client !== null) {
    const sasl = saslUsername === undefined ? '' : `, sasl_method=${saslMethod ?? ''}, sasl_username=${saslUsername}`
    return [{ program: 'smtpd', text: `${id}: client=${aboutClient(client)}${sasl}` }, cleanup]
  }
  if (uid === undefined && originalId === undefined) return [cleanup]
  const origin = originalId === undefined ? '' : ` orig_id=${originalId}`
  return [{ program: 'pickup', text: `${id}: uid=${uid ?? 0} from=<${message.sender}>${origin}` }, cleanup]
}

const STATUS = { delivered: 'sent', deferred: 'deferred', bounced: 'bounced', expired: 'deferred' } as const

/** Which of Postfix's agents would have said it: named by the transport, or by who decided without a connection. */
function agentOf({ destination, forcedExpire }: DeliveryRequest, { status, relay }: AttemptRecord): string {
  const transport = /^(lmtp|discard|error):/.exec(destination)?.[1]
  if (transport !== undefined) return transport
  return relay === null && (forcedExpire || status.stage === 'queue' || status.stage === 'route') ? 'error' : 'smtp'
}

function originalOf({ orcpt, address }: LeasedRecipient): string {
  const original = /^(?:rfc822|utf-8);(.*)$/is.exec(orcpt ?? '')?.[1]
  return original === undefined || original.toLowerCase() === address.toLowerCase() ? '' : `, orig_to=<${original}>`
}

/** What stands in brackets: the whole reply of a server that took it, the reason otherwise. */
const said = (outcome: AttemptRecord['outcome'], { reply, reason }: Pick<RecipientOutcome, 'reply' | 'reason'>): string =>
  outcome === 'delivered' ? (reply ?? reason) : reason

function attempted({ request, result, attempts }: Of<'attempted'>): readonly LogLine[] {
  const recipients = new Map(request.recipients.map((recipient) => [recipient.id, recipient]))
  const use = result.connectionUse > 1 ? `, conn_use=${result.connectionUse}` : ''
  return attempts.map((attempt) => {
    const { relay, outcome, status, delays, at } = attempt
    const recipient = recipients.get(attempt.recipient)
    const to = recipient === undefined ? 'to=<>' : `to=<${recipient.address}>${originalOf(recipient)}`
    const times = `delay=${formatDelay(at - request.message.arrivedAt)}, delays=${delays.map(formatDelay).join('/')}`
    const soft = result.outcomes.get(attempt.recipient)?.softBounce === true && outcome === 'deferred'
    const verdict = `dsn=${status.status}, status=${soft ? 'SOFTBOUNCE' : STATUS[outcome]} (${said(outcome, status)})`
    const text = `${queueIdOf(request.message)}: ${to}, relay=${relay ?? 'none'}${use}, ${times}, ${verdict}`
    return { program: agentOf(request, attempt), text }
  })
}

const expired = ({ message, forced }: Of<'expired'>): readonly LogLine[] =>
  line('qmgr', `${queueIdOf(message)}: from=<${message.sender}>, status=${forced ? 'force-expired' : 'expired'}, returned to sender`)

const NOTICES = { failure: 'non-delivery notification', delay: 'delay notification', success: 'delivery status notification' } as const

/** What postsuper says; what it cannot do is said in its manner. */
const OPERATED: Readonly<Record<string, string>> = {
  delete: 'removed',
  expire: 'expired',
  hold: 'placed on hold',
  release: 'released from hold',
  requeue: 'requeued',
  restore: 'restored',
  flush: 'flushed',
}

const about = (message: Message, text: string): string => `${queueIdOf(message)}: ${text}`

/** The lines that tell of an event; none for what is of no interest in a log. */
export function postfixLines(event: QueueEvent): readonly LogLine[] {
  switch (event.kind) {
    case 'connected':
      return line('smtpd', `connect from ${aboutClient(event.client)}`)
    case 'disconnected':
      return disconnected(event)
    case 'refused':
      return refused(event)
    case 'client-trouble':
      return clientTrouble(event)
    case 'accepted':
      return accepted(event)
    case 'activated':
      return line(
        'qmgr',
        about(event.message, `from=<${event.message.sender}>, size=${event.message.size}, nrcpt=${event.recipientCount} (queue active)`),
      )
    case 'attempted':
      return attempted(event)
    case 'expired':
      return expired(event)
    case 'removed':
      return line('qmgr', about(event.message, 'removed'))
    case 'quarantined':
      return line('qmgr', `warning: ${about(event.message, `moved to the corrupt queue: ${event.why}`)}`)
    case 'noticed':
      return line('bounce', about(event.message, `${event.to} ${NOTICES[event.notice]}: ${event.noticeId}`))
    case 'notice-dropped':
      return line('bounce', about(event.message, `no notification is sent: ${event.why.replace(/^\w+: /, '')}`))
    case 'operated':
      return line('postsuper', `${event.queueId}: ${OPERATED[event.operation] ?? event.operation}`)
    default:
      return ownLines(event)
  }
}

type OwnEvent = Of<'window' | 'died' | 'revived' | 'suspended' | 'resumed' | 'store-trouble' | 'store-recovered' | 'note'>

/** Events that Postfix has no line for. */
function ownLines(event: OwnEvent): readonly LogLine[] {
  switch (event.kind) {
    // Windows move with every delivery: they are for the metrics.
    case 'window':
      return []
    case 'died':
      return line('qmgr', `destination ${event.destination} is suspended until ${isoInstant(event.until)}: ${event.reason}`)
    case 'revived':
      return line('qmgr', `destination ${event.destination} answers again`)
    case 'suspended':
    case 'resumed':
      return line('qmgr', `destination ${event.destination} was ${event.kind} by ${event.by}`)
    case 'store-trouble':
      return line('master', `error: the queue cannot be written, mail is refused and rests: ${event.why}`)
    case 'store-recovered':
      return line('master', 'the queue can be written again')
    default:
      return line('master', event.level === 'info' ? event.text : `${event.level}: ${event.text}`)
  }
}
