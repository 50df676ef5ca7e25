/** `deferd import postfix` takes over what postcat shows of a stopped Postfix, and deferd delivers it. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import type { MessageDetails, QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../src/store/sqlite/open-store.ts'
import { Events } from '../../src/telemetry/events.ts'
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { PostfixSpool, type SpoolMail } from '../support/postfix-spool.ts'
import { reasonToSkip } from '../support/required.ts'
import { SinkPort } from './systems.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const PARAMETERS = ['', ' RET=HDRS ENVID=QQ+2B314', ' BODY=8BITMIME', ' RET=FULL', ' SMTPUTF8 BODY=8BITMIME']
const WISHES = ['', ' NOTIFY=NEVER', ' NOTIFY=SUCCESS,DELAY', ' NOTIFY=FAILURE ORCPT=rfc822;Bob+2Btag@other.test']
const BODIES = ['text\r\n', '.dot\r\n..two\r\n', `${'x'.repeat(3000)}\r\n`, 'gr\xfc\xdfe\r\n', '', 'line of text\r\n'.repeat(9000)]

const mail = (n: number, recipients: readonly string[]): SpoolMail => ({
  sender: n % 7 === 0 ? '' : n % 5 === 0 ? `"odd sender ${n}"@a.test` : `sender${n}@a.test`,
  parameters: PARAMETERS[n % PARAMETERS.length] ?? '',
  recipients: recipients.map((address, i) => ({ address, parameters: WISHES[(n + i) % WISHES.length] ?? '' })),
  content: `Subject: mail ${n}\r\nX-Number: ${n}\r\n\r\n${BODIES[n % BODIES.length]}`,
})

/** A message as postcat shows it. */
interface Shown {
  readonly queue: string
  readonly path: string
  readonly sender: string
  readonly recipients: readonly string[]
  readonly content: string
  /** Seconds since 1970. */
  readonly arrival: number
  readonly attributes: ReadonlyMap<string, string>
}

describe.skipIf(reason !== null)(`mail of a stopped Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
  let postfix: PostfixSpool
  let directory: string
  let shown: readonly Shown[]
  let whileRunning: Awaited<ReturnType<typeof deferd>>

  beforeAll(async () => {
    postfix = await PostfixSpool.start({
      hash_queue_names: 'deferred, defer, hold',
      hash_queue_depth: '2',
      initial_destination_concurrency: '20',
    })
    directory = mkdtempSync(join(tmpdir(), 'deferd-import-'))
    await postfix.submit(
      Array.from({ length: 70 }, (_, n) => mail(n, [`defer${n}@b.test`, `ok@b${n % 3}.test`, `"defer two ${n}"@c.test`])),
    )
    await eventually(() => postfix.queue('deferred').length >= 70 && postfix.queue('active').length === 0)
    for (const file of postfix.queue('deferred').slice(0, 12)) postfix.run('postsuper', '-h', file.split('/').at(-1) ?? '')
    postfix.run('postsuper', '-e', postfix.queue('deferred').at(-1)?.split('/').at(-1) ?? '')
    await postfix.submit(
      Array.from({ length: 12 }, (_, n) => ({
        ...mail(100 + n, []),
        recipients: [`no${n}@a.test`, `hang${n}@d.test`].map((address) => ({ address })),
      })),
    )
    await eventually(() => postfix.queue('active').length >= 12 && postfix.queue('bounce').length >= 12)
    whileRunning = await importNow()
    postfix.freeze()
    await postfix.submit(Array.from({ length: 12 }, (_, n) => mail(200 + n, [`defer${n}@e.test`, 'local'])))
    await postfix.stop()
    for (let n = 300; n < 312; n++) {
      postfix.sendmail(
        ['-F', 'Jörg Test', '-f', `user${n}@a.test`, '-N', 'failure,delay', `defer${n}@f.test`],
        `Subject: mail ${n}\nX-Number: ${n}\n\ntext`,
      )
    }
    shown = ['maildrop', 'incoming', 'active', 'deferred', 'hold'].flatMap((queue) =>
      postfix.queue(queue).map((path) => showOf(postfix, queue, path)),
    )
  })

  afterAll(async () => {
    rmSync(directory, { recursive: true, force: true })
    await postfix?.remove()
  })

  const importNow = (...args: readonly string[]) =>
    deferd(directory, 'import', 'postfix', '--config-dir', join(postfix.folder, 'etc'), ...args)

  test('the queues have more than 100 messages', () => {
    const byQueue = Object.fromEntries([...Map.groupBy(shown, ({ queue }) => queue)].map(([queue, all]) => [queue, all.length]))
    expect(byQueue).toMatchObject({ maildrop: 12, active: 12, hold: 12 })
    expect(byQueue['incoming']).toBeGreaterThanOrEqual(12)
    expect(shown.length).toBeGreaterThan(100)
  })

  test('the import refuses the spool of a running Postfix', () => {
    expect(whileRunning.code).toBe(75)
    expect(whileRunning.err).toMatch(/Postfix runs on \S+ \(process \d+\): stop it first/)
  })

  test('a dry run counts the mail and changes nothing', async () => {
    const before = snapshot(postfix.spool)
    const { code, out } = await importNow('--dry-run')
    expect(code).toBe(0)
    expect(out).toContain(`# ${shown.length} messages with`)
    expect(readdirSync(directory)).toEqual([])
    expect(snapshot(postfix.spool)).toEqual(before)
  })

  test('each message is in the queue with the envelope and the content that postcat shows', async () => {
    const before = snapshot(postfix.spool)
    const first = await importNow()
    expect([first.code, first.err]).toEqual([0, ''])
    expect(first.out).toContain(`${shown.length} messages with`)
    expect(snapshot(postfix.spool)).toEqual(before)
    const again = await importNow()
    expect(again.out).toContain('0 messages with 0 recipients taken over')

    const queued = await queuedMail(join(directory, 'queue'))
    expect(queued.size).toBe(shown.length)
    for (const one of shown) {
      const found = queued.get(numberOf(one.content))
      expect(found, one.path).toBeDefined()
      expect(found?.sender).toBe(one.sender)
      expect(found?.recipients).toEqual(one.recipients)
      expect(found?.arrival).toBe(one.arrival)
      expect([found?.ret, found?.envid]).toEqual([RETS[one.attributes.get('ret_flags') ?? ''], one.attributes.get('envelope_id')])
      expect(found?.queue).toBe({ hold: 'hold', deferred: 'deferred' }[one.queue] ?? 'incoming')
      if (one.queue === 'maildrop') expect(found?.content).toContain('From: =?utf-8?B?')
      else expect(found?.content).toBe(one.content.replaceAll('\n', '\r\n'))
    }
  })

  test('deferd delivers it', async () => {
    const sink = await new SinkPort({}).open()
    const settings = {
      relayhost: `[127.0.0.1]:${sink.port}`,
      queue_directory: join(directory, 'queue'),
      smtpd_listen: `127.0.0.1:${await portBelowEphemeral()}`,
      maximal_queue_lifetime: '5d',
      smtp_line_length_limit: '0',
      myhostname: 'relay.example',
    }
    const expected = new Map(shown.map((one) => [numberOf(one.content), one]))
    expect((await deferd(directory, 'queue', 'release', '--all')).code).toBe(0)
    const daemon = await startDaemon({ loaded: configFrom(settings, 'relay.example'), events: new Events(() => systemClock.now()) })
    try {
      expect((await deferd(directory, 'queue', 'flush', '--all')).code).toBe(0)
      const recipients = [...expected.values()].flatMap((one) => one.recipients).length
      await eventually(() => sink.received.flatMap((one) => one.recipients).length >= recipients)
      await pause(200)
      const received = Map.groupBy(sink.received, ({ content }) => numberOf(content.toString('latin1')))
      expect(received.size).toBe(shown.length)
      for (const [number, one] of expected) {
        const mails: readonly ReceivedMail[] = received.get(number) ?? []
        expect(mails.flatMap((found) => found.recipients).toSorted()).toEqual(
          one.recipients.map((text) => (text.split(' ')[0] ?? '').replaceAll('\t', ' ')).toSorted(),
        )
        for (const found of mails) {
          expect(found.sender).toBe(one.sender)
          if (one.queue !== 'maildrop') expect(found.content.toString('latin1')).toBe(one.content.replaceAll('\n', '\r\n'))
        }
      }
    } finally {
      await daemon.stop()
      sink.close()
    }
  })
})

const RETS: Readonly<Record<string, string>> = { 1: 'full', 2: 'hdrs' }

const numberOf = (content: string): number => Number(/^X-Number: (\d+)/m.exec(content)?.[1] ?? -1)

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

/** Runs a command with the configuration and the queue of a folder. */
const deferd = (
  directory: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'], DEFERD_QUEUE_DIRECTORY: join(directory, 'queue') }
    const child = execFile(
      process.execPath,
      [PROGRAM, ...args, '--config', join(directory, 'deferd.toml')],
      { env, maxBuffer: 1 << 28 },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })

async function eventually(holds: () => boolean): Promise<void> {
  for (let n = 0; n < 600; n++) {
    if (holds()) return
    await pause(100)
  }
  throw new Error('the expected state was not reached in 60 s')
}

/** Names, contents and modes of all files below a folder. */
const snapshot = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const { mode, mtimeMs } = statSync(path)
      return `${path} ${mode} ${mtimeMs} ${readFileSync(path, 'hex')}`
    })
    .toSorted()

/** Quotes a local part as RFC 5321 needs it. */
const inQuotes = (address: string): string => address.replace(/^(.* .*)@/, '"$1"@')

/** Blanks in addresses would end them in the comparison. */
const withWishes = (address: string, notify: string, orcpt: string): string => `${address.replaceAll(' ', '\t')} ${notify} ${orcpt}`

function showOf(postfix: PostfixSpool, queue: string, path: string): Shown {
  const attributes = new Map<string, string>()
  const recipients: string[] = []
  let [sender, arrival] = ['', 0]
  let wishes = new Map<string, string>()
  // Postfix has not told the sender yet which recipients were refused.
  const isUntold = postfix.queue('bounce').some((log) => basename(log) === basename(path))
  for (const line of postfix.run('postcat', '-e', path).split('\n')) {
    const [, key = '', value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? []
    if (key === 'named_attribute') {
      const [name = '', text = ''] = value.split(/=(.*)/s)
      attributes.set(name, text)
      wishes.set(name, text)
    }
    if (key === 'sender') sender = inQuotes(value)
    if (key === 'message_arrival_time') arrival = Date.parse(`${value} UTC`) / 1000
    if (key === 'recipient' || (key === 'done_recipient' && isUntold && sender !== '')) {
      const address = inQuotes(value.includes('@') ? value : `${value}@origin.example`)
      recipients.push(withWishes(address, wishes.get('notify_flags') ?? '0', wishes.get('dsn_orig_rcpt') ?? ''))
    }
    if (key === 'recipient' || key === 'done_recipient') wishes = new Map()
  }
  return { queue, path, sender, recipients, content: postfix.run('postcat', '-b', '-h', path), arrival, attributes }
}

interface Queued {
  readonly sender: string
  readonly recipients: readonly string[]
  readonly content: string
  /** Seconds since 1970. */
  readonly arrival: number
  readonly ret: string | undefined
  readonly envid: string | undefined
  readonly queue: string
}

const FLAGS: Readonly<Record<string, number>> = { never: 1, success: 2, failure: 4, delay: 8 }

/** The messages of deferd's queue by their number. */
async function queuedMail(directory: string): Promise<ReadonlyMap<number, Queued>> {
  const { reader, close } = openStoreReadOnly(directory)
  try {
    const found = new Map<number, Queued>()
    for (const { queueId } of (await reader.list(ANY_MESSAGE, { after: 0, limit: 1000 })).map(({ message }) => ({
      queueId: queueIdOf(message),
    }))) {
      const story = await reader.details(queueId)
      if (story === undefined) throw new Error(`${queueId} has gone`)
      const queued = await queuedOf(reader, story)
      found.set(numberOf(queued.content), queued)
    }
    return found
  } finally {
    await close()
  }
}

async function queuedOf(reader: QueueReader, { message, recipients, queue }: MessageDetails): Promise<Queued> {
  const chunks: Uint8Array[] = []
  for (let index = 0, chunk; (chunk = await reader.readChunk(message, index)) !== undefined; index++) chunks.push(chunk)
  return {
    sender: message.sender,
    recipients: recipients.map(({ address, notify = [], orcpt = '' }) =>
      withWishes(address, String([notify].flat().reduce((sum, word) => sum + (FLAGS[word] ?? 0), 0)), orcpt),
    ),
    content: Buffer.concat(chunks).toString('latin1'),
    arrival: Math.floor(message.arrivedAt / 1000),
    ret: message.ret,
    envid: message.envid,
    queue,
  }
}
