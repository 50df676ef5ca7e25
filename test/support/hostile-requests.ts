/** Requests that clients with a token make up to stop a relay: patterns, queries, bodies and plans. */
import { deflateRawSync } from 'node:zlib'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

export type HostileRole = 'viewer' | 'operator' | 'sender' | 'limited'

export interface HostileRequest {
  readonly name: string
  readonly as: HostileRole
  readonly method: 'GET' | 'POST'
  /** Target below the root. */
  readonly target: string
  readonly accept?: string
  readonly type?: string
  readonly body?: () => string
}

const MIB = 1024 * 1024
const MANY_STARS = `${'*'.repeat(60)}~`
const STARS_BETWEEN = `${'*a'.repeat(480)}~`
const LIKE = '%_\\'.repeat(300)
const NDJSON = 'application/x-ndjson'
const SSE = 'text/event-stream'
const HTML = 'text/html'

const query = (values: Readonly<Record<string, string>>): string => new URLSearchParams(values).toString()

const get = (name: string, target: string, accept?: string, as: HostileRole = 'viewer'): HostileRequest => ({
  name,
  as,
  method: 'GET',
  target,
  ...(accept === undefined ? {} : { accept }),
})

/** Patterns at every parameter that takes one. */
const PATTERNS: readonly HostileRequest[] = [
  ['60 stars', MANY_STARS],
  ['stars between letters', STARS_BETWEEN],
  ['characters of LIKE', LIKE],
].flatMap(([name = '', pattern = '']) => [
  get(`${name}: name of destinations`, `api/v1/destinations?${query({ name: pattern })}`),
  get(`${name}: name of all destinations`, `api/v1/destinations?${query({ name: pattern })}`, NDJSON, 'limited'),
  get(`${name}: messages`, `api/v1/messages?${query({ sender: pattern, recipient: pattern, destination: pattern, reply: pattern })}`),
  get(`${name}: all messages`, `api/v1/messages?${query({ recipient: pattern })}`, NDJSON),
  get(`${name}: count`, `api/v1/messages/count?${query({ sender: pattern, recipient: pattern, reply: pattern })}`),
  get(`${name}: history`, `api/v1/history?${query({ sender: pattern, recipient: pattern })}`),
  get(`${name}: events`, `api/v1/events?${query({ sender: pattern, destination: pattern })}`),
  get(`${name}: stream of events`, `api/v1/events?${query({ sender: pattern })}`, SSE),
  get(`${name}: audit log`, `api/v1/audit?${query({ who: pattern, action: pattern })}`),
  get(`${name}: page of destinations`, `destinations?${query({ name: pattern })}`, HTML),
  get(`${name}: page of messages`, `messages?${query({ sender: pattern, recipient: pattern, reply: pattern })}`, HTML),
  get(`${name}: page of events`, `events?${query({ sender: pattern, destination: pattern })}`, HTML),
])

/** Queries that are long, repeated, or of other kinds of values. */
const QUERIES: readonly HostileRequest[] = [
  get('a header beyond the limit', `api/v1/messages?${query({ reply: 'x'.repeat(20_000) })}`),
  get('a parameter 3,000 times', `api/v1/messages?${'a=&'.repeat(3_000)}`),
  get('3,000 parameters', `api/v1/messages?${Array.from({ length: 2_500 }, (_, n) => `p${n}`).join('&')}`),
  get('a cursor of nonsense', `api/v1/messages?after=${'A'.repeat(500)}`),
  get('a status of many stars', `api/v1/messages?${query({ status: '*.'.repeat(400) })}`),
  get('a position beyond all', 'api/v1/events?after=99999999999999999999'),
  get('times that overflow', 'api/v1/messages?older_than=9999999999999999d'),
  get('an id of 10,000 characters', `api/v1/messages/${'4'.repeat(10_000)}`),
  get('a path of 3,000 parts', `api/v1/${'%2e%2e/'.repeat(2_000)}`),
  get('causes of a destination of stars', `api/v1/destinations/${'%2a'.repeat(300)}/causes`),
  get('the planner with nested policies', `planner?${query({ policy: '('.repeat(2_000), other: `fixed(${'1'.repeat(2_000)}m)` })}`, HTML),
  get('the planner with a year of seconds', `planner?${query({ policy: 'fixed(1s)', minimal: '1s', lifetime: '365d' })}`, HTML),
]

const post = (name: string, as: HostileRole, target: string, body: () => string, type = 'application/json'): HostileRequest => ({
  name,
  as,
  method: 'POST',
  target,
  type,
  body,
})

const operation = (name: string, body: () => unknown, as: HostileRole = 'operator'): HostileRequest =>
  post(name, as, 'api/v1/operations', () => JSON.stringify(body()))

const mail = (name: string, body: () => unknown): HostileRequest => post(name, 'sender', 'api/v1/messages', () => JSON.stringify(body()))

const content = (name: string, body: () => string): HostileRequest =>
  post(name, 'sender', 'api/v1/messages?from=a@us.example&to=b@far.example', body, 'message/rfc822')

const many = (count: number, text: string): readonly string[] => Array.from({ length: count }, () => text)

const PLAN = { operation: 'hold', selection: { kind: 'ids', ids: [] }, queues: null, purge: false, through: 1, matched: 1 }
const planOf = (more: object) => (): unknown => ({ plan: deflateRawSync(JSON.stringify({ ...PLAN, ...more })).toString('base64url') })
const filterOf = (filter: object) => ({ kind: 'filter', filter: { ...ANY_MESSAGE, ...filter }, limit: null })

/** Bodies of up to 3 MB with the size 1, and of up to 30 MB with the size 10. */
const bodies = (size: number): readonly HostileRequest[] => [
  post('arrays in arrays', 'operator', 'api/v1/operations', () => '['.repeat(size * 100_000)),
  post('numbers that are no request', 'operator', 'api/v1/operations', () => `{"a":[${many(size * 1_500_000, '1').join(',')}]}`),
  operation('unknown ids', () => ({ operation: 'hold', selection: { kind: 'ids', ids: many(size * 100_000, '4SVLCh0sf8z7Qhl') } })),
  operation('empty ids', () => ({ operation: 'hold', selection: { kind: 'ids', ids: many(size * 500_000, '') } })),
  operation('a dry run of stars', () => ({
    operation: 'hold',
    selection: { kind: 'filter', filter: { sender: MANY_STARS, recipient: STARS_BETWEEN, reply: LIKE } },
    dry_run: true,
  })),
  operation(
    'an operation of stars by a limited token',
    () => ({ operation: 'hold', selection: { kind: 'filter', filter: { sender: STARS_BETWEEN } } }),
    'limited',
  ),
  post(
    'members without end',
    'operator',
    'api/v1/operations',
    () => `{${Array.from({ length: size * 20_000 }, (_, n) => `"m${n}":1`).join(',')}}`,
  ),
  operation('a plan with words that inflate', planOf({ commandLine: 'x'.repeat(size * 6 * MIB) })),
  operation('a plan with ids that inflate', planOf({ selection: { kind: 'ids', ids: many(size * 800_000, 'x') } })),
  operation('a plan with a reply that inflates', planOf({ selection: filterOf({ reply: 'x'.repeat(size * 6 * MIB) }) })),
  operation(
    'a plan of stars',
    planOf({ selection: filterOf({ sender: MANY_STARS, recipient: STARS_BETWEEN, destination: MANY_STARS, reply: LIKE }) }),
  ),
  operation('a plan of nonsense', () => ({ plan: 'A'.repeat(size * 2 * MIB) })),
  post(
    'a form of fields',
    'operator',
    'operations',
    () => Array.from({ length: 40_000 }, (_, n) => n.toString(36)).join('&'),
    'application/x-www-form-urlencoded',
  ),
  post('a plan of many policies', 'viewer', 'api/v1/plans', () =>
    JSON.stringify({
      policies: many(4, 'fixed(1s)'),
      minimal_backoff_time: 1,
      maximal_queue_lifetime: 1_999,
      outages: Array.from({ length: 20 }, (_, n) => n + 1),
    }),
  ),
  post('policies of 1,000 parentheses', 'viewer', 'api/v1/plans', () =>
    JSON.stringify({ policies: many(4, `doubling(${'('.repeat(900)}`) }),
  ),
  mail('recipients of stars', () => ({ from: 'a@us.example', to: many(size * 1_000, `${'*'.repeat(60)}@far.example`) })),
  mail('a list of 10,000 commas', () => ({ from: 'a@us.example', to: ','.repeat(10_000) })),
  mail('comments in comments', () => ({ from: `${'('.repeat(9_000)}a@us.example`, to: '"'.repeat(9_999) })),
  mail('domains of many dots', () => ({ from: `a@${'a.'.repeat(490)}`, to: many(size * 100, `b@${'.'.repeat(900)}`) })),
  mail('values of a field', () => ({ from: 'a@us.example', to: 'b@far.example', headers: { 'X-A': many(size * 10_000, 'x') } })),
  mail('empty fields', () => ({
    from: 'a@us.example',
    to: 'b@far.example',
    headers: Object.fromEntries(many(size * 5_000, 'x').map((_, n) => [`X-${n}`, ''])),
  })),
  mail('attachments without end', () => ({
    from: 'a@us.example',
    to: 'b@far.example',
    attachments: many(size * 100, '').map(() => ({ name: 'a', content: 'AA==' })),
  })),
  mail('base64 that is none', () => ({
    from: 'a@us.example',
    to: 'b@far.example',
    attachments: [{ name: 'a', content: `${'A'.repeat(size * MIB)}!` }],
  })),
  mail('text in one line', () => ({
    from: 'a@us.example',
    to: 'b@far.example',
    subject: ' '.repeat(9_999),
    text: '=\u00fc'.repeat(size * 300_000),
  })),
  content('a field without end', () => `Subject: ${'x'.repeat(size * 900_000)}\r\n\r\n`),
  content('folded lines', () => `Subject: x\r\n${' \r\n'.repeat(size * 50_000)}\r\n`),
  content('line ends', () => '\n'.repeat(size * 300_000)),
  content('carriage returns', () => '\r'.repeat(size * 900_000)),
  content('fields of a message', () => `${'A: x\r\n'.repeat(size * 10_000)}\r\n`),
]

export const hostileRequests = (size: number): readonly HostileRequest[] => [...PATTERNS, ...QUERIES, ...bodies(size)]

/** Tables of a configuration with the same patterns. */
export const HOSTILE_EVENTS = {
  stars: { senders: [MANY_STARS, STARS_BETWEEN], destinations: [MANY_STARS, STARS_BETWEEN] },
  kept: { types: ['*'] },
}
