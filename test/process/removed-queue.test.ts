import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { KillableRelay } from '../support/killable-relay.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let lab: KillableRelay
afterEach(() => lab.close())

test.each([
  ['unlinked', (directory: string) => rmSync(join(directory, 'queue.db')), 'was removed'],
  [
    'replaced by a copy',
    (directory: string) => {
      const path = join(directory, 'queue.db')
      writeFileSync(`${path}.copy`, readFileSync(path))
      renameSync(`${path}.copy`, path)
    },
    'was replaced',
  ],
  ['without its write-ahead log', (directory: string) => rmSync(join(directory, 'queue.db-wal')), 'was removed'],
  [
    'in a folder that was renamed',
    (directory: string) => renameSync(directory, mkdtempSync(join(tmpdir(), 'deferd-moved-'))),
    'was removed',
  ],
])('a queue file %s under a running daemon: mail is refused and the daemon is unhealthy', async (_how, remove, what) => {
  const http = await portBelowEphemeral()
  lab = new KillableRelay({ http_listen: `127.0.0.1:${http}` })
  await lab.open(0)
  await lab.startDaemon()
  expect(await lab.sendOne()).toMatch(/^250 /)
  remove(lab.queueDirectory)
  expect(await lab.sendOne()).toMatch(/^451 4\.3\.0 /)
  const health = await fetch(`http://127.0.0.1:${http}/healthz`)
  expect([health.status, await health.json()]).toMatchObject([503, { healthy: false, store: expect.stringContaining(what) as string }])
  // The log comes through a pipe.
  await expect.poll(() => lab.log.some((line) => line.includes(`queue.db`) && line.includes(what))).toBe(true)
})
