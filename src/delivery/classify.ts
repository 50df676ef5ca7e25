/**
 * What a conversation with one host means for each recipient, for the next host and for the destination (RFC 5321
 * §4.2.1, RFC 3463, postfix smtp_trouble and smtp_proto). Pure: a transcript in, verdicts out.
 */
import { harmless, statusOf, type DeliveryStatus, type Stage } from '../mail/reply.ts'
import type { RecipientId } from '../queue/message.ts'
import type { RecipientOutcome } from './delivery-agent.ts'
import type { ServerReply } from './reply-reader.ts'
import type { Peer, Transcript, Trouble } from './transcript.ts'

export interface Policy {
  /** Nothing is returned for good; for trying things out. */
  readonly softBounce: boolean
  /** A 5xx greeting is a passing trouble. */
  readonly skip5xxGreeting: boolean
  /** A refused login is a passing trouble. */
  readonly softAuth: boolean
  /** TLS is a matter of `may`: that it fails says nothing about the destination. */
  readonly tlsOptional: boolean
  /** For "mail for DOMAIN loops back to myself". */
  readonly domain: string
  /** The host is of the best preference, so nobody else can be nearer to the recipient. */
  readonly best: boolean
}

/** What holds for a recipient after this host. */
export interface Verdict extends RecipientOutcome {
  /** Another host may do better in the same attempt. */
  readonly elsewhere: boolean
}

export interface Judgement {
  /** For every recipient of the transcript. */
  readonly verdicts: ReadonlyMap<RecipientId, Verdict>
  /** Trouble of the host as a whole: negative feedback, when it is the last word. */
  readonly site?: DeliveryStatus | undefined
  /** The far side asked for less. */
  readonly congestion?: 'early' | 'late' | undefined
  /** The conversation ran to its end, whatever was said in it. */
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

const ACTIVITIES: Partial<Record<Stage, string>> = {
  greeting: 'receiving the initial server greeting',
  ehlo: 'performing the EHLO handshake',
  starttls: 'receiving the STARTTLS response',
  auth: 'performing the AUTH handshake',
  mail: 'sending MAIL FROM',
  rcpt: 'sending RCPT TO',
  data: 'sending DATA command',
  body: 'sending message body',
  'end-of-data': 'sending end of data -- message may be sent more than once',
}

const soften = (status: string): string => status.replace(/^5/, '4')

/** A reply to a mail command as it concerns a recipient. */
export function verdictOfReply(stage: Stage, reply: ServerReply, peer: Peer, policy: Policy): Verdict {
  const said = { status: statusOf(reply), reply: reply.raw, remoteMta: peer.name, stage }
  if (reply.code < 300) return { ...said, outcome: 'delivered', reason: reply.raw, elsewhere: false }
  const reason = `host ${nameOf(peer)} said: ${reply.raw} (in reply to ${COMMANDS[stage] ?? stage})`
  if (reply.code < 500) return { ...said, outcome: 'deferred', reason, elsewhere: true }
  return hard({ ...said, reason }, policy)
}

/** A lasting failure: the sender is told, unless everything is soft here. */
export function hard(status: DeliveryStatus, { softBounce }: Pick<Policy, 'softBounce'>): Verdict {
  if (!softBounce) return { ...status, outcome: 'bounced', elsewhere: false }
  return { ...status, status: soften(status.status), outcome: 'deferred', elsewhere: true, softBounce: true }
}

/** A refusal before mail was handed over. */
function verdictOfRefusal(stage: Stage, reply: ServerReply, peer: Peer, policy: Policy): Verdict {
  const said = { reply: reply.raw, remoteMta: peer.name, stage }
  const lasting = reply.code >= 500
  const softened = (stage === 'greeting' && policy.skip5xxGreeting) || (stage === 'auth' && policy.softAuth)
  const status = softened ? soften(statusOf(reply)) : statusOf(reply)
  const reason = refusalText(stage, reply, peer)
  return lasting && !softened
    ? hard({ ...said, status, reason }, policy)
    : { ...said, status, reason, outcome: 'deferred', elsewhere: true }
}

function refusalText(stage: Stage, reply: ServerReply, peer: Peer): string {
  if (stage === 'starttls') return `TLS is required, but host ${nameOf(peer)} refused to start TLS: ${reply.raw}`
  if (stage === 'auth') return `SASL authentication failed; server ${nameOf(peer)} said: ${reply.raw}`
  return `host ${nameOf(peer)} refused to talk to me: ${reply.raw}`
}

const deferred = (status: string, reason: string, stage: Stage): Verdict => ({
  outcome: 'deferred',
  status,
  reason: harmless(reason),
  stage,
  elsewhere: true,
})

/** What a broken conversation means for every recipient that has no answer of its own. */
export function verdictOfTrouble(trouble: Trouble, peer: Peer, policy: Policy): Verdict {
  const host = nameOf(peer)
  switch (trouble.kind) {
    case 'refused':
      // A word out of turn in a kept connection, or about the content before its end, is about the mail; else about us.
      return trouble.stage === 'body' || trouble.stage === 'mail'
        ? verdictOfReply(trouble.stage, trouble.reply, peer, policy)
        : verdictOfRefusal(trouble.stage, trouble.reply, peer, policy)
    case 'unreachable':
      return deferred('4.4.1', `connect to ${host}:${peer.port}: ${trouble.why}`, 'connect')
    case 'lost':
      return deferred('4.4.2', `lost connection with ${host} while ${ACTIVITIES[trouble.stage] ?? trouble.stage}`, trouble.stage)
    case 'timeout':
      return deferred('4.4.2', `conversation with ${host} timed out while ${ACTIVITIES[trouble.stage] ?? trouble.stage}`, trouble.stage)
    case 'aborted':
      return {
        ...deferred('4.3.2', `delivery to ${host} was given up while ${ACTIVITIES[trouble.stage] ?? trouble.stage}`, trouble.stage),
        elsewhere: false,
      }
    case 'nonsense':
      return deferred('4.5.0', `Protocol error: host ${host} said: ${trouble.what}`, trouble.stage)
    case 'loop':
      if (!policy.best) return deferred('4.4.6', `mail for ${policy.domain} loops back to myself`, 'ehlo')
      return hard({ status: '5.4.6', reason: `mail for ${policy.domain} loops back to myself`, stage: 'ehlo' }, policy)
    case 'tls':
      return deferred('4.7.5', `Cannot start TLS with ${host}: ${trouble.why}`, 'starttls')
    case 'tls-not-offered':
      return deferred('4.7.4', `TLS is required, but was not offered by host ${host}`, 'starttls')
    case 'auth-unavailable':
      return deferred('4.7.0', `SASL authentication failed; cannot authenticate to server ${host}: ${trouble.why}`, 'auth')
    case 'no-smtputf8': {
      const reason = `SMTPUTF8 is required, but was not offered by host ${host}`
      return { ...hard({ status: '5.6.7', reason, stage: 'ehlo' }, policy), elsewhere: true }
    }
    case 'too-big': {
      const reason = `message size ${trouble.size} exceeds size limit ${trouble.limit} of server ${host}`
      return hard({ status: '5.3.4', reason, stage: 'mail' }, policy)
    }
  }
}

/** Is the trouble about the host as a whole, so that other mail there would fare no better? */
function isSiteLevel(trouble: Trouble, policy: Policy): boolean {
  switch (trouble.kind) {
    case 'refused':
      return trouble.stage !== 'body'
    case 'tls':
      return !policy.tlsOptional
    case 'no-smtputf8':
    case 'too-big':
    case 'aborted':
      return false
    case 'unreachable':
    case 'lost':
    case 'timeout':
    case 'nonsense':
    case 'loop':
    case 'tls-not-offered':
    case 'auth-unavailable':
      return true
  }
}

const BEFORE_RCPT: ReadonlySet<Stage> = new Set(['connect', 'greeting', 'ehlo', 'mail'])

/** Does the reply ask for less mail (design: congestion)? Only codes count, never words. */
export function asksForLess(stage: Stage, reply: ServerReply | undefined): boolean {
  if (reply === undefined || reply.code < 400) return false
  if (reply.code === 421) return true
  const status = statusOf(reply)
  return status === '4.3.2' || status === '4.4.5' || (status === '4.7.0' && BEFORE_RCPT.has(stage))
}

function congestionOf({ mail, rcpt, data, end, trouble }: Transcript): Stage | undefined {
  if (trouble?.kind === 'refused' && asksForLess(trouble.stage, trouble.reply)) return trouble.stage
  if (asksForLess('mail', mail)) return 'mail'
  if (rcpt.some((reply) => asksForLess('rcpt', reply))) return 'rcpt'
  if (asksForLess('data', data)) return 'data'
  return end.some((reply) => asksForLess('end-of-data', reply)) ? 'end-of-data' : undefined
}

/** The reply that decides about the i-th recipient, if one did; `nth` counts the accepted ones. */
function deciding({ mail, rcpt, data, end }: Transcript, i: number, nth: number): readonly [Stage, ServerReply] | undefined {
  const own = rcpt[i]
  if (mail !== undefined && mail.code >= 300) return ['mail', mail]
  if (own !== undefined && own.code >= 300) return ['rcpt', own]
  if (own !== undefined && data !== undefined && data.code >= 400) return ['data', data]
  const last = end.length > 1 ? end[nth] : end[0]
  return own === undefined || last === undefined ? undefined : ['end-of-data', last]
}

function verdictFor(transcript: Transcript, i: number, nth: number, peer: Peer, policy: Policy): Verdict {
  const { recipients, trouble, unreadable, dsn } = transcript
  const recipient = recipients[i]
  const reply = deciding(transcript, i, nth)
  if (reply !== undefined) {
    const verdict = verdictOfReply(reply[0], reply[1], peer, policy)
    const wantsSuccess = typeof recipient?.notify === 'object' && recipient.notify.includes('success')
    return verdict.outcome === 'delivered' && dsn && wantsSuccess ? { ...verdict, dsnPassedOn: true } : verdict
  }
  if (unreadable !== undefined) return { outcome: 'deferred', status: '4.3.0', reason: unreadable.why, stage: 'body', elsewhere: false }
  if (trouble !== undefined) return verdictOfTrouble(trouble, peer, policy)
  return { outcome: 'deferred', status: '4.3.0', reason: `no answer from host ${nameOf(peer)}`, stage: 'mail', elsewhere: true }
}

export function judge(transcript: Transcript, peer: Peer, policy: Policy): Judgement {
  const verdicts = new Map<RecipientId, Verdict>()
  let accepted = 0
  transcript.recipients.forEach((recipient, i) => {
    verdicts.set(recipient.id, verdictFor(transcript, i, accepted, peer, policy))
    if ((transcript.rcpt[i]?.code ?? 500) < 300) accepted++
  })
  const { trouble } = transcript
  const stage = congestionOf(transcript)
  // Said at RCPT or later it lowers the window and is no failure of the site, even when it hangs up afterwards.
  const late = stage !== undefined && !BEFORE_RCPT.has(stage)
  const atMail = stage === 'mail' && transcript.mail !== undefined ? verdictOfReply('mail', transcript.mail, peer, policy) : undefined
  const site = late
    ? undefined
    : (atMail ?? (trouble !== undefined && isSiteLevel(trouble, policy) ? verdictOfTrouble(trouble, peer, policy) : undefined))
  const congestion = stage === undefined ? undefined : stage === 'greeting' || stage === 'connect' ? 'early' : 'late'
  return { verdicts, site, congestion, completed: site === undefined && trouble?.kind !== 'aborted' && transcript.unreadable === undefined }
}

/** The same for a conversation that ended before mail was handed over. */
export function judgeTrouble(trouble: Trouble, recipients: Transcript['recipients'], peer: Peer, policy: Policy): Judgement {
  return {
    ...judge({ recipients, rcpt: [], end: [], possiblySent: false, stale: false, dsn: false, trouble }, peer, policy),
    completed: false,
  }
}
