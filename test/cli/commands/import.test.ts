import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BuiltSpool, submission } from '../../support/built-spool.ts'
import { NOW, Operator } from '../../support/operator.ts'
import { record } from '../../support/queue-file-builder.ts'

const HOUR = 3600
const T = NOW / 1000 - HOUR
const arrival = `${T} 250000`

let spool: BuiltSpool
let operator: Operator
beforeEach(() => {
  spool = new BuiltSpool()
  operator = new Operator()
})
afterEach(() => {
  spool.remove()
  operator.leave()
})

const importMail = (...args: readonly string[]) => operator.run(['import', 'postfix', '--config-dir', spool.config, ...args])
const list = async (): Promise<readonly Record<string, unknown>[]> =>
  (await operator.says('queue', 'list', '--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const LOG = `
<bob@b.test>: host mx.b.test[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)
recipient=bob@b.test
offset=OFFSET
status=4.2.1
action=delayed
diag_type=smtp
diag_text=450 4.2.1 busy
mta_type=dns
mta_mname=mx.b.test
reason=host mx.b.test[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)
`

test('mail keeps its times, its last outcome and its place on the retry schedule', async () => {
  const path = spool.add('deferred', 'A1B2C3D4E5', { arrival }, { at: T + 5 * HOUR })
  const offset = readFileSync(path).indexOf(record('R', 'bob@b.test'))
  spool.log('defer', 'A1B2C3D4E5', LOG.replace('OFFSET', String(offset)), T + 2000)
  const { code, out, err } = await importMail()
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain('1 message with 1 recipient taken over: the queue has grown by as many')
  expect(await list()).toMatchObject([
    {
      queue_name: 'deferred',
      arrival_time: T,
      sender: 'ann@a.test',
      attempts: 3,
      // The longest wait is maximal_backoff_time.
      next_attempt_time: NOW / 1000 + 4000,
      expire_time: T + 5 * 24 * HOUR + 0.25,
      recipients: [
        {
          address: 'bob@b.test',
          attempts: 3,
          last_status: '4.2.1',
          delay_reason: 'host mx.b.test[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)',
        },
      ],
    },
  ])
})

test('held mail stays on hold, submissions are completed, and all other mail is due', async () => {
  spool.add('hold', 'AAAAAA', { arrival }, { at: T })
  spool.add('active', 'BBBBBB', { arrival }, { at: T })
  spool.add('maildrop', 'CCCCCC', submission('cron', ['root', 'bob@b.test'], arrival), { at: T })
  expect((await importMail()).code).toBe(0)
  expect((await list()).map((one) => [one['queue_name'], one['sender'], one['next_attempt_time']].join(' ')).toSorted()).toEqual([
    'hold ann@a.test ',
    `incoming ann@a.test ${T}`,
    `incoming cron@origin.example ${T + 0.25}`,
  ])
  const [submitted] = (await list()).filter((one) => one['sender'] === 'cron@origin.example')
  const content = await operator.says('queue', 'cat', String(submitted?.['queue_id']))
  expect(content).toMatch(/^Received: by relay.example \(Deferd, from userid \d+\)/m)
  expect(content).toContain('From: Ann Other <cron@origin.example>')
})

test('a second import takes nothing twice', async () => {
  spool.add('incoming', 'BBBBBB', { arrival })
  await importMail()
  spool.add('incoming', 'DDDDDD', { arrival })
  const { out } = await importMail('--json')
  expect(JSON.parse(out)).toMatchObject({ queues: [{ queue: 'incoming', files: 2, taken: 1, known: 1 }], left: [] })
  expect(await list()).toHaveLength(2)
})

test('files that cannot be taken over are listed and stay; incomplete ones and finished ones are counted', async () => {
  spool.add('incoming', 'AAAAAA', Buffer.from('nonsense'))
  spool.add('incoming', 'BBBBBB', { arrival, envelope: [record('S', 'a@a.test'), record('R', 'not an address@')] })
  spool.add('incoming', 'CCCCCC', { arrival }, { mode: 0o600 })
  spool.add('active', 'DDDDDD', { arrival, envelope: [record('S', 'a@a.test'), record('D', 'b@b.test')] })
  spool.add('active', 'EEEEEE', { arrival })
  writeFileSync(join(spool.spool, 'corrupt/FFFFFF'), '')
  const { code, out, err } = await importMail('--json')
  expect(code).toBe(65)
  expect(JSON.parse(out)).toMatchObject({
    queues: [
      { queue: 'active', files: 2, taken: 1, finished: 1 },
      { queue: 'incoming', files: 3, incomplete: 1, left: 2 },
    ],
    corrupt: 1,
  })
  expect(err).toContain('AAAAAA is left: a record is longer than the file')
  expect(err).toContain('BBBBBB is left: its envelope has "not an address@", which is no address')
  expect(err).toContain('CCCCCC is incomplete')
  expect(err).toContain('1 file in Postfix’s queue corrupt is left')
  for (const id of ['AAAAAA', 'BBBBBB', 'CCCCCC']) expect(existsSync(join(spool.spool, 'incoming', id))).toBe(true)
})

test('a recipient whose bounce was not reported is tried again', async () => {
  const path = spool.add('active', 'AAAAAA', {
    arrival,
    envelope: [record('S', 'a@a.test'), record('D', 'no@b.test'), record('D', 'ok@b.test')],
  })
  const offset = readFileSync(path).indexOf(record('D', 'no@b.test'))
  spool.log('bounce', 'AAAAAA', LOG.replace('OFFSET', String(offset)).replaceAll('4.2.1', '5.1.1'))
  await importMail()
  expect(await list()).toMatchObject([{ recipients: [{ address: 'no@b.test', attempts: 0 }] }])
})

test('the import refuses a spool on which Postfix runs, and Postfix cannot start meanwhile', async () => {
  spool.add('incoming', 'AAAAAA', { arrival })
  const pid = join(spool.spool, 'pid/master.pid')
  writeFileSync(pid, '4711\n')
  const master = spawn('flock', [pid, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
  master.stdin.write('\n')
  await once(master.stdout, 'data')
  const refused = await importMail()
  expect([refused.code, refused.err]).toEqual([75, `deferd: Postfix runs on ${spool.spool} (process 4711): stop it first, postfix stop\n`])
  expect((await importMail('--dry-run')).out).toContain('# Postfix runs on')
  master.stdin.end()
  await once(master, 'close')
  expect((await importMail()).code).toBe(0)
})

test('the import refuses the queue of a running daemon', async () => {
  spool.add('incoming', 'AAAAAA', { arrival })
  await operator.own(async () => {
    const { code, err } = await importMail()
    expect(code).toBe(75)
    expect(err).toContain('is in use by process')
  })
})

describe('the configuration file', () => {
  test('is written once, and replaced with --force only', async () => {
    const file = operator.defaultFiles.system
    expect((await importMail()).out).toContain(`${file} written`)
    writeFileSync(file, 'smtpd_banner = "mine"\n')
    expect((await importMail()).out).toContain(`${file} is used as it is`)
    expect(readFileSync(file, 'utf8')).toBe('smtpd_banner = "mine"\n')
    await importMail('--force')
    expect(readFileSync(file, 'utf8')).toContain('myorigin = "origin.example"')
  })

  test('is printed by a dry run, which writes nothing', async () => {
    spool.add('incoming', 'AAAAAA', { arrival })
    const { code, out } = await importMail('--dry-run')
    expect(code).toBe(0)
    expect(out).toContain('myorigin = "origin.example"')
    expect(out).toContain('# 1 message with 1 recipient would be taken over')
    expect(existsSync(operator.defaultFiles.system)).toBe(false)
    expect(existsSync(join(operator.directory, 'queue.db'))).toBe(false)
  })

  test('does not replace a table of another content', async () => {
    writeFileSync(join(spool.config, 'generic'), 'a@a.test b@b.test\n')
    writeFileSync(
      join(spool.config, 'main.cf'),
      `${readFileSync(join(spool.config, 'main.cf'), 'utf8')}smtp_generic_maps = hash:${spool.config}/generic\n`,
    )
    await importMail()
    const table = join(operator.directory, 'etc/generic')
    // The original is in a folder that its owner alone can use.
    expect(statSync(table).mode & 0o777).toBe(0o600)
    rmSync(operator.defaultFiles.system)
    writeFileSync(table, 'other\n')
    const { code, err } = await importMail()
    expect(code).toBe(73)
    expect(err).toContain(`${table} exists`)
  })
})

test.each([
  [['--spool', '/nonexistent'], 69, 'is no spool of Postfix'],
  [['--config-dir', '/nonexistent'], 69, 'cannot read /nonexistent/main.cf'],
])('%j is refused', async (args, code, text) => {
  const refused = await importMail(...args)
  expect(refused.code).toBe(code)
  expect(refused.err).toContain(text)
})

test('links and FIFOs in the spool are not followed nor waited for, and each is named', async () => {
  spool.add('deferred', 'A1B2C3D4E5', { arrival })
  const at = (...names: readonly string[]) => join(spool.spool, ...names)
  symlinkSync('/', at('deferred', 'loop'))
  symlinkSync('/dev/zero', at('deferred', 'AAAAAA'))
  mkdirSync(at('deferred', 'B', 'C', 'D', 'E'), { recursive: true })
  for (const [kind, id] of [
    ['incoming', 'BBBBBB'],
    ['defer', 'A1B2C3D4E5'],
  ] as const)
    execFileSync('mkfifo', [at(kind, id)])
  symlinkSync('/dev/zero', at('bounce', 'A1B2C3D4E5'))
  mkdirSync(at('trace'))
  symlinkSync(at('deferred', 'A', 'A1B2C3D4E5'), at('trace', 'A1B2C3D4E5'))
  const { code, out, err } = await importMail()
  expect([code, out]).toEqual([65, expect.stringContaining('1 message with 1 recipient taken over')])
  const named = err.replaceAll(`${spool.spool}/`, '').trimEnd().split('\n').toSorted()
  expect(named).toEqual(
    [
      'deferd: bounce/A1B2C3D4E5 is not read, and its mail is taken over without its last outcome: it is a link',
      'deferd: defer/A1B2C3D4E5 is not read, and its mail is taken over without its last outcome: it is no regular file',
      'deferd: deferred/AAAAAA is left: it is a link',
      'deferd: deferred/B/C/D/E is left: its name is no queue id',
      'deferd: deferred/loop is left: its name is no queue id',
      'deferd: incoming/BBBBBB is left: it is no regular file',
      'deferd: trace/A1B2C3D4E5 is not read, and its mail is taken over without its last outcome: it is a link',
    ].toSorted(),
  )
})
