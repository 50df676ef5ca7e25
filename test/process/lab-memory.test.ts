/** Many worlds in one process: memory comes back, and neither a client that waits nor an application that hangs delays another world. */
import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createTransport } from 'nodemailer'
import { afterEach, expect, test } from 'vitest'
import { LabServer } from '../../src/lab/lab-server.ts'
import { Lab } from '../../src/lab/lab.ts'
import { WebhookTargets } from '../../src/lab/webhook-targets.ts'
import { WebhookApplication } from '../support/webhook-application.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { systemClock } from '../../src/system/system-clock.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

let child: ChildProcess | undefined
afterEach(() => child?.kill('SIGKILL'))

interface Created {
  readonly id: string
  readonly smtp: { readonly host: string; readonly port: number }
}

async function started(): Promise<string> {
  child = spawn(process.execPath, [PROGRAM, 'lab', '--http', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (child.stdout === null) throw new Error('the process has no output')
  for await (const line of createInterface(child.stdout)) {
    const { http } = JSON.parse(line) as { readonly http: string }
    return `${http}/lab/v1/worlds`
  }
  throw new Error('the process has written nothing')
}

const call = (url: string, method: string, body?: object): Promise<Response> =>
  fetch(url, { method, ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }) })

const created = async (base: string): Promise<Created> => (await (await call(base, 'POST', {})).json()) as Created

/** Heap of this process after a garbage collection, in MB. */
function heap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed / 1e6
}

async function sent({ smtp: { host, port } }: Created): Promise<void> {
  const transport = createTransport({ host, port, ignoreTLS: true })
  await transport.sendMail({ from: 'app@us.example', to: 'ann@x.example', text: 'hello' })
  transport.close()
}

async function used(base: string): Promise<void> {
  const world = await created(base)
  const { id } = world
  await sent(world)
  expect((await call(`${base}/${id}/clock/settle`, 'POST', { after: { accepted: 1 }, within: '60s' })).status).toBe(200)
  expect((await call(`${base}/${id}`, 'DELETE')).status).toBe(204)
}

test('memory comes back after 1,000 worlds', { timeout: 900_000 }, async () => {
  const targets = new WebhookTargets({ net: systemNet, clock: systemClock, allowed: new Set() })
  const lab = new Lab({ clock: systemClock, targets, limits: { maxWorlds: 64, idle: 600_000, lifetime: 7_200_000 }, address: '127.0.0.1' })
  const server = new LabServer({ lab, clock: systemClock, token: null, failed: (text) => expect(text).toBe('') })
  const { port } = await server.listen({ address: '127.0.0.1', port: 0 })
  const batch = async (worlds: number): Promise<number> => {
    for (let n = 0; n < worlds; n += 10) await Promise.all(Array.from({ length: 10 }, () => used(`http://127.0.0.1:${port}/lab/v1/worlds`)))
    return heap()
  }
  // The first worlds compile the code.
  const first = await batch(50)
  expect((await batch(1_000)) - first).toBeLessThan(20)
  await server.close()
  await lab.close()
})

test(
  '64 worlds have traffic at once, and one that waits and one whose application hangs delay no other',
  { timeout: 300_000 },
  async () => {
    await using app = await WebhookApplication.open(() => 'never')
    const base = await started()
    const { id } = await created(base)
    const waiting = call(`${base}/${id}/clock/settle`, 'POST', { after: { accepted: 1 }, within: '60s' })
    const hung = await created(base)
    expect((await call(`${base}/${hung.id}/webhooks`, 'POST', { name: 'app', types: ['message.accepted'], url: app.url })).status).toBe(201)
    await sent(hung)
    await expect.poll(() => app.requests.length, { timeout: 60_000 }).toBe(1)
    const asked = call(`${base}/${hung.id}/clock/advance`, 'POST', { by: '1h' })
    await Promise.all(Array.from({ length: 62 }, () => used(base)))
    const before = performance.now()
    expect((await call(`${base}/${hung.id}`, 'DELETE')).status).toBe(204)
    // 2 s on an idle machine.
    expect(performance.now() - before).toBeLessThan(20_000)
    await asked
    expect((await call(`${base}/${id}`, 'DELETE')).status).toBe(204)
    expect((await waiting).status).toBe(409)
  },
)
