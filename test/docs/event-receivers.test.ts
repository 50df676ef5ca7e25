/** The receivers of docs/events.md accept what deferd sends, and refuse what was changed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { EVENTS } from '../../src/events/event-types.ts'
import { eventRequest } from '../../src/subscriptions/event-request.ts'
import { EVENT_EXAMPLES } from '../../scripts/events-page.ts'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const root = join(import.meta.dirname, '../..')

let child: ChildProcess | undefined
afterEach(() => void child?.kill())

const hasPython = spawnSync('python3', ['-c', 'import hashlib']).status === 0

test.each([
  ['Node', 'createServer(', (file: string) => [process.execPath, file], 'receiver.mjs', false],
  ['Python', 'BaseHTTPRequestHandler', (file: string) => ['python3', file], 'receiver.py', !hasPython],
] as const)('the receiver in %s', async (_name, part, command, name, isMissing) => {
  // Machines without Python run the receiver in Node only.
  if (isMissing) return
  const port = await portBelowEphemeral()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-receiver-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, name)
  writeFileSync(file, blockWith('docs/events.md', part).text.replace('8080', String(port)))
  const [program = '', ...args] = command(file)
  child = spawn(program, args, { env: { ...process.env, WEBHOOK_SECRET: SECRET }, stdio: 'ignore' })
  const event = {
    id: 'evt_1_1',
    type: 'recipient.bounced',
    timestamp: new Date().toISOString(),
    data: EVENT_EXAMPLES['recipient.bounced'],
  } as const
  const terms = { format: 'deferd', isBatch: false, secrets: [SECRET], source: 'relay.example', now: Date.now() } as const
  const { headers, body } = eventRequest([event], terms)
  const post = async (text: string): Promise<number> => {
    for (;;) {
      try {
        return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text })).status
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }
  expect(await post(body)).toBe(204)
  expect(await post(body.replace('no such user', 'no such uset'))).toBe(401)
})

test('the page has an example of each type', () => {
  const examples = blocksOf('docs/events.md').filter(({ language }) => language === 'json')
  expect(examples).toHaveLength(Object.keys(EVENTS).length)
})
