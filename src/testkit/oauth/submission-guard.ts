/**
 * Verdicts of a submission server that takes access tokens (XOAUTH2 as documented by Microsoft and Google, OAUTHBEARER of RFC 7628), with the
 * replies of Exchange Online or of Gmail. Pure.
 */
import { matchesPattern } from '../../patterns/filter-pattern.ts'
import { SECOND, type WallTime } from '../../system/clock.ts'
import type { IssuedTokens } from './issued-tokens.ts'
import { EXCHANGE, GMAIL_SCOPE, type AuthorityProvider, type AuthoritySettings } from './authority-settings.ts'
import type { Claims } from './json-web-token.ts'

/** A mailbox, and who may use it. */
export interface GuardedMailbox {
  /** Applications with Add-MailboxPermission … FullAccess; all when absent. */
  readonly fullAccess?: readonly string[] | undefined
  /** Other senders that the mailbox may send as: addresses, `*@contoso.example`, `*`. */
  readonly sendAs?: readonly string[] | undefined
  /** False: SMTP AUTH is switched off for the mailbox (SmtpClientAuthenticationDisabled). */
  readonly smtpAuth?: boolean | undefined
}

export interface GuardSettings {
  /** Mailboxes by address; null when each address is a mailbox, as for ProtectionOptions without `mailboxes`. */
  readonly mailboxes: ReadonlyMap<string, GuardedMailbox> | null
  /** False: SMTP AUTH is switched off for the tenant. */
  readonly smtpAuth: boolean
  readonly mechanisms: readonly string[]
  /** True when a refused token gets a challenge with the reason first. Gmail does so; Exchange refuses at once. */
  readonly challenges: boolean
}

export interface SubmissionLogin {
  readonly user: string
  /** The application, when no person has logged in. */
  readonly app: string | null
}

type LoginVerdict =
  | { readonly kind: 'accepted'; readonly login: SubmissionLogin }
  /** `challenge` is the JSON that precedes the reply. */
  | { readonly kind: 'refused'; readonly reply: readonly string[]; readonly challenge: string | null }

/** Reads the response of a mechanism (RFC 7628 §3.1). Null for one that is malformed. */
function readTokenResponse(mechanism: string, response: string): { readonly user: string; readonly token: string } | null {
  const [head = '', ...fields] = Buffer.from(response, 'base64').toString('utf8').split('\u0001')
  const user = (mechanism === 'XOAUTH2' ? /^user=(.*)$/ : /^n,a=([^,]*),$/).exec(head)?.[1]
  const token = fields.map((field) => /^auth=Bearer ([\w.~+/-]+=*)$/i.exec(field)?.[1]).find((text) => text !== undefined)
  // The response ends with two of the separators.
  const isComplete = fields.length >= 2 && fields.at(-1) === '' && fields.at(-2) === ''
  if (user === undefined || token === undefined || !isComplete) return null
  return { user: user.replaceAll('=2C', ',').replaceAll('=3D', '='), token }
}

export class SubmissionGuard {
  readonly settings: GuardSettings
  readonly #authority: Pick<AuthoritySettings, 'provider' | 'clients' | 'tenant'>
  readonly #tokens: IssuedTokens

  constructor(settings: GuardSettings, authority: Pick<AuthoritySettings, 'provider' | 'clients' | 'tenant'>, tokens: IssuedTokens) {
    this.settings = settings
    this.#authority = authority
    this.#tokens = tokens
  }

  logIn(mechanism: string, response: string, now: WallTime): LoginVerdict {
    const read = readTokenResponse(mechanism, response)
    if (read === null) return this.#refused('invalid_request', mechanism)
    const { smtpAuth, mailboxes } = this.settings
    const claims = this.#tokens.verify(read.token)
    const isCurrent = claims !== null && typeof claims['exp'] === 'number' && claims['exp'] * SECOND > now
    if (!isCurrent) return this.#refused('invalid_token', mechanism)
    const user = read.user.toLowerCase()
    const app = this.#appOf(claims, user)
    if (app === undefined || (mailboxes !== null && !mailboxes.has(user))) return this.#refused('insufficient_scope', mechanism)
    if (!smtpAuth) return { kind: 'refused', reply: [DISABLED('Tenant')], challenge: null }
    if (mailboxes?.get(user)?.smtpAuth === false) return { kind: 'refused', reply: [DISABLED('Mailbox')], challenge: null }
    return { kind: 'accepted', login: { user, app } }
  }

  /** Replies that do not depend on the login. */
  get replies(): GuardReplies {
    return REPLIES[this.#authority.provider]
  }

  /** Reply to the content of a mail in place of 250; null when the login may send it. */
  contentReply({ user, app }: SubmissionLogin, sender: string): readonly string[] | null {
    const { mailboxes } = this.settings
    if (mailboxes === null || !this.#isExchange) return null
    const { fullAccess, sendAs = [] } = mailboxes.get(user) ?? {}
    if (app !== null && fullAccess !== undefined && !fullAccess.includes(app)) return [NO_ACCESS]
    const from = sender.toLowerCase()
    if (from === '' || from === user || sendAs.some((pattern) => matchesPattern(pattern, from))) return null
    // A sender beyond the tenant is refused by the transport, one of the tenant by the store.
    return mailboxes.has(from)
      ? [SEND_AS_DENIED(user, sender)]
      : ['550 5.7.60 SMTP; Client does not have permissions to send as this sender']
  }

  get #isExchange(): boolean {
    return this.#authority.provider === 'microsoft'
  }

  /** The application, or null for a person; undefined when the token has no right to the mailbox. */
  #appOf(claims: Claims, user: string): string | null | undefined {
    if (!this.#isExchange) return this.#ofScope(claims, user)
    const { aud, appid, roles, scp, upn, tid } = claims
    if (!EXCHANGE.some((resource) => resource === aud) || tid !== this.#authority.tenant) return undefined
    const client = typeof appid === 'string' ? this.#authority.clients.get(appid) : undefined
    if (scp !== undefined) return words(scp).includes('SMTP.Send') && isUser(upn, user) ? null : undefined
    const maySend = Array.isArray(roles) && roles.includes('SMTP.SendAsApp') && client !== undefined && client.servicePrincipal !== false
    return maySend && typeof appid === 'string' ? appid : undefined
  }

  #ofScope({ scope, email, azp }: Claims, user: string): string | null | undefined {
    const isOther = this.#authority.provider === 'other'
    if (!isOther && !words(scope).includes(GMAIL_SCOPE)) return undefined
    if (email === undefined) return isOther && typeof azp === 'string' ? azp : undefined
    return isUser(email, user) ? null : undefined
  }

  #refused(error: 'invalid_request' | 'invalid_token' | 'insufficient_scope', mechanism: string): LoginVerdict {
    const reply = this.replies.refused
    if (!this.settings.challenges) return { kind: 'refused', reply, challenge: null }
    const scope = this.#isExchange ? `${EXCHANGE[0]}/.default` : GMAIL_SCOPE
    const status = mechanism === 'OAUTHBEARER' ? error : error === 'insufficient_scope' ? '403' : '400'
    return { kind: 'refused', reply, challenge: JSON.stringify({ status, schemes: 'bearer', scope }) }
  }
}

const words = (list: unknown): readonly string[] => (typeof list === 'string' ? list.split(' ') : [])

const isUser = (name: unknown, user: string): boolean => typeof name === 'string' && name.toLowerCase() === user

/** Replies of a server that takes access tokens. */
interface GuardReplies {
  /** Reply to a refused token. */
  readonly refused: readonly string[]
  /** Reply to a password. */
  readonly password: readonly string[]
  /** Reply to MAIL without a login. */
  readonly unauthenticated: readonly string[]
}

const GMAIL_REFUSAL = [
  '535 5.7.8 Username and Password not accepted. For more information, go to',
  '535 5.7.8  https://support.google.com/mail/?p=BadCredentials',
]

const REPLIES: Readonly<Record<AuthorityProvider, GuardReplies>> = {
  microsoft: {
    refused: ['535 5.7.3 Authentication unsuccessful [SINK.PROD.OUTLOOK.COM]'],
    password: ['535 5.7.139 Authentication unsuccessful, basic authentication is disabled. [SINK.PROD.OUTLOOK.COM]'],
    unauthenticated: ['530 5.7.57 Client not authenticated to send mail. [SINK.PROD.OUTLOOK.COM]'],
  },
  google: {
    refused: GMAIL_REFUSAL,
    password: GMAIL_REFUSAL,
    unauthenticated: [
      '530 5.7.0 Authentication Required. For more information, go to',
      '530 5.7.0  https://support.google.com/accounts/troubleshooter/2402620',
    ],
  },
  other: {
    refused: ['535 5.7.8 Authentication credentials invalid'],
    password: ['535 5.7.8 Authentication credentials invalid'],
    unauthenticated: ['530 5.7.0 Authentication required'],
  },
}

const DISABLED = (what: 'Tenant' | 'Mailbox'): string =>
  `535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the ${what}. Visit https://aka.ms/smtp_auth_disabled for more information. [SINK.PROD.OUTLOOK.COM]`

const NO_ACCESS =
  '430 4.2.0 STOREDRV; mailbox logon failure; STOREDRV.Submission.Exception:ConnectionFailedTransientException.MapiExceptionLogonFailed; Failed to process message due to a transient exception with message Cannot open mailbox.'

const SEND_AS_DENIED = (user: string, sender: string): string =>
  `554 5.2.252 SendAsDenied; ${user} not allowed to send as ${sender}; STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; Failed to process message due to a permanent exception with message Cannot submit message.`
