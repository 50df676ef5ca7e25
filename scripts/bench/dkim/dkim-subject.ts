/** The cost of DKIM: signatures of small messages beside none, and the hash of large bodies. */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BodyHash } from '../../../src/dkim/body-hash.ts'
import type { Figure } from '../figures/figure.ts'
import { takeMailTurns } from '../figures/mail-turns.ts'
import type { Part, Subject } from '../figures/subject.ts'

const NAMES = ['unsigned', 'ed25519', 'rsa'] as const
type Name = (typeof NAMES)[number]

/** CPU time that a signature may take per message, in ms. */
const MOST_CPU = { ed25519: 0.25, rsa: 2 } as const
/** Increase of the greeting's p99 that signatures may cause, in ms: greetings wait for the event loop. */
const MOST_DELAY = 5

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

const SIGNATURES: Part = {
  name: 'signatures',
  about: '2 kB over kept connections: signed with Ed25519 and with RSA-2048 beside unsigned',
  measure: async (setting) => {
    const turns = await takeMailTurns(setting, NAMES, (name) => configuration(setting.folder, name))
    const more = (name: Name, of: 'cpu' | 'greetingP99'): number[] =>
      turns[name].map((turn, round) => turn[of] - (turns.unsigned[round]?.[of] ?? Number.NaN))
    return [
      ...NAMES.map((name): Figure => {
        const values = turns[name].map(({ cpu }) => cpu)
        return { name: `CPU per message, ${name}`, unit: 'ms', target: null, values }
      }),
      ...(['ed25519', 'rsa'] as const).flatMap((name): Figure[] => [
        { name: `CPU per message, ${name} − unsigned`, unit: 'ms', target: { most: MOST_CPU[name] }, values: more(name, 'cpu') },
        { name: `greeting p99, ${name} − unsigned`, unit: 'ms', target: { most: MOST_DELAY }, values: more(name, 'greetingP99') },
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
