/** The notices of the corpus, by file name, with the subject of each. */
import { DAY, HOUR } from '../../src/system/clock.ts'
import type { NoticeDue, Message, Recipient } from '../../src/mail/message.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { ARRIVAL, aRecipient, delayed, expired, ORIGINAL, refusedConnection, relayed, said } from '../support/notices.ts'

export interface CorpusEntry {
  readonly name: string
  readonly kind: NoticeDue
  readonly to: 'sender' | 'postmaster'
  readonly recipients: readonly Recipient[]
  readonly returns: 'full' | 'headers'
  readonly message: Partial<Message>
  /** The original, one octet per character. */
  readonly octets: string
  readonly overrides: readonly string[]
}

const entry = (name: string, kind: NoticeDue, recipients: readonly Recipient[], more: Partial<CorpusEntry> = {}): CorpusEntry => ({
  name,
  kind,
  recipients,
  to: 'sender',
  returns: kind === 'failure' ? 'full' : 'headers',
  message: {},
  octets: ORIGINAL,
  overrides: [],
  ...more,
})

/** Replies as servers give them, by a name for the file. */
const REFUSALS: Readonly<Record<string, string>> = {
  'no-such-user': '550 5.1.1 <ann@example.net>: Recipient address rejected: User unknown in virtual mailbox table',
  'bad-domain': '550 5.1.2 Host unknown',
  'bad-syntax': '553 5.1.3 malformed address',
  moved: '551 5.1.6 ann has moved to ann@new.example',
  disabled: '550 5.2.1 mailbox disabled',
  'mailbox-full': '552 5.2.2 Over quota',
  'too-big': '552 5.3.4 Message size exceeds fixed limit',
  'relay-denied': '554 5.7.1 <ann@example.net>: Relay access denied',
  policy: '550 5.7.1 Service unavailable; client [192.0.2.1] blocked using zen.example',
  spf: '550 5.7.23 SPF validation failed',
  dmarc: '550 5.7.26 Unauthenticated email is not accepted due to domain\u2019s DMARC policy',
  auth: '530 5.7.0 Authentication required',
  plain: '550 no such user',
  empty: '554',
  'many-lines':
    '550 5.7.1 Your message was refused. See https://help.example/?code=550&host=relay.example for what to do. Contact your administrator.',
  'no-blanks': `550 5.0.0 ${'x'.repeat(1_200)}`,
}

const TROUBLES: Readonly<Record<string, DeliveryStatus>> = {
  busy: said('450 4.2.1 busy'),
  greylisted: said('451 4.7.1 Greylisting in action, please come back later'),
  quota: said('452 4.2.2 mailbox full'),
  shutdown: said('421 4.3.2 service shutting down'),
  refused: refusedConnection,
  timeout: { status: '4.4.1', reason: 'connect to mx.example.net[192.0.2.25]:25: Connection timed out', stage: 'connect' },
  lost: { status: '4.4.2', reason: 'lost connection with mx.example.net[192.0.2.25] while sending message body', stage: 'body' },
  dns: {
    status: '4.4.3',
    reason: 'Host or domain name not found. Name service error for name=example.net type=MX: Host not found, try again',
    stage: 'dns',
  },
  tls: { status: '4.7.4', reason: 'TLS is required, but was not offered by host mx.example.net[192.0.2.25]', stage: 'starttls' },
  suspended: {
    status: '4.4.1',
    reason: 'delivery temporarily suspended: connect to mx.example.net[192.0.2.25]:25: Connection refused',
    stage: 'connect',
  },
}

const LOCAL: Readonly<Record<string, DeliveryStatus>> = {
  'null-mx': { status: '5.1.0', reason: 'Domain example.net does not accept mail (nullMX)', stage: 'dns' },
  'no-host': {
    status: '5.4.4',
    reason: 'Host or domain name not found. Name service error for name=mx.example.net type=A: Host not found',
    stage: 'dns',
  },
  loop: { status: '5.4.6', reason: 'mail for example.net loops back to myself', stage: 'route' },
  'needs-smtputf8': {
    status: '5.6.7',
    reason: 'SMTPUTF8 is required, but was not offered by host mx.example.net[192.0.2.25]',
    stage: 'mail',
  },
}

const byName = <T>(table: Readonly<Record<string, T>>, make: (name: string, value: T) => CorpusEntry): CorpusEntry[] =>
  Object.entries(table).map(([name, value]) => make(name, value))

const UTF8 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
const DAMAGED = 'Received: by us\r\nSubject: =?broken\r\nX-Raw: \xff\xfe\xe4\r\n\r\nlone\rreturn\nlone newline\0nul\r\n'
const NESTED = `${ORIGINAL.replace('\r\n\r\n', '\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n')}--a\r\n\r\none\r\n--a\r\nContent-Type: message/rfc822\r\n\r\n${ORIGINAL}\r\n--a--\r\n`

export const CORPUS: readonly CorpusEntry[] = [
  ...byName(REFUSALS, (name, words) => entry(`failure-${name}`, 'failure', [aRecipient(0, { last: said(words) })])),
  ...byName(LOCAL, (name, last) => entry(`failure-${name}`, 'failure', [aRecipient(0, { last })])),
  ...byName(TROUBLES, (name, last) => entry(`expired-${name}`, 'failure', [expired(0, { last })])),
  ...byName(TROUBLES, (name, last) => entry(`delay-${name}`, 'delay', [delayed(0, { last })])),
  entry(
    'failure-many',
    'failure',
    Array.from({ length: 50 }, (_, n) => aRecipient(n, { last: said(`550 5.1.1 user${n} unknown`) })),
  ),
  entry('failure-and-expiry', 'failure', [aRecipient(0), expired(1), expired(2, { last: refusedConnection })]),
  entry('failure-untried', 'failure', [expired(0, { attempts: 0, last: null })]),
  entry('failure-given-up', 'failure', [expired(0, { attempts: 3, settledAt: ARRIVAL + HOUR })]),
  entry('failure-given-up-untried', 'failure', [
    expired(0, {
      attempts: 0,
      settledAt: ARRIVAL + 1,
      last: { status: '4.7.0', reason: 'message is administratively expired', stage: 'queue' },
    }),
  ]),
  entry('failure-headers', 'failure', [aRecipient(0)], { returns: 'headers' }),
  entry('failure-envid-orcpt', 'failure', [aRecipient(0, { orcpt: 'rfc822;Bob+tag@ex.org' })], { message: { envid: 'QQ314159' } }),
  entry('failure-threaded', 'failure', [aRecipient(0)], {
    message: { messageId: '<1@us.example>' },
    overrides: ['enable_threaded_bounces=yes'],
  }),
  entry('failure-no-tls', 'failure', [aRecipient(0)], { octets: `TLS-Required: no\r\n${ORIGINAL}` }),
  entry('failure-mail-name', 'failure', [aRecipient(0, { last: LOCAL['loop'] ?? null })], { overrides: ['mail_name=Our Mail (test)'] }),
  entry('failure-short-life', 'failure', [expired(0, { attempts: 7, expiresAt: ARRIVAL + 30_000, settledAt: ARRIVAL + 30_000 })]),
  entry('failure-8bit-original', 'failure', [aRecipient(0)], { octets: `${ORIGINAL}Gr\xfc\xdfe\r\n` }),
  entry('failure-utf8-original', 'failure', [aRecipient(0)], { octets: UTF8(`Subject: Grüße\r\n\r\nGrüße\r\n`) }),
  entry('failure-damaged-original', 'failure', [aRecipient(0)], { octets: DAMAGED }),
  entry('failure-nested-original', 'failure', [aRecipient(0)], { octets: NESTED }),
  entry('failure-long-lines', 'failure', [aRecipient(0)], { octets: `${ORIGINAL}${'z'.repeat(3_000)}\r\n` }),
  entry('failure-missing-original', 'failure', [aRecipient(0)], { octets: '' }),
  entry('failure-controls', 'failure', [aRecipient(0, { last: said('550 5.0.0 \u001b[2J\u001b]0;pwn\u0007 \r\nSubject: x') })]),
  entry('failure-foreign-reply', 'failure', [aRecipient(0, { last: said('550 5.1.1 утилизатор не найден') })]),
  entry('failure-foreign-recipient', 'failure', [aRecipient(0, { address: 'jürgen@example.net' })]),
  entry('failure-quoted-sender', 'failure', [aRecipient(0)], { message: { sender: 'a b@us.example' } }),
  entry('failure-smtputf8', 'failure', [aRecipient(0, { address: '用户@例え.example', orcpt: 'utf-8;用户@例え.example' })], {
    message: { smtputf8: true, sender: 'señor@us.example' },
    octets: UTF8('From: señor@us.example\r\nSubject: ¡hola!\r\n\r\n¡hola!\r\n'),
  }),
  entry('failure-smtputf8-headers', 'failure', [aRecipient(0, { address: '用户@例え.example' })], {
    message: { smtputf8: true },
    returns: 'headers',
    octets: UTF8('From: app@us.example\r\nSubject: ¡hola!\r\n\r\n¡hola!\r\n'),
  }),
  entry('delay-smtputf8', 'delay', [delayed(0, { address: 'jürgen@bücher.example' })], { message: { smtputf8: true } }),
  entry('delay-first-attempt', 'delay', [delayed(0, { attempts: 1 })]),
  entry('delay-untried', 'delay', [delayed(0, { attempts: 0, last: null })]),
  entry('delay-several', 'delay', [delayed(0), delayed(1, { last: refusedConnection, expiresAt: ARRIVAL + 5 * DAY })]),
  entry('success-relayed', 'success', [relayed(0)]),
  entry('success-delivered', 'success', [relayed(0, { destination: 'lmtp:[127.0.0.1]:24' })]),
  entry('success-several', 'success', [relayed(0), relayed(1, { orcpt: 'rfc822;other@example.net' })]),
  entry('success-smtputf8', 'success', [relayed(0, { address: 'jürgen@example.net' })], { message: { smtputf8: true } }),
  entry('postmaster-copy', 'failure', [aRecipient(0)], { to: 'postmaster', returns: 'headers' }),
  entry('postmaster-delay', 'delay', [delayed(0)], { to: 'postmaster' }),
  entry('double-bounce', 'failure', [aRecipient(0)], { to: 'postmaster', message: { sender: '' } }),
]
