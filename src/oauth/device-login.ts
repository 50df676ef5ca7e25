/**
 * The login of a person by a device code (RFC 8628): the authority gives a code, the person enters it on a page of the authority, and the
 * client polls for the token meanwhile. The steps are pure; `deviceLogin` runs them.
 */
import { MINUTE, SECOND, sleep, type Clock, type Duration, type WallTime } from '../system/clock.ts'
import { adviceFor } from './advice.ts'
import type { AskAuthority, AuthorityReply } from './authority.ts'
import { proofFields } from './grant-request.ts'
import type { OauthClient } from './oauth-client.ts'
import { jsonObject, secondsOf, tokenAnswer, type TokenAnswer } from './token-answer.ts'

/** Answer of the device endpoint: texts for the person, and the code with which the client polls. */
export interface DeviceCode {
  readonly deviceCode: string
  /** Printable ASCII. */
  readonly userCode: string
  /** Address of the page, printable ASCII. */
  readonly verificationUri: string
  /** Address of the page with the code in it; null without. */
  readonly completeUri: string | null
  /** Time after which the code is void. */
  readonly lifetime: Duration
  readonly interval: Duration
}

type DeviceAnswer = { readonly kind: 'code'; readonly code: DeviceCode } | Exclude<TokenAnswer, { readonly kind: 'token' }>

export interface Login {
  readonly kind: 'login'
  readonly refreshToken: string
  readonly token: string
  readonly lifetime: Duration
}

export type LoginFailure = {
  readonly kind: 'failed'
  readonly reason: 'denied' | 'expired' | 'refused' | 'unreachable' | 'no-refresh-token' | 'stopped'
  /** Sentence with the cause, and with what to do. */
  readonly why: string
}

interface ProofFacts {
  readonly now: WallTime
  /** Unique `jti` of the proof of a client by its certificate. */
  readonly id: string
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

// --- requests

/** The form that asks for a device code (RFC 8628 §3.1). */
function deviceRequest(client: OauthClient, facts: ProofFacts): URLSearchParams {
  const { clientId, scope, audience } = client.table
  const form = new URLSearchParams({ client_id: clientId, scope })
  if (audience !== '') form.append('audience', audience)
  for (const [name, value] of proofFields(client, facts)) form.append(name, value)
  return form
}

/** The form that polls for the token (RFC 8628 §3.4). */
function deviceTokenRequest(client: OauthClient, { deviceCode }: DeviceCode, facts: ProofFacts): URLSearchParams {
  const form = new URLSearchParams({ grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: client.table.clientId })
  for (const [name, value] of proofFields(client, facts)) form.append(name, value)
  return form
}

// --- answers

/** Interval of an answer without one (RFC 8628 §3.2). */
const DEFAULT_INTERVAL: Duration = 5 * SECOND
const LONGEST_INTERVAL: Duration = MINUTE
const DEFAULT_LIFETIME: Duration = 15 * MINUTE
const LONGEST_LIFETIME: Duration = 60 * MINUTE

const isShowable = (value: unknown): value is string => typeof value === 'string' && /^[\x21-\x7e]{1,500}$/.test(value)
const isPage = (value: unknown): value is string => isShowable(value) && /^https?:\/\//.test(value)
const between = (value: unknown, most: Duration, otherwise: Duration): Duration => {
  const time = secondsOf(value, most) ?? 0
  return time > 0 ? time : otherwise
}

/** The meaning of an answer to `deviceRequest` (RFC 8628 §3.2). Google has `verification_url`. */
export function deviceAnswer(reply: AuthorityReply): DeviceAnswer {
  if (reply.kind === 'failed' || reply.status !== 200) {
    const answer = tokenAnswer(reply)
    return answer.kind === 'token' ? { kind: 'temporary', why: 'a token without a login' } : answer
  }
  const body = jsonObject(reply.body)
  const verificationUri = body['verification_uri'] ?? body['verification_url']
  const { device_code: deviceCode, user_code: userCode, verification_uri_complete: completeUri } = body
  if (typeof deviceCode !== 'string' || deviceCode === '' || !isShowable(userCode) || !isPage(verificationUri))
    return { kind: 'temporary', why: 'status 200 without a device code' }
  const code: DeviceCode = {
    deviceCode,
    userCode,
    verificationUri,
    completeUri: isPage(completeUri) ? completeUri : null,
    lifetime: between(body['expires_in'], LONGEST_LIFETIME, DEFAULT_LIFETIME),
    interval: between(body['interval'], LONGEST_INTERVAL, DEFAULT_INTERVAL),
  }
  return { kind: 'code', code }
}

interface Polling {
  readonly interval: Duration
  /** Time until the next request: the interval, longer after failures. */
  readonly wait: Duration
}

type PollStep = { readonly kind: 'poll'; readonly polling: Polling } | Login | LoginFailure

const failed = (reason: LoginFailure['reason'], why: string): LoginFailure => ({ kind: 'failed', reason, why })

const EXPIRED = failed('expired', 'the code has expired before a login: repeat the command, and enter the new code')
const DENIED = 'the login was declined: repeat the command, and accept it, or ask the administrator of the tenant for consent'

/** The step after an answer to `deviceTokenRequest` (RFC 8628 §3.5). The wait doubles at each failure of the connection. */
export function stepAfter(answer: TokenAnswer, { interval, wait }: Polling): PollStep {
  switch (answer.kind) {
    case 'token': {
      const { refreshToken, token, lifetime } = answer
      if (refreshToken !== undefined) return { kind: 'login', refreshToken, token, lifetime }
      return failed('no-refresh-token', 'the authority gave no refresh token: add offline_access to scope, or allow it for the application')
    }
    case 'temporary':
      return { kind: 'poll', polling: { interval, wait: Math.min(2 * wait, Math.max(interval, LONGEST_INTERVAL)) } }
    case 'refused':
      return stepAfterRefusal(answer, interval)
  }
}

function stepAfterRefusal({ error, why }: Extract<TokenAnswer, { readonly kind: 'refused' }>, interval: Duration): PollStep {
  switch (error) {
    case 'authorization_pending':
      return { kind: 'poll', polling: { interval, wait: interval } }
    case 'slow_down':
      return { kind: 'poll', polling: { interval: interval + 5 * SECOND, wait: interval + 5 * SECOND } }
    case 'expired_token':
      return EXPIRED
    case 'access_denied':
    // Of Microsoft.
    case 'authorization_declined':
      return failed('denied', DENIED)
    default:
      return failed('refused', `the authority refuses the login: ${why}`)
  }
}

// --- the loop

interface DeviceLoginDeps {
  readonly ask: AskAuthority
  readonly clock: Clock
  /** A new unique id, see ProofFacts. */
  readonly id: () => string
  /** Shows the person the code and the address of the page. */
  readonly show: (code: DeviceCode) => Promise<void>
  /** Ends the polling, as for an interrupted command. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Logs a person in, for the `device_url` of a table. Resolves when the person has accepted or declined, the code has expired, or the authority
 * refuses. Failures of the connection end only the first request; later ones are repeated until the code expires.
 */
export async function deviceLogin(client: OauthClient, deps: DeviceLoginDeps): Promise<Login | LoginFailure> {
  const { ask, clock, show, id, signal } = deps
  const facts = (): ProofFacts => ({ now: clock.wall.now(), id: id() })
  const { deviceUrl, tokenUrl } = client.table
  const first = deviceAnswer(await ask(deviceUrl, deviceRequest(client, facts())))
  if (first.kind === 'temporary') return failed('unreachable', `no code from the authority: ${first.why}; check the network, then repeat`)
  if (first.kind === 'refused')
    return failed('refused', `the authority gives no code: ${first.why}: ${adviceFor(client.table, first)}, then repeat the command`)
  const { code } = first
  const end = clock.monotonic() + code.lifetime
  await show(code)
  let polling: Polling = { interval: code.interval, wait: code.interval }
  for (;;) {
    const rest = end - clock.monotonic()
    await sleep(clock, Math.min(polling.wait, rest), signal)
    if (signal?.aborted === true) return failed('stopped', 'the login was interrupted')
    if (clock.monotonic() >= end) return EXPIRED
    const answer = tokenAnswer(await ask(tokenUrl, deviceTokenRequest(client, code, facts())))
    const step = stepAfter(answer, polling)
    if (step.kind === 'failed' && step.reason === 'refused' && answer.kind === 'refused')
      return failed('refused', `${step.why}: ${adviceFor(client.table, answer)}, then repeat the command`)
    if (step.kind !== 'poll') return step
    polling = step.polling
  }
}
