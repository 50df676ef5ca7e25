import { describe, expect, test } from 'vitest'
import { recipientId, type DeliveryRequest, type LeasedRecipient, type Message } from '../../src/mail/message.ts'
import type { AttemptRecord } from '../../src/store/recorded-outcomes.ts'
import { formatDelay } from '../../src/telemetry/kinds/delays.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import type { ClientFailure } from '../../src/telemetry/kinds/client-failures.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { queueIdOf } from '../../src/mail/message.ts'

const START = Date.UTC(2026, 10, 20, 10, 0, 0)
const HOSTILE = 'a\u001b[31m\r\nQUIT\u009b\u202e\u2028\u0000"z'

const message: Message = {
  id: 7,
  createdAt: START,
  arrivedAt: START,
  sender: 'app@us.example',
  size: 2048,
  contentId: 7,
  smtputf8: false,
  messageId: '<1@us.example>',
}
const id = queueIdOf(message)
const notice: Message = { ...message, id: 8 }

const recipient = (position: number, address: string, more: Partial<LeasedRecipient> = {}): LeasedRecipient => ({
  id: recipientId(7, position),
  address,
  dueAt: START,
  expiresAt: START + 1,
  steps: 0,
  attempts: 0,
  last: null,
  warnings: 0,
  flushed: false,
  ...more,
})

interface Tried {
  readonly relay?: string | null
  readonly outcome?: AttemptRecord['outcome']
  readonly status?: Partial<AttemptRecord['status']>
  readonly delays?: AttemptRecord['delays']
  readonly at?: number
  readonly destination?: string
  readonly to?: LeasedRecipient
  readonly connectionUse?: number
  readonly softBounce?: boolean
  readonly message?: Message
  readonly forcedExpire?: boolean
  readonly login?: 'refused' | 'missing'
  readonly oauth?: string
}

function attempted(tried: Tried): QueueEvent {
  const to = tried.to ?? recipient(0, 'ann@slow.example')
  const relay = tried.relay === undefined ? 'mx.slow.example[192.0.2.1]:25' : tried.relay
  const request: DeliveryRequest = {
    lease: { owner: 1, until: Infinity },
    message: tried.message ?? message,
    destination: tried.destination ?? 'slow.example',
    recipients: [to],
    fresh: true,
    forcedExpire: tried.forcedExpire ?? false,
  }
  const at = tried.at ?? START + 1350
  const status = {
    status: '4.2.1',
    reason: 'host mx.slow.example[192.0.2.1] said: 450 4.2.1 busy',
    stage: 'rcpt' as const,
    ...tried.status,
  }
  return {
    kind: 'attempted',
    settled: [],
    request,
    result: {
      outcomes: new Map(tried.softBounce === true ? [[to.id, { outcome: 'deferred', status, softBounce: true }]] : []),
      feedback: 'positive',
      relay,
      connectionUse: tried.connectionUse ?? 1,
      login: tried.login,
      oauth: tried.oauth,
      siteStatus: tried.login === undefined || tried.status === undefined ? undefined : status,
      times: { startedAt: START + 600, transmittingAt: START + 1100, endedAt: at },
    },
    attempts: [{ recipient: to.id, at, relay, outcome: tried.outcome ?? 'deferred', status, delays: tried.delays ?? [500, 100, 500, 250] }],
  }
}

function logged(events: readonly QueueEvent[], format: 'postfix' | 'json' = 'postfix', at = START): readonly string[] {
  let text = ''
  const clock = new VirtualClock({ startsAt: at })
  const log = openLog({ format, syslogName: 'deferd', host: 'host', pid: 42, clock, write: (written) => (text += written) })
  for (const event of events) log.listen(event, at)
  log.flush()
  return text.split('\n').slice(0, -1)
}

/** The line of one event after the prefix `Nov 20 10:00:00 host deferd/`. */
const said = (event: QueueEvent): readonly string[] => logged([event]).map((line) => line.replace('Nov 20 10:00:00 host deferd/', ''))

const client = { name: 'unknown', address: '192.0.2.9' }

const IN_CLEAR = { level: 'may', policy: 'none', state: 'clear' } as const

describe('lines in Postfix’s format', () => {
  test('have tls= between delays= and dsn=, where a host was chosen', () => {
    expect(said(attempted({ status: { tls: IN_CLEAR } }))[0]).toContain(
      'delays=0.5/0.1/0.5/0.25, tls=may:none, dsn=4.2.1, status=deferred (',
    )
    expect(said(attempted({}))[0]).toContain('delays=0.5/0.1/0.5/0.25, dsn=4.2.1, status=deferred (')
  })

  test('have oauth= before dsn=, where an access token logs in', () => {
    expect(said(attempted({ oauth: 'm365', status: { tls: IN_CLEAR } }))[0]).toContain(', tls=may:none, oauth=m365, dsn=4.2.1, status=')
  })

  test('have no tls= with smtp_log_tls_feature_status = no', () => {
    let text = ''
    const clock = new VirtualClock({ startsAt: START })
    const write = (written: string) => (text += written)
    const log = openLog({ format: 'postfix', syslogName: 'deferd', host: 'host', pid: 42, clock, write, tlsStatus: false })
    log.listen(attempted({ status: { tls: IN_CLEAR } }), START)
    log.flush()
    expect(text).toContain('delays=0.5/0.1/0.5/0.25, dsn=4.2.1, status=deferred (')
  })

  test('begin like syslog lines, with the day padded by a blank', () => {
    expect(logged([{ kind: 'connected', client }])).toEqual(['Nov 20 10:00:00 host deferd/smtpd[42]: connect from unknown[192.0.2.9]'])
    expect(logged([{ kind: 'connected', client }], 'postfix', Date.UTC(2026, 2, 5, 1, 2, 3))[0]).toMatch(/^Mar {2}5 01:02:03 host /)
  })

  test('use local time, also when its offset changes', () => {
    const change = Date.UTC(2026, 9, 25, 1, 0)
    const clock = new VirtualClock({
      startsAt: change,
      zone: (at) => (at < change ? { offset: 120, name: 'CEST' } : { offset: 60, name: 'CET' }),
    })
    let text = ''
    const log = openLog({ format: 'postfix', syslogName: 'postfix', host: 'h', pid: 1, clock, write: (written) => (text += written) })
    for (const at of [change - 1, change]) log.listen({ kind: 'connected', client }, at)
    log.flush()
    expect(text.split('\n').map((line) => line.slice(0, 15))).toEqual(['Oct 25 02:59:59', 'Oct 25 02:00:00', ''])
  })

  const told: readonly (readonly [QueueEvent, ...string[]])[] = [
    [
      { kind: 'disconnected', client, commands: { ehlo: [1, 1], mail: [1, 1], rcpt: [0, 1], quit: [1, 1] } },
      'smtpd[42]: disconnect from unknown[192.0.2.9] ehlo=1 mail=1 rcpt=0/1 quit=1 commands=3/4',
    ],
    [
      {
        kind: 'refused',
        client,
        stage: 'RCPT',
        reply: { code: 454, status: '4.7.1', text: '<bob@far.example>: Relay access denied' },
        sender: 'app@us.example',
        recipient: 'bob@far.example',
        protocol: 'ESMTP',
        helo: 'us.example',
      },
      'smtpd[42]: NOQUEUE: reject: RCPT from unknown[192.0.2.9]: 454 4.7.1 <bob@far.example>: Relay access denied; from=<app@us.example> to=<bob@far.example> proto=ESMTP helo=<us.example>',
    ],
    [
      { kind: 'client-failure', client, failure: { what: 'lost-connection', after: 'DATA' } },
      'smtpd[42]: lost connection after DATA from unknown[192.0.2.9]',
    ],
    [
      {
        kind: 'client-failure',
        client,
        failure: { what: 'rejected', reply: { code: 421, status: '4.7.0', text: 'host Error: too many connections' } },
      },
      'smtpd[42]: NOQUEUE: reject: CONNECT from unknown[192.0.2.9]: 421 4.7.0 host Error: too many connections; proto=SMTP',
    ],
    [
      { kind: 'client-failure', client, failure: { what: 'failed-login', method: 'PLAIN', username: 'ann' } },
      'smtpd[42]: warning: unknown[192.0.2.9]: SASL PLAIN authentication failed: authentication failure, sasl_username=ann',
    ],
    [
      { kind: 'client-failure', client, failure: { what: 'illegal-address', command: 'RCPT', address: 'a b@x.example' } },
      'smtpd[42]: warning: Illegal address syntax from unknown[192.0.2.9] in RCPT command: <a b@x.example>',
    ],
    [
      { kind: 'accepted', message, recipients: ['ann@slow.example'], client, saslMethod: 'PLAIN', saslUsername: 'app' },
      `smtpd[42]: ${id}: client=unknown[192.0.2.9], sasl_method=PLAIN, sasl_username=app`,
      `cleanup[42]: ${id}: message-id=<1@us.example>`,
    ],
    [
      { kind: 'accepted', message, recipients: [], client, upstream: { client: { name: 'unknown', address: 'unknown' }, queueId: 'OLD' } },
      `smtpd[42]: ${id}: client=unknown[192.0.2.9], orig_queue_id=OLD, orig_client=unknown`,
      `cleanup[42]: ${id}: message-id=<1@us.example>`,
    ],
    [
      { kind: 'accepted', message: { ...message, messageId: undefined }, recipients: [], client: null, uid: 1000 },
      `pickup[42]: ${id}: uid=1000 from=<app@us.example>`,
      `cleanup[42]: ${id}: message-id=<>`,
    ],
    [
      { kind: 'accepted', message, recipients: [], client: null, originalId: 'OLD' },
      `pickup[42]: ${id}: uid=0 from=<app@us.example> orig_id=OLD`,
      `cleanup[42]: ${id}: message-id=<1@us.example>`,
    ],
    [{ kind: 'accepted', message, recipients: [], client: null }, `cleanup[42]: ${id}: message-id=<1@us.example>`],
    [{ kind: 'activated', message, recipientCount: 3 }, `qmgr[42]: ${id}: from=<app@us.example>, size=2048, nrcpt=3 (queue active)`],
    [
      {
        kind: 'deferred',
        message,
        destination: 'far.example',
        recipients: ['ann@far.example', 'bob@far.example'],
        at: message.arrivedAt + 1_500,
        activatedAt: message.arrivedAt + 100,
        siteStatus: { status: '4.4.1', reason: 'connect to far.example[192.0.2.1]:25: Connection refused', stage: 'connect' },
      },
      ...['ann', 'bob'].map(
        (user) =>
          `error[42]: ${id}: to=<${user}@far.example>, relay=none, delay=1.5, delays=0.1/1.4/0/0, dsn=4.4.1, status=deferred (delivery temporarily suspended: connect to far.example[192.0.2.1]:25: Connection refused)`,
      ),
    ],
    [
      {
        kind: 'tls-established',
        relay: 'far.example[192.0.2.1]:25',
        trust: 'Untrusted',
        reused: false,
        protocol: 'TLSv1.3',
        cipher: 'TLS_AES_256_GCM_SHA384',
        bits: 256,
      },
      'smtp[42]: Untrusted TLS connection established to far.example[192.0.2.1]:25: TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)',
    ],
    [
      { kind: 'expired', message, forced: false, recipients: [], unattempted: null },
      `qmgr[42]: ${id}: from=<app@us.example>, status=expired, returned to sender`,
    ],
    [
      { kind: 'expired', message, forced: true, recipients: [], unattempted: null },
      `qmgr[42]: ${id}: from=<app@us.example>, status=force-expired, returned to sender`,
    ],
    [{ kind: 'removed', message }, `qmgr[42]: ${id}: removed`],
    [
      { kind: 'notice-sent', message, notice: 'failure', to: 'sender', queued: { message: notice, recipients: [] } },
      `bounce[42]: ${id}: sender non-delivery notification: ${queueIdOf(notice)}`,
    ],
    [
      { kind: 'notice-sent', message, notice: 'delay', to: 'postmaster', queued: { message: notice, recipients: [] } },
      `bounce[42]: ${id}: postmaster delay notification: ${queueIdOf(notice)}`,
    ],
    [
      { kind: 'notice-sent', message, notice: 'success', to: 'sender', queued: { message: notice, recipients: [] } },
      `bounce[42]: ${id}: sender delivery status notification: ${queueIdOf(notice)}`,
    ],
    [{ kind: 'operated', queueId: id, operation: 'release', by: 'root' }, `postsuper[42]: ${id}: released from hold`],
    [{ kind: 'operated', queueId: id, operation: 'delete', by: 'root' }, `postsuper[42]: ${id}: removed`],
    [
      { kind: 'cancelled', queueId: id, by: 'token:app', recipients: ['a@b.example'] },
      `qmgr[42]: ${id}: message cancelled by token:app, nrcpt=1`,
    ],
    [
      {
        kind: 'died',
        destination: 'far.example',
        until: Date.UTC(2026, 10, 20, 10, 5),
        siteStatus: { status: '4.3.2', reason: '421 busy', stage: 'greeting' },
      },
      'qmgr[42]: destination far.example is dead until 2026-11-20T10:05:00.000Z: 421 busy',
    ],
    [{ kind: 'revived', destination: 'far.example', answered: true }, 'qmgr[42]: destination far.example is open again'],
    [
      { kind: 'suspended', destination: 'far.example', by: 'root', until: null, reason: null },
      'qmgr[42]: destination far.example was suspended by root',
    ],
    [
      { kind: 'suspended', destination: 'far.example', by: 'root', until: Date.UTC(2026, 10, 20, 12), reason: 'rate limited' },
      'qmgr[42]: destination far.example was suspended by root until 2026-11-20T12:00:00.000Z: rate limited',
    ],
    [{ kind: 'resumed', destination: 'far.example', by: 'root' }, 'qmgr[42]: destination far.example was resumed by root'],
    [
      { kind: 'provider-suspended', provider: 'google', by: 'root', until: null, reason: 'rate limited' },
      'qmgr[42]: provider google was suspended by root: rate limited',
    ],
    [{ kind: 'provider-resumed', provider: 'google', by: 'ann' }, 'qmgr[42]: provider google was resumed by ann'],
    [
      {
        kind: 'suppressed',
        sender: 'a@us.example',
        recipient: 'b@far.example',
        scope: '*',
        reason: 'manual',
        action: 'warned',
        text: null,
      },
      'smtpd[42]: warning: from=<a@us.example>, to=<b@far.example>: on the suppression list of * (manual); accepted',
    ],
    [
      {
        kind: 'suppression-added',
        scope: 'us.example',
        address: 'bob@far.example',
        reason: 'bounce',
        by: 'failures',
        text: '550 no',
        until: 0,
        entries: 1,
      },
      'qmgr[42]: suppression list: added bob@far.example for us.example (bounce) by failures',
    ],
    [
      { kind: 'suppression-removed', scope: null, address: null, reason: null, by: 'failures', text: null, until: null, entries: 12 },
      'qmgr[42]: suppression list: removed 12 entries by failures',
    ],
    [
      { kind: 'suppression-stopped', scope: 'us.example', entries: 1_000 },
      'qmgr[42]: warning: suppression list: 1000 addresses of us.example within an hour; no more are listed until deferd suppression resume',
    ],
    [
      { kind: 'listing-braked', destination: 'far.example' },
      'qmgr[42]: warning: suppression list: too many recipients of far.example are refused as unknown; none of them is listed',
    ],
    [
      { kind: 'limit-reached', share: null, measure: 'messages', used: 100, limit: 100 },
      'smtpd[42]: warning: mail is refused for now: the queue has 100 of 100 messages',
    ],
    [
      { kind: 'limit-cleared', share: 'app', measure: 'bytes', used: 95, limit: 100 },
      'smtpd[42]: mail is accepted again: share app has 95 of 100 bytes',
    ],
    [
      { kind: 'quota-reached', quota: 'app', key: 'a@us.example', measure: 'messages', span: 3_600_000, used: 50, limit: 50, percent: 100 },
      'smtpd[42]: warning: quota app: a@us.example has used 50 of 50 messages in 1h',
    ],
    [
      { kind: 'quota-reached', quota: 'app', key: 'a@us.example', measure: 'messages', span: 3_600_000, used: 1, limit: 50, percent: 100 },
      'smtpd[42]: warning: quota app: a@us.example has used 1 of 50 messages in 1h, and has no room before the mail that is held',
    ],
    [{ kind: 'store-unavailable', why: 'disk full' }, 'master[42]: error: store unavailable, mail is refused and not delivered: disk full'],
    [{ kind: 'oauth-token', oauth: 'm365', user: null, lifetime: 3_599_000 }, 'smtp[42]: oauth=m365: access token for 3599 s'],
    [
      { kind: 'oauth-failed', oauth: 'google', user: 'ann@us.example', result: 'refused', text: 'invalid_grant: log in', isFirst: true },
      'smtp[42]: warning: oauth=google, user=ann@us.example: no access token: invalid_grant: log in',
    ],
    [
      { kind: 'schedule-done', schedule: 'morning', action: 'flush', planned: 0, text: '2 messages flushed', took: 20 },
      'master[42]: schedule morning (flush): 2 messages flushed',
    ],
    [
      { kind: 'schedule-skipped', schedule: 'morning', action: 'flush', planned: 0, why: 'an earlier run goes on' },
      'master[42]: warning: schedule morning (flush) was skipped: an earlier run goes on',
    ],
    [
      { kind: 'schedule-failed', schedule: 'nightly', action: 'backup', planned: 0, text: 'no space' },
      'master[42]: error: schedule nightly (backup) failed: no space',
    ],
    [
      { kind: 'schedule-failed', schedule: 'gone', action: null, planned: 0, text: 'its node ended before the run did' },
      'master[42]: error: schedule gone failed: its node ended before the run did',
    ],
    [{ kind: 'store-recovered' }, 'master[42]: store available again'],
    [{ kind: 'note', level: 'warning', text: 'look out' }, 'master[42]: warning: look out'],
    [{ kind: 'note', level: 'info', text: 'all is well' }, 'master[42]: all is well'],
  ]
  test.each(told.map(([event, ...lines]) => ({ event, lines })))('$event.kind: $lines.0', ({ event, lines }) => {
    expect(said(event)).toEqual(lines)
  })

  test('window changes are not logged', () => {
    expect(said({ kind: 'window', destination: 'a', window: 5, inFlight: 1, feedback: 'positive' })).toEqual([])
  })
})

describe('attempts', () => {
  test('delays of a first attempt', () => {
    expect(said(attempted({}))).toEqual([
      `smtp[42]: ${id}: to=<ann@slow.example>, relay=mx.slow.example[192.0.2.1]:25, delay=1.4, delays=0.5/0.1/0.5/0.25, dsn=4.2.1, status=deferred (host mx.slow.example[192.0.2.1] said: 450 4.2.1 busy)`,
    ])
  })

  test('at a second attempt after 300 s only the first delay counts from arrival', () => {
    const line = said(attempted({ at: START + 301_000, delays: [300_000, 5, 495, 500] }))[0]
    expect(line).toContain('delay=301, delays=300/0.01/0.5/0.5,')
  })

  test('a delivery shows the whole reply, and how often the connection was used', () => {
    const status = { status: '2.0.0', reason: 'sent', reply: '250 2.0.0 Ok: queued as X' }
    expect(said(attempted({ outcome: 'delivered', status, connectionUse: 3 }))[0]).toBe(
      `smtp[42]: ${id}: to=<ann@slow.example>, relay=mx.slow.example[192.0.2.1]:25, conn_use=3, delay=1.4, delays=0.5/0.1/0.5/0.25, dsn=2.0.0, status=sent (250 2.0.0 Ok: queued as X)`,
    )
  })

  test('without a connection the relay is none', () => {
    const status = { status: '4.4.1', reason: 'connect to mx.slow.example[192.0.2.1]:25: Connection refused', stage: 'connect' as const }
    expect(said(attempted({ relay: null, status, delays: [0, 0, 1000, 0] }))[0]).toContain('smtp[42]: ')
    expect(said(attempted({ relay: null, status, delays: [0, 0, 1000, 0] }))[0]).toContain(
      'relay=none, delay=1.4, delays=0/0/1/0, dsn=4.4.1',
    )
  })

  test('a bounce, and a last attempt, which Postfix logs as deferred', () => {
    const [, warning] = said(attempted({ login: 'refused' }))
    expect(warning).toMatch(
      /^smtp\[42\]: warning: \w+: mx\.slow\.example\[192\.0\.2\.1\]:25 refuses the login, its mail is deferred: correct smtp_sasl_password_maps/,
    )
    const hint = { reply: '535 5.7.139 off', status: '4.7.139', stage: 'auth' as const }
    expect(said(attempted({ login: 'refused', status: hint }))[1]).toMatch(
      /refuses the login, its mail is deferred\. SMTP AUTH is off for .* Then reload and flush slow\.example$/,
    )
    const none = { reason: 'cannot authenticate: no access token for ann: unauthorized_client', status: '4.7.0', stage: 'auth' as const }
    expect(said(attempted({ login: 'refused', status: none }))[1]).toMatch(
      /warning: \w+: no login at mx\.slow\.example\S+, its mail is deferred: cannot authenticate: no access token for ann: unauthorized_client$/,
    )
    expect(said(attempted({ outcome: 'bounced', status: { status: '5.1.1' } }))[0]).toContain('dsn=5.1.1, status=bounced (')
    expect(said(attempted({ outcome: 'expired' }))[0]).toContain('status=deferred (')
    expect(said(attempted({ softBounce: true, status: { status: '4.1.1' } }))[0]).toContain('dsn=4.1.1, status=SOFTBOUNCE (')
  })

  test('orig_to is not the ORCPT of the client, which names an address from before this relay', () => {
    const to = recipient(0, 'ann@slow.example', { orcpt: 'rfc822;all@us.example' })
    expect(said(attempted({ to }))[0]).toContain('to=<ann@slow.example>, relay=')
  })

  test.each([
    ['lmtp:[127.0.0.1]:24', {}, 'lmtp'],
    ['error:5.7.1 no', { relay: null, status: { stage: 'route' as const } }, 'error'],
    ['slow.example', { relay: null, status: { stage: 'queue' as const }, forcedExpire: true }, 'error'],
  ])('at %s are logged under the name of Postfix’s agent', (destination, tried, program) => {
    expect(said(attempted({ destination, ...tried }))[0]).toMatch(new RegExp(`^${program}\\[42\\]: `))
  })
})

test.each([
  [4, '0'],
  [5, '0.01'],
  [123, '0.12'],
  [999, '1'],
  [1260, '1.3'],
  [9949, '9.9'],
  [10_400, '10'],
  [99_600, '100'],
  [150_700, '151'],
  [-5, '0'],
])('a delay of %i ms is written %s', (delay, written) => {
  expect(formatDelay(delay)).toBe(written)
})

describe('failures of clients', () => {
  const after = 'DATA (12 bytes)'
  const FAILURES: readonly (readonly [failure: ClientFailure, text: string, line: string])[] = [
    [{ what: 'lost-connection', after }, `lost connection after ${after}`, `lost connection after ${after} from C`],
    [{ what: 'timeout', after }, `timeout after ${after}`, `timeout after ${after} from C`],
    [{ what: 'pipelining', after }, `improper command pipelining after ${after}`, `improper command pipelining after ${after} from C`],
    [{ what: 'bare-newline', after }, `bare <LF> after ${after}`, `bare <LF> after ${after} from C`],
    [{ what: 'endless-line', after }, `line without end after ${after}`, `line without end after ${after} from C`],
    [{ what: 'too-many-errors', after }, `too many errors after ${after}`, `too many errors after ${after} from C`],
    [{ what: 'too-many-failed-logins', after }, `too many failed logins after ${after}`, `too many failed logins after ${after} from C`],
    [{ what: 'internal-error', after }, `internal error after ${after}`, `internal error after ${after} from C`],
    [
      { what: 'failed-login', method: 'PLAIN', username: 'ann' },
      'SASL PLAIN authentication failed: authentication failure, sasl_username=ann',
      'warning: C: SASL PLAIN authentication failed: authentication failure, sasl_username=ann',
    ],
    [
      { what: 'illegal-address', command: 'MAIL', address: 'a b' },
      'Illegal address syntax in MAIL command: <a b>',
      'warning: Illegal address syntax from C in MAIL command: <a b>',
    ],
    [{ what: 'non-smtp-command', command: 'GET /' }, 'non-SMTP command: GET /', 'warning: non-SMTP command from C: GET /'],
    [
      { what: 'malformed-bdat', command: 'BDAT x' },
      'malformed BDAT command syntax: BDAT x',
      'warning: NOQUEUE: malformed BDAT command syntax from C: BDAT x',
    ],
    [{ what: 'null-bdat' }, 'null BDAT request', 'warning: NOQUEUE: null BDAT request from C'],
    [
      { what: 'bdat-too-big' },
      'BDAT request exceeds message size limit',
      'warning: NOQUEUE: BDAT request from C exceeds message size limit',
    ],
    [{ what: 'tls-failed', why: 'wrong version' }, 'SSL_accept error: wrong version', 'SSL_accept error from C: wrong version'],
    [{ what: 'proxy-header', why: 'EOF' }, 'haproxy read: EOF', 'haproxy read: EOF from C'],
    [
      { what: 'rejected', reply: { code: 450, status: '4.7.1', text: 'no' } },
      '450 4.7.1 no',
      'NOQUEUE: reject: CONNECT from C: 450 4.7.1 no; proto=SMTP',
    ],
    [
      { what: 'no-reply' },
      'no reply to the end of the content, since the commit of the message was not answered',
      'no reply to the end of the content, since the commit of the message was not answered from C',
    ],
  ]

  test.each(FAILURES)('%j', (failure, text, line) => {
    const event: QueueEvent = { kind: 'client-failure', client, failure }
    expect(said(event)).toEqual([`smtpd[42]: ${line.replace(/\bC\b/, 'unknown[192.0.2.9]')}`])
    expect(JSON.parse(logged([event], 'json')[0] ?? '')).toMatchObject({ event: 'client-failure', text })
  })
})

describe('hostile text', () => {
  const hostileMessage: Message = { ...message, sender: HOSTILE, messageId: HOSTILE }
  const events: readonly QueueEvent[] = [
    { kind: 'connected', client: { name: HOSTILE, address: HOSTILE } },
    { kind: 'client-failure', client, failure: { what: 'tls-failed', why: HOSTILE } },
    {
      kind: 'refused',
      client,
      stage: 'RCPT',
      reply: { code: 550, text: HOSTILE },
      sender: HOSTILE,
      recipient: HOSTILE,
      protocol: 'SMTP',
      helo: HOSTILE,
    },
    { kind: 'accepted', message: hostileMessage, recipients: [HOSTILE], client, saslUsername: HOSTILE },
    attempted({
      message: hostileMessage,
      to: recipient(0, HOSTILE, { orcpt: `rfc822;${HOSTILE}x` }),
      relay: HOSTILE,
      status: { reason: HOSTILE, reply: HOSTILE },
    }),
    { kind: 'died', destination: HOSTILE, until: START, siteStatus: { status: '4.4.1', reason: HOSTILE, stage: 'connect' } },
    { kind: 'note', level: 'error', text: HOSTILE },
  ]

  test.each(['postfix', 'json'] as const)('in the %s log adds no control character and no line', (format) => {
    const lines = logged(events, format)
    // `accepted` has two lines in Postfix's log, other events have one.
    expect(lines).toHaveLength(format === 'postfix' ? 8 : 7)
    // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
    expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/)
  })

  test('round-trips through JSON', () => {
    expect(JSON.parse(logged([{ kind: 'note', level: 'error', text: HOSTILE }], 'json')[0] ?? '')).toMatchObject({ text: HOSTILE })
  })
})

describe('records in JSON', () => {
  test('have stable members', () => {
    expect(JSON.parse(logged([attempted({})], 'json')[0] ?? '')).toEqual({
      level: 'info',
      time: '2026-11-20T10:00:00.000Z',
      program: 'deferd',
      host: 'host',
      pid: 42,
      event: 'attempted',
      queue_id: id,
      sender: 'app@us.example',
      recipient: 'ann@slow.example',
      destination: 'slow.example',
      relay: 'mx.slow.example[192.0.2.1]:25',
      connection_use: 1,
      delay: 1.35,
      delays: [0.5, 0.1, 0.5, 0.25],
      status: '4.2.1',
      class: 'recipient',
      outcome: 'deferred',
      stage: 'rcpt',
      reply: null,
      reason: 'host mx.slow.example[192.0.2.1] said: 450 4.2.1 busy',
      login: null,
      tls: null,
      session: null,
      oauth: null,
      hint: null,
    })
    expect(JSON.parse(logged([attempted({ oauth: 'm365' })], 'json')[0] ?? '')).toMatchObject({ oauth: 'm365' })
  })

  test('begin with level, time and program, and escape text once', () => {
    expect(logged([{ kind: 'note', level: 'warning', text: 'a "b" \\ ü \u001b\u202e' }], 'json')).toEqual([
      String.raw`{"level":"warn","time":"2026-11-20T10:00:00.000Z","program":"deferd","host":"host","pid":42,"event":"note","text":"a \"b\" \\ ü \u001b\u202e"}`,
    ])
  })

  test('have what has to be done about a refused login', () => {
    const status = { reply: '535 5.7.139 off', status: '4.7.139', stage: 'auth' as const }
    expect(JSON.parse(logged([attempted({ status })], 'json')[0] ?? '')).toMatchObject({
      class: 'ours',
      hint: expect.stringContaining('SMTP AUTH is off') as string,
    })
  })

  test('name TLS as the other format does', () => {
    expect(JSON.parse(logged([attempted({ status: { tls: IN_CLEAR } })], 'json')[0] ?? '')).toMatchObject({ tls: 'may:none' })
  })
})

test('lines are written in batches, by time or by number', () => {
  const clock = new VirtualClock({ startsAt: START })
  const writes: string[] = []
  const log = openLog({ format: 'postfix', syslogName: 'deferd', host: 'h', pid: 1, clock, write: (text) => void writes.push(text) })
  for (let i = 0; i < 3; i++) log.listen({ kind: 'connected', client }, START)
  expect(writes).toEqual([])
  clock.runNext()
  expect(writes).toHaveLength(1)
  expect(writes[0]?.split('\n')).toHaveLength(4)
  for (let i = 0; i < 2000; i++) log.listen({ kind: 'connected', client }, START)
  expect(writes.length).toBeGreaterThan(1)
  log.flush()
  expect(writes.join('').split('\n')).toHaveLength(2004)
})
