/** The cost of events for programs: mail with a subscriber that hangs and with one that answers, beside mail without subscribers. */
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { CASES } from '../cases.ts'
import { startChild } from '../child.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, startSink, type Bench, type Measure } from '../load.ts'
import type { Paced } from '../page/paced-source.ts'
import { rotated } from '../statistics.ts'

const NAMES = ['unsubscribed', 'hanging', 'answering'] as const
type Name = (typeof NAMES)[number]

/** CPU time per message with a subscriber that hangs, beside none. */
const MOST_CPU = 1.08
/** Messages per second with it, beside none. */
const LEAST_RATE = 0.95
const WARM_UP = 4_000
const MESSAGES = 6_000
/** Messages per second, and seconds, of the turns in which greetings are timed. */
const RATE = 200
const SECONDS = 10
/** Increase of the greeting's p99 that a subscriber may cause, in ms. */
const MOST_DELAY = 5

/** A target on loopback in this process, whose CPU time counts for no daemon. */
async function startTarget(setting: Setting, name: Name): Promise<number> {
  const server: Server = createServer((request, response) => {
    request.resume()
    if (name === 'answering') request.on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  setting.undo.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function startContestants(setting: Setting, sinkPort: number): Promise<Readonly<Record<Name, BenchDaemon>>> {
  const start = async (name: Name): Promise<BenchDaemon> => {
    const file = join(setting.folder, `${name}.toml`)
    const target = name === 'unsubscribed' ? null : await startTarget(setting, name)
    const table = `[events.bench]\nto = "http://127.0.0.1:${target}/"\nallow_private = true\n`
    writeFileSync(file, target === null ? '' : table)
    return startDaemon(setting, name, { relayhost: `[127.0.0.1]:${sinkPort}` }, ['--config', file])
  }
  return { unsubscribed: await start('unsubscribed'), hanging: await start('hanging'), answering: await start('answering') }
}

/** The 99th percentile of greetings while mail is sent at a rate. */
async function greetingP99(setting: Setting, daemon: BenchDaemon): Promise<number> {
  const script = join(import.meta.dirname, '../page/paced-source.ts')
  const command = { program: process.execPath, args: [script, String(daemon.port), String(RATE), String(setting.sized(SECONDS))], cwd: '/' }
  const source = await startChild('the source', command, join(setting.folder, `paced-${daemon.name}`))
  try {
    const end = await source.ended
    if (end !== 'exit code 0') throw new Error(`the source ended (${end}): ${source.lastWords()}`)
    return percentile((JSON.parse(source.lastWords().split('\n').at(-1) ?? '') as Paced).greetings, 0.99)
  } finally {
    await source.stop()
  }
}

const WEBHOOKS: Part = {
  name: 'webhooks',
  about: '2 kB over kept connections: a webhook of all types whose receiver hangs, and one whose receiver answers, beside none',
  measure: async (setting) => {
    const [kept] = CASES
    if (kept === undefined) throw new Error('there is no case')
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const daemons = await startContestants(setting, sink.port)
    for (const name of NAMES) await measure(bench, daemons[name], kept, setting.sized(WARM_UP))
    const turns: Record<Name, Measure[]> = { unsubscribed: [], hanging: [], answering: [] }
    const greetings: Record<Name, number[]> = { unsubscribed: [], hanging: [], answering: [] }
    for (let round = 0; round < setting.rounds; round++)
      for (const name of rotated(NAMES, round)) {
        turns[name].push(await measure(bench, daemons[name], kept, setting.sized(MESSAGES)))
        greetings[name].push(await greetingP99(setting, daemons[name]))
      }
    const without = turns.unsubscribed
    const ratio = (name: Name, of: 'cpu' | 'rate'): number[] =>
      turns[name].map((one, round) => one[of] / (without[round]?.[of] ?? Number.NaN))
    const later = (name: Name): number[] => greetings[name].map((one, round) => one - (greetings.unsubscribed[round] ?? Number.NaN))
    return [
      ...NAMES.map((name): Figure => ({
        name: `CPU per message, ${name}`,
        unit: 'ms',
        target: null,
        values: turns[name].map(({ cpu }) => cpu),
      })),
      { name: 'CPU per message, hanging ÷ unsubscribed', unit: '', target: { most: MOST_CPU }, values: ratio('hanging', 'cpu') },
      { name: 'CPU per message, answering ÷ unsubscribed', unit: '', target: null, values: ratio('answering', 'cpu') },
      { name: 'messages per second, hanging ÷ unsubscribed', unit: '', target: { least: LEAST_RATE }, values: ratio('hanging', 'rate') },
      { name: 'greeting p99, hanging − unsubscribed', unit: 'ms', target: { most: MOST_DELAY }, values: later('hanging') },
    ]
  },
}

export const EVENTS: Subject = {
  name: 'events',
  about: `Measures events for programs: what a webhook costs per message while its
receiver hangs and while it answers, and how long greetings wait meanwhile.`,
  missing: () => null,
  parts: [WEBHOOKS],
}
