import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hours, minutes } from '../../src/system/clock.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/mail/message.ts'
import { attempt, deferred, delivered, first, mail as mailOf, ownerOf, queue, settleOne, type Mail } from '../conformance/mail.ts'
import { NOW, Operator, withoutColours } from '../support/operator.ts'
import { operate } from '../support/operate.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const REFUSED: DeliveryStatus = { status: '4.4.1', reason: 'connect to mx.far.example[192.0.2.1]:25: Connection refused', stage: 'connect' }

const HOUR_AGO = NOW - hours(1)

/** A message of 2048 bytes that came an hour ago. */
const MAIL: Mail = { at: HOUR_AGO, content: [Buffer.alloc(2048, 'x')], leased: true }

describe('postqueue -p', () => {
  test('an empty queue prints “Mail queue is empty”, and nothing as JSON', async () => {
    await operator.own(() => Promise.resolve())
    expect(await operator.says('postqueue', '-p')).toBe('Mail queue is empty\n')
    expect(await operator.says('mailq')).toBe('Mail queue is empty\n')
    expect(await operator.says('postqueue', '-j')).toBe('')
    expect(await operator.says('queue', 'list', '--json')).toBe('')
  })

  test('on a terminal, an empty queue differs from a filter that matches nothing', async () => {
    await operator.own(() => Promise.resolve())
    expect((await operator.run(['queue', 'list'], { columns: 80 })).out).toBe('The queue is empty.\n')
    expect((await operator.run(['queue', 'list', '--sender', 'x@y.example'], { columns: 80 })).out).toBe('No message matches.\n')
    expect((await operator.run(['queue', 'list', '--limit', '0'], { columns: 80 })).out).toBe('No message matches.\n')
  })

  test('a missing queue is an error, not an empty queue', async () => {
    const env = { DEFERD_QUEUE_DIRECTORY: `${operator.directory}/nowhere` }
    const operations = [['--all'], [], ['--json']].map((options) => ['queue', 'flush', ...options])
    for (const argv of [['mailq'], ['queue', 'list'], ['queue', 'show', 'x'], ['queue', 'hold'], ...operations]) {
      const { code, out, err } = await operator.run(argv, { env })
      expect({ code, out }).toEqual({ code: 69, out: '' })
      expect(err).toMatch(/^deferd: there is no queue in .*nowhere\n$/)
    }
  })

  test('the footer counts; a reason is printed once, above its recipients', async () => {
    const id = await operator.own(async (store) => {
      const message = await queue(store, {
        ...MAIL,
        to: [{ address: 'ann@far.example' }, { address: 'new@far.example' }, { address: 'bob@far.example' }],
      })
      for (const position of [0, 2]) {
        await settleOne(store, message, deferred(recipientId(message, position), NOW + minutes(5), { last: REFUSED }), HOUR_AGO)
      }
      return formatQueueId(HOUR_AGO, message)
    })
    expect(await operator.says('postqueue', '-p')).toBe(
      [
        '----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------',
        `${`${id}*`.padEnd(17)}     2048 Fri Nov 20 09:00:00 app@us.example`,
        '                 (connect to mx.far.example[192.0.2.1]:25: Connection refused)',
        '                                               ann@far.example',
        '                                               bob@far.example',
        '                                                          (reason unavailable)',
        '                                               new@far.example',
        '',
        '-- 2 Kbytes in 1 Request.',
        '',
      ].join('\n'),
    )
  })

  test('marks for active, held and force-expired mail, in Postfix’s order of queues', async () => {
    await operator.own(async (store) => {
      const waiting = await queue(store, { ...MAIL, sender: '' })
      await settleOne(store, waiting, deferred(first(waiting), NOW + minutes(5), { last: null }), HOUR_AGO)
      const held = await queue(store, { ...MAIL, leased: false, hold: true })
      await operate(store, held, { kind: 'expire' })
      await queue(store, MAIL)
      await queue(store, { ...MAIL, leased: false })
    })
    const out = await operator.says('mailq')
    const lines = out.split('\n').filter((line) => /^\w/.test(line))
    expect(lines.map((line) => line.replace(/^\w+/, 'ID'))).toEqual([
      'ID*         2048 Fri Nov 20 09:00:00 app@us.example',
      'ID          2048 Fri Nov 20 09:00:00 app@us.example',
      'ID          2048 Fri Nov 20 09:00:00 MAILER-DAEMON',
      'ID!#        2048 Fri Nov 20 09:00:00 app@us.example',
    ])
    expect(out).toContain('\n\n-- 8 Kbytes in 4 Requests.\n')
  })

  test('a long reason starts at the left margin', async () => {
    const reason = 'x'.repeat(80)
    await operator.own(async (store) => {
      const message = await queue(store, MAIL)
      await settleOne(store, message, deferred(first(message), NOW + 1, { last: { ...REFUSED, reason } }), HOUR_AGO)
    })
    expect(await operator.says('mailq')).toContain(`\n(${reason})\n`)
  })
})

describe('JSON', () => {
  test('the members of postqueue -j are first and in order; without a failure there is no delay_reason', async () => {
    const id = await operator.own(async (store) => {
      const message = await queue(store, {
        ...MAIL,
        at: HOUR_AGO + 250,
        to: [{ address: 'ann@far.example', orcpt: 'rfc822;all@us.example' }, { address: 'new@far.example' }],
      })
      await settleOne(store, message, deferred(recipientId(message, 0), NOW + 1500, { last: REFUSED, attempts: 3 }), HOUR_AGO)
      await store.giveBack([recipientId(message, 1)], store.leaseTerms().owner)
      return formatQueueId(HOUR_AGO + 250, message)
    })
    const expected = {
      queue_name: 'deferred',
      queue_id: id,
      arrival_time: HOUR_AGO / 1000,
      message_size: 2048,
      forced_expire: false,
      sender: 'app@us.example',
      recipients: [
        {
          orig_address: 'all@us.example',
          address: 'ann@far.example',
          delay_reason: REFUSED.reason,
          destination: 'far.example',
          state: 'waiting',
          attempts: 3,
          next_attempt_time: (NOW + 1500) / 1000,
          last_status: '4.4.1',
        },
        {
          address: 'new@far.example',
          destination: 'far.example',
          state: 'waiting',
          attempts: 0,
          next_attempt_time: (HOUR_AGO + 250) / 1000,
          last_status: null,
        },
      ],
      expire_time: (HOUR_AGO + 250) / 1000 + 2 * 86_400,
      attempts: 3,
      next_attempt_time: (HOUR_AGO + 250) / 1000,
    }
    // As text, because the order of the members is promised.
    expect(await operator.says('queue', 'list', '--json')).toBe(`${JSON.stringify(expected)}\n`)
    expect(await operator.says('postqueue', '-j')).toBe(`${JSON.stringify(expected)}\n`)
  })

  test('held mail has no next attempt; at a dead destination it is the later of probe and due time', async () => {
    await operator.own(async (store) => {
      await queue(store, { ...MAIL, leased: false, hold: true })
      const waiting = await queue(store, { ...MAIL, leased: false, to: [{ address: 'a@dead.example' }] })
      expect(waiting).toBeGreaterThan(0)
      await queue(store, { ...MAIL, leased: false, to: [{ address: 'a@shut.example' }] })
      const nobody = { probeInterval: null, suspension: null, siteStatus: null, deadUntil: null }
      await store.saveDestination({ ...nobody, name: 'dead.example', deadUntil: NOW + 5000, probeInterval: 300_000, siteStatus: REFUSED })
      await store.saveDestination({ ...nobody, name: 'shut.example', suspension: { by: 'root', until: null, reason: null } })
    })
    const listed = (await operator.says('queue', 'list', '--json')).trim().split('\n')
    const told = listed.map((line) => {
      const { next_attempt_time, recipients } = JSON.parse(line) as {
        next_attempt_time: number | null
        recipients: { delay_reason?: string }[]
      }
      return [next_attempt_time, recipients[0]?.delay_reason]
    })
    expect(told).toEqual([
      [null, undefined],
      [NOW / 1000 + 5, `delivery temporarily suspended: ${REFUSED.reason}`],
      [null, 'delivery temporarily suspended: by root'],
    ])
  })
})

describe('queue list', () => {
  beforeEach(() =>
    operator.own(async (store) => {
      const message = await queue(store, { ...MAIL, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
      for (const position of [0, 1]) {
        await settleOne(store, message, deferred(recipientId(message, position), NOW + minutes(12), { last: REFUSED }), HOUR_AGO)
      }
    }),
  )

  test('is exact and tab-separated with --tsv', async () => {
    const [line = ''] = (await operator.says('queue', 'list', '--tsv')).split('\n')
    expect(line.split('\t').slice(1)).toEqual([
      'deferred',
      '2048',
      '2026-11-20T09:00:00.000Z',
      '1',
      '2026-11-20T10:12:00.000Z',
      'app@us.example',
      'ann@far.example,bob@far.example',
      REFUSED.reason,
    ])
  })

  test('is a table of the width of the terminal, also in a pipe', async () => {
    const out = await operator.says('queue', 'list')
    const [heading, line = '', reason, total] = out.split('\n')
    expect(heading).toBe('QUEUE ID        QUEUE      AGE TRIES NEXT SENDER → RECIPIENT')
    expect(line).toMatch(/^\w+ +deferred {4}1h {5}1 {2}12m app@us\.example → ann@far\.example \+1$/)
    expect(reason).toBe(`  ${REFUSED.reason}`)
    expect(total).toBe('1 message')
    expect((await operator.run(['queue', 'list'], { columns: 80 })).out).toBe(out)
    expect(withoutColours((await operator.run(['queue', 'list'], { columns: 80, env: { NO_COLOR: '' } })).out)).toBe(out)
    const wide = await operator.says('queue', 'list', '--wide')
    expect(wide.split('\n')[1]).toMatch(
      / in 12m app@us\.example → ann@far\.example, bob@far\.example: connect to mx\.far\.example.* refused$/,
    )
  })

  test('selects by filter', async () => {
    const count = async (...filter: readonly string[]) => Number(await operator.says('queue', 'list', '--count', ...filter))
    expect(await count('--sender', 'app@us.example', '--recipient', '*@far.example', '--reply', 'connection REFUSED')).toBe(1)
    expect(await count('--older-than', '59m', '--attempts-over', '0', '--queue', 'deferred', '--destination', 'FAR.example')).toBe(1)
    expect(await count('--older-than', '2h')).toBe(0)
    expect(await count('--sender', '<>')).toBe(0)
    expect(await count('--limit', '0')).toBe(0)
  })

  test('--sort orders, also with a limit; --count prints a number', async () => {
    await operator.own(async (store) => {
      for (const [sender, size] of [
        ['zoe@us.example', 10],
        ['bea@us.example', 4096],
      ] as const)
        await queue(store, { ...MAIL, leased: false, sender, content: [Buffer.alloc(size, 'x')] })
    })
    const senders = async (...argv: readonly string[]) =>
      (await operator.says('queue', 'list', '--tsv', ...argv)).split('\n').flatMap((line) => line.split('\t')[6]?.split('@')[0] ?? [])
    expect(await senders()).toEqual(['app', 'zoe', 'bea'])
    expect(await senders('--sort', 'sender')).toEqual(['app', 'bea', 'zoe'])
    expect(await senders('--sort', 'size')).toEqual(['bea', 'app', 'zoe'])
    expect(await senders('--sort', 'size', '--limit', '1')).toEqual(['bea'])
    expect(await senders('--sort', 'tries', '--limit', '2')).toEqual(['app', 'zoe'])
    expect(await senders('--sort', 'next')).toEqual(['zoe', 'bea', 'app'])
    expect(await operator.says('queue', 'list', '--count')).toBe('3\n')
    expect(await operator.says('queue', 'list', '--count', '--limit', '2')).toBe('2\n')
    expect(await operator.says('queue', 'list', '--count', '--json', '--sender', 'z*')).toBe('{"messages":1}\n')
    expect((await operator.run(['queue', 'list', '--sort', 'colour'])).code).toBe(64)
  })

  test('exits with 0 when its reader closes the pipe', async () => {
    await operator.own(async (store) => {
      for (let i = 0; i < 1200; i++) await queue(store, MAIL)
    })
    expect(await operator.run(['queue', 'list'], { breaksAfter: 10 })).toMatchObject({ code: 0, err: '' })
  })
})

describe('queue show', () => {
  const lines = async (id: string) => (await operator.says('queue', 'show', id)).split('\n')

  test('shows why a message is queued and its next attempt', async () => {
    const id = await operator.own(async (store) => {
      const message = await queue(store, MAIL)
      const last: DeliveryStatus = {
        status: '4.2.1',
        reason: 'host mx.far.example[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)',
        reply: '450 4.2.1 busy',
        stage: 'rcpt',
      }
      await store.settle({
        owner: store.leaseTerms().owner,
        message,
        recipients: [deferred(first(message), NOW + minutes(4), { last, steps: 3 })],
        attempts: [attempt(first(message), NOW - minutes(16), 'deferred', last)],
      })
      return formatQueueId(HOUR_AGO, message)
    })
    expect(await lines(id)).toEqual([
      `${id}  deferred`,
      '  from          app@us.example',
      '  size          2.0 kB',
      '  arrived       2026-11-20 09:00:00 (1h ago)',
      '',
      'to ann@far.example: waits for its next attempt',
      '  next attempt  2026-11-20 10:04:00 (in 4m)',
      '  by rule       wait 3 of retry_backoff = doubling: 20m after the last attempt;',
      '                minimal_backoff_time = 5m, maximal_backoff_time = 4000s',
      '  expires       2026-11-22 09:00:00 (in 1d 23h)',
      '  last reply    450 4.2.1 busy',
      `  remedy        to try now: deferd queue flush ${id}`,
      '  1 attempt',
      '    2026-11-20 09:44:00  deferred 4.2.1  at mx.example[192.0.2.1]:25, stage',
      '      rcpt, delays 0/0/0/0',
      '      450 4.2.1 busy',
      '      class recipient: x.2.1 in reply to RCPT',
      '',
      'destination far.example',
      '  state         open',
      '  daemon        not running: no attempts until it is started',
      '',
    ])
    const shown = JSON.parse(await operator.says('queue', 'show', id, '--json')) as Record<string, unknown>
    expect(Object.keys(shown)).toEqual(expect.arrayContaining(['history', 'rule', 'waits_for']))
    expect(shown).toMatchObject({
      queue_id: id,
      waits_for: 'due-time',
      history: [
        {
          time: (NOW - minutes(16)) / 1000,
          recipient: 'ann@far.example',
          host: 'mx.example[192.0.2.1]:25',
          stage: 'rcpt',
          reply: '450 4.2.1 busy',
          status: '4.2.1',
          outcome: 'deferred',
          delays: [0.001, 0.002, 0.003, 0.004],
        },
      ],
    })
  })

  test('names the action that waiting mail needs', async () => {
    const told: Record<string, string> = {}
    const ids = await operator.own(async (store) => {
      const of = async (name: string, mail: Mail) =>
        [name, formatQueueId(HOUR_AGO, await queue(store, { ...MAIL, leased: false, ...mail }))] as const
      const nobody = { probeInterval: null, suspension: null, siteStatus: null, deadUntil: null }
      await store.saveDestination({ ...nobody, name: 'dead.example', deadUntil: NOW + 5000, probeInterval: 300_000, siteStatus: REFUSED })
      await store.saveDestination({ ...nobody, name: 'shut.example', suspension: { by: 'root', until: null, reason: null } })
      return [
        await of('held', { hold: true }),
        await of('dead', { to: [{ address: 'a@dead.example' }] }),
        await of('suspended', { to: [{ address: 'a@shut.example' }] }),
        await of('active', { leased: true }),
      ]
    })
    for (const [name, id] of ids) {
      const shown = JSON.parse(await operator.says('queue', 'show', id, '--json')) as { waits_for: string }
      told[name] = shown.waits_for
    }
    expect(told).toEqual({ held: 'release', dead: 'probe', suspended: 'resume', active: 'delivery' })
    expect(await lines(ids[1]?.[1] ?? '')).toContain('  by rule       due, but the destination is dead and probed at doubling')
    expect(await lines(ids[2]?.[1] ?? '')).toContain('  remedy        deferd destination resume shut.example')
  })

  test('works after the message has left', async () => {
    const id = await operator.own(async (store) => {
      const message = await queue(store, MAIL)
      await settleOne(store, message, delivered(first(message), NOW), NOW)
      return formatQueueId(HOUR_AGO, message)
    })
    expect(await lines(id)).toEqual(expect.arrayContaining([`${id}  gone`, 'to ann@far.example: delivered']))
    expect(JSON.parse(await operator.says('queue', 'show', id, '--json'))).toMatchObject({
      queue_name: 'gone',
      rule: null,
      waits_for: 'nothing',
    })
  })

  test('an unknown id exits with 65', async () => {
    await operator.own(() => Promise.resolve())
    for (const command of ['show', 'cat']) {
      const { code, err } = await operator.run(['queue', command, 'nonsense\u001b[31m'])
      expect([code, err]).toEqual([65, 'deferd: there is no message nonsense?[31m, neither in the queue nor in its history\n'])
    }
  })
})

describe('the content', () => {
  const CONTENT = 'Subject: hi\r\nX-Long: a\r\n b\r\n\r\nLine \u0001 one\r\n\r\nLine two\r\n'
  let id: string
  beforeEach(async () => {
    // In pieces that cut the end of the header in two.
    const content = [Buffer.from(CONTENT.slice(0, 29)), Buffer.from(CONTENT.slice(29))]
    id = await operator.own(async (store) => formatQueueId(HOUR_AGO, await queue(store, { ...MAIL, content })))
  })

  test('queue cat prints it byte for byte, complete or in parts', async () => {
    const [header, body] = [CONTENT.slice(0, CONTENT.indexOf('Line')), CONTENT.slice(CONTENT.indexOf('Line'))]
    expect(await operator.says('queue', 'cat', id)).toBe(CONTENT)
    expect(await operator.says('queue', 'cat', '-h', id)).toBe(header)
    expect(await operator.says('queue', 'cat', '-b', id)).toBe(body)
    expect(await operator.says('queue', 'cat', '-e', id)).toContain('sender: app@us.example\nrecipient: ann@far.example\n')
  })

  test('queue cat and postcat print prepended header fields first', async () => {
    const prependedHeaders = 'X-First: 1\r\n'
    const size = prependedHeaders.length + CONTENT.length
    id = await operator.own(async (store) => {
      const entry = mailOf(store, { ...MAIL, content: [Buffer.from(CONTENT)] })
      await store.enqueue({ ...entry, message: { ...entry.message, size, prependedHeaders } })
      return formatQueueId(HOUR_AGO, entry.message.id)
    })
    const header = prependedHeaders + CONTENT.slice(0, CONTENT.indexOf('Line'))
    expect(await operator.says('queue', 'cat', id)).toBe(prependedHeaders + CONTENT)
    expect(await operator.says('queue', 'cat', '-h', id)).toBe(header)
    expect(await operator.says('queue', 'cat', '-b', id)).toBe(CONTENT.slice(CONTENT.indexOf('Line')))
    expect(await operator.says('queue', 'cat', '-e', id)).toContain(`message_size: ${size}\n`)
    expect(await operator.says('postcat', '-hq', id)).toBe(header.replaceAll('\r', ''))
  })

  test('of a message that has left the queue is no longer stored', async () => {
    await operator.own(async (store) => {
      const message = await queue(store, { ...MAIL, leased: true })
      await settleOne(store, message, delivered(first(message), HOUR_AGO), HOUR_AGO)
      id = formatQueueId(HOUR_AGO, message)
    })
    const text = `deferd: the content of ${id} is no longer stored: the message has left the queue\n`
    expect(await operator.run(['queue', 'cat', id])).toMatchObject({ code: 65, out: '', err: text })
    expect(await operator.run(['queue', 'cat', '-e', '-b', id])).toMatchObject({ code: 65, err: text })
  })

  test('of a message that has left the queue, and is kept to be sent again, is stored', async () => {
    await operator.own(async (store) => {
      const message = await queue(store, { ...MAIL, leased: true })
      const last = {
        status: '5.1.1',
        reason: 'host x said: 550 5.1.1 no such user',
        reply: '550 5.1.1 no such user',
        stage: 'rcpt',
      } as const
      const bounced = { recipient: first(message), state: 'bounced' as const, at: HOUR_AGO, attempts: 1, last }
      const keepUntil = Date.parse('2030-01-02T03:04:05Z')
      await store.settle({ owner: ownerOf(store), message, recipients: [bounced], attempts: [], keepUntil })
      id = formatQueueId(HOUR_AGO, message)
    })
    const text = `deferd: the content of ${id} is not shown: the message has left the queue. It is stored until 2030-01-02T03:04:05.000Z, so that it can be sent again\n`
    expect(await operator.run(['queue', 'cat', id])).toMatchObject({ code: 65, out: '', err: text })
  })

  test('on a terminal without control characters', async () => {
    expect((await operator.run(['queue', 'cat', '-b', id], { columns: 80 })).out).toBe('Line ? one\n\nLine two\n')
  })

  test('postcat -q prints Postfix’s sections', async () => {
    const out = await operator.says('postcat', '-q', id)
    expect(out.split('\n').filter((line) => line.startsWith('***'))).toEqual([
      `*** ENVELOPE RECORDS active/${id} ***`,
      `*** MESSAGE CONTENTS active/${id} ***`,
      `*** HEADER EXTRACTED active/${id} ***`,
      `*** MESSAGE FILE END active/${id} ***`,
    ])
    expect(out).toContain('message_arrival_time: Fri Nov 20 09:00:00 2026\n')
    expect(await operator.says('postcat', '-bh', '-q', id)).toBe(CONTENT.replaceAll('\r\n', '\n'))
    expect(await operator.run(['postcat', '-q', 'NOSUCH'])).toMatchObject({ code: 1, out: '' })
  })
})

describe('qshape', () => {
  test('recipients by domain and age', async () => {
    await operator.own(async (store) => {
      for (const age of [3, 7, 12, 25, 2000]) await queue(store, { at: NOW - minutes(age), to: [{ address: 'ann@far.example' }] })
    })
    const columns = (await operator.says('qshape', 'incoming')).split('\n').map((line) => line.trim().split(/ +/))
    expect(columns).toEqual([
      ['T', '5', '10', '20', '40', '80', '160', '320', '640', '1280', '1280+'],
      ['TOTAL', '5', '1', '1', '1', '1', '0', '0', '0', '0', '0', '1'],
      ['far.example', '5', '1', '1', '1', '1', '0', '0', '0', '0', '0', '1'],
      [''],
    ])
  })

  test('queue shape --json and --tsv print a row per line, the total first', async () => {
    await operator.own(async (store) => {
      for (const age of [3, 7, 2000]) await queue(store, { at: NOW - minutes(age), to: [{ address: 'ann@far.example' }] })
    })
    const rows = (await operator.says('queue', 'shape', '--json', '--buckets', '3')).split('\n').slice(0, -1)
    expect(rows.map((row) => JSON.parse(row) as object)).toEqual([
      { domain: 'TOTAL', total: 3, limits: [5, 10, null], counts: [1, 1, 1] },
      { domain: 'far.example', total: 3, limits: [5, 10, null], counts: [1, 1, 1] },
    ])
    expect(await operator.says('queue', 'shape', '--tsv', '--buckets', '3')).toBe('TOTAL\t3\t1\t1\t1\nfar.example\t3\t1\t1\t1\n')
  })

  test('fits 80 columns, with long names truncated at the left', async () => {
    await operator.own(async (store) => {
      const long = `${'very-long-label.'.repeat(4)}example`
      for (const address of [`a@${long}`, `b@${long}`, 'c@short.example']) await queue(store, { at: NOW, to: [{ address }] })
    })
    expect(await operator.says('qshape', 'incoming')).toBe(
      [
        '                                         T  5 10 20 40 80 160 320 640 1280 1280+',
        '                                  TOTAL  3  3  0  0  0  0   0   0   0    0     0',
        '+ery-long-label.very-long-label.example  2  2  0  0  0  0   0   0   0    0     0',
        '                          short.example  1  1  0  0  0  0   0   0   0    0     0',
        '',
      ].join('\n'),
    )
  })

  test('-s counts messages by sender, -l makes equal columns, -b and -t set them, -p adds parents', async () => {
    await operator.own(async (store) => {
      await queue(store, { at: NOW - minutes(25), sender: '', to: [{ address: 'a@x.example' }, { address: 'b@x.example' }] })
      for (const n of [1, 2, 3, 4, 5]) await queue(store, { at: NOW, to: [{ address: `a@s${n}.parent.example` }] })
    })
    const rows = async (...argv: readonly string[]) =>
      (await operator.says('qshape', ...argv, 'incoming')).split('\n').map((line) => line.trim().replaceAll(/ +/g, ' '))
    expect(await rows('-s', '-l', '-b', '3', '-t', '10')).toEqual([
      'T 10 20 20+',
      'TOTAL 6 5 0 1',
      'us.example 5 5 0 0',
      'MAILER-DAEMON 1 0 0 1',
      '',
    ])
    expect(await rows('-p', '-b', '2')).toEqual(expect.arrayContaining(['.parent.example 5 5 0', 'x.example 2 0 2']))
  })
})
