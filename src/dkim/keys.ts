/** Reads the private keys of the `[dkim."…"]` tables. A key that cannot be used is a problem of the configuration (RFC 8301). */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { DkimKeyName, DkimTable } from '../config/values/tables/dkim-tables.ts'
import type { Config } from '../config/options.ts'
import { ConfigError, type Problem } from '../config/values/problem.ts'
import { errorMessage } from '../system/caught-error.ts'
import { isMountedSecret } from '../config/values/mounted-secret.ts'
import { recordText } from './key-record.ts'
import type { Algorithm } from './signature-field.ts'

export interface DkimKey extends DkimKeyName {
  readonly algorithm: Algorithm
  /** Modulus length of an RSA key; 256 for Ed25519. */
  readonly bits: number
  readonly privateKey: KeyObject
  /** Text of the TXT record that publishes the key. */
  readonly record: string
}

/** The keys of a table, RSA first, because some verifiers look at the first signature only. */
export interface DkimDomain {
  /** `d=` of the signatures. */
  readonly domain: string
  readonly keys: readonly DkimKey[]
  readonly expire: DkimTable['expire']
}

/** Loaded keys by the heading of their table. */
export type DkimKeys = ReadonlyMap<string, DkimDomain>

/** In bits; shorter keys are refused (RFC 8301 §3.2). */
const SHORTEST_RSA = 1024
/** Reads all keys. Throws ConfigError with a problem for each key that cannot be used. */
export function loadDkimKeys({ dkim }: Pick<Config, 'dkim'>): DkimKeys {
  const problems: Problem[] = []
  const domains = new Map<string, DkimDomain>()
  for (const [heading, table] of dkim) {
    const keys = table.keys.flatMap((name) => {
      try {
        return [loadDkimKey(name)]
      } catch (error) {
        problems.push({ where: table.where, text: `dkim."${heading}": ${errorMessage(error)}` })
        return []
      }
    })
    const ordered = keys.toSorted((a, b) => Number(a.algorithm !== 'rsa-sha256') - Number(b.algorithm !== 'rsa-sha256'))
    domains.set(heading, { domain: heading.replace(/^\./, ''), keys: ordered, expire: table.expire })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return domains
}

/** Reads one key. Throws an Error that names the file and the remedy. */
export function loadDkimKey(name: DkimKeyName): DkimKey {
  const { path } = name
  const privateKey = readKey(path)
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey
  const bits = type === 'ed25519' ? 256 : (details?.modulusLength ?? 0)
  if (type !== 'rsa' && type !== 'ed25519') throw new Error(`${path} has a key of the type ${type}: use RSA or Ed25519`)
  if (type === 'rsa' && bits < SHORTEST_RSA)
    throw new Error(`${path} has an RSA key of ${bits} bits: receivers require ${SHORTEST_RSA}, use 2048`)
  const algorithm = type === 'rsa' ? 'rsa-sha256' : 'ed25519-sha256'
  return { ...name, algorithm, bits, privateKey, record: recordText(createPublicKey(privateKey)) }
}

function readKey(path: string): KeyObject {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
    const mode = statSync(path).mode & 0o777
    if ((mode & 0o077) !== 0 && !isMountedSecret(path))
      throw new Error(`other users may read it (mode ${mode.toString(8)}): chmod 600 ${path}`)
  } catch (cause) {
    throw new Error(`cannot use ${path}: ${errorMessage(cause)}`, { cause })
  }
  try {
    return createPrivateKey(text)
  } catch (cause) {
    throw new Error(`${path} has no private key (PEM, not encrypted): ${errorMessage(cause)}`, { cause })
  }
}
