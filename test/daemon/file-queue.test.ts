/** The queue in a folder, as the daemon opens it. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openFileQueue } from '../../src/daemon/file-queue.ts'
import { takeOwnership } from '../../src/store/folder/owner-lock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { realClock } from '../support/real-clock.ts'

test('a queue in a folder is not shared, so that its relay reads no changes of other nodes, and tells commands while it starts', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'file-queue-'))
  const events = new Events(() => realClock.wall.now())
  const failed = (): never => {
    throw new Error('the store has failed')
  }
  const { membership, started, close } = await openFileQueue({ directory, clock: realClock, events, failed })
  expect(membership.isShared).toBe(false)
  expect(() => takeOwnership(directory)).toThrow('a daemon that is starting')
  started()
  expect(() => takeOwnership(directory)).toThrow(/in use by process \d+ \(since \S+\)$/)
  await close()
})
