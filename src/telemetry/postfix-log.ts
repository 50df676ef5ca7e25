/**
 * Log lines in Postfix's format, which tools for Postfix can read: the program that logs an event, and the text. Events unknown
 * to Postfix have lines of the same style.
 */
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { isoInstant } from '../mail/mail-date.ts'
import { formatReply, maskControls } from '../mail/smtp-reply.ts'
import { EXPANDED, LOOPING, queueIdOf, type DeliveryRequest, type Message } from '../mail/message.ts'
import { tlsFeature } from '../mail/tls-facts.ts'
import type { AttemptRecord } from '../store/queue-store.ts'
import { formatDelay } from './delays.ts'
import type { ClientName, ContentOrigin, QueueEvent, UpstreamMessage } from './events.ts'

export interface LogLine {
  /** Name of the Postfix program: smtpd, pickup, cleanup, qmgr, smtp, lmtp, discard, error, bounce, postsuper, master. */
  readonly program: string
  readonly text: string
}

export interface LineOptions {
  /** smtp_log_tls_feature_status; default true. */
  readonly tlsStatus?: boolean | undefined
}

type Of<Kind extends QueueEvent['kind']> = Extract<QueueEvent, { readonly kind: Kind }>

const line = (program: string, text: string): readonly LogLine[] => [{ program, text }]

const aboutClient = ({ name, address }: ClientName): string => `${name}[${address}]`

/** Formats counts of commands: `5`, or `3/5` when two of five failed. None is `0/0`. */
const countOf = ([ok, all]: readonly [number, number]): string => (ok === all && all > 0 ? String(all) : `${ok}/${all}`)

function disconnected({ client, commands }: Of<'disconnected'>): readonly LogLine[] {
  let [ok, all] = [0, 0]
  let counts = ''
  for (const [name, count] of Object.entries(commands)) {
    ok += count[0]
    all += count[1]
    counts += ` ${name}=${countOf(count)}`
  }
  return line('smtpd', `disconnect from ${aboutClient(client)}${counts} commands=${countOf([ok, all])}`)
}

function refused(event: Of<'refused'>): readonly LogLine[] {
  const { client, stage, reply, queueId = 'NOQUEUE', sender, recipient, protocol, helo } = event
  if (event.isLogged === true) return []
  const about = [
    ...(sender === undefined ? [] : [`from=<${sender}>`]),
    ...(recipient === undefined ? [] : [`to=<${recipient}>`]),
    `proto=${protocol}`,
    ...(helo === '' ? [] : [`helo=<${helo}>`]),
  ]
  return line('smtpd', `${queueId}: reject: ${stage} from ${aboutClient(client)}: ${formatReply(reply)}; ${about.join(' ')}`)
}

function accessAction({ action, client, text, sender, recipient, protocol, helo }: Of<'access-action'>): readonly LogLine[] {
  const about = `from=<${sender}> to=<${recipient}> proto=${protocol}${helo === '' ? '' : ` helo=<${helo}>`}`
  return line('smtpd', `NOQUEUE: ${action}: RCPT from ${aboutClient(client)}: ${maskControls(text)}; ${about}`)
}

/** Forms of the lines about failures, in which Postfix's programs and its log readers expect the client at a place of its own. */
const FAILURE_LINES: readonly (readonly [what: RegExp, text: (client: string, ...parts: readonly string[]) => string])[] = [
  // fail2ban's filter for Postfix recognizes failed logins by this form of the line (postfix smtpd_sasl_glue).
  [/^SASL .*$/s, (client, what) => `warning: ${client}: ${what}`],
  [/^Illegal address syntax (in \w+ command: .*)$/s, (client, _, where) => `warning: Illegal address syntax from ${client} ${where}`],
  [/^non-SMTP command(: .*)$/s, (client, _, command) => `warning: non-SMTP command from ${client}${command}`],
  [/^SSL_accept error(: .*)$/s, (client, _, why) => `SSL_accept error from ${client}${why}`],
  [
    /^malformed BDAT command syntax(: .*)$/s,
    (client, _, command) => `warning: NOQUEUE: malformed BDAT command syntax from ${client}${command}`,
  ],
  [/^null BDAT request$/, (client, what) => `warning: NOQUEUE: ${what} from ${client}`],
  [/^BDAT request (exceeds message size limit)$/, (client, _, why) => `warning: NOQUEUE: BDAT request from ${client} ${why}`],
  // A text that begins with a reply code means that the connection was rejected with this reply.
  [/^[45]\d\d .*$/s, (client, reply) => `NOQUEUE: reject: CONNECT from ${client}: ${reply}; proto=SMTP`],
]

function clientFailure({ client, what }: Of<'client-failure'>): readonly LogLine[] {
  for (const [pattern, text] of FAILURE_LINES) {
    const parts = pattern.exec(what)
    if (parts !== null) return line('smtpd', text(aboutClient(client), ...parts))
  }
  return line('smtpd', `${what} from ${aboutClient(client)}`)
}

/** Formats what XFORWARD described. A client without an address is named only. */
function aboutUpstream({ client, queueId }: UpstreamMessage): string {
  const id = queueId === undefined ? '' : `, orig_queue_id=${queueId}`
  if (client === undefined) return id
  return `${id}, orig_client=${client.address === 'unknown' ? client.name : aboutClient(client)}`
}

function accepted(event: Of<'accepted'>): readonly LogLine[] {
  const { message, client, uid, originalId, saslMethod, saslUsername, upstream } = event
  const id = queueIdOf(message)
  const cleanup = { program: 'cleanup', text: `${id}: message-id=${message.messageId ?? '<>'}` }
  if (client !== null) {
    const sasl = saslUsername === undefined ? '' : `, sasl_method=${saslMethod ?? ''}, sasl_username=${saslUsername}`
    return [{ program: 'smtpd', text: `${id}: client=${aboutClient(client)}${sasl}${aboutUpstream(upstream ?? {})}` }, cleanup]
  }
  if (uid === undefined && originalId === undefined) return [cleanup]
  const origin = originalId === undefined ? '' : ` orig_id=${originalId}`
  return [{ program: 'pickup', text: `${id}: uid=${uid ?? 0} from=<${message.sender}>${origin}` }, cleanup]
}

function discarded({ queueId, client, uid, sender, messageId }: Of<'discarded'>): readonly LogLine[] {
  const origin =
    client === null
      ? { program: 'pickup', text: `${queueId}: uid=${uid ?? 0} from=<${sender}>` }
      : { program: 'smtpd', text: `${queueId}: client=${aboutClient(client)}` }
  return [origin, { program: 'cleanup', text: `${queueId}: message-id=${messageId ?? '<>'}` }]
}

/** Words of cleanup(8) for actions; the others are their own. */
const ACTION_WORDS: Readonly<Record<string, string>> = { warn: 'warning' }
/** Maximum number of octets of a field or line in the log (Postfix cleanup_act_log). */
const SHOWN_OCTETS = 200

function contentChecked({ during, queueId, action, part, octets, text, from }: Of<'content-checked'>): readonly LogLine[] {
  const shown = printable(octets.slice(0, SHOWN_OCTETS))
  const reason = text === '' ? '' : `: ${printable(text)}`
  const what = `${queueId}: ${ACTION_WORDS[action] ?? action}: ${part} ${shown}`
  return line(during === 'arrival' ? 'cleanup' : 'smtp', from === undefined ? what + reason : `${what} from ${aboutContent(from)}${reason}`)
}

function aboutContent({ client, sender, recipient, protocol, helo }: ContentOrigin): string {
  const origin = client === null ? 'local' : aboutClient(client)
  const session = `${protocol === undefined ? '' : ` proto=${protocol}`}${helo === undefined || helo === '' ? '' : ` helo=<${helo}>`}`
  return `${origin}; from=<${sender}> to=<${recipient}>${session}`
}

/** Octets as text without control characters, and without octets that are not UTF-8. */
const printable = (octets: string): string => maskControls(Buffer.from(octets, 'latin1').toString()).replaceAll('\ufffd', '?')

const STATUS = { delivered: 'sent', deferred: 'deferred', bounced: 'bounced', expired: 'deferred' } as const

/** Postfix program that would log an attempt: that of the transport, or `error` when no host was contacted. */
function agentOf({ destination, forcedExpire }: DeliveryRequest, { status, relay }: AttemptRecord): string {
  if (destination === EXPANDED) return 'cleanup'
  if (destination === LOOPING) return 'local'
  const transport = /^(lmtp|discard|error):/.exec(destination)?.[1]
  if (transport !== undefined) return transport
  return relay === null && (forcedExpire || status.stage === 'queue' || status.stage === 'route') ? 'error' : 'smtp'
}

const about = (message: Message, text: string): string => `${queueIdOf(message)}: ${text}`

/** Postfix's reason for mail that waits for a dead destination. */
export const suspendedText = ({ reason }: DeliveryStatus): string => `delivery temporarily suspended: ${reason}`

/** Text in parentheses: the server's reply for a delivered message, otherwise the reason. */
const textOf = (outcome: AttemptRecord['outcome'], { reply, reason }: DeliveryStatus): string =>
  outcome === 'delivered' ? (reply ?? reason) : reason

/** The warning about a failed or missing login at a configured next hop. */
function loginWarning({ destination }: DeliveryRequest, { relay, login, siteStatus }: AttemptResult): string {
  const host = relay ?? destination
  if (login === 'refused' && siteStatus !== undefined && siteStatus.reply === undefined)
    return `no login at ${host}, its mail is deferred: ${siteStatus.reason}`
  const what = `${host} ${login === 'missing' ? 'requires a login' : 'refuses the login'}, its mail is deferred`
  const hint = hintOf(siteStatus ?? null)
  if (hint !== null) return `${what}. ${hint} Then reload and flush ${destination}`
  return `${what}: correct smtp_sasl_password_maps, then reload and flush ${destination}`
}

function attempted({ request, result, attempts }: Of<'attempted'>, { tlsStatus = true }: LineOptions): readonly LogLine[] {
  const recipients = new Map(request.recipients.map((recipient) => [recipient.id, recipient]))
  const warning = result.login === undefined ? [] : line('smtp', `warning: ${queueIdOf(request.message)}: ${loginWarning(request, result)}`)
  const use = result.connectionUse > 1 ? `, conn_use=${result.connectionUse}` : ''
  const lines = attempts.map((attempt) => {
    const { relay, outcome, status, delays, at } = attempt
    const recipient = recipients.get(attempt.recipient)
    const to = recipient === undefined ? 'to=<>' : `to=<${recipient.address}>`
    const times = `delay=${formatDelay(at - request.message.arrivedAt)}, delays=${delays.map(formatDelay).join('/')}`
    const soft = result.outcomes.get(attempt.recipient)?.softBounce === true && outcome === 'deferred'
    const tls = !tlsStatus || status.tls === undefined ? '' : `tls=${tlsFeature(status.tls)}, `
    const oauth = result.oauth === undefined ? '' : `oauth=${result.oauth}, `
    const verdict = `dsn=${status.status}, status=${soft ? 'SOFTBOUNCE' : STATUS[outcome]} (${textOf(outcome, status)})`
    const text = `${queueIdOf(request.message)}: ${to}, relay=${relay ?? 'none'}${use}, ${times}, ${tls}${oauth}${verdict}`
    return { program: agentOf(request, attempt), text }
  })
  return [...lines, ...warning]
}

/**
 * Lines of Postfix's error(8) for recipients that wait for a dead destination (the service `retry` of master(5), to which qmgr(8)
 * passes such mail), so that tools for Postfix's log count them.
 */
function deferred({ message, recipients, at, activatedAt, siteStatus }: Of<'deferred'>): readonly LogLine[] {
  const delays = [activatedAt - message.arrivedAt, at - activatedAt, 0, 0]
  const times = `delay=${formatDelay(at - message.arrivedAt)}, delays=${delays.map(formatDelay).join('/')}`
  const verdict = `dsn=${siteStatus.status}, status=deferred (${suspendedText(siteStatus)})`
  return recipients.map((address) => ({ program: 'error', text: about(message, `to=<${address}>, relay=none, ${times}, ${verdict}`) }))
}

/** Postfix's summary of a handshake (smtp_tls_loglevel = 1). */
const secured = ({ relay, trust, reused, protocol, cipher, bits }: Of<'tls-established'>): string =>
  `${trust} TLS connection ${reused ? 'reused' : 'established'} to ${relay}: ${protocol} with cipher ${cipher} (${bits}/${bits} bits)`

const POLICY_NAMES = { sts: 'MTA-STS policy', dane: 'TLSA records' } as const

/** An enforced policy keeps mail from the host; one that is tested would. */
const policyFailed = ({ domain, policy, enforced, relay, reason }: Of<'tls-policy-failed'>): string =>
  `${relay} ${enforced ? 'does' : 'would'} not get mail by the ${POLICY_NAMES[policy]} of ${domain}: ${reason}`

const expired = ({ message, forced }: Of<'expired'>): readonly LogLine[] =>
  line('qmgr', `${queueIdOf(message)}: from=<${message.sender}>, status=${forced ? 'force-expired' : 'expired'}, returned to sender`)

const NOTICES = { failure: 'non-delivery notification', delay: 'delay notification', success: 'delivery status notification' } as const

/** Texts of postsuper(1), and texts in its style for restore and flush, which it does not have. */
const OPERATED: Readonly<Record<string, string>> = {
  delete: 'removed',
  expire: 'expired',
  hold: 'placed on hold',
  release: 'released from hold',
  requeue: 'requeued',
  restore: 'restored',
  flush: 'flushed',
}

/** The log lines of an event. */
export function postfixLines(event: QueueEvent, options: LineOptions = {}): readonly LogLine[] {
  switch (event.kind) {
    case 'connected':
      return line('smtpd', `connect from ${aboutClient(event.client)}`)
    case 'disconnected':
      return disconnected(event)
    case 'refused':
      return refused(event)
    case 'client-failure':
      return clientFailure(event)
    case 'access-action':
      return accessAction(event)
    case 'content-checked':
      return contentChecked(event)
    case 'discarded':
      return discarded(event)
    case 'accepted':
      return accepted(event)
    case 'activated':
      return line(
        'qmgr',
        about(event.message, `from=<${event.message.sender}>, size=${event.message.size}, nrcpt=${event.recipientCount} (queue active)`),
      )
    case 'attempted':
      return attempted(event, options)
    case 'tls-established':
      return line('smtp', secured(event))
    case 'tls-policy-failed':
      return line('smtp', `warning: ${policyFailed(event)}`)
    case 'deferred':
      return deferred(event)
    case 'expired':
      return expired(event)
    case 'removed':
      return line('qmgr', about(event.message, 'removed'))
    case 'quarantined':
      return line('qmgr', `warning: ${about(event.message, `moved to the corrupt queue: ${event.why}`)}`)
    case 'notice-sent':
      return line('bounce', about(event.message, `${event.to} ${NOTICES[event.notice]}: ${queueIdOf(event.queued.message)}`))
    case 'notice-dropped':
      return line('bounce', about(event.message, `no notification is sent: ${event.why}`))
    case 'operated':
      return line('postsuper', `${event.queueId}: ${OPERATED[event.operation] ?? event.operation}`)
    case 'node-joined':
    case 'shards-taken':
    case 'shards-released':
    case 'node-taken-over':
    case 'fenced':
    case 'commit-in-doubt':
    case 'mail-lost':
      return nodeLines(event)
    case 'signed':
      return []
    case 'oauth-token':
    case 'oauth-failed':
      return tokenLines(event)
    case 'window':
    case 'died':
    case 'revived':
    case 'suspended':
    case 'resumed':
    case 'store-unavailable':
    case 'store-recovered':
    case 'note':
      return ownLines(event)
  }
}

/** Lines about access tokens, of the client that logs in with them. */
function tokenLines(event: Of<'oauth-token' | 'oauth-failed'>): readonly LogLine[] {
  const whose = event.user === null ? `oauth=${event.oauth}` : `oauth=${event.oauth}, user=${event.user}`
  return event.kind === 'oauth-token'
    ? line('smtp', `${whose}: access token for ${Math.round(event.lifetime / 1000)} s`)
    : line('smtp', `warning: ${whose}: no access token: ${event.text}`)
}

type OwnEvent = Of<'window' | 'died' | 'revived' | 'suspended' | 'resumed' | 'store-unavailable' | 'store-recovered' | 'note'>

type NodeEvent = Of<'node-joined' | 'shards-taken' | 'shards-released' | 'node-taken-over' | 'fenced' | 'commit-in-doubt' | 'mail-lost'>

const RESOLUTIONS: Readonly<Record<Of<'commit-in-doubt'>['resolution'], string>> = {
  committed: 'it was committed',
  'not-committed': 'it was not committed, and is repeated',
  unknown: 'it could not be looked up in time, so that clients get no reply and repeat their messages',
}

/** Maximum number of queue ids in a line. */
const SHOWN_IDS = 20

/** Lines about the nodes that share the queue. */
function nodeLines(event: NodeEvent): readonly LogLine[] {
  switch (event.kind) {
    case 'node-joined':
      return line('master', `node ${event.name} joined the queue with number ${event.node}`)
    case 'shards-taken':
      return line('master', `shards taken: ${event.shards}`)
    case 'shards-released':
      return line('master', `shards released: ${event.shards}`)
    case 'node-taken-over': {
      const { node, name, shards, leases, corrupt } = event
      const text = `warning: node ${name} (${node}) was silent and is taken over: shards=${shards}, leases=${leases}`
      return line('master', corrupt.length === 0 ? text : `${text}, moved to the corrupt queue: ${corrupt.join(', ')}`)
    }
    case 'fenced':
      return line('master', `error: this node (${event.node}) was taken over by another one: it abandons its deliveries and joins again`)
    case 'commit-in-doubt':
      return line('master', `warning: the answer to a commit was lost; ${RESOLUTIONS[event.resolution]}`)
    case 'mail-lost': {
      const { queueIds, timeline } = event
      const server = timeline === null ? 'the database' : `the database (timeline ${timeline})`
      const more = queueIds.length > SHOWN_IDS ? ` and ${queueIds.length - SHOWN_IDS} more` : ''
      const ids = `${queueIds.slice(0, SHOWN_IDS).join(', ')}${more}`
      return line('master', `error: ${server} does not have ${queueIds.length} acknowledged messages, which a failover has lost: ${ids}`)
    }
  }
}

/** Lines of the events that Postfix does not have. */
function ownLines(event: OwnEvent): readonly LogLine[] {
  switch (event.kind) {
    // Window changes appear in the metrics only, because every delivery causes one.
    case 'window':
      return []
    case 'died':
      return line('qmgr', `destination ${event.destination} is dead until ${isoInstant(event.until)}: ${event.siteStatus.reason}`)
    case 'revived':
      // A flush opens a destination for one attempt, which may fail: only an answer is reported.
      return event.answered ? line('qmgr', `destination ${event.destination} is open again`) : []
    case 'suspended': {
      const end = event.until === null ? '' : ` until ${isoInstant(event.until)}`
      return line(
        'qmgr',
        `destination ${event.destination} was suspended by ${event.by}${end}${event.reason === null ? '' : `: ${event.reason}`}`,
      )
    }
    case 'resumed':
      return line('qmgr', `destination ${event.destination} was resumed by ${event.by}`)
    case 'store-unavailable':
      return line('master', `error: store unavailable, mail is refused and not delivered: ${event.why}`)
    case 'store-recovered':
      return line('master', 'store available again')
    case 'note':
      return line('master', event.level === 'info' ? event.text : `${event.level}: ${event.text}`)
  }
}
