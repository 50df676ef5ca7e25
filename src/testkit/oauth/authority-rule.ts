/**
 * Scripted failures of an authorization server: `[authority.NAME]` tables of a script, and the same in code. The newest rule that matches a
 * request acts on it.
 */
import { nearest } from '../../config/values/problem.ts'
import * as is from '../../config/values/values.ts'
import { SECOND, type Duration } from '../../system/clock.ts'
import { GRAPH } from './authority-settings.ts'
import type { Cause } from './refusal.ts'
import type { Falsified } from './token-endpoint.ts'

/** Effect of a failure on a request. */
export type Effect =
  | { readonly kind: 'refused'; readonly cause: Cause }
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: Duration | undefined; readonly body: string }
  | { readonly kind: 'falsified'; readonly how: Falsified }
  /** No answer: the connection is closed, or stays open. */
  | { readonly kind: 'none'; readonly closes: boolean }
  /** The connection is refused. It concerns connections, not requests. */
  | { readonly kind: 'down' }

const refused = (cause: Cause): Effect => ({ kind: 'refused', cause })

/** Failures by name. */
export const FAILURES = {
  invalid_client: refused('invalid client'),
  expired_secret: refused('expired secret'),
  invalid_grant: refused('expired login'),
  invalid_scope: refused('invalid scope'),
  unauthorized_client: refused('unknown client'),
  no_consent: refused('no consent'),
  server_error: { kind: 'status', status: 500, body: '{"error":"server_error"}' },
  unavailable: { kind: 'status', status: 503, retryAfter: 120 * SECOND, body: '{"error":"temporarily_unavailable"}' },
  throttled: { kind: 'status', status: 429, retryAfter: 60 * SECOND, body: '{"error":"temporarily_unavailable"}' },
  garbage: { kind: 'status', status: 200, body: '<html><title>Sign in to the wireless network</title>' },
  oversized: { kind: 'status', status: 200, body: `{"access_token":"${'x'.repeat(80 * 1024)}"}` },
  wrong_audience: { kind: 'falsified', how: { audience: GRAPH } },
  no_roles: { kind: 'falsified', how: { roles: [] } },
  no_lifetime: { kind: 'falsified', how: { lifetime: 0 } },
  closed: { kind: 'none', closes: true },
  silent: { kind: 'none', closes: false },
  down: { kind: 'down' },
} as const satisfies Record<string, Effect>

/** Name of a failure of an authorization server. */
export type AuthorityFailure = keyof typeof FAILURES
export const FAILURE_NAMES = Object.keys(FAILURES) as readonly AuthorityFailure[]

/** One rule. Times are since the start, on the monotonic clock. */
export interface AuthorityRule {
  readonly name: string
  readonly fails?: AuthorityFailure | undefined
  /** Time before the answer. */
  readonly delay?: Duration | undefined
  /** The rule acts on this number of requests. */
  readonly first?: number | undefined
  readonly from?: Duration | undefined
  readonly until?: Duration | undefined
  readonly grant?: string | undefined
  readonly client?: string | undefined
}

/** Facts about a request, or about a connection without a request. */
interface AuthorityFacts {
  readonly age: Duration
  readonly grant?: string | undefined
  readonly client?: string | undefined
}

/** Rules with the number of their uses. */
export class AuthorityRules {
  #rules: readonly { readonly rule: AuthorityRule; uses: number }[] = []

  constructor(rules: readonly AuthorityRule[] = []) {
    this.#rules = rules.map((rule) => ({ rule, uses: 0 }))
  }

  add(rule: AuthorityRule): void {
    this.#rules = [{ rule, uses: 0 }, ...this.#rules]
  }

  clear(): void {
    this.#rules = []
  }

  /** The rule that acts on a request, or that refuses a connection before there is a request. Counts the use of the rule. */
  decide(facts: AuthorityFacts, at: 'connection' | 'request'): AuthorityRule | undefined {
    const found = this.#rules.find(
      ({ rule, uses }) => (rule.fails === 'down') === (at === 'connection') && uses < (rule.first ?? Infinity) && matches(rule, facts),
    )
    if (found !== undefined) found.uses++
    return found?.rule
  }
}

const matches = ({ from = 0, until = Infinity, grant, client }: AuthorityRule, facts: AuthorityFacts): boolean =>
  facts.age >= from &&
  facts.age < until &&
  (grant === undefined || grant === facts.grant) &&
  (client === undefined || client === facts.client)

const KEYS = {
  fails: is.oneOf(...FAILURE_NAMES),
  delay: is.duration,
  first: is.count(1),
  from: is.duration,
  until: is.duration,
  grant: is.text,
  client: is.text,
} as const

const NAMES = Object.keys(KEYS) as readonly (keyof typeof KEYS)[]

/** Reads a rule. `complain` gets each mistake with its key; null for the rule as a whole. */
export function readAuthorityRule(
  name: string,
  written: Readonly<Record<string, unknown>>,
  complain: (key: string | null, text: string) => void,
): AuthorityRule | null {
  let isValid = true
  const wrong = (key: string | null, text: string): void => {
    isValid = false
    complain(key, text)
  }
  const values: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(written)) {
    const known = NAMES.find((one) => one === key)
    if (known === undefined) {
      const meant = nearest(key, NAMES)
      wrong(key, `unknown key ${key}; ${meant === undefined ? `known: ${NAMES.join(', ')}` : `did you mean ${meant}?`}`)
      continue
    }
    const reading = KEYS[known](value)
    if ('value' in reading) values[key] = reading.value
    else wrong(key, `${key}: ${reading.wrong}`)
  }
  const rule: AuthorityRule = { ...values, name }
  if (isValid && rule.fails === undefined && rule.delay === undefined) wrong(null, 'has no effect: add fails or delay')
  if (rule.fails === 'down' && (rule.grant ?? rule.client ?? rule.delay) !== undefined) {
    wrong(null, 'a refused connection has neither grant nor client nor delay: remove them, or use fails = "closed"')
  }
  if (rule.from !== undefined && rule.until !== undefined && rule.until <= rule.from) wrong('until', 'until must be later than from')
  return isValid ? rule : null
}
