/** Log lines of deliveries in Postfix's format. */
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import { about, type LineOptions, type LogLine } from '../../events/event-kind.ts'
import { hintOf } from '../../mail/login-refusal.ts'
import { releasedAt, EXPANDED, LOOPING, type DeliveryRequest, type DestinationName, type Message } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { tlsFeature } from '../../mail/tls-facts.ts'
import type { AttemptRecord, Settled } from '../../store/recorded-outcomes.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import { formatDelay } from './delays.ts'

/** An attempt to deliver a request. */
export interface Attempted {
  readonly request: DeliveryRequest
  readonly result: AttemptResult
  readonly attempts: readonly AttemptRecord[]
  /** State of each recipient of the request, in its order. */
  readonly settled: readonly Settled[]
}

/** Recipients that begin to wait for a dead destination, without an attempt of their own. */
export interface Deferral {
  readonly message: Message
  readonly destination: DestinationName
  /** Addresses. */
  readonly recipients: readonly string[]
  readonly at: QueueTime
  /** Time at which they entered the active queue; `at` when they did not. */
  readonly activatedAt: QueueTime
  /** Failure for which the destination is dead. */
  readonly siteStatus: DeliveryStatus
}

const STATUS = { delivered: 'sent', deferred: 'deferred', bounced: 'bounced', expired: 'deferred' } as const

/** Lines of the recipients of an attempt, and a warning about a login. */
export function attemptLines({ request, result, attempts }: Attempted, { tlsStatus = true }: LineOptions): readonly LogLine[] {
  const { message } = request
  const addresses = new Map(request.recipients.map(({ id, address }) => [id, address]))
  const use = result.connectionUse > 1 ? `, conn_use=${result.connectionUse}` : ''
  const oauth = result.oauth === undefined ? '' : `, oauth=${result.oauth}`
  const lines = attempts.map((attempt) => {
    const { recipient, relay, outcome, status, delays, at } = attempt
    const isSoft = result.outcomes.get(recipient)?.softBounce === true && outcome === 'deferred'
    const tls = !tlsStatus || status.tls === undefined ? '' : `, tls=${tlsFeature(status.tls)}`
    // The server's reply for a delivered message, otherwise the reason.
    const text = outcome === 'delivered' ? (status.reply ?? status.reason) : status.reason
    const verdict = `dsn=${status.status}, status=${isSoft ? 'SOFTBOUNCE' : STATUS[outcome]} (${text})`
    const relayed = `relay=${relay ?? 'none'}${use}, ${delaysText(at - releasedAt(message), delays)}${tls}${oauth}`
    return { program: agentOf(request, attempt), text: about(message, `to=<${addresses.get(recipient) ?? ''}>, ${relayed}, ${verdict}`) }
  })
  if (result.login !== undefined) lines.push({ program: 'smtp', text: `warning: ${about(message, loginWarning(request, result))}` })
  return lines
}

const delaysText = (delay: Duration, delays: readonly Duration[]): string =>
  `delay=${formatDelay(delay)}, delays=${delays.map(formatDelay).join('/')}`

/** Postfix program that would log an attempt: that of the transport, or `error` when no host was contacted. */
function agentOf({ destination, forcedExpire }: DeliveryRequest, { status, relay }: AttemptRecord): string {
  if (destination === EXPANDED) return 'cleanup'
  if (destination === LOOPING) return 'local'
  const transport = /^(lmtp|discard|error):/.exec(destination)?.[1]
  if (transport !== undefined) return transport
  return relay === null && (forcedExpire || status.stage === 'queue' || status.stage === 'route') ? 'error' : 'smtp'
}

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

/**
 * Lines of Postfix's error(8) for recipients that wait for a dead destination (the service `retry` of master(5), to which qmgr(8)
 * passes such mail), so that tools for Postfix's log count them.
 */
export function deferralLines({ message, recipients, at, activatedAt, siteStatus }: Deferral): readonly LogLine[] {
  const times = delaysText(at - releasedAt(message), [activatedAt - releasedAt(message), at - activatedAt, 0, 0])
  const verdict = `dsn=${siteStatus.status}, status=deferred (${suspendedText(siteStatus)})`
  return recipients.map((address) => ({ program: 'error', text: about(message, `to=<${address}>, relay=none, ${times}, ${verdict}`) }))
}

/** Postfix's reason for mail that waits for a dead destination. */
export const suspendedText = ({ reason }: DeliveryStatus): string => `delivery temporarily suspended: ${reason}`
