/** Commands on a damaged queue: check, salvage, and backup with restore. */
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { queue } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const PAGE = 8192
const path = (name: string) => join(operator.directory, name)
const fullCheck = (...argv: readonly string[]) => operator.run(['check', '--full', '-o', 'relayhost=[127.0.0.1]', ...argv])

/** Files of the queue and their bytes. */
const files = () =>
  readdirSync(operator.directory, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [name, readFileSync(path(name), 'base64')])

/** Queues messages and writes zeros over the page that has a text. */
async function damagedAt(text: string): Promise<void> {
  await operator.own(async (store) => {
    for (let n = 0; n < 12; n++) await queue(store, { at: NOW, content: [Buffer.from(`content ${n} `.repeat(600))] })
  })
  const file = readFileSync(path('queue.db'))
  const at = file.indexOf(text)
  file.fill(0, at - (at % PAGE), at - (at % PAGE) + PAGE)
  writeFileSync(path('queue.db'), file)
}

test('a damaged queue is found, salvaged without a change to it, and rebuilt', async () => {
  await damagedAt('content 7 content 7')
  const found = await fullCheck()
  expect([found.code, found.out]).toEqual([78, expect.stringMatching(/^error +queue .*deferd check --repair$/m)])
  const before = files()
  const salvaged = await operator.run(['salvage', operator.directory, path('salvaged')])
  expect([salvaged.code, salvaged.out]).toEqual([65, expect.stringMatching(/messages? salvaged to .*\nunreadable|corrupt /)])
  expect(files()).toEqual(before)
  expect((await operator.run(['salvage', operator.directory, path('salvaged')])).code).toBe(73)
  expect((await operator.run(['salvage', path('nowhere'), path('other')])).code).toBe(69)
  const unwritable = await operator.run(['salvage', operator.directory, path('nowhere/salvaged')])
  expect([unwritable.code, unwritable.err]).toEqual([
    73,
    expect.stringMatching(/^deferd: cannot create .*; name a folder whose parent exists\n$/),
  ])
  expect((await operator.run(['check', '--full', '-o', 'relayhost=[127.0.0.1]', '-o', `queue_directory=${path('salvaged')}`])).code).toBe(0)
  expect((await fullCheck('--repair')).out).toMatch(/^warning +queue .*was rebuilt from its readable pages/m)
  expect(existsSync(path('queue.db.damaged'))).toBe(true)
  expect((await fullCheck()).code).toBe(0)
})

test('a command that meets a damaged page reports it in one sentence', async () => {
  await damagedAt('ann@far.example')
  const { code, err } = await operator.run(['queue', 'list'])
  expect([code, err]).toEqual([65, expect.stringMatching(/^deferd: the queue is damaged [^\n]*deferd check --repair\n$/)])
})

test('a queue file that ends with a hole of 1 TB is salvaged without a look at each page of the hole', async () => {
  await operator.own(async (store) => void (await queue(store, { at: NOW })))
  truncateSync(path('queue.db'), 2 ** 40)
  const { code, out } = await operator.run(['salvage', operator.directory, path('salvaged')])
  expect([code, out]).toEqual([0, `1 message salvaged to ${path('salvaged')}, 0 in corrupt, 0 put on hold\n`])
})

test('a sound queue is salvaged whole: 0', async () => {
  await operator.own(async (store) => void (await queue(store, { at: NOW })))
  const { code, out } = await operator.run(['salvage', operator.directory, path('salvaged')])
  expect([code, out]).toEqual([0, `1 message salvaged to ${path('salvaged')}, 0 in corrupt, 0 put on hold\n`])
})

test('a backup is restored, and the former queue is kept', async () => {
  await operator.own(async (store) => void (await queue(store, { at: NOW })))
  await operator.says('backup', path('copy.db'))
  await operator.own(async (store) => {
    await queue(store, { at: NOW })
    expect((await operator.run(['restore', path('copy.db')])).code).toBe(75)
    expect((await operator.run(['salvage', operator.directory, path('salvaged')])).code).toBe(75)
  })
  writeFileSync(path('broken.db'), readFileSync(path('copy.db')).fill(0, PAGE * 2, PAGE * 4))
  expect((await operator.run(['restore', path('broken.db')])).code).toBe(78)
  const listed = async () => (await operator.says('queue', 'list', '--json')).split('\n').length - 1
  expect(await listed()).toBe(2)
  expect(await operator.says('restore', path('copy.db'))).toContain('queue.db.replaced')
  expect(statSync(path('queue.db')).mode & 0o777).toBe(0o600)
  expect(existsSync(path('queue.db-wal'))).toBe(false)
  expect(await listed()).toBe(1)
  await operator.own(async (store) => void (await queue(store, { at: NOW })))
  expect(await listed()).toBe(2)
})

test('a restore of a missing file, or of what is no file, creates no queue folder', async () => {
  const directory = path('missing')
  for (const [file, why] of [
    [path('none.db'), 'ENOENT: .*'],
    [operator.directory, 'it is not a file'],
    ['/dev/zero', 'it is not a file'],
  ] as const) {
    const { code, err } = await operator.run(['restore', file, '-o', `queue_directory=${directory}`])
    expect([code, err]).toEqual([78, expect.stringMatching(`^deferd: cannot restore ${file}: ${why}; nothing was changed\n$`)])
  }
  expect(existsSync(directory)).toBe(false)
})
