/**
 * Classifies the transcript of a session with one host. The result is the outcome for each recipient, whether another host may be
 * tried, and the feedback for the destination (RFC 5321 §4.2.1, RFC 3463, Postfix smtp_trouble.c and smtp_proto.c). Pure.
 */
import { loginRefusal } from '../mail/login-refusal.ts'
import { BEFORE_RCPT, OF_SESSION, requestForLess } from '../mail/less-mail.ts'
import { maskControls, statusOf, type DeliveryStatus, type Stage } from '../mail/smtp-reply.ts'
import type { RecipientId } from '../mail/message.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import type { SessionRecorder } from '../sessions/session-recorder.ts'
import type { LoginFailure, RecipientOutcome } from './delivery-agent.ts'
import type { ServerReply } from './reply-reader.ts'
import { challengeText } from './sasl-challenge.ts'
import type { Peer, Transcript, SessionFailure } from './transcript.ts'

export interface Policy {
  /** Makes every permanent failure temporary (soft_bounce). */
  readonly softBounce: boolean
  /** Makes a 5xx greeting temporary (smtp_skip_5xx_greeting). */
  readonly skip5xxGreeting: boolean
  /** Makes a refused login temporary (smtp_sasl_auth_soft_bounce). */
  readonly softAuth: boolean
  /**
   * True when the configuration names the next hop (relayhost, smtp_fallback_relay, transport_maps). A refused or missing login is
   * then an error of the configuration, not of the mail.
   */
  readonly configured: boolean
  /** True when the TLS level is `may`: a TLS failure is then not a failure of the destination. */
  readonly tlsOptional: boolean
  /** Recipient domain, for the reason "mail for DOMAIN loops back to myself". */
  readonly domain: string
  /** True when the host has the best preference, so that no other host is closer to the recipient. */
  readonly best: boolean
}

/** Outcome for a recipient after the session with one host. */
export interface Verdict extends RecipientOutcome {
  /** True when another host may be tried in the same attempt. */
  readonly elsewhere: boolean
}

export interface Classification {
  /** One verdict for every recipient of the transcript. */
  readonly verdicts: ReadonlyMap<RecipientId, Verdict>
  /** Failure of the host as a whole (site level). It is negative feedback when no other host succeeds. */
  readonly siteStatus?: DeliveryStatus | undefined
  /** The host asked for less mail: `early` at connect or greeting, `late` after that. */
  readonly congestion?: 'early' | 'late' | undefined
  /** The login that the host refused, or requires and did not get. */
  readonly login?: LoginFailure | undefined
  /** True when the session reached its end, even if it refused some recipients. */
  readonly completed: boolean
}

const nameOf = (peer: Peer): string => `${peer.name}[${peer.address}]`

const COMMANDS: Partial<Record<Stage, string>> = {
  mail: 'MAIL FROM command',
  rcpt: 'RCPT TO command',
  data: 'DATA command',
  body: 'end of DATA command',
  'end-of-data': 'end of DATA command',
}

const BDAT = 'BDAT command'

const ACTIVITIES: Partial<Record<Stage, string>> = {
  greeting: 'receiving the initial server greeting',
  ehlo: 'performing the EHLO handshake',
  starttls: 'receiving the STARTTLS response',
  handshake: 'performing the TLS handshake',
  auth: 'performing the AUTH handshake',
  mail: 'sending MAIL FROM',
  rcpt: 'sending RCPT TO',
  data: 'sending DATA command',
  body: 'sending message body',
  'end-of-data': 'sending end of data -- message may be sent more than once',
}

const soften = (status: string): string => status.replace(/^5/, '4')

/** Outcome for a recipient from the reply to a mail command. */
const verdictOfReply = (stage: Stage, reply: ServerReply, peer: Peer, policy: Policy): Verdict =>
  verdictOfCommand({ stage, command: COMMANDS[stage] ?? stage }, reply, peer, policy)

interface SentCommand {
  readonly stage: Stage
  /** Name in the reason. */
  readonly command: string
}

function verdictOfCommand({ stage, command }: SentCommand, reply: ServerReply, peer: Peer, policy: Policy): Verdict {
  const accepted = reply.code < 300
  const reason = accepted ? reply.raw : `host ${nameOf(peer)} said: ${reply.raw} (in reply to ${command})`
  const status = { status: statusOf(reply), reason, stage, reply: reply.raw, remoteMta: peer.name }
  if (accepted) return { outcome: 'delivered', status, elsewhere: false }
  if (concernsLogin(stage, reply, policy))
    return { outcome: 'deferred', status: { ...status, status: soften(status.status) }, elsewhere: true }
  return reply.code < 500 ? { outcome: 'deferred', status, elsewhere: true } : hard(status, policy)
}

/**
 * Replies to a client without the login or the TLS that the server requires (RFC 4954 §6, RFC 3207 §4): login required, mechanism
 * too weak, login refused, encryption required. Exchange Online also has 550 5.7.57.
 */
const LOGIN_CODES: ReadonlySet<number> = new Set([530, 534, 535, 538])

function concernsLogin(stage: Stage, reply: ServerReply, { configured }: Policy): boolean {
  if (!configured) return false
  return LOGIN_CODES.has(reply.code) || loginRefusal({ status: statusOf(reply), stage, reply: reply.raw })?.kind === 'missing'
}

/** A permanent failure, or a deferral with a 4.x.x status under soft_bounce. */
export function hard(status: DeliveryStatus, { softBounce }: Pick<Policy, 'softBounce'>): Verdict {
  if (!softBounce) return { outcome: 'bounced', status, elsewhere: false }
  return { outcome: 'deferred', status: { ...status, status: soften(status.status) }, elsewhere: true, softBounce: true }
}

type Refused = Extract<SessionFailure, { kind: 'refused' }>

/** Outcome from a refusal before MAIL. */
function verdictOfRefusal({ stage, reply, challenge }: Refused, peer: Peer, policy: Policy): Verdict {
  const softened =
    (stage === 'greeting' && policy.skip5xxGreeting) ||
    (stage === 'auth' && (policy.softAuth || policy.configured)) ||
    concernsLogin(stage, reply, policy)
  const enhanced = softened ? soften(statusOf(reply)) : statusOf(reply)
  const status = {
    status: enhanced,
    reason: refusalText(stage, reply, peer) + challengeText(challenge),
    stage,
    reply: reply.raw,
    remoteMta: peer.name,
  }
  return reply.code >= 500 && !softened ? hard(status, policy) : { outcome: 'deferred', status, elsewhere: true }
}

function refusalText(stage: Stage, reply: ServerReply, peer: Peer): string {
  if (stage === 'starttls') return `TLS is required, but host ${nameOf(peer)} refused to start TLS: ${reply.raw}`
  if (stage === 'auth') return `SASL authentication failed; server ${nameOf(peer)} said: ${reply.raw}`
  return `host ${nameOf(peer)} refused to talk to me: ${reply.raw}`
}

const deferred = (status: string, reason: string, stage: Stage): Verdict => ({
  outcome: 'deferred',
  status: { status, reason: maskControls(reason), stage },
  elsewhere: true,
})

function withoutDeliverBy({ minimum, left }: Extract<SessionFailure, { kind: 'no-deliver-by' }>, host: string, policy: Policy): Verdict {
  const offered = minimum === undefined ? 'does not offer DELIVERBY' : `takes at least ${minimum} s by DELIVERBY`
  const reason = `host ${host} ${offered}, and the message is to be delivered within ${left} s or returned (smtp_deliver_by_required)`
  // At its time the message expires.
  return left < 1 ? deferred('4.4.7', reason, 'mail') : hard({ status: '5.3.3', reason, stage: 'mail' }, policy)
}

/** Outcome of a failed session for a recipient that has no reply of its own. */
export function verdictOfFailure(failure: SessionFailure, peer: Peer, policy: Policy): Verdict {
  const host = nameOf(peer)
  switch (failure.kind) {
    case 'refused':
      // On a cached connection, or before the end of the content, an unsolicited refusal concerns the mail. Otherwise it concerns
      // the session.
      return failure.stage === 'body' || failure.stage === 'mail'
        ? verdictOfReply(failure.stage, failure.reply, peer, policy)
        : verdictOfRefusal(failure, peer, policy)
    case 'unreachable':
      return deferred('4.4.1', `connect to ${host}:${peer.port}: ${failure.why}`, 'connect')
    case 'lost':
      return deferred('4.4.2', `lost connection with ${host} while ${ACTIVITIES[failure.stage] ?? failure.stage}`, failure.stage)
    case 'timeout':
      return deferred('4.4.2', `conversation with ${host} timed out while ${ACTIVITIES[failure.stage] ?? failure.stage}`, failure.stage)
    case 'aborted':
      return {
        ...deferred('4.3.2', `delivery to ${host} was aborted while ${ACTIVITIES[failure.stage] ?? failure.stage}`, failure.stage),
        elsewhere: false,
      }
    case 'protocol-error':
      return deferred('4.5.0', `Protocol error: host ${host} said: ${failure.what}`, failure.stage)
    case 'loop':
      if (!policy.best) return deferred('4.4.6', `mail for ${policy.domain} loops back to myself`, 'ehlo')
      return hard({ status: '5.4.6', reason: `mail for ${policy.domain} loops back to myself`, stage: 'ehlo' }, policy)
    case 'tls':
      return deferred('4.7.5', `Cannot start TLS with ${host}: ${failure.why}`, 'handshake')
    case 'certificate':
      return deferred('4.7.5', `Server certificate not verified: ${host}: ${failure.why}`, 'handshake')
    case 'anchor':
      return deferred('4.7.5', `Server certificate not verified: ${host}: its issuer is not trusted`, 'handshake')
    case 'dane':
      return deferred('4.7.5', failure.why, 'starttls')
    case 'sts-mismatch': {
      const reason = `MX host ${peer.name} does not match the MTA-STS policy of ${failure.domain} (mode enforce, id ${failure.id})`
      return deferred('4.7.5', reason, 'starttls')
    }
    case 'tls-not-offered':
      return deferred('4.7.4', `TLS is required, but was not offered by host ${host}`, 'starttls')
    case 'tls-level': {
      const reason = `smtp_tls_wrappermode needs a TLS level of encrypt or above for host ${host}, and its level is ${failure.level}`
      return deferred('4.3.5', reason, 'connect')
    }
    case 'auth-unavailable':
      return deferred('4.7.0', `SASL authentication failed; cannot authenticate to server ${host}: ${failure.why}`, 'auth')
    case 'no-smtputf8': {
      const reason = `SMTPUTF8 is required, but was not offered by host ${host}`
      return { ...hard({ status: '5.6.7', reason, stage: 'ehlo' }, policy), elsewhere: true }
    }
    case 'no-deliver-by':
      return withoutDeliverBy(failure, host, policy)
    case 'too-big': {
      const reason = `message size ${failure.size} exceeds size limit ${failure.limit} of server ${host}`
      return hard({ status: '5.3.4', reason, stage: 'mail' }, policy)
    }
  }
}

/** True when the failure concerns the whole host (site level), so that other mail for the host would fail too. */
function isSiteLevel(failure: SessionFailure, policy: Policy): boolean {
  switch (failure.kind) {
    case 'refused':
      return failure.stage !== 'body'
    case 'tls':
      return !policy.tlsOptional
    case 'no-smtputf8':
    case 'no-deliver-by':
    case 'too-big':
    case 'aborted':
      return false
    case 'unreachable':
    case 'lost':
    case 'timeout':
    case 'protocol-error':
    case 'loop':
    case 'certificate':
    case 'anchor':
    case 'dane':
    case 'sts-mismatch':
    case 'tls-not-offered':
    case 'tls-level':
    case 'auth-unavailable':
      return true
  }
}

/** True when a reply asks for fewer deliveries at once. */
export const isCongestion = (stage: Stage, reply: ServerReply | undefined): boolean =>
  reply !== undefined &&
  reply.code >= 400 &&
  requestForLess('window', { status: statusOf(reply), stage, reply: String(reply.code) }) !== null

function congestionOf({ mail, rcpt, data, end, failure }: Transcript): Stage | undefined {
  if (failure?.kind === 'refused' && isCongestion(failure.stage, failure.reply)) return failure.stage
  if (isCongestion('mail', mail)) return 'mail'
  if (rcpt.some((reply) => isCongestion('rcpt', reply))) return 'rcpt'
  if (isCongestion('data', data)) return 'data'
  return end.some((reply) => isCongestion('end-of-data', reply)) ? 'end-of-data' : undefined
}

/** Position of a recipient in a transcript. `i` is its index, and `nth` is the number of accepted recipients before it. */
interface Position {
  readonly i: number
  readonly nth: number
}

/** The reply that decides the outcome of a recipient; undefined when no reply does. */
function deciding({ mail, rcpt, data, end }: Transcript, { i, nth }: Position): readonly [Stage, ServerReply] | undefined {
  const own = rcpt[i]
  if (mail !== undefined && mail.code >= 300) return ['mail', mail]
  if (own !== undefined && own.code >= 300) return ['rcpt', own]
  if (own !== undefined && data !== undefined && data.code >= 400) return ['data', data]
  const last = end.length > 1 ? end[nth] : end[0]
  return own === undefined || last === undefined ? undefined : ['end-of-data', last]
}

/** Outcome from the reply to BDAT. A host that offers CHUNKING and does not know BDAT is broken, which must not bounce mail. */
function verdictOfBdat(reply: ServerReply, peer: Peer, policy: Policy): Verdict {
  const verdict = verdictOfCommand({ stage: 'end-of-data', command: BDAT }, reply, peer, policy)
  if (reply.code !== 500 && reply.code !== 502) return verdict
  return { outcome: 'deferred', status: { ...verdict.status, status: soften(verdict.status.status) }, elsewhere: true }
}

function verdictFor(transcript: Transcript, position: Position, peer: Peer, policy: Policy): Verdict {
  const { recipients, failure, unreadable, dsn, deliverByEnds, chunking } = transcript
  const recipient = recipients[position.i]
  const reply = deciding(transcript, position)
  if (reply !== undefined) {
    const isBdat = chunking && reply[0] === 'end-of-data'
    const verdict = isBdat ? verdictOfBdat(reply[1], peer, policy) : verdictOfReply(reply[0], reply[1], peer, policy)
    const wantsSuccess = typeof recipient?.notify === 'object' && recipient.notify.includes('success')
    if (verdict.outcome !== 'delivered') return verdict
    return { ...verdict, ...(dsn && wantsSuccess ? { dsnPassedOn: true } : {}), ...(deliverByEnds ? { deliverByEnds } : {}) }
  }
  if (unreadable !== undefined)
    return {
      outcome: 'deferred',
      status: { status: '4.3.0', reason: unreadable.why, stage: 'body' },
      elsewhere: false,
      unreadChunk: unreadable.chunk,
    }
  if (chunking && failure?.kind === 'refused' && failure.stage === 'body')
    return verdictOfCommand({ stage: 'body', command: BDAT }, failure.reply, peer, policy)
  if (failure !== undefined) return verdictOfFailure(failure, peer, policy)
  return {
    outcome: 'deferred',
    status: { status: '4.3.0', reason: `no answer from host ${nameOf(peer)}`, stage: 'mail' },
    elsewhere: true,
  }
}

/** First reply to a mail command that refuses mail for lack of a login, with its stage; undefined when none does. */
function withoutLogin({ mail, rcpt, data, end }: Transcript, policy: Policy): readonly [Stage, ServerReply] | undefined {
  if (!policy.configured) return undefined
  const atRcpt = rcpt.map((reply) => ['rcpt', reply] as const)
  for (const [stage, reply] of [['mail', mail] as const, ...atRcpt, ['data', data] as const, ['end-of-data', end[0]] as const])
    if (reply !== undefined && concernsLogin(stage, reply, policy)) return [stage, reply]
  return undefined
}

function loginFailure({ failure }: Transcript, refusal: readonly [Stage, ServerReply] | undefined): LoginFailure | undefined {
  if (refusal !== undefined) return 'missing'
  if (failure?.kind === 'auth-unavailable') return 'refused'
  return failure?.kind === 'refused' && failure.stage === 'auth' && failure.reply.code >= 500 ? 'refused' : undefined
}

export function classify(transcript: Transcript, peer: Peer, policy: Policy): Classification {
  const verdicts = new Map<RecipientId, Verdict>()
  let accepted = 0
  transcript.recipients.forEach((recipient, i) => {
    verdicts.set(recipient.id, verdictFor(transcript, { i, nth: accepted }, peer, policy))
    if ((transcript.rcpt[i]?.code ?? 500) < 300) accepted++
  })
  const { failure } = transcript
  const stage = congestionOf(transcript)
  // Congestion at RCPT or later reduces the window. It is not a site-level failure, even when the host then disconnects.
  const late = stage !== undefined && !BEFORE_RCPT.has(stage) && !OF_SESSION.has(stage)
  const atMail = stage === 'mail' && transcript.mail !== undefined ? verdictOfReply('mail', transcript.mail, peer, policy) : undefined
  const refusal = withoutLogin(transcript, policy)
  const ofLogin = refusal === undefined ? undefined : verdictOfReply(...refusal, peer, policy)
  const ofSite =
    ofLogin ?? atMail ?? (failure !== undefined && isSiteLevel(failure, policy) ? verdictOfFailure(failure, peer, policy) : undefined)
  const siteStatus = late ? undefined : ofSite?.status
  const congestion = stage === undefined ? undefined : stage === 'greeting' || stage === 'connect' ? 'early' : 'late'
  const completed = siteStatus === undefined && failure?.kind !== 'aborted' && transcript.unreadable === undefined
  return { verdicts, siteStatus, congestion, login: policy.configured ? loginFailure(transcript, refusal) : undefined, completed }
}

/** Adds the facts of TLS to the status of every recipient. */
export function withTls(result: Classification, tls: TlsFacts): Classification {
  const verdicts = new Map<RecipientId, Verdict>()
  for (const [id, verdict] of result.verdicts) verdicts.set(id, { ...verdict, status: { ...verdict.status, tls } })
  return { ...result, verdicts }
}

/** Adds the record of the session to failed recipients, or to all. */
export function withSession(
  result: Classification,
  recorder: Pick<SessionRecorder, 'record'>,
  kept: 'no' | 'failed' | 'all',
): Classification {
  const isKept = ({ outcome }: Verdict): boolean => kept === 'all' || (kept === 'failed' && outcome !== 'delivered')
  if (![...result.verdicts.values()].some(isKept)) return result
  const session = recorder.record()
  const verdicts = new Map([...result.verdicts].map(([id, verdict]) => [id, isKept(verdict) ? { ...verdict, session } : verdict]))
  return { ...result, verdicts }
}

const NOT_BEGUN = {
  rcpt: [],
  end: [],
  possiblySent: false,
  stale: false,
  dsn: false,
  deliverByEnds: false,
  eightBit: false,
  chunking: false,
} as const

/** Classifies a session that ended before MAIL. */
export function classifyFailure(failure: SessionFailure, recipients: Transcript['recipients'], peer: Peer, policy: Policy): Classification {
  return {
    ...classify({ ...NOT_BEGUN, recipients, failure }, peer, policy),
    completed: false,
  }
}
