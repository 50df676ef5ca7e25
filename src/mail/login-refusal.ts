/**
 * Refusals that concern the login of this relay at a next hop, by codes and stage, with what an operator has to do (RFC 4954 §6; replies of
 * Exchange Online and Gmail). No text is searched. Pure.
 */
import type { DeliveryStatus, Stage } from './smtp-reply.ts'

export interface LoginRefusal {
  /**
   * - `refused`: the login itself; `missing`: mail without a login;
   * - `mailbox`: the login is accepted, and its mailbox cannot be used; `sender`: the login may not send for this sender;
   * - `limit`: the mailbox has sent too much.
   */
  readonly kind: 'refused' | 'missing' | 'mailbox' | 'sender' | 'limit'
  /** True when a new access token may be accepted. A permission that was granted meanwhile is in a new token only. */
  readonly renews: boolean
  /** Sentence for operators: what to do. */
  readonly hint: string
}

interface Row extends LoginRefusal {
  /** Codes of the reply; absent for any. */
  readonly replies?: readonly number[]
  /** Enhanced status without its first digit; absent for any. */
  readonly code?: string
  readonly at: 'auth' | 'mail' | 'any'
}

const REFUSED = { kind: 'refused', at: 'auth' } as const
const SENDER = {
  kind: 'sender',
  at: 'mail',
  renews: false,
  hint: 'The user of the login may not send for this sender: give that user the right SendAs for the address, or rewrite the sender.',
} as const

/** The first row that fits counts. */
const ROWS: readonly Row[] = [
  {
    ...REFUSED,
    code: '7.139',
    renews: false,
    hint:
      'SMTP AUTH is off for the tenant or the mailbox, or security defaults or a policy forbid this login; the reply says which. ' +
      'Enable SMTP AUTH for the mailbox, or log in with an access token ([oauth.NAME]).',
  },
  {
    ...REFUSED,
    code: '7.30',
    renews: false,
    hint: 'The server accepts no passwords any more: use [oauth.NAME] and smtp_sasl_oauth.',
  },
  {
    ...REFUSED,
    code: '7.9',
    renews: false,
    hint: 'The server accepts no ordinary password of this account: use [oauth.NAME] and smtp_sasl_oauth, or an application password.',
  },
  {
    ...REFUSED,
    code: '7.3',
    replies: [535],
    renews: true,
    hint:
      'Wrong user, password or token. An application needs SMTP.SendAsApp with the consent of an administrator, and a service principal ' +
      '(by the object id of the enterprise application) with FullAccess to the mailbox. deferd oauth test NAME says what a token lacks.',
  },
  {
    ...REFUSED,
    code: '7.0',
    replies: [454],
    renews: true,
    hint: 'The server could not check the login. Nothing has to be done unless that lasts.',
  },
  {
    ...REFUSED,
    replies: [535],
    renews: true,
    hint: 'Wrong user, password or token: correct smtp_sasl_password_maps, or client, scope and consent of [oauth.NAME].',
  },
  {
    kind: 'missing',
    code: '7.57',
    replies: [530, 550],
    at: 'mail',
    renews: false,
    hint: 'The server wants a login: name the next hop in smtp_sasl_password_maps, and see that the server offers AUTH in this session.',
  },
  { ...SENDER, code: '7.60', replies: [550] },
  { ...SENDER, code: '2.252', replies: [554] },
  {
    kind: 'mailbox',
    code: '2.0',
    replies: [430],
    at: 'any',
    renews: false,
    hint: 'The mailbox of the login cannot be opened: give the service principal of the application FullAccess to it.',
  },
  {
    kind: 'limit',
    code: '3.2',
    replies: [432],
    at: 'any',
    renews: false,
    hint:
      'The mailbox of the login sends too much at once. For Exchange Online set destination_concurrency_limit = 3 and ' +
      'destination_message_rate_limit = 30 in a [destination."NAME"] table.',
  },
]

const AT_MAIL: ReadonlySet<Stage> = new Set(['mail', 'rcpt', 'data', 'body', 'end-of-data'])

function isAt(at: Row['at'], stage: Stage): boolean {
  return (at !== 'mail' && stage === 'auth') || (at !== 'auth' && AT_MAIL.has(stage))
}

/** The hint for operators about a status; null where there is none. */
export const hintOf = (status: Pick<DeliveryStatus, 'status' | 'stage' | 'reply'> | null): string | null =>
  (status === null ? undefined : loginRefusal(status))?.hint ?? null

/** A reason, which may be a reply that ends in a period, and a sentence about it. */
export const reasonWith = (reason: string, sentence: string): string => `${reason.replace(/\.$/, '')}. ${sentence}`

/** The refusal that a reply means; undefined for any other reply. */
export function loginRefusal({ status, stage, reply }: Pick<DeliveryStatus, 'status' | 'stage' | 'reply'>): LoginRefusal | undefined {
  if (reply === undefined) return undefined
  const replyCode = Number(reply.slice(0, 3))
  const code = status.slice(status.indexOf('.') + 1)
  return ROWS.find((row) => isAt(row.at, stage) && (row.code ?? code) === code && (row.replies?.includes(replyCode) ?? true))
}
