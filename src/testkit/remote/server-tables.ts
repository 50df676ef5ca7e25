/**
 * Reads the tables of a script about servers: `[tls."HOST"]` with the certificate of a host, and `[mta-sts."DOMAIN"]` with a policy. Every
 * mistake is reported with the valid values.
 */
import { nearest } from '../../config/values/problem.ts'
import * as is from '../../config/values/values.ts'
import { DAY, type Duration } from '../../system/clock.ts'
import { STS_FAILURES, STS_MODES, type PublishedPolicy } from './published-policies.ts'
import { CERTIFICATES, type HostCertificate } from './world-certificates.ts'

/** Records a mistake at a key; null for the table as a whole. */
type Wrong = (key: string | null, text: string) => void
type Table = Readonly<Record<string, unknown>>

/** Lifetime of a policy in a cache; a week, as Google's. */
const MAX_AGE: Duration = 7 * DAY

const certificate = is.oneOf(...CERTIFICATES)
const mode = is.oneOf(...STS_MODES)
const failure = is.kind<PublishedPolicy['fails']>(`one of ${STS_FAILURES.join(', ')}, or a status such as 404`, (given) => {
  const named = STS_FAILURES.find((name) => name === given)
  const isStatus = typeof given === 'number' && Number.isInteger(given) && given >= 200 && given <= 599
  return named ?? (isStatus ? given : undefined)
})

const KEYS = { certificate: ['certificate'], policy: ['mode', 'mx', 'max_age', 'fails'] } as const

/** Certificate of a host; null with a mistake. */
export function readCertificate(table: Table, wrong: Wrong): HostCertificate | null {
  const keys = new Keys(table, KEYS.certificate, wrong)
  return keys.required('certificate', certificate)
}

/** Policy of a domain; null with a mistake. */
export function readPolicy(table: Table, wrong: Wrong): PublishedPolicy | null {
  const keys = new Keys(table, KEYS.policy, wrong)
  const read = keys.required('mode', mode)
  const mx = keys.optional('mx', is.list)
  const maxAge = keys.optional('max_age', is.duration)
  const fails = keys.optional('fails', failure)
  if (mx?.length === 0) wrong('mx', 'mx: expected names of exchangers; without the key, the policy has those of the MX records')
  return read === null || keys.failed ? null : { mode: read, mx, maxAge: maxAge ?? MAX_AGE, fails }
}

class Keys {
  failed = false
  readonly #table: Table
  readonly #wrong: Wrong

  constructor(table: Table, known: readonly string[], wrong: Wrong) {
    this.#table = table
    this.#wrong = (key, text) => {
      this.failed = true
      wrong(key, text)
    }
    for (const key of Object.keys(table)) {
      if (known.includes(key)) continue
      const meant = nearest(key, known)
      this.#wrong(key, `unknown key ${key}; ${meant === undefined ? `known: ${known.join(', ')}` : `did you mean ${meant}?`}`)
    }
  }

  optional<T>(key: string, kind: is.Kind<T>): T | null {
    const given = this.#table[key]
    if (given === undefined) return null
    const reading = kind(given)
    if ('value' in reading) return reading.value
    this.#wrong(key, `${key}: ${reading.wrong}`)
    return null
  }

  required<T>(key: string, kind: is.Kind<T>): T | null {
    if (this.#table[key] === undefined) this.#wrong(null, `${key} is missing`)
    return this.optional(key, kind)
  }
}
