/** The examples in code of docs/embedding.md and docs/backoff.md run, with a queue folder and ports of the test. */
import { readFileSync } from 'node:fs'
import { createTransport } from 'nodemailer'
import { afterEach, expect, test, vi } from 'vitest'
import * as backoff from '../../src/backoff/index.ts'
import * as deferd from '../../src/index.ts'
import { functionOf } from '../support/example-code.ts'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { folder } from '../store/sqlite/folders.ts'

const modules = { deferd, 'deferd/backoff': backoff }

afterEach(() => {
  vi.restoreAllMocks()
})

/** Runs an example and returns what it printed, and its value. */
async function run(text: string, result?: string): Promise<{ readonly printed: readonly unknown[][]; readonly value: unknown }> {
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
  const value = await functionOf(text, modules, result)()
  return { printed: log.mock.calls, value }
}

test('a relay runs inside another program', async () => {
  const text = blockWith('docs/embedding.md', 'startRelay').text
  const own = text
    .replace('/var/lib/app/queue', folder())
    .replace('127.0.0.1:2525', '127.0.0.1:0')
    .replace('[smtp.example.com]:587', '[127.0.0.1]:1')
  const before = process.listeners('SIGTERM')
  const { printed, value } = await run(own, 'relay')
  const relay = value as deferd.EmbeddedRelay
  try {
    const [listener] = relay.listeners
    await createTransport({ host: '127.0.0.1', port: listener?.port ?? 0 }).sendMail({ from: 'a@x.example', to: 'b@y.example', text: 'hi' })
    await vi.waitFor(() => expect(printed).toContainEqual(['b@y.example', expect.stringContaining('Connection refused')]), 30_000)
  } finally {
    await relay.stop()
    for (const added of process.listeners('SIGTERM')) if (!before.includes(added)) process.removeListener('SIGTERM', added)
  }
})

test('a notice is read', async () => {
  const notice = readFileSync(new URL('../bounce/corpus/failure-8bit-original.eml', import.meta.url))
  const { text } = blockWith('docs/embedding.md', 'parseNotice')
  const { printed } = await run(`const content = new Uint8Array([${notice.join()}])\n${text}`)
  expect(printed).toEqual([['user0@example.net', 'failed', '5.1.1']])
})

test('waits are computed without a queue', async () => {
  const [block, repeated, ...others] = blocksOf('docs/backoff.md').filter(({ language }) => language === 'ts')
  expect(others).toEqual([])
  const done = await run(`const fetchReport = async () => 'the report'\n${repeated?.text ?? ''}`, 'report')
  expect(done).toEqual({ printed: [[1, undefined, null]], value: 'the report' })
  vi.restoreAllMocks()
  const text = block?.text ?? ''
  const [, call = '', comment] = /^(nextWait\(.*\)) \/\/ (\d+)$/m.exec(text) ?? []
  const { printed, value } = await run(text, call)
  expect(printed).toHaveLength(10)
  expect(printed[0]).toEqual([0])
  expect(String(value)).toBe(comment)
})
