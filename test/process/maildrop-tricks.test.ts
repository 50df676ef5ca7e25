/**
 * Any local user may create entries in the maildrop. Against a real daemon, run as another user if the test has the
 * permission: no trick ends it, prevents its start or delays other mail.
 */
import type { ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { submitToMaildrop } from '../../src/queue/intake/maildrop-writer.ts'
import { startDaemon, stopDaemon, type Running } from '../support/maildrop-daemon.ts'
import { TRICKS, type Planted } from '../support/maildrop-tricks.ts'

/** The user nobody; without root permissions a test uses its own user. */
const OTHER_USER = process.getuid?.() === 0 ? 65_534 : undefined

let folder: string
let queue: string
/** A folder whose queue stays empty. */
let emptyFolder: string
const children: ChildProcess[] = []
const ends: (() => void)[] = []

beforeEach(() => {
  folder = newFolder()
  emptyFolder = newFolder()
  queue = join(folder, 'queue')
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const path of [folder, emptyFolder]) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
})

/** A folder with a queue directory that has only an empty maildrop. Another user passes through it. */
function newFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'deferd-tricks-'))
  mkdirSync(join(path, 'queue/maildrop'), { recursive: true })
  for (const one of [tmpdir(), path]) chmodSync(one, 0o711)
  if (OTHER_USER !== undefined) for (const one of ['queue', 'queue/maildrop']) chownSync(join(path, one), OTHER_USER, OTHER_USER)
  return path
}

async function start(from = folder): Promise<Running> {
  const running = await startDaemon(from, OTHER_USER)
  children.push(running.child)
  return running
}

/** Starts the daemon beside one with an empty queue, which shows how long a start takes on the machine at this moment. */
async function startInTime(): Promise<Running> {
  const [running, empty] = await Promise.all([start(), start(emptyFolder)])
  expect(await stopDaemon(empty)).toBe(0)
  expect(running.greetedAfter).toBeLessThan(2_000 + 2 * empty.greetedAfter)
  return running
}

function plant(): readonly string[] {
  const valid: string[] = []
  for (const trick of Object.values(TRICKS)) {
    const planted: Planted = trick(join(queue, 'maildrop'))
    valid.push(...planted.valid)
    if (planted.end !== undefined) ends.push(planted.end)
  }
  return valid
}

test('twenty tricks at once: 0 crashes, 0 failed starts, every valid file is delivered', { timeout: 240_000 }, async () => {
  expect(Object.keys(TRICKS).length).toBeGreaterThanOrEqual(20)
  const valid = plant()

  const first = await startInTime()
  const isSent = new Set<string>()
  while (!valid.every((address) => isSent.has(address))) {
    expect(first.child.exitCode).toBeNull()
    await new Promise((resolve) => setTimeout(resolve, 100))
    for (const address of first.sent) isSent.add(address)
  }
  first.child.kill('SIGKILL')
  await first.ended

  const second = await startInTime()
  // A message whose delivery was cut off by the kill is delivered again: at most those in flight.
  expect(second.sent.filter((address) => !address.startsWith('many-') && isSent.has(address))).toEqual([])
  expect(await stopDaemon(second)).toBe(0)
  expect([...first.errors, ...second.errors]).toEqual([])

  const all = [...first.sent, ...second.sent]
  expect(all.filter((address) => /^(?:secret|unreadable|crlf|nul|envid|smuggled|length|sparse|r\d+)@/.test(address))).toEqual([])
  expect(valid.filter((address) => first.sent.filter((one) => one === address).length > 1)).toEqual([])
})

test('mail that another user submits while the daemon reads the maildrop is delivered once', { timeout: 120_000 }, async () => {
  const submitted: string[] = []
  const submit = async (): Promise<void> => {
    const to = `n${submitted.length}@far.example`
    submitted.push(to)
    const envelope = { sender: 'app@us.example', recipients: [{ address: to }] }
    await submitToMaildrop(fs, queue, { newName: () => to, envelope, content: Buffer.from('Subject: hi\r\n\r\nhi\r\n') })
  }
  // A pass that takes messages in is followed by another one a second later.
  await submit()
  const daemon = await start()
  while (submitted.length < 400) await submit()
  const isSent = () => new Set(daemon.sent)
  while (!submitted.every((to) => isSent().has(to)) && daemon.child.exitCode === null)
    await new Promise((resolve) => setTimeout(resolve, 100))
  expect(await stopDaemon(daemon)).toBe(0)
  expect(daemon.sent.toSorted()).toEqual(submitted.toSorted())
  expect([daemon.errors, existsSync(join(queue, 'refused'))]).toEqual([[], false])
})
