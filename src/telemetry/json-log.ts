/**
 * Records of `log_format = "json"`. An event has one record; an attempt and a deferral have one per recipient. Times are in
 * seconds, and names in snake case. The records are a stable interface: members and events may be added, but are never removed or
 * renamed.
 */
import { failureClass } from '../mail/failure-class.ts'
import { hintOf } from '../mail/login-refusal.ts'
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import { formatReply } from '../mail/smtp-reply.ts'
import { queueIdOf, type DeliveryRequest, type MessageSummary } from '../mail/message.ts'
import { tlsFeature } from '../mail/tls-facts.ts'
import type { AttemptRecord } from '../store/queue-store.ts'
import type { ClientName, QueueEvent } from './events.ts'
import { suspendedText } from './postfix-log.ts'

/** Severity of a record of the log. */
export type Level = 'info' | 'warn' | 'error' | 'fatal'

export interface LogRecord {
  readonly level: Level
  readonly members: Readonly<Record<string, unknown>>
}

type Of<Kind extends QueueEvent['kind']> = Extract<QueueEvent, { readonly kind: Kind }>

/** Kinds that are logged. Window changes and signatures are excluded, because every delivery or message causes one; they appear in the metrics only. */
export type LoggedKind = Exclude<QueueEvent['kind'], 'window' | 'signed'>

/** Level, meaning and members of the record of each event. The log and docs/monitoring.md use this table. */
export const RECORDS = {
  connected: { level: 'info', about: 'a client connected', members: ['client_name', 'client_address'] },
  disconnected: {
    level: 'info',
    about: 'a client disconnected; `commands` holds accepted and all commands by name',
    members: ['client_name', 'client_address', 'commands'],
  },
  refused: {
    level: 'info',
    about: 'a command of a client was refused',
    members: ['client_name', 'client_address', 'stage', 'reply', 'queue_id', 'sender', 'recipient', 'protocol', 'helo'],
  },
  'client-failure': {
    level: 'info',
    about: 'a connection was refused or failed (timeout, lost connection, TLS error), a login failed, or a command was malformed',
    members: ['client_name', 'client_address', 'text'],
  },
  'content-checked': {
    level: 'info',
    about: 'an action of header_checks, body_checks or smtp_header_checks; `part` is `header` or `body`, `content` the field or line',
    members: ['queue_id', 'during', 'action', 'part', 'content', 'text', 'client_name', 'client_address', 'sender', 'recipient'],
  },
  'access-action': {
    level: 'info',
    about: 'an action of an access table or of a policy server that did not refuse the recipient; `reject_warning` after warn_if_reject',
    members: ['action', 'text', 'client_name', 'client_address', 'sender', 'recipient', 'protocol', 'helo'],
  },
  discarded: {
    level: 'info',
    about: 'a message was accepted and discarded by an action of header_checks, body_checks or an access table',
    members: ['queue_id', 'sender', 'message_id', 'client_name', 'client_address', 'uid'],
  },
  accepted: {
    level: 'info',
    about:
      'a message was accepted into the queue; a requeued one has an `original_id`, and one that XFORWARD described has `upstream_…` members',
    members: [
      'queue_id',
      'sender',
      'size',
      'message_id',
      'recipients',
      'client_name',
      'client_address',
      'uid',
      'original_id',
      'sasl_username',
      'upstream_queue_id',
      'upstream_client_name',
      'upstream_client_address',
    ],
  },
  activated: { level: 'info', about: 'a message entered the active queue', members: ['queue_id', 'sender', 'size', 'recipient_count'] },
  attempted: {
    level: 'info',
    about:
      'a delivery attempt ended; one record for each recipient; `class` is that of a failure (docs/deliverability.md), null when delivered; `tls` is as in the format `postfix`, null when no host was chosen; `login` is `refused` or `missing` when a configured next hop accepts no mail for lack of it; `oauth` is the table of the login where an access token takes the place of a password; `hint` says what to do about a refusal that concerns the login',
    members: [
      'queue_id',
      'sender',
      'recipient',
      'destination',
      'relay',
      'connection_use',
      'delay',
      'delays',
      'status',
      'class',
      'outcome',
      'stage',
      'reply',
      'reason',
      'login',
      'tls',
      'oauth',
      'hint',
    ],
  },
  deferred: {
    level: 'info',
    about: 'a recipient begins to wait for a dead destination, without an attempt; one record for each recipient',
    members: ['queue_id', 'sender', 'recipient', 'destination', 'delay', 'status', 'reason'],
  },
  expired: {
    level: 'info',
    about: 'recipients expired, or were forced to by an operator',
    members: ['queue_id', 'sender', 'forced', 'recipient_count'],
  },
  removed: { level: 'info', about: 'a message left the queue', members: ['queue_id', 'sender'] },
  quarantined: {
    level: 'error',
    about: 'a message could not be read and was moved to the corrupt queue',
    members: ['queue_id', 'sender', 'text'],
  },
  'notice-sent': { level: 'info', about: 'a notice (DSN) was queued', members: ['queue_id', 'sender', 'notice', 'to', 'notice_id'] },
  'notice-dropped': { level: 'info', about: 'no notice is sent, with the reason', members: ['queue_id', 'sender', 'text'] },
  operated: { level: 'info', about: 'an operator changed a message', members: ['queue_id', 'operation', 'by'] },
  'tls-established': {
    level: 'info',
    about: 'a TLS connection to a next hop; with `smtp_tls_loglevel` 1 only',
    members: ['relay', 'trust', 'reused', 'protocol', 'cipher', 'bits'],
  },
  'tls-policy-failed': {
    level: 'warn',
    about: 'a host did not meet the TLS policy of a domain; with `enforced`, no mail was sent to it',
    members: ['domain', 'policy', 'enforced', 'relay', 'reason'],
  },
  'oauth-token': {
    level: 'info',
    about:
      'an access token of a table `[oauth.NAME]` came, with its `lifetime`; `user` is null where one token serves all users of the table',
    members: ['oauth', 'user', 'lifetime'],
  },
  'oauth-failed': {
    level: 'warn',
    about:
      'a request for an access token failed: `result` is `temporary`, or `refused` when the authority refuses it until something is changed',
    members: ['oauth', 'user', 'result', 'text'],
  },
  died: { level: 'warn', about: 'a destination is dead: it is not tried until then', members: ['destination', 'until', 'text'] },
  revived: { level: 'info', about: 'a dead destination answered and is open; not written when a flush opens it', members: ['destination'] },
  suspended: { level: 'info', about: 'an operator suspended a destination', members: ['destination', 'by', 'until', 'text'] },
  resumed: {
    level: 'info',
    about: 'a destination was resumed by an operator or by the end of its suspension',
    members: ['destination', 'by'],
  },
  'node-joined': { level: 'info', about: 'this node joined a queue that several nodes share', members: ['node', 'name'] },
  'shards-taken': {
    level: 'info',
    about: 'this node schedules the destinations of more shards; `shards` is their number',
    members: ['shards'],
  },
  'shards-released': { level: 'info', about: 'this node gave shards up to other nodes', members: ['shards'] },
  'node-taken-over': {
    level: 'warn',
    about:
      'another node was silent: its leases have ended, and its shards are free; `corrupt` are the queue ids of messages that were moved to the corrupt queue',
    members: ['node', 'name', 'shards', 'leases', 'corrupt'],
  },
  fenced: { level: 'error', about: 'another node took this one over; it abandons its deliveries and joins again', members: ['node'] },
  'commit-in-doubt': {
    level: 'warn',
    about:
      'the answer to a commit was lost: it was found `committed` or `not-committed` (and repeated), or stays `unknown`, and clients got no reply',
    members: ['resolution'],
  },
  'mail-lost': {
    level: 'error',
    about: 'acknowledged messages are missing in the database after a failover to a standby that had not received them',
    members: ['queue_ids', 'timeline'],
  },
  'store-unavailable': { level: 'error', about: 'a commit failed: mail is refused and not delivered', members: ['text'] },
  'store-recovered': { level: 'info', about: 'commits succeed again', members: [] },
  note: { level: 'info', about: 'any other line; its level is that of the line', members: ['text'] },
} as const satisfies Readonly<Record<LoggedKind, { readonly level: Level; readonly about: string; readonly members: readonly string[] }>>

type Members<Kind extends LoggedKind> = Readonly<Record<(typeof RECORDS)[Kind]['members'][number], unknown>>

const NOTE_LEVELS: Readonly<Record<Of<'note'>['level'], Level>> = {
  info: 'info',
  warning: 'warn',
  error: 'error',
  fatal: 'fatal',
  panic: 'fatal',
}

const seconds = (millis: number): number => millis / 1000

const aboutClient = (client: ClientName) => ({ client_name: client.name, client_address: client.address })
const aboutMessage = (message: MessageSummary) => ({ queue_id: queueIdOf(message), sender: message.sender })

/** Members of the record of one attempt for one recipient. */
export const attemptMembers = (
  request: Pick<DeliveryRequest, 'message' | 'destination'>,
  address: string,
  { at, relay, outcome, status, delays }: Omit<AttemptRecord, 'recipient'>,
  { connectionUse, login }: Pick<AttemptResult, 'connectionUse' | 'login'>,
) =>
  ({
    ...aboutMessage(request.message),
    recipient: address,
    destination: request.destination,
    relay,
    connection_use: connectionUse,
    delay: seconds(at - request.message.arrivedAt),
    delays: delays.map(seconds),
    status: status.status,
    class: outcome === 'delivered' ? null : failureClass(status).class,
    outcome,
    stage: status.stage,
    reply: status.reply ?? null,
    reason: status.reason,
    login: login ?? null,
    tls: status.tls === undefined ? null : tlsFeature(status.tls),
  }) satisfies Omit<Members<'attempted'>, 'oauth' | 'hint'>

function attempts({ request, result, attempts: records }: Of<'attempted'>): readonly Members<'attempted'>[] {
  const addresses = new Map(request.recipients.map(({ id, address }) => [id, address]))
  return records.map((record) => ({
    ...attemptMembers(request, addresses.get(record.recipient) ?? '', record, result),
    oauth: result.oauth ?? null,
    hint: record.outcome === 'delivered' ? null : hintOf(record.status),
  }))
}

function deferrals({ message, destination, recipients, at, siteStatus }: Of<'deferred'>): readonly Members<'deferred'>[] {
  return recipients.map((recipient) => ({
    ...aboutMessage(message),
    recipient,
    destination,
    delay: seconds(at - message.arrivedAt),
    status: siteStatus.status,
    reason: suspendedText(siteStatus),
  }))
}

function accepted({ message, recipients, client, uid, originalId, saslUsername, upstream }: Of<'accepted'>): Members<'accepted'> {
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
    upstream_queue_id: upstream?.queueId ?? null,
    upstream_client_name: upstream?.client?.name ?? null,
    upstream_client_address: upstream?.client?.address ?? null,
  }
}

function refused({ client, stage, reply, queueId, sender, recipient, protocol, helo }: Of<'refused'>): Members<'refused'> {
  return {
    ...aboutClient(client),
    stage,
    reply: formatReply(reply),
    queue_id: queueId ?? null,
    sender: sender ?? null,
    recipient: recipient ?? null,
    protocol,
    helo,
  }
}

/** Maximum number of octets of a field or line in a record. */
const SHOWN_OCTETS = 200

const contentChecked = ({ queueId, during, action, part, octets, text, from }: Of<'content-checked'>): Members<'content-checked'> => ({
  queue_id: queueId,
  during,
  action,
  part,
  content: Buffer.from(octets.slice(0, SHOWN_OCTETS), 'latin1').toString(),
  text: Buffer.from(text, 'latin1').toString(),
  client_name: from?.client?.name ?? null,
  client_address: from?.client?.address ?? null,
  sender: from?.sender ?? null,
  recipient: from?.recipient ?? null,
})

/** Members of the record, for events that have exactly one. */
export function membersOf(event: Exclude<QueueEvent, Of<'attempted' | 'deferred' | 'window' | 'signed'>>): object {
  switch (event.kind) {
    case 'connected':
      return aboutClient(event.client) satisfies Members<'connected'>
    case 'disconnected':
      return { ...aboutClient(event.client), commands: event.commands } satisfies Members<'disconnected'>
    case 'refused':
      return refused(event)
    case 'client-failure':
      return { ...aboutClient(event.client), text: event.what } satisfies Members<'client-failure'>
    case 'access-action':
      return {
        action: event.action,
        text: event.text,
        ...aboutClient(event.client),
        sender: event.sender,
        recipient: event.recipient,
        protocol: event.protocol,
        helo: event.helo,
      } satisfies Members<'access-action'>
    case 'content-checked':
      return contentChecked(event)
    case 'discarded':
      return {
        queue_id: event.queueId,
        sender: event.sender,
        message_id: event.messageId ?? null,
        client_name: event.client?.name ?? null,
        client_address: event.client?.address ?? null,
        uid: event.uid ?? null,
      } satisfies Members<'discarded'>
    case 'accepted':
      return accepted(event)
    case 'activated':
      return {
        ...aboutMessage(event.message),
        size: event.message.size,
        recipient_count: event.recipientCount,
      } satisfies Members<'activated'>
    case 'expired':
      return { ...aboutMessage(event.message), forced: event.forced, recipient_count: event.recipients.length } satisfies Members<'expired'>
    case 'removed':
      return aboutMessage(event.message) satisfies Members<'removed'>
    case 'quarantined':
      return { ...aboutMessage(event.message), text: event.why } satisfies Members<'quarantined'>
    case 'notice-sent':
      return {
        ...aboutMessage(event.message),
        notice: event.notice,
        to: event.to,
        notice_id: queueIdOf(event.queued.message),
      } satisfies Members<'notice-sent'>
    case 'notice-dropped':
      return { ...aboutMessage(event.message), text: event.why } satisfies Members<'notice-dropped'>
    case 'operated':
      return { queue_id: event.queueId, operation: event.operation, by: event.by } satisfies Members<'operated'>
    case 'tls-established': {
      const { kind: _, ...members } = event
      return members satisfies Members<'tls-established'>
    }
    case 'tls-policy-failed': {
      const { kind: _, ...members } = event
      return members satisfies Members<'tls-policy-failed'>
    }
    case 'oauth-token':
      return { oauth: event.oauth, user: event.user, lifetime: seconds(event.lifetime) } satisfies Members<'oauth-token'>
    case 'oauth-failed': {
      const { kind: _, isFirst: _isFirst, ...members } = event
      return members satisfies Members<'oauth-failed'>
    }
    case 'died':
      return { destination: event.destination, until: seconds(event.until), text: event.siteStatus.reason } satisfies Members<'died'>
    case 'revived':
      return { destination: event.destination } satisfies Members<'revived'>
    case 'suspended': {
      const { destination, by, until, reason } = event
      return { destination, by, until: until === null ? null : seconds(until), text: reason } satisfies Members<'suspended'>
    }
    case 'resumed':
      return { destination: event.destination, by: event.by } satisfies Members<'resumed'>
    case 'node-joined':
      return { node: event.node, name: event.name } satisfies Members<'node-joined'>
    case 'shards-taken':
    case 'shards-released':
      return { shards: event.shards } satisfies Members<'shards-taken'>
    case 'node-taken-over': {
      const { node, name, shards, leases, corrupt } = event
      return { node, name, shards, leases, corrupt } satisfies Members<'node-taken-over'>
    }
    case 'fenced':
      return { node: event.node } satisfies Members<'fenced'>
    case 'commit-in-doubt':
      return { resolution: event.resolution } satisfies Members<'commit-in-doubt'>
    case 'mail-lost':
      return { queue_ids: event.queueIds, timeline: event.timeline } satisfies Members<'mail-lost'>
    case 'store-unavailable':
      return { text: event.why } satisfies Members<'store-unavailable'>
    case 'store-recovered':
      return {}
    case 'note':
      return { text: event.text } satisfies Members<'note'>
  }
}

const levelOf = (event: Exclude<QueueEvent, Of<'window' | 'signed'>>): Level =>
  event.kind === 'note' ? NOTE_LEVELS[event.level] : RECORDS[event.kind].level

function recordsOf(event: Exclude<QueueEvent, Of<'window' | 'signed'>>): readonly object[] {
  if (event.kind === 'attempted') return attempts(event)
  return event.kind === 'deferred' ? deferrals(event) : [membersOf(event)]
}

/**
 * The records of an event: one per recipient for attempts and deferrals, none for window changes, signatures and a destination that was
 * opened without an answer, one for all other events.
 */
export function logRecords(event: QueueEvent): readonly LogRecord[] {
  if (event.kind === 'window' || event.kind === 'signed' || (event.kind === 'revived' && !event.answered)) return []
  return recordsOf(event).map((members) => ({ level: levelOf(event), members: { event: event.kind, ...members } }))
}
