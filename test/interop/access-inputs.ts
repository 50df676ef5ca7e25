/** Access tables and generated recipients for comparisons of restrictions, from a seed. */
import { Draws } from './draws.ts'

const entries = (table: Readonly<Record<string, string>>): string =>
  `inline:{${Object.entries(table)
    .map(([key, value]) => `{${key} = ${value}}`)
    .join(' ')}}`

const CLIENTS = entries({
  '203.0.113.7': 'REJECT',
  '203.0.113': 'REJECT 5.7.9 no mail from this network',
  '203.0.113.9': 'OK',
  '198.51': 'DEFER later, please',
  'spam.example': 'REJECT',
  'good.spam.example': 'DUNNO',
  '192.0.2.1': '521 go away',
  '192.0.2.2': '450 4.2.1 a text',
  '192.0.2.3': 'DEFER_IF_PERMIT',
  '192.0.2.4': 'DEFER_IF_PERMIT wait a little',
})
const SENDERS = entries({
  'ann@a.test': 'OK',
  'a.test': 'REJECT',
  'bob@': '550 no bob',
  'sub.b.test': 'REJECT sub',
  'b.test': 'DUNNO',
  'eve+x@c.test': 'REJECT extended',
  'eve@c.test': '554 5.1.8 not eve',
  '<>': 'REJECT no notices',
  'warn@w.test': 'WARN look at this',
  'number@n.test': '123456',
  'held@h.test': 'HOLD for the postmaster',
  'gone@h.test': 'DISCARD',
  'head@h.test': 'PREPEND X-Access: yes',
  'other@h.test': 'REDIRECT keeper@keep.test',
  'blind@h.test': 'BCC copy@keep.test',
})
const RECIPIENTS = entries({
  'no@far.test': 'REJECT',
  'far.test': 'DUNNO',
  'late@far.test': '451 4.3.0 come back',
  'list+': 'REJECT',
  'list@': 'DEFER',
  'sub.open.test': 'REJECT closed',
  'root@open.test': 'OK',
  'Upper@far.test': 'REJECT 5.7.4',
})

/** Settings of both systems. */
export const ACCESS_SETTINGS: Readonly<Record<string, string>> = {
  smtpd_authorized_xclient_hosts: '127.0.0.1',
  recipient_delimiter: '+',
  smtpd_client_restrictions: `check_client_access ${CLIENTS}`,
  smtpd_sender_restrictions: `reject_non_fqdn_sender, check_sender_access ${SENDERS}, warn_if_reject check_sender_access inline:{{warned@w.test = REJECT}}`,
  smtpd_recipient_restrictions: `check_recipient_access ${RECIPIENTS}, permit_mynetworks, reject_unauth_destination`,
}

/** Owners of senders. With authentication in Postfix, which asks a Dovecot server for mechanisms. */
export const LOGIN_SETTINGS: Readonly<Record<string, string>> = {
  smtpd_authorized_xclient_hosts: '127.0.0.1',
  recipient_delimiter: '+',
  smtpd_sender_login_maps: entries({
    'ann@a.test': 'ann',
    'bob@a.test': 'bob, boss',
    '@b.test': 'boss',
    'eve@b.test': 'Eve',
    'team@c.test': 'ann bob eve',
    'x+y@c.test': 'ann',
    '@sub.c.test': 'boss@c.test',
  }),
  smtpd_sender_restrictions: 'reject_sender_login_mismatch',
}

const LOGINS = ['ann', 'bob', 'boss', 'eve', 'Eve', 'boss+40c.test', '[UNAVAILABLE]', '[UNAVAILABLE]']
const OWNED_SENDERS = [
  'ann@a.test',
  'Ann@a.test',
  'ann+x@a.test',
  'bob@a.test',
  'carl@a.test',
  'eve@b.test',
  'x@b.test',
  'team@c.test',
  'x+y@c.test',
  'x+z@c.test',
  'x@sub.c.test',
  'x@far.test',
  '',
]

/** Senders of clients that are logged in, or not. */
export function loginInputs(count: number, seed: number): readonly AccessInput[] {
  const draws = new Draws(seed, 'logins')
  return Array.from({ length: count }, () => ({
    xclient: `XCLIENT LOGIN=${draws.of(LOGINS)}`,
    sender: draws.of(OWNED_SENDERS),
    recipients: ['ann@far.test'],
  }))
}

const ADDRESSES = [
  '127.0.0.1',
  '127.0.0.1',
  '127.0.0.1',
  '203.0.113.7',
  '203.0.113.8',
  '203.0.113.9',
  '198.51.100.1',
  '192.0.2.1',
  '192.0.2.2',
  '192.0.2.3',
  '192.0.2.4',
  '192.0.2.5',
]
const NAMES = ['[UNAVAILABLE]', '[UNAVAILABLE]', 'mail.spam.example', 'good.spam.example', 'spam.example', 'x.example']
const SENDER_ADDRESSES = [
  'ann@a.test',
  'Ann@A.test',
  'zoe@a.test',
  'x@sub.a.test',
  'bob@b.test',
  'x@sub.b.test',
  'x@b.test',
  'eve+x@c.test',
  'eve+y@c.test',
  'eve@c.test',
  '',
  'warn@w.test',
  'warned@w.test',
  'number@n.test',
  'x@nodots',
  'plain@p.test',
  'plain@p.test',
]
const RECIPIENT_ADDRESSES = [
  'no@far.test',
  'ann@far.test',
  'late@far.test',
  'late+x@far.test',
  'list+a@far.test',
  'list+@far.test',
  'list@x.test',
  'root@open.test',
  'ann@open.test',
  'ann@sub.open.test',
  'upper@far.test',
]
/** Senders whose mail is accepted and treated in a special way. */
export const TREATED = ['held@h.test', 'gone@h.test', 'head@h.test', 'other@h.test', 'blind@h.test', 'plain@p.test']

export interface AccessInput {
  readonly xclient: string
  readonly sender: string
  readonly recipients: readonly string[]
}

export function accessInputs(count: number, seed: number): readonly AccessInput[] {
  const draws = new Draws(seed, 'access')
  return Array.from({ length: count }, () => ({
    xclient: `XCLIENT ADDR=${draws.of(ADDRESSES)} NAME=${draws.of(NAMES)}`,
    sender: draws.of(SENDER_ADDRESSES),
    recipients: draws.many(1, 4, () => draws.of(RECIPIENT_ADDRESSES)),
  }))
}
