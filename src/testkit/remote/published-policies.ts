/** MTA-STS policies (RFC 8461) of the remote network: their TXT records, and the HTTPS hosts that serve them. */
import { createHash } from 'node:crypto'
import { SECOND, type Duration } from '../../system/clock.ts'
import { servePolicy, type PolicyAnswer, type WebHost } from './policy-host.ts'
import { mailIdentity } from './world-certificates.ts'

export const STS_MODES = ['enforce', 'testing', 'none'] as const
/** Mode of a policy. */
export type StsMode = (typeof STS_MODES)[number]

export const STS_FAILURES = ['refused', 'silent', 'certificate'] as const
/** Failure of the host of a policy: connections are refused, requests stay without an answer, or the certificate has another name. */
export type StsFailure = (typeof STS_FAILURES)[number]

export interface PublishedPolicy {
  readonly mode: StsMode
  /** Names or patterns of exchangers; null for those that the MX records of the domain have at the time. */
  readonly mx: readonly string[] | null
  readonly maxAge: Duration
  /** Failure of the host, or the status of its answers; null when it serves the policy. */
  readonly fails: StsFailure | number | null
}

const RECORD = '_mta-sts.'
const HOST = 'mta-sts.'
const PATH = '/.well-known/mta-sts.txt'

export class PublishedPolicies {
  readonly #policies = new Map<string, PublishedPolicy>()
  readonly #exchangersOf: (domain: string) => readonly string[]

  constructor(policies: ReadonlyMap<string, PublishedPolicy>, exchangersOf: (domain: string) => readonly string[]) {
    this.#exchangersOf = exchangersOf
    for (const [domain, policy] of policies) this.set(domain, policy)
  }

  set(domain: string, policy: PublishedPolicy): void {
    this.#policies.set(domain, policy)
  }

  /** TXT records at a name such as `_mta-sts.example.net`. The id changes with the policy. */
  txt(name: string): readonly string[] {
    const domain = after(RECORD, name)
    const policy = this.#policies.get(domain)
    if (policy === undefined) return []
    const id = createHash('sha256').update(this.#text(domain, policy)).digest('hex').slice(0, 16)
    return [`v=STSv1; id=${id};`]
  }

  /** Server of the policy at a host such as `mta-sts.example.net`. */
  hostOf(host: string): WebHost | undefined {
    const domain = after(HOST, host)
    const policy = this.#policies.get(domain)
    if (policy === undefined) return undefined
    const identity = mailIdentity(host, policy.fails === 'certificate' ? 'other-name' : 'valid')
    return {
      isRefusing: () => policy.fails === 'refused',
      serve: (socket) => servePolicy({ identity, answer: (path) => this.#answer(path, domain, policy) }, socket),
    }
  }

  #answer(path: string, domain: string, policy: PublishedPolicy): PolicyAnswer | null {
    if (policy.fails === 'silent') return null
    if (path !== PATH) return { status: 404, body: '' }
    const status = typeof policy.fails === 'number' ? policy.fails : 200
    return { status, body: this.#text(domain, policy) }
  }

  #text(domain: string, { mode, mx, maxAge }: PublishedPolicy): string {
    const names = (mx ?? this.#exchangersOf(domain)).map((name) => `mx: ${name}`)
    return ['version: STSv1', `mode: ${mode}`, ...names, `max_age: ${Math.floor(maxAge / SECOND)}`, ''].join('\r\n')
  }
}

const after = (prefix: string, name: string): string => (name.startsWith(prefix) ? name.slice(prefix.length) : '')
