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
/** From the start of the process, in ms: on a machine with other work, an empty daemon takes longer than that by itself. */
const greetingLimit = (empty: Running): number => 2_000 + 2 * empty.greetedAfter

let folder: string
let queue: string
const children: ChildProcess[] = []
const ends: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'deferd-tricks-'))
  queue = join(folder, 'queue')
  mkdirSync(queue)
  // Another user passes through the folders of the test.
  for (const path of [tmpdir(), folder]) chmodSync(path, 0o711)
  if (OTHER_USER !== undefined) chownSync(queue, OTHER_USER, OTHER_USER)
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

async function start(): Promise<Running> {
  const running = await startDaemon(folder, OTHER_USER)
  children.push(running.child)
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
  const empty = await start()
  expect(await stopDaemon(empty)).toBe(0)
  const valid = plant()

  const first = await start()
  expect(first.greetedAfter).toBeLessThan(greetingLimit(empty))
  const isSent = new Set<string>()
  while (!valid.every((address) => isSent.has(address))) {
    expect(first.child.exitCode).toBeNull()
    await new Promise((resolve) => setTimeout(resolve, 100))
    for (const address of first.sent) isSent.add(address)
  }
  first.child.kill('SIGKILL')
  await first.ended

  const second = await start()
  expect(second.greetedAfter).toBeLessThan(greetingLimit(empty))
  // A message whose delivery was cut off by the kill is delivered again: at most those in flight.
  expect(second.sent.filter((address) => !address.startsWith('many-') && isSent.has(address))).toEqual([])
  expect(await stopDaemon(second)).toBe(0)
  expect([...first.errors, ...second.errors]).toEqual([])

  const all = [...first.sent, ...second.sent]
  expect(all.filter((address) => /^(?:secret|unreadable|crlf|nul|envid|smuggled|length|sparse|r\d+)@/.test(address))).toEqual([])
  expect(valid.filter((address) => first.sent.filter((one) => one === address).length > 1)).toEqual([])
})

test('mail that another user submits while the daemon reads the maildrop is delivered once', { timeout: 120_000 }, async () => {
  mkdirSync(join(queue, 'maildrop'))
  if (OTHER_USER !== undefined) chownSync(join(queue, 'maildrop'), OTHER_USER, OTHER_USER)
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
