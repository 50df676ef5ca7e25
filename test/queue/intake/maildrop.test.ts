/** The maildrop: each complete file, for which `sendmail` has exited with 0, is delivered or returned, once. */
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Maildrop, MaildropDeps } from '../../../src/queue/intake/maildrop.ts'
import { submitToMaildrop } from '../../../src/queue/intake/maildrop-writer.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { operate } from '../../support/operate.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { HOUR } from '../../../src/system/clock.ts'
import { QueueWorld, type QueueWorldOptions } from '../../support/queue-world.ts'

type Files = MaildropDeps['files']

let directory: string
let world: QueueWorld

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-maildrop-'))
  await open()
})
afterEach(async () => {
  await world.store.close()
  rmSync(directory, { recursive: true })
})

/** A relay over the queue in `directory`; its remote servers accept everything. */
async function open(options: Partial<QueueWorldOptions> = {}): Promise<void> {
  world = await QueueWorld.create({ remote: () => ({ kind: 'accepts' }), store: { directory }, ...options })
  await maildrop().prepare()
}

const maildrop = (failing: Partial<Files> = {}): Maildrop => world.relay.maildrop(directory, { ...fs, ...failing })

/** Opens the first two files after the others. */
const firstLast: Files['open'] = async (path, ...rest) => {
  await setTimeout(/[12]$/.test(String(path)) ? 20 : 0)
  return fs.open(path, ...rest)
}

const drop = (name = '') => join(directory, 'maildrop', name)
const inDrop = () => readdirSync(drop()).toSorted()
const refused = () => readdirSync(join(directory, 'refused'))

const submit = (name: string, { to = ['ann@far.example'], sender = 'app@us.example', content = 'Subject: hi\r\n\r\nhi\r\n' } = {}) =>
  submitToMaildrop(fs, directory, {
    newName: () => name,
    envelope: { sender, recipients: to.map((address) => ({ address })) },
    content: Buffer.from(content),
  })

/** Texts of log lines of the maildrop. */
const notes = () => world.history.flatMap(({ event }) => (event.kind === 'note' && event.text.startsWith('maildrop: ') ? [event.text] : []))

async function delivered(address = 'ann@far.example'): Promise<readonly string[]> {
  await world.advance(60_000)
  return world.arrivals(address).map(({ content }) => content)
}

const fails = (code: string) => Promise.reject(Object.assign(new Error(`${code}: injected`), { code }))

describe('a file that cannot be taken in yet is left as it is', () => {
  test('while it is not complete', async () => {
    await submit('a')
    chmodSync(drop('a'), 0o600)
    expect(await maildrop().takeIn()).toBe(0)
    expect(inDrop()).toEqual(['a'])
    chmodSync(drop('a'), 0o644)
    expect(await maildrop().takeIn()).toBe(1)
    expect(await delivered()).toHaveLength(1)
    expect(inDrop()).toEqual([])
  })

  test.each(['EACCES', 'EMFILE', 'ENFILE', 'EIO', 'ENOMEM', 'EAGAIN'])('while opening it fails with %s', async (code) => {
    await submit('a')
    expect(await maildrop({ open: () => fails(code) }).takeIn()).toBe(0)
    expect(inDrop()).toEqual(['a'])
    expect(await maildrop().takeIn()).toBe(1)
    expect(await delivered()).toHaveLength(1)
  })

  test.each([
    ['in the envelope', 0],
    ['in the content', 1],
  ])('while reading it fails with EIO %s', async (_where, after) => {
    await submit('a', { content: `Subject: hi\r\n\r\n${'x\r\n'.repeat(200_000)}` })
    const brokenOpen: Files['open'] = async (...args) => {
      const handle = await fs.open(...args)
      const read = handle.read.bind(handle)
      let reads = 0
      handle.read = (...more: Parameters<typeof handle.read>) => (reads++ < after ? read(...more) : fails('EIO'))
      return handle
    }
    expect(await maildrop({ open: brokenOpen }).takeIn()).toBe(0)
    expect(inDrop()).toEqual(['a'])
    expect(await maildrop().takeIn()).toBe(1)
    expect(await delivered()).toHaveLength(1)
  })

  test('when it changes while it is read', async () => {
    const content = `Subject: hi\r\n\r\n${'x\r\n'.repeat(200_000)}`
    await submit('cut', { content })
    await submit('grown', { content })
    const change: Readonly<Record<string, () => void>> = {
      cut: () => truncateSync(drop('cut'), 1_000),
      grown: () => writeFileSync(drop('grown'), 'more\r\n', { flag: 'a' }),
    }
    const changingOpen: Files['open'] = async (path, flags) => {
      const handle = await fs.open(path, flags)
      const read = handle.read.bind(handle)
      let reads = 0
      handle.read = (...more: Parameters<typeof handle.read>) => {
        if (++reads === 3) change[String(path).slice(drop().length + 1)]?.()
        return read(...more)
      }
      return handle
    }
    expect(await maildrop({ open: changingOpen }).takeIn()).toBe(0)
    expect(inDrop()).toEqual(['cut', 'grown'])
    expect(await delivered()).toEqual([])
  })

  test('when it has a second name', async () => {
    await submit('a')
    linkSync(drop('a'), join(directory, 'second'))
    expect(await maildrop().takeIn()).toBe(0)
    rmSync(join(directory, 'second'))
    expect(await maildrop().takeIn()).toBe(1)
  })

  test('while the store is unavailable: the pass ends and is logged', async () => {
    await submit('a')
    await submit('b')
    const enqueue = world.store.enqueue.bind(world.store)
    world.store.enqueue = () => Promise.reject(new StoreUnavailable('disk full'))
    expect(await maildrop().takeIn()).toBe(0)
    world.store.enqueue = enqueue
    expect(inDrop()).toEqual(['a', 'b'])
    expect(await maildrop().takeIn()).toBe(2)
  })

  test('an entry that was left for a day is logged once', async () => {
    mkdirSync(drop('folder'))
    await submit('a')
    chmodSync(drop('a'), 0o600)
    await world.advance(Date.now() - world.clock.now() + 25 * 3_600_000)
    const stuck = maildrop({ rename: () => fails('EACCES') })
    await stuck.takeIn()
    await stuck.takeIn()
    expect(notes()).toEqual(['maildrop: 2 entries not taken in for a day: see deferd check'])
  })
})

describe('only a file that was read and is no message is refused', () => {
  const head = (envelope: object) =>
    `${JSON.stringify({ version: 1, sender: '', recipients: [{ address: 'a@b.example' }], ...envelope })}\n`
  const file = (text: string | Buffer) => (path: string) => writeFileSync(path, text, { mode: 0o644 })

  test.each([
    ['no JSON', file('hello\nworld')],
    ['no line', file('hello')],
    ['an empty file', file('')],
    ['less content than stated', file(`${head({ length: 9 })}short`)],
    ['more content than stated', file(`${head({ length: 6 })}a: b\r\n\r\nx\r\n`)],
    ['an envelope of megabytes', file(head({ length: 0, envid: 'x'.repeat(2 ** 21) }))],
    [
      '60,000 recipients',
      file(head({ length: 0, recipients: Array.from({ length: 60_000 }, (_, i) => ({ address: `a${i}@b.example` })) })),
    ],
    ['CRLF in an address', file(head({ length: 0, recipients: [{ address: 'a@b.example>\r\nRCPT TO:<c@d.example' }] }))],
    ['NUL in the sender', file(head({ length: 0, sender: 'a\0@b.example' }))],
    ['a line break in the envelope id', file(head({ length: 0, envid: 'a\nb' }))],
    [
      'a control character in an original recipient',
      file(head({ length: 0, recipients: [{ address: 'a@b.example', orcpt: 'rfc822;a\u0007' }] })),
    ],
    ['nested JSON', file('['.repeat(2 ** 19) + '\n')],
    ['a bare LF', file(`${head({ length: 8 })}a: b\n\r\nx`)],
    ['a dot between bare line ends', file(`${head({ length: 14 })}a: b\r\n\r\nx\n.\r\n`)],
    ['a bare CR', file(`${head({ length: 9 })}a: b\rc\r\n`)],
    ['NUL in the content', file(`${head({ length: 8 })}a: b\0c\r\n`)],
    ['a last line without end', file(`${head({ length: 4 })}a: b`)],
    ['a symbolic link', (path: string) => symlinkSync('/etc/hosts', path)],
    ['a folder', (path: string) => mkdirSync(path)],
    ['a name of 250 bytes', (path: string) => file('hello')(path + 'x'.repeat(249))],
    ['a line break in the name', (path: string) => file('hello')(`${path}\n`)],
    [
      'a name that is no UTF-8',
      (path: string) => writeFileSync(Buffer.concat([Buffer.from(path), Buffer.from([0xff])]), 'x', { mode: 0o644 }),
    ],
  ])('%s', async (_what, plant) => {
    plant(drop('1'))
    await submit('2')
    expect(await maildrop().takeIn()).toBe(1)
    expect(inDrop()).toEqual([])
    expect(refused()).toHaveLength(1)
    expect(statSync(join(directory, 'refused')).mode & 0o777).toBe(0o700)
    expect(notes()).toEqual([
      expect.stringMatching(/^maildrop: 1.* from uid \d+ refused: .*; kept as .*\/refused\/\d+-0-1[\w.-]*$/s) as string,
    ])
    expect(await delivered()).toHaveLength(1)
    expect(await maildrop().takeIn()).toBe(0)
  })

  test('an entry that cannot be moved is left', async () => {
    mkdirSync(drop('folder'))
    await submit('a')
    expect(await maildrop({ rename: () => fails('EACCES') }).takeIn()).toBe(1)
    expect(inDrop()).toEqual(['folder'])
    expect(notes()).toEqual([])
  })
})

describe('a message is queued once', () => {
  test('when the process dies between the commit and the removal of the file', async () => {
    await submit('a')
    expect(await maildrop({ unlink: () => fails('EIO') }).takeIn()).toBe(1)
    expect(await delivered()).toHaveLength(1)
    await world.crash()
    expect(inDrop()).toEqual(['a'])
    expect(await maildrop().takeIn()).toBe(0)
    expect(inDrop()).toEqual([])
    expect(await delivered()).toHaveLength(1)
    expect(await world.store.maildropFiles()).toEqual([])
  })

  test('keys of files of another mail system are never forgotten', async () => {
    const message = { id: world.store.nextId(), createdAt: 0, arrivedAt: 0, sender: '', size: 1, smtputf8: false }
    const recipients = [{ address: 'a@far.example', destination: 'far.example', dueAt: 0, expiresAt: 0, leased: false }]
    const key = '/postfix/A1B2C3D4E5/1795165200.250000'
    await world.store.enqueue({
      message: { ...message, contentId: message.id },
      recipients,
      content: [Buffer.from('x')],
      maildropFile: key,
    })
    await submit('a')
    await maildrop().takeIn()
    await maildrop().takeIn()
    expect(await world.store.maildropFiles()).toEqual([key])
  })

  test('while the file cannot be removed', async () => {
    await submit('a')
    const broken = maildrop({ unlink: () => fails('EROFS') })
    expect([await broken.takeIn(), await broken.takeIn()]).toEqual([1, 0])
    expect(await world.store.maildropFiles()).toHaveLength(1)
    expect(await delivered()).toHaveLength(1)
  })

  test('the key is kept until the removal is synced', async () => {
    await submit('a')
    const isFolder = (path: unknown) => path === join(directory, 'maildrop')
    const brokenOpen: Files['open'] = async (path, ...rest) => {
      const handle = await fs.open(path, ...rest)
      if (isFolder(path)) handle.sync = () => fails('EIO')
      return handle
    }
    expect(await maildrop({ open: brokenOpen }).takeIn()).toBe(1)
    expect(inDrop()).toEqual([])
    expect(await world.store.maildropFiles()).toHaveLength(1)
    await world.crash()
    await maildrop().takeIn()
    expect(await world.store.maildropFiles()).toEqual([])
  })

  test('a file that takes the place of one that was taken in is not removed', async () => {
    await submit('a')
    let calls = 0
    const lstat = (async (...args: Parameters<Files['lstat']>) => {
      if (++calls === 2) {
        rmSync(drop('a'))
        await submit('a', { content: 'Subject: two\r\n\r\n2\r\n' })
      }
      return fs.lstat(...args)
    }) as Files['lstat']
    expect(await maildrop({ lstat }).takeIn()).toBe(1)
    expect(inDrop()).toEqual(['a'])
    expect(await maildrop().takeIn()).toBe(1)
    expect(await delivered()).toHaveLength(2)
  })

  test('another file of the same name is another message', async () => {
    const kept = maildrop()
    await submit('a')
    await kept.takeIn()
    await submit('a')
    await kept.takeIn()
    expect(await delivered()).toHaveLength(2)
  })
})

describe('a message that is not accepted is returned to its sender', () => {
  const submitted: Parameters<typeof submit>[1] = { content: 'Received: x\r\nSubject: hi\r\n\r\nhi\r\n' }

  test.each([
    ['too many hops', { hopcount_limit: 2 }, '5.4.0', 'too many hops'],
    ['a content over the limit', { message_size_limit: 10 }, '5.3.4', 'message file too big'],
    ['a refusal by header_checks', { header_checks: 'regexp:{{/^Subject: hi/ REJECT 5.6.9 not so}}' }, '5.6.9', 'not so'],
  ])('%s', async (_what, setting, status, reason) => {
    await world.store.close()
    await open({ config: setting })
    await submit('a', submitted)
    await maildrop().takeIn()
    expect(inDrop()).toEqual([])
    expect(await delivered()).toEqual([])
    const [notice, ...more] = world.notices('app@us.example')
    expect([notice?.recipients, more]).toMatchObject([[{ recipient: 'ann@far.example', action: 'failed', status }], []])
    expect(notes()).toEqual([expect.stringContaining(`a from uid ${process.getuid?.()} returned to sender: 55`) as string])
    expect(world.arrivals('app@us.example')[0]?.content).toContain(reason)
  })

  test('once, also after a crash', async () => {
    await world.store.close()
    await open({ config: { hopcount_limit: 2 } })
    await submit('a', submitted)
    await maildrop({ unlink: () => fails('EIO') }).takeIn()
    await world.crash()
    await maildrop().takeIn()
    await delivered()
    expect(world.notices('app@us.example')).toHaveLength(1)
    expect(inDrop()).toEqual([])
  })

  test('the null sender gets no notice', async () => {
    await world.store.close()
    await open({ config: { hopcount_limit: 2 } })
    await submit('a', { ...submitted, sender: '' })
    await maildrop().takeIn()
    expect(inDrop()).toEqual([])
    expect(await delivered()).toEqual([])
  })
})

test('while the disk has no room for a message, smaller ones are taken in', async () => {
  await submit('big', { content: `a: b\r\n\r\n${'x\r\n'.repeat(10_000)}` })
  await submit('small')
  const { intake } = world.relay
  const refusal = intake.refusal.bind(intake)
  intake.refusal = (size, ...rest) => (size > 10_000 ? Promise.resolve({ code: 452, text: 'full' }) : refusal(size, ...rest))
  expect(await maildrop().takeIn()).toBe(1)
  expect(inDrop()).toEqual(['big'])
})

test('at a full queue the files stay, and are taken in later in order', async () => {
  await world.store.close()
  await open({ remote: () => ({ kind: 'accepts', takes: HOUR }), config: { queue_message_limit: 2 } })
  await world.relay.start()
  for (const name of ['1', '2', '3', '4', '5']) await submit(name)
  expect(await maildrop({ open: firstLast }).takeIn()).toBe(2)
  expect(inDrop()).toEqual(['3', '4', '5'])
  expect(notes()).toEqual(['maildrop: put off: Error: queue is full, try again later'])
  const ids = (await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).map(({ message }) => message.id)
  for (const message of ids) await operate(world.store, message, { kind: 'delete', now: world.clock.now(), purge: true })
  expect(await maildrop().takeIn()).toBe(2)
  expect(inDrop()).toEqual(['5'])
})

test('a file is not taken in before one that was put off, though the queue has room by then', async () => {
  await world.store.close()
  await open({ remote: () => ({ kind: 'accepts', takes: HOUR }) })
  for (const name of ['1', '2']) await submit(name)
  const { intake } = world.relay
  const refusal = intake.refusal.bind(intake)
  let asked = 0
  const full = { code: 452, text: 'Error: queue is full, try again later', limit: 'queue' } as const
  intake.refusal = (...given) => (asked++ === 0 ? Promise.resolve(full) : refusal(...given))
  expect(await maildrop().takeIn()).toBe(0)
  expect(inDrop()).toEqual(['1', '2'])
  expect(await maildrop().takeIn()).toBe(2)
})

test('queue ids have the order of the submissions, whichever file is opened first', async () => {
  await world.store.close()
  await open({ remote: () => ({ kind: 'accepts', takes: HOUR }) })
  const names = ['1', '2', '3', '4', '5']
  for (const name of names) await submit(name, { to: [`u${name}@far.example`] })
  expect(await maildrop({ open: firstLast }).takeIn()).toBe(5)
  const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  expect(listed.map(({ recipients }) => recipients[0]?.address)).toEqual(names.map((name) => `u${name}@far.example`))
})

test('mail that a check of its content refuses for now holds up no other mail', async () => {
  await world.store.close()
  await open({ config: { header_checks: 'pcre:{{/^Subject: later/ REJECT 4.7.1 come back later}}' } })
  const later = Array.from({ length: 20 }, (_, n) => `a${10 + n}`)
  for (const name of later) await submit(name, { content: 'Subject: later\r\n\r\nhi\r\n' })
  await submit('b')
  expect(await maildrop().takeIn()).toBe(1)
  expect(inDrop()).toEqual(later)
})
