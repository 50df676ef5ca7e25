import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiConnection, localEndpoint } from '../../src/cli/queue-client/api-connection.ts'
import { adminSocketPath } from '../../src/daemon/admin/socket-path.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import type { SchedulerControl } from '../../src/queue/operation-rounds.ts'
import { NOTHING_TAKEN } from '../../src/store/membership/taken-back.ts'
import type { DestinationDue } from '../../src/store/message-operation.ts'
import { Events } from '../../src/telemetry/events.ts'
import { deferred, delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { liveDestination } from '../support/live-destination.ts'
import { NOW, Operator } from '../support/operator.ts'
import { operate } from '../support/operate.ts'
import { withCommandSocket } from '../support/command-socket.ts'

let operator: Operator
let ids: readonly string[]

const CAME = NOW - 60_000

beforeEach(async () => {
  operator = new Operator()
  ids = await operator.own(async (store) => {
    const made: string[] = []
    for (const address of ['ann@far.example', 'bob@far.example', 'eve@slow.example']) {
      const message = await queue(store, { at: CAME, leased: true, to: [{ address }] })
      await settleOne(store, message, deferred(first(message), NOW + 600_000), CAME)
      made.push(formatQueueId(CAME, message))
    }
    return made
  })
})
afterEach(() => operator.leave())

interface Listed {
  readonly queue_name: string
  readonly queue_id: string
  readonly arrival_time: number
  readonly expire_time: number
  readonly forced_expire: boolean
  readonly next_attempt_time: number | null
}

const listed = async (...filter: readonly string[]): Promise<readonly Listed[]> =>
  (await operator.says('queue', 'list', '--json', ...filter))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Listed)

const queues = async () => (await listed()).map(({ queue_name }) => queue_name)

describe('without a daemon', () => {
  test('hold and release, by id and by filter', async () => {
    expect(await operator.says('queue', 'hold', ids[0] ?? '')).toBe('1 message put on hold\n')
    expect(await queues()).toEqual(['hold', 'deferred', 'deferred'])
    expect(await operator.says('queue', 'hold', '--destination', 'far.example')).toBe('1 message put on hold of 2\n')
    expect(await queues()).toEqual(['hold', 'hold', 'deferred'])
    expect(await operator.says('queue', 'release', '--all')).toBe('2 messages released\n')
    expect(await queues()).toEqual(['deferred', 'deferred', 'deferred'])
  })

  test('flush makes mail due now', async () => {
    await operator.says('queue', 'flush', '--recipient', 'eve@*')
    expect((await listed('--recipient', 'eve@*'))[0]?.next_attempt_time).toBe(NOW / 1000)
    expect((await listed('--recipient', 'ann@*'))[0]?.next_attempt_time).toBe(NOW / 1000 + 600)
  })

  test('flush says why it leaves mail unchanged', async () => {
    const to = [{ address: 'zoe@far.example' }]
    await operator.own((store) => queue(store, { at: CAME, to }))
    await operator.says('queue', 'hold', ids[0] ?? '')
    const flush = ['queue', 'flush', '--destination', 'far.example'] as const
    expect(await operator.says(...flush, '--dry-run')).toContain(
      '1 message would be flushed; 1 was due already; 1 is on hold; nothing was changed\n',
    )
    expect(await operator.says(...flush)).toBe('1 message flushed; 1 was due already; 1 is on hold\n')
    expect(await operator.says(...flush)).toBe('0 messages flushed of 1; 2 were due already; 1 is on hold\n')
    const counts = { matched: 1, changed: 0, due: 2, hold: 1, in_transfer: 0, unknown: [] }
    expect(JSON.parse(await operator.says(...flush, '--json'))).toEqual({ operation: 'flush', dry_run: false, ...counts })
  })

  test('expire marks mail', async () => {
    await operator.says('queue', 'expire', ids[1] ?? '')
    expect((await listed()).map(({ forced_expire }) => forced_expire)).toEqual([false, true, false])
    expect(await operator.says('mailq')).toContain(`${ids[1]}# `)
    expect(await operator.says('queue', 'show', ids[1] ?? '')).toMatch(/^ {2}due {2,}2.*^ {2}remedy {2,}to have it expire now: /ms)
  })

  test('requeue gives a new id and a new lifetime, and keeps the arrival time', async () => {
    await operator.says('queue', 'requeue', ids[0] ?? '')
    const after = (await listed()).at(-1)
    expect(await listed()).toHaveLength(3)
    expect(after?.queue_id).not.toBe(ids[0])
    expect(after?.arrival_time).toBe(CAME / 1000)
    expect(after?.expire_time).toBe(NOW / 1000 + 2 * 86_400)
  })

  test('reclass ends with a class that has a table', async () => {
    const without = await operator.run(['queue', 'reclass', '--all'])
    expect([without.code, without.err]).toEqual([64, expect.stringContaining("missing required argument 'class'")])
    expect((await operator.run(['queue', 'reclass', 'fast'])).code).toBe(64)
    const unknown = await operator.run(['queue', 'reclass', '--all', 'slow'])
    expect([unknown.code, unknown.err]).toEqual([65, expect.stringContaining('there is no class "slow"')])
    const file = join(operator.directory, 'classes.toml')
    writeFileSync(file, 'default_class = "bulk"\n[class.fast]\nweight = 100\n[class.bulk]\nweight = 1\n', { mode: 0o600 })
    expect(await operator.says('queue', 'reclass', '--all', 'fast', '--dry-run', '--config', file)).toContain(
      '3 messages would have the class fast; nothing was changed\n',
    )
  })

  test('reschedule names one time, lists scheduled mail, and is undone', async () => {
    const orders = ['queue', 'reschedule', '--destination', 'far.example'] as const
    for (const wrong of [[], ['--at', '2026-11-21T00:00:00Z', '--in', '2h'], ['--at', '2h']])
      expect((await operator.run([...orders, ...wrong])).code).toBe(64)
    expect((await operator.run(['queue', 'reschedule', '4xxxxxxxxxxx', '--in', '2h'])).code).toBe(65)
    const dry = await operator.says(...orders, '--in', '2h', '--dry-run')
    expect(dry).toContain('2 messages would be rescheduled to 2h from now; nothing was changed\n')
    expect(await operator.says(...orders, '--at', '2026-11-20T10:30:00Z', '--dry-run')).toContain(
      '2 messages would be rescheduled to 2026-11-20T10:30:00Z; nothing was changed\n',
    )
    expect(await operator.says(...orders, '--in', '2h')).toBe('2 messages rescheduled\n')
    expect((await listed('--queue', 'scheduled')).map(({ next_attempt_time: next }) => next)).toEqual([
      NOW / 1000 + 7200,
      NOW / 1000 + 7200,
    ])
    expect(await operator.says('queue', 'reschedule', '--queue', 'scheduled', '--at', '2026-11-20T10:30:00Z')).toBe(
      '2 messages rescheduled\n',
    )
    const log = await operator.says('operation', 'list')
    expect(log).toContain('--queue=scheduled --at=2026-11-20T10:30:00Z')
    const [, id] = /^ *(\d+)/m.exec(log) ?? []
    expect(await operator.says('operation', 'undo', id ?? '')).toContain('2 messages')
    expect((await listed('--queue', 'scheduled')).map(({ next_attempt_time: next }) => next)).toEqual([
      NOW / 1000 + 7200,
      NOW / 1000 + 7200,
    ])
  })

  test('requeue --all terminates, though it adds to the queue', async () => {
    expect(await operator.says('queue', 'requeue', '--all')).toBe('3 messages requeued\n')
    expect(await listed()).toHaveLength(3)
  })

  test('delete moves mail to the trash; restore brings back undelivered recipients', async () => {
    expect(await operator.says('queue', 'delete', '--destination', 'far.example')).toBe('2 messages deleted\n')
    expect(await listed()).toHaveLength(1)
    expect((await listed('--queue', 'trash')).map(({ queue_id }) => queue_id)).toEqual(ids.slice(0, 2))
    expect(await operator.says('queue', 'restore', '--all')).toBe('2 messages restored\n')
    expect(await listed()).toHaveLength(3)
    await operator.says('queue', 'delete', '--now', '--all')
    expect(await listed('--queue', 'trash')).toHaveLength(0)
    expect((await operator.run(['queue', 'restore', ids[0] ?? ''])).code).toBe(65)
  })

  test('a dry run counts and shows, and changes nothing', async () => {
    const out = await operator.says('queue', 'delete', '--destination', 'far.example', '--dry-run')
    expect([...out.matchAll(/^4\w+(?= +\w+ +\d)/gm)].map(([id]) => id)).toEqual(ids.slice(0, 2))
    expect(out).toContain('2 messages would be deleted; nothing was changed\n')
    expect(await listed()).toHaveLength(3)
    expect(await operator.says('audit')).toBe('')
  })

  test('a dry run lists exactly the messages it counts', async () => {
    await operator.own(async (store) => {
      const message = await queue(store, { at: CAME, leased: true, to: [{ address: 'broken@far.example' }] })
      await store.quarantine(message, 'it cannot be read')
    })
    await operator.says('queue', 'hold', ids[0] ?? '')
    expect((await operator.says('queue', 'release', '--sender', '*', '--dry-run')).split('\n').map((line) => line.split('  ')[0])).toEqual([
      'QUEUE ID',
      ids[0],
      expect.anything(),
      '1 message would be released; nothing was changed',
      '',
    ])
    expect((await operator.says('queue', 'hold', '--sender', '*', '--dry-run')).match(/\n/g)).toHaveLength(6)
    await operator.says('queue', 'delete', ids[2] ?? '')
    expect(await operator.says('queue', 'restore', '--all', '--dry-run')).toMatch(
      new RegExp(`^QUEUE ID.*\n${ids[2]} .*\n(?: {2}.*\n)?1 message would be restored; nothing was changed\n$`),
    )
  })

  test('at most as many as --limit says, the oldest first', async () => {
    await operator.says('queue', 'hold', '--all', '--limit', '2')
    expect(await queues()).toEqual(['hold', 'hold', 'deferred'])
  })

  test('an unknown id is reported, other ids are processed', async () => {
    const { code, out, err } = await operator.run(['queue', 'hold', 'nonsense', ids[0] ?? ''])
    expect({ code, out, err }).toEqual({
      code: 65,
      out: '1 message put on hold\n',
      err: 'deferd: no such message in the queue: nonsense\n',
    })
  })

  test('messages must be selected, by ids or by filter', async () => {
    for (const argv of [
      ['queue', 'delete'],
      ['queue', 'delete', 'X', '--all'],
      ['queue', 'hold', 'X', '--sender', 'a'],
    ]) {
      expect(await operator.run(argv)).toMatchObject({ code: 64, out: '' })
    }
    // A limit alone chooses nothing.
    expect((await operator.run(['queue', 'delete', '--limit', '1'])).code).toBe(64)
  })

  test('each operation adds one row to the audit log', async () => {
    await operator.says('queue', 'hold', '--all')
    await operator.says('destination', 'suspend', 'Far.example')
    expect(await operator.says('audit')).toBe(
      '2026-11-20 10:00:00  operator  hold --all  (3 changes, id 1)\n2026-11-20 10:00:00  operator  suspend far.example  (1 change, id 2)\n',
    )
    expect(await operator.says('audit', '--tsv')).toBe(
      '2026-11-20T10:00:00.000Z\toperator\thold\t--all\t3\n2026-11-20T10:00:00.000Z\toperator\tsuspend\tfar.example\t1\n',
    )
    expect(JSON.parse((await operator.says('audit', '--json')).split('\n')[0] ?? '')).toEqual({
      time: NOW / 1000,
      who: 'operator',
      action: 'hold',
      arguments: '--all',
      changed: 3,
      request_id: null,
      id: 1,
      state: 'done',
      matched: 3,
      in_transfer: 0,
      unknown: 0,
      expected: null,
      reason: null,
      last_time: NOW / 1000,
      undo_until: NOW / 1000 + 3 * 86_400,
      undoes: null,
      undone_by: null,
      error: null,
      node: null,
    })
  })

  test('the last records of the audit log come first with --limit and --before', async () => {
    for (const id of ids) await operator.says('queue', 'hold', id)
    const ofAudit = async (...argv: readonly string[]) =>
      (await operator.says('audit', '--json', ...argv))
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { readonly id: number }).id)
    expect(await ofAudit()).toEqual([1, 2, 3])
    expect(await ofAudit('--limit', '2')).toEqual([3, 2])
    expect(await ofAudit('--limit', '2', '--before', '2')).toEqual([1])
    expect(await ofAudit('--before', '3')).toEqual([2, 1])
    expect(await ofAudit('--before', '99999999999999999999')).toEqual([3, 2, 1])
    expect(await ofAudit('--limit', '0')).toEqual([])
    const [at, later] = [NOW, NOW + 1].map((time) => new Date(time).toISOString())
    expect(await ofAudit('--recorded-after', at ?? '', '--recorded-before', later ?? '')).toEqual([3, 2, 1])
    expect(await ofAudit('--recorded-before', at ?? '')).toEqual([])
    expect((await operator.run(['audit', '--recorded-after', later ?? '', '--recorded-before', at ?? ''])).code).toBe(64)
    expect((await operator.run(['audit', '--before', 'x'])).code).toBe(64)
  })

  test('while another command owns the queue, no operation runs', async () => {
    await operator.own(async () => {
      const { code, err } = await operator.run(['queue', 'hold', '--all'])
      expect(code).toBe(75)
      expect(err).toMatch(/^deferd: the queue in .* is in use by process \d+/)
    })
  })
})

describe('above a thousand messages', () => {
  beforeEach(() =>
    operator.own(async (store) => {
      await Promise.all(Array.from({ length: 1000 }, () => queue(store, { at: CAME })))
    }),
  )

  test('a terminal user is asked, and may decline', async () => {
    const no = await operator.run(['queue', 'hold', '--all'], { columns: 100, answer: 'n' })
    expect(no).toMatchObject({ code: 0, asked: ['hold 1,003 messages? [y/N] '], out: 'Nothing was changed.\n' })
    const yes = await operator.run(['queue', 'hold', '--all'], { columns: 100, answer: 'y' })
    expect(yes.out).toBe('1,003 messages put on hold\n')
  })

  test('there is no question in a script, or with --yes', async () => {
    expect((await operator.run(['queue', 'hold', '--all'])).asked).toEqual([])
    expect((await operator.run(['queue', 'release', '--all', '--yes'], { columns: 100 })).asked).toEqual([])
  })
})

describe('destinations', () => {
  test('are suspended and resumed, also across commands', async () => {
    expect(await operator.says('destination', 'suspend', 'far.example')).toContain('suspended')
    const [far] = (await operator.says('destination', 'list', '--json')).split('\n')
    expect(JSON.parse(far ?? '')).toEqual({
      destination: 'far.example',
      node: null,
      state: 'suspended',
      window: null,
      message_rate: null,
      provider: null,
      provider_suspended_by: null,
      provider_rules: [],
      provider_in_flight: null,
      provider_limit: null,
      refuses_all: false,
      undelivered_attempts: 0,
      undelivered_since: null,
      in_flight: 0,
      leased: 0,
      slot_waiting: null,
      waiting: 2,
      next_due_time: NOW / 1000 + 600,
      dead_until: null,
      probe_interval: null,
      probe_time: null,
      probed: false,
      blocked_by: null,
      suspended_by: 'operator',
      suspended_until: null,
      suspend_reason: null,
      suspended_with: null,
      resume_time: null,
      last_reply: null,
      last_reply_time: null,
      hint: null,
      site_reason: null,
      site_stage: null,
    })
    expect(await operator.says('destination', 'show', 'FAR.example')).toContain('suspended by operator')
    await operator.says('destination', 'resume', 'far.example')
    expect(await operator.says('destination', 'show', 'far.example')).toContain('  state       open\n')
    expect(await operator.says('destination', 'show', 'slow.example')).toContain('  waiting     1 recipient, 0 claimed\n')
  })

  test('are suspended for a time and with a reason, which listings show', async () => {
    expect(await operator.says('destination', 'suspend', 'far.example', '--for', '2h', '--reason', 'rate limited')).toMatch(
      /^far\.example: suspended until 2026-11-20 12:00:00: rate limited\n$/,
    )
    const [far] = (await operator.says('destination', 'list', '--json')).split('\n')
    expect(JSON.parse(far ?? '')).toMatchObject({ suspended_until: NOW / 1000 + 7200, suspend_reason: 'rate limited' })
    expect(await operator.says('destination', 'show', 'far.example')).toContain('suspended by operator, ends in 2h: rate limited\n')
    const [message] = await listed('--recipient', 'ann@*')
    expect(message).toMatchObject({
      next_attempt_time: NOW / 1000 + 7200,
      recipients: [{ delay_reason: 'delivery temporarily suspended: by operator: rate limited' }],
    })
    expect(await operator.says('audit')).toContain("suspend far.example --for=2h --reason='rate limited'")
    expect((await operator.run(['destination', 'suspend', 'far.example', '--for', '0s'])).code).toBe(64)
  })

  test('are suspended before they have mail, with a warning', async () => {
    expect(await operator.run(['destination', 'suspend', 'gmial.example'])).toMatchObject({
      code: 0,
      err: 'deferd: warning: no mail is queued for this destination; `deferd destination list` shows the destinations with mail\n',
    })
    expect(await operator.run(['destination', 'suspend', 'far.example'])).toMatchObject({ code: 0, err: '' })
  })

  test('unknown ones exit with 65', async () => {
    expect(await operator.run(['destination', 'show', 'nowhere.example'])).toMatchObject({ code: 65, out: '' })
  })
})

describe('postsuper', () => {
  test('deletes and counts; an unknown id counts as none', async () => {
    expect(await operator.run(['postsuper', '-d', ids[0] ?? ''])).toMatchObject({
      code: 0,
      out: '',
      err: `postsuper: ${ids[0]}: removed\npostsuper: Deleted: 1 message\n`,
    })
    expect(await operator.run(['postsuper', '-d', 'NOSUCH'])).toMatchObject({ code: 0, err: 'postsuper: Deleted: 0 messages\n' })
    expect(await listed()).toHaveLength(2)
  })

  test('acts in the order given, on ids from standard input or on ALL, in the queues named', async () => {
    const held = await operator.run(['postsuper', '-h', '-'], { stdin: `${ids[0]}\n${ids[1]} with words behind\n\n` })
    expect(held.err).toContain('postsuper: Placed on hold: 2 messages\n')
    expect((await operator.run(['postsuper', '-d', 'ALL', 'deferred'])).err).toContain('Deleted: 1 message\n')
    expect(await queues()).toEqual(['hold', 'hold'])
    expect((await operator.run(['postsuper', '-H', 'ALL', '-h', ids[0] ?? ''])).err.split('\n').slice(-3)).toEqual([
      'postsuper: Released from hold: 2 messages',
      'postsuper: Placed on hold: 1 message',
      '',
    ])
    expect(await queues()).toEqual(['hold', 'deferred'])
  })

  test('-f expires and releases', async () => {
    await operator.run(['postsuper', '-h', 'ALL'])
    expect((await operator.run(['postsuper', '-f', ids[2] ?? ''])).err).toBe(
      `postsuper: ${ids[2]}: expired\npostsuper: ${ids[2]}: released from hold\npostsuper: Force-expired: 1 message\npostsuper: Released from hold: 1 message\n`,
    )
    expect((await operator.run(['postsuper', '-r', 'ALL'])).err).toContain('postsuper: Requeued: 3 messages\n')
  })

  test.each([[['-x']], [['-d']], [['-d', 'a b']], [['-d', 'ALL', 'nowhere']]])('%j is wrong usage', async (argv) => {
    expect(await operator.run(['postsuper', ...argv])).toMatchObject({ code: 64, out: '' })
  })
})

describe('postqueue -f, -i, -s', () => {
  const due = async () => (await listed()).map(({ next_attempt_time }) => (next_attempt_time ?? 0) - NOW / 1000)

  test('flush all, one message, one site', async () => {
    await operator.says('postqueue', '-i', ids[0] ?? '')
    expect(await due()).toEqual([0, 600, 600])
    await operator.says('postqueue', '-o', 'fast_flush_domains=example', '-s', 'slow.example')
    expect(await due()).toEqual([0, 600, 0])
    await operator.says('postqueue', '-f')
    expect(await due()).toEqual([0, 0, 0])
  })

  test('a site outside of fast_flush_domains is refused with the reason', async () => {
    const { code, err } = await operator.run(['postqueue', '-s', 'slow.example'])
    expect(code).toBe(69)
    expect(err).toContain('Flush service is not configured for destination "slow.example"')
    expect(await due()).not.toContain(0)
  })

  test('an unknown id is no error; a bad id, a bad site and a second mode are', async () => {
    expect((await operator.run(['postqueue', '-i', 'NOSUCH'])).code).toBe(0)
    for (const argv of [['-i', '../x'], ['-s', 'a b'], ['-p', '-f'], [], ['-p', 'word'], ['-z']]) {
      expect(await operator.run(['postqueue', ...argv])).toMatchObject({ code: 64, out: '' })
    }
  })
})

describe('with a daemon', () => {
  const seen: { woken: (DestinationDue & { revive: boolean })[]; suspended: string[] } = { woken: [], suspended: [] }
  const live = liveDestination('far.example', {
    state: 'dead',
    window: 7,
    inFlight: 2,
    inTransfer: [1, 2],
    waiting: 3,
    nextDueAt: NOW,
    deadUntil: NOW + 60_000,
    probeInterval: 60_000,
    siteStatus: { status: '4.3.2', reason: 'host mx said: 421 later', reply: '421 later', stage: 'greeting' },
  })
  const scheduler: SchedulerControl = {
    workAdded: (due, { revive }) => void seen.woken.push(...due.map((one) => ({ ...one, revive }))),
    suspend: async (name, { by, until, reason }) => void seen.suspended.push(`${name} by ${by} until ${until}: ${reason}`),
    resume: async (name) => void seen.suspended.push(`${name} again`),
    suspendProvider: async (name, { by, until, reason }) => void seen.suspended.push(`provider ${name} by ${by} until ${until}: ${reason}`),
    resumeProvider: async (name) => void seen.suspended.push(`provider ${name} again`),
    takeBack: async () => NOTHING_TAKEN,
    transfers: async () => [],
    snapshot: () => [live],
  }

  /** Owns the queue and listens at its socket, as a daemon does. */
  async function withDaemon(story: () => Promise<void>): Promise<readonly string[]> {
    const operated: string[] = []
    await operator.own(async (store) => {
      const events = new Events(() => NOW)
      events.listen((event) => {
        if (event.kind === 'operated') operated.push(`${event.operation} ${event.queueId} by ${event.by}`)
        if (event.kind === 'accepted') operated.push(`${queueIdOf(event.message)} to ${event.recipients.join()} was ${event.originalId}`)
      })
      await withCommandSocket({ directory: operator.directory, clock: operator.clock, store, events, scheduler }, story)
    })
    return operated
  }

  beforeEach(() => {
    seen.woken = []
    seen.suspended = []
  })

  test('operations run in the daemon and reach the scheduler', async () => {
    const operated = await withDaemon(async () => {
      expect(await operator.says('queue', 'flush', '--destination', 'far.example')).toBe('2 messages flushed\n')
      expect(await operator.says('queue', 'hold', ids[2] ?? '')).toBe('1 message put on hold\n')
      expect((await operator.run(['postsuper', '-H', 'ALL'])).err).toBe(
        `postsuper: ${ids[2]}: released from hold\npostsuper: Released from hold: 1 message\n`,
      )
    })
    expect(seen.woken.map(({ destination, revive }) => [destination, revive])).toEqual([
      ['far.example', true],
      ['slow.example', false],
    ])
    expect(operated).toEqual([
      `flush ${ids[0]} by operator`,
      `flush ${ids[1]} by operator`,
      `hold ${ids[2]} by operator`,
      `release ${ids[2]} by operator`,
    ])
  })

  test('the log links a requeued message to its earlier id', async () => {
    const log = await withDaemon(async () => {
      expect(await operator.says('queue', 'requeue', ids[1] ?? '')).toBe('1 message requeued\n')
    })
    const newId = (await listed('--recipient', 'bob@*'))[0]?.queue_id
    expect(newId).not.toBe(ids[1])
    expect(log).toEqual([`requeue ${ids[1]} by operator`, `${newId} to bob@far.example was ${ids[1]}`])
  })

  test('destinations are shown with the scheduler’s state', async () => {
    await withDaemon(async () => {
      await operator.says('destination', 'suspend', 'far.example')
      await operator.says('destination', 'resume', 'far.example')
      expect(JSON.parse((await operator.says('destination', 'list', '--json')).split('\n')[0] ?? '')).toMatchObject({
        destination: 'far.example',
        state: 'dead',
        window: 7,
        message_rate: null,
        in_flight: 2,
        // More than the two in the store: the memory is read later.
        waiting: 3,
        dead_until: NOW / 1000 + 60,
        probe_interval: 60,
        last_reply: '421 later',
      })
      expect(await operator.says('queue', 'show', ids[0] ?? '')).toContain('  window        7 at once, 2 in flight, 3 waiting for a slot\n')
    })
    expect(seen.suspended).toEqual(['far.example by operator until null: null', 'far.example again'])
  })

  test('a request of another version is refused as a whole, in one sentence', async () => {
    const operated = await withDaemon(async () => {
      const api = new ApiConnection(localEndpoint(operator.directory))
      const selection = { kind: 'filter', filter: { domain: 'far.example' } }
      const answer = api.lines({ method: 'POST', path: '/operations', body: { operation: 'delete', selection } }, () => undefined)
      await expect(answer).rejects.toThrow(
        'request refused: unknown member "domain" of selection.filter; if this daemon is older than the command, restart it',
      )
    })
    expect(operated).toEqual([])
    expect(await listed()).toHaveLength(3)
  })

  test('a value that the API does not accept is wrong usage', async () => {
    await withDaemon(async () => {
      const suspended = await operator.run(['destination', 'suspend', 'far.example', '--reason', 'x'.repeat(1_001)])
      expect(suspended).toMatchObject({ code: 64 })
      expect(suspended.err).toMatch(/^deferd: request refused: reason: expected at most 1,000 characters/)
    })
    expect(seen.suspended).toEqual([])
  })

  test('its errors are reported with its text and exit code', async () => {
    await operator.own(async (store) => {
      const failing = { ...scheduler, suspend: () => Promise.reject(Object.assign(new Error('the disk is full'), { exitCode: 75 })) }
      await withCommandSocket({ directory: operator.directory, clock: operator.clock, store, scheduler: failing }, async () => {
        expect(await operator.run(['destination', 'suspend', 'x'])).toMatchObject({ code: 75, err: 'deferd: the disk is full\n' })
      })
    })
  })

  test('what was done before an operation failed is reported', async () => {
    await operator.own(async (store) => {
      const throttle = () => Promise.reject(Object.assign(new Error('the disk is full'), { exitCode: 75 }))
      await withCommandSocket({ directory: operator.directory, clock: operator.clock, store, scheduler, throttle }, async () => {
        const { code, err } = await operator.run(['postsuper', '-h', ids[0] ?? ''])
        expect([code, err]).toEqual([75, `postsuper: ${ids[0]}: placed on hold\ndeferd: the disk is full\n`])
      })
    })
  })

  test.each(['at once', 'on the way'])('a daemon that exits %s is reported', async (when) => {
    const dying = createServer((request, response) => {
      if (request.method === 'GET') return void response.end('[]')
      if (when === 'on the way') response.write('{"progress":{"matched":1,"changed":1,"ids":[]}}\n')
      setImmediate(() => request.socket.destroy())
    })
    await new Promise<void>((resolve) => void dying.listen(adminSocketPath(operator.directory), resolve))
    try {
      const { code, err } = await operator.run(['queue', 'hold', ids[0] ?? ''])
      expect(err).toBe(
        'deferd: lost connection to the daemon; the operation may be partly applied: check `deferd audit`, then repeat the command\n',
      )
      expect(code).toBe(75)
    } finally {
      dying.close()
    }
  })

  test('a daemon that exits before it answers a change is reported', async () => {
    const dying = createServer((request, response) => {
      if (request.method === 'GET') return void response.end('[]')
      setImmediate(() => request.socket.destroy())
    })
    await new Promise<void>((resolve) => void dying.listen(adminSocketPath(operator.directory), resolve))
    try {
      const { code, err } = await operator.run(['webhook', 'remove', 'app'])
      expect([code, err]).toEqual([
        75,
        'deferd: lost connection to the daemon before its answer; the change may have been made: look before you repeat the command\n',
      ])
    } finally {
      dying.close()
    }
  })

  test.each([
    ['deferd 0.0.1', { 'deferd-version': '0.0.1' }],
    ['an older deferd', {}],
  ])('%s that does not understand a command is named in one sentence', async (daemon, headers) => {
    const older = createServer((request, response) => {
      if (request.method === 'GET') return void response.end('[]')
      response.writeHead(400, headers).end('{"detail":"request refused: unknown key","exit_code":70}\n')
    })
    await new Promise<void>((resolve) => void older.listen(adminSocketPath(operator.directory), resolve))
    try {
      for (const argv of [
        ['queue', 'hold', ids[0] ?? ''],
        ['destination', 'suspend', 'far.example'],
      ]) {
        const { code, err } = await operator.run(argv)
        expect(code).toBe(69)
        expect(err).toMatch(
          new RegExp(`^deferd: the daemon is ${daemon} and does not understand this command of deferd \\d[^\n]*: restart`),
        )
        expect(err.split('\n')).toHaveLength(2)
      }
    } finally {
      older.close()
    }
  })

  test('resuming a destination of which nothing is known is an error', async () => {
    const { code, out, err } = await operator.run(['destination', 'resume', 'nosuch'])
    expect({ code, out }).toEqual({ code: 65, out: '' })
    expect(err).toMatch(
      /^deferd: nothing is known under the name nosuch, so nothing was resumed; deferd destination list shows all names\n$/,
    )
  })

  test('a stale socket is ignored', async () => {
    await withDaemon(() => Promise.resolve())
    expect(await operator.says('queue', 'hold', ids[0] ?? '')).toBe('1 message put on hold\n')
    await withDaemon(async () => {
      expect(await operator.says('queue', 'release', '--all')).toBe('1 message released\n')
    })
  })
})

test('recipients delivered in the meantime are not restored', async () => {
  const id = await operator.own(async (store) => {
    const message = await queue(store, { at: CAME, leased: true })
    await operate(store, message, { kind: 'delete', now: NOW, purge: false })
    await settleOne(store, message, delivered(first(message), NOW), NOW)
    return formatQueueId(CAME, message)
  })
  const { code } = await operator.run(['queue', 'restore', id])
  expect(code === 65 || code === 0).toBe(true)
  expect((await listed()).map(({ queue_id }) => queue_id)).not.toContain(id)
})
