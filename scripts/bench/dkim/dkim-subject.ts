/** The cost of DKIM: signatures of small messages beside none, and the hash of large bodies. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BodyHash } from '../../../src/dkim/body-hash.ts'
import { CASES } from '../cases.ts'
import { startChild } from '../child.ts'
import { startDaemon, type BenchDaemon } from '../figures/bench-daemon.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, startSink, type Bench } from '../load.ts'
import type { Paced } from '../page/paced-source.ts'
import { rotated } from '../statistics.ts'

const NAMES = ['unsigned', 'ed25519', 'rsa'] as const
type Name = (typeof NAMES)[number]

/** CPU time that a signature may take per message, in ms. */
const MOST_CPU = { ed25519: 0.25, rsa: 2 } as const
/** Increase of the greeting's p99 that signatures may cause, in ms: greetings wait for the event loop. */
const MOST_DELAY = 5
const WARM_UP = 4_000
const MESSAGES = 6_000
/** Messages per second, and seconds, of the turns in which greetings are timed. */
const RATE = 200
const SECONDS = 20

/** Domain of the From field of the sources. */
const DOMAIN = 'load.test'

/** A configuration file whose key signs the mail of the sources; empty for none. */
function configuration(folder: string, name: Name): string {
  if (name === 'unsigned') return ''
  const { privateKey } = name === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ed25519')
  const key = join(folder, `${name}.pem`)
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return `[dkim."${DOMAIN}"]\nkeys = ["s:${key}"]\n`
}

async function startContestants(setting: Setting, port: number): Promise<Readonly<Record<Name, BenchDaemon>>> {
  const start = async (name: Name): Promise<BenchDaemon> => {
    const file = join(setting.folder, `${name}.toml`)
    writeFileSync(file, configuration(setting.folder, name))
    return startDaemon(setting, name, { relayhost: `[127.0.0.1]:${port}` }, ['--config', file])
  }
  return { unsigned: await start('unsigned'), ed25519: await start('ed25519'), rsa: await start('rsa') }
}

/** Times of greetings while mail is sent at a rate. */
async function greetingP99(setting: Setting, daemon: BenchDaemon): Promise<number> {
  const script = join(import.meta.dirname, '../page/paced-source.ts')
  const seconds = String(setting.sized(SECONDS))
  const command = { program: process.execPath, args: [script, String(daemon.port), String(RATE), seconds], cwd: '/' }
  const source = await startChild('the source', command, join(setting.folder, `paced-${daemon.name}`))
  try {
    const end = await source.ended
    if (end !== 'exit code 0') throw new Error(`the source ended (${end}): ${source.lastWords()}`)
    const { greetings } = JSON.parse(source.lastWords().split('\n').at(-1) ?? '') as Paced
    return percentile(greetings, 0.99)
  } finally {
    await source.stop()
  }
}

const SIGNATURES: Part = {
  name: 'signatures',
  about: '2 kB over kept connections: signed with Ed25519 and with RSA-2048 beside unsigned',
  measure: async (setting) => {
    const [kept] = CASES
    if (kept === undefined) throw new Error('there is no case')
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const daemons = await startContestants(setting, sink.port)
    for (const name of NAMES) await measure(bench, daemons[name], kept, setting.sized(WARM_UP))
    const cpu: Record<Name, number[]> = { unsigned: [], ed25519: [], rsa: [] }
    const delay: Record<Name, number[]> = { unsigned: [], ed25519: [], rsa: [] }
    for (let round = 0; round < setting.rounds; round++)
      for (const name of rotated(NAMES, round)) {
        cpu[name].push((await measure(bench, daemons[name], kept, setting.sized(MESSAGES))).cpu)
        delay[name].push(await greetingP99(setting, daemons[name]))
      }
    const more = (values: Readonly<Record<Name, number[]>>, name: Name): number[] =>
      values[name].map((value, round) => value - (values.unsigned[round] ?? Number.NaN))
    return [
      ...NAMES.map((name): Figure => ({ name: `CPU per message, ${name}`, unit: 'ms', target: null, values: cpu[name] })),
      ...(['ed25519', 'rsa'] as const).flatMap((name): Figure[] => [
        { name: `CPU per message, ${name} − unsigned`, unit: 'ms', target: { most: MOST_CPU[name] }, values: more(cpu, name) },
        { name: `greeting p99, ${name} − unsigned`, unit: 'ms', target: { most: MOST_DELAY }, values: more(delay, name) },
      ]),
    ]
  },
}

const MEGABYTES = 10
/** Bytes of a piece, as they arrive from a client. */
const PIECE = 65_536

/** Text of so many bytes in lines of base64, as of an attachment. */
function base64Body(bytes: number): Buffer {
  const line = createHash('sha512').update('line').digest('base64').slice(0, 76)
  return Buffer.from(`${line}\r\n`.repeat(Math.ceil(bytes / 78))).subarray(0, bytes)
}

const BODY_HASH: Part = {
  name: 'body-hash',
  about: `${MEGABYTES} MB of base64: the hash of the body`,
  measure: async (setting) => {
    const body = base64Body(MEGABYTES * 1_000_000)
    const once = (): number => {
      const before = process.cpuUsage()
      const hash = new BodyHash()
      for (let at = 0; at < body.length; at += PIECE) hash.write(body.subarray(at, at + PIECE))
      hash.digest()
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000 / MEGABYTES
    }
    once()
    const values = Array.from({ length: setting.rounds }, once)
    return [{ name: 'hash of a base64 body', unit: 'ms/MB', target: { most: 4 }, values }]
  },
}

export const DKIM: Subject = {
  name: 'dkim',
  about: `Measures the signatures of DKIM: what they cost per message and how long
greetings wait meanwhile, and the hash of large bodies.`,
  missing: () => null,
  parts: [SIGNATURES, BODY_HASH],
}
