/** An import that is killed at any moment loses nothing and repeats nothing, when it is called again. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BuiltSpool, submission } from '../support/built-spool.ts'
import { runImport, textsOf } from '../support/killed-import.ts'
import { record } from '../support/queue-file-builder.ts'

const MESSAGES = 400
const QUEUES = ['active', 'incoming', 'deferred', 'hold'] as const

let spool: BuiltSpool
beforeEach(() => {
  spool = new BuiltSpool('myhostname = relay.example\n')
})
afterEach(() => spool.remove())

/** Writes mail to all queues. */
function fill(): void {
  for (let n = 0; n < MESSAGES; n++) {
    const id = `A${String(n).padStart(7, '0')}`
    const arrival = `1763600000 ${String(n).padStart(6, '0')}`
    const queue = QUEUES[n % 5]
    if (queue === undefined) spool.add('maildrop', id, submission(`s${n}@a.test`, [`r${n}@b.test`], arrival))
    else {
      const envelope = [record('S', `s${n}@a.test`), record('R', `r${n}@b.test`), record('R', `t${n}@c.test`)]
      spool.add(queue, id, { arrival, envelope, content: [record('N', `Subject: ${n}`), record('N'), record('N', 'x'.repeat(2000))] })
    }
  }
}

test('400 messages, killed before and during the commits', async () => {
  fill()
  const run = { spool: spool.spool, config: spool.config, queue: join(spool.folder, 'queue') }
  const ends: (number | string)[] = []
  for (const bytes of [1, 300_000, 600_000, 1_000_000]) ends.push(await runImport(run, bytes))
  ends.push(await runImport(run, Infinity))
  expect(ends.slice(0, 3)).toEqual(['SIGKILL', 'SIGKILL', 'SIGKILL'])
  expect(ends.at(-1)).toBe(0)
  const texts = await textsOf(run.queue)
  expect(texts.length).toBe(MESSAGES)
  expect(new Set(texts.map((text) => text.split(' ', 1)[0])).size).toBe(MESSAGES)
  expect(await runImport(run, Infinity)).toBe(0)
  expect(await textsOf(run.queue)).toEqual(texts)
}, 60_000)
