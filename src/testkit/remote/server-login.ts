/** AUTH of a remote server (RFC 4954): accepts any login, or checks access tokens where the host requires them. */
import { isPositive, type FaultInjector } from './fault-injector.ts'
import { DEFAULT_REPLIES } from './default-replies.ts'
import type { WallTime } from '../../system/clock.ts'
import type { SubmissionGuard, SubmissionLogin } from '../oauth/submission-guard.ts'

/** Logins by password that are accepted: any, or this one. */
export type AcceptedLogins = 'any' | { readonly user: string; readonly password: string }

/** Mechanisms of a host with AcceptedLogins. */
export const LOGIN_MECHANISMS = ['PLAIN', 'LOGIN'] as const

interface LoginServer {
  readonly output: FaultInjector
  readonly guard: SubmissionGuard | undefined
  readonly logins: AcceptedLogins | undefined
  readonly now: WallTime
}

interface LoginCommand {
  /** Mechanism in upper case. */
  readonly name: string
  /** Initial response; absent when the client waits for a challenge. */
  readonly initial: string | undefined
  /** The command without the response, for the event. */
  readonly command: string
}

/** Mechanisms that send an access token. */
const TOKENS: ReadonlySet<string> = new Set(['XOAUTH2', 'OAUTHBEARER'])

const QUESTIONS: Readonly<Record<string, readonly string[]>> = { LOGIN: ['334 VXNlcm5hbWU6', '334 UGFzc3dvcmQ6'] }

/** Answer of a client to the challenge with the reason of the refusal: an empty line, or one ^A (RFC 7628 §3.2.3). */
const ACKNOWLEDGED: ReadonlySet<string> = new Set(['', 'AQ=='])

/** Performs one AUTH command. Resolves with the login that the guard has accepted; null for a host without a guard, and for a refusal. */
export async function performLogin(
  { output, guard, logins = 'any', now }: LoginServer,
  { name, initial, command }: LoginCommand,
): Promise<SubmissionLogin | null> {
  const responses = await responsesOf(output, name, initial)
  const response = responses?.at(-1)
  if (responses === null || response === undefined) return null
  if (response === '*') {
    output.answer(['501 5.7.0 Authentication aborted'])
    return null
  }
  if (guard === undefined) {
    await output.reply('auth', isAccepted(logins, name, responses) ? DEFAULT_REPLIES.auth : DEFAULT_REPLIES.authRefused, command)
    return null
  }
  const verdict = TOKENS.has(name)
    ? guard.logIn(name, response, now)
    : { kind: 'refused' as const, reply: guard.replies.password, challenge: null }
  if (verdict.kind === 'accepted') {
    const { code } = await output.reply('auth', DEFAULT_REPLIES.auth, command)
    return isPositive(code) ? verdict.login : null
  }
  if (verdict.challenge !== null && !(await isAcknowledged(output, verdict.challenge))) {
    output.answer(['501 5.5.2 Error: expected an empty line or AQ== after the challenge'])
    return null
  }
  await output.reply('auth', verdict.reply, command)
  return null
}

/** The responses of the client, up to `*`; null when it has closed the connection. */
async function responsesOf(output: FaultInjector, name: string, initial: string | undefined): Promise<readonly string[] | null> {
  const questions = QUESTIONS[name] ?? ['334 ']
  const responses = initial === undefined ? [] : [initial]
  for (const question of questions.slice(responses.length)) {
    output.answer([question])
    const response = await output.reader.line()
    if (response === null) return null
    responses.push(response)
    if (response === '*') break
  }
  return responses
}

/** Compares user and password of PLAIN (RFC 4616) or LOGIN with the accepted ones. */
function isAccepted(logins: AcceptedLogins, name: string, responses: readonly string[]): boolean {
  if (logins === 'any') return true
  const texts = responses.map((response) => Buffer.from(response, 'base64').toString())
  const [user, password] = name === 'PLAIN' ? (texts[0] ?? '').split('\0').slice(1) : texts
  return user === logins.user && password === logins.password
}

async function isAcknowledged(output: FaultInjector, challenge: string): Promise<boolean> {
  output.answer([`334 ${Buffer.from(challenge).toString('base64')}`])
  const line = await output.reader.line()
  return line !== null && ACKNOWLEDGED.has(line)
}
