/**
 * What happens, as records with stable members for `log_format = "json"`: one record per event, one per recipient for
 * attempts. Times in seconds, names in snake case; members are only ever added.
 */
import { formatReply } from '../mail/reply.ts'
import { queueIdOf, type MessageSummary } from '../queue/message.ts'
import type { QueueEvent } from './events.ts'

export type Level = 'info' | 'warn' | 'error' | 'fatal'

export interface LogRecord {
  readonly level: Level
  readonly members: Readonly<Record<string, unknown>>
}

type Of<Kind extends QueueEvent['kind']> = Extract<QueueEvent, { readonly kind: Kind }>

const LEVELS: Readonly<Record<Of<'note'>['level'], Level>> = {
  info: 'info',
  warning: 'warn',
  error: 'error',
  fatal: 'fatal',
  panic: 'fatal',
}

const seconds = (millis: number): number => millis / 1000

const aboutMessage = (message: MessageSummary) => ({ queue_id: queueIdOf(message), sender: message.sender })

function attempts({ request, result, attempts: records }: Of<'attempted'>): readonly LogRecord[] {
  const addresses = new Map(request.recipients.map(({ id, address }) => [id, address]))
  return records.map(({ recipient, at, relay, outcome, status, delays }) => ({
    level: 'info',
    members: {
      event: 'attempted',
      ...aboutMessage(request.message),
      recipient: addresses.get(recipient) ?? '',
      destination: request.destination,
      relay,
      connection_use: result.connectionUse,
      delay: seconds(at - request.message.arrivedAt),
      delays: delays.map(seconds),
      status: status.status,
      outcome,
      stage: status.stage,
      reply: status.reply ?? null,
      reason: status.reason,
    },
  }))
}

function accepted({ message, recipients, client, uid, originalId, saslUsername }: Of<'accepted'>): object {
  return {
    ...aboutMessage(message),
    size: message.size,
    message_id: message.messageId ?? null,
    recipients,
    client_name: client?.name ?? null,
    client_address: client?.address ?? null,
    uid: uid ?? null,
    original_id: originalId ?? null,
    sasl_username: saslUsername ?? null,
  }
}

function refused({ client, stage, reply, queueId, sender, recipient, protocol, helo }: Of<'refused'>): object {
  return {
    client_name: client.name,
    client_address: client.address,
    stage,
    reply: formatReply(reply),
    queue_id: queueId ?? null,
    sender: sender ?? null,
    recipient: recipient ?? null,
    protocol,
    helo,
  }
}

/** What is told of an event, and how loud; attempts have a record for each recipient instead. */
function membersOf(event: Exclude<QueueEvent, Of<'attempted' | 'window'>>): readonly [Level, object] {
  switch (event.kind) {
    case 'connected':
      return ['info', { client_name: event.client.name, client_address: event.client.address }]
    case 'disconnected':
      return ['info', { client_name: event.client.name, client_address: event.client.address, commands: event.commands }]
    case 'refused':
      return ['info', refused(event)]
    case 'client-trouble':
      return ['info', { client_name: event.client.name, client_address: event.client.address, text: event.what }]
    case 'accepted':
      return ['info', accepted(event)]
    case 'activated':
      return ['info', { ...aboutMessage(event.message), size: event.message.size, recipient_count: event.recipientCount }]
    case 'expired':
      return ['info', { ...aboutMessage(event.message), forced: event.forced, recipient_count: event.recipients.length }]
    case 'removed':
      return ['info', aboutMessage(event.message)]
    case 'quarantined':
      return ['error', { ...aboutMessage(event.message), text: event.why }]
    case 'noticed':
      return ['info', { ...aboutMessage(event.message), notice: event.notice, to: event.to, notice_id: event.noticeId }]
    case 'notice-dropped':
      return ['info', { ...aboutMessage(event.message), text: event.why }]
    case 'operated':
      return ['info', { queue_id: event.queueId, operation: event.operation, by: event.by }]
    case 'died':
      return ['warn', { destination: event.destination, until: seconds(event.until), text: event.reason }]
    case 'revived':
      return ['info', { destination: event.destination }]
    case 'suspended':
    case 'resumed':
      return ['info', { destination: event.destination, by: event.by }]
    case 'store-trouble':
      return ['error', { text: event.why }]
    case 'store-recovered':
      return ['info', {}]
    default:
      return [LEVELS[event.level], { text: event.text }]
  }
}

/** The records that tell of an event; windows move with every delivery and are for the metrics. */
export function logRecords(event: QueueEvent): readonly LogRecord[] {
  if (event.kind === 'window') return []
  if (event.kind === 'attempted') return attempts(event)
  const [level, members] = membersOf(event)
  return [{ level, members: { event: event.kind, ...members } }]
}
