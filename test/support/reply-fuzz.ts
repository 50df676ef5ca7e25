/** Malformed replies at any stage of a session; used by the short and the long test. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { isEnhancedStatus } from '../../src/mail/smtp-reply.ts'
import { CONTENT, SmtpAgentHarness, type Delivered } from './smtp-agent-harness.ts'
import type { ServerScript, ServerSession } from './scripted-server.ts'
import { cutAt, singleBytes } from './segments.ts'

const RECIPIENTS = ['ann@example.net', 'bob@example.net']

const POINTS = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot', 'rset'] as const

interface Case {
  readonly point: (typeof POINTS)[number]
  readonly bytes: Buffer
  readonly drop: boolean
  readonly pipelining: boolean
  /** The second mail over a kept connection. */
  readonly kept: boolean
}

const pieces = fc.constantFrom(
  '250',
  '220',
  '354',
  '421',
  '450',
  '550',
  '5',
  '199',
  '999',
  ' ',
  '-',
  '\r\n',
  '\n',
  '\r',
  '\0',
  '4.7.0',
  '5.1.1 x',
  'ok',
  'é',
  'SIZE 3',
)
const bytes = fc.oneof(
  { weight: 3, arbitrary: fc.array(pieces, { maxLength: 12 }).map((parts) => Buffer.from(parts.join(''))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 30 }).map((array) => Buffer.from(array)) },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.integer({ min: 0, max: 999 }), fc.string()).map(([code, text]) => Buffer.from(`${code} ${text}\r\n`)),
  },
)
const cases: fc.Arbitrary<Case> = fc.record({
  point: fc.constantFrom(...POINTS),
  bytes,
  drop: fc.boolean(),
  pipelining: fc.boolean(),
  kept: fc.boolean(),
})

function scriptOf({ point, drop, pipelining, kept }: Case, packets: readonly Buffer[]): ServerScript {
  const nasty = { packets, drop }
  const ehlo = pipelining ? '250-far.example\r\n250 PIPELINING' : '250 far.example'
  const once = kept && point !== 'rset'
  // On a kept connection the first delivery succeeds.
  const good = { mail: '250 ok', rcpt: '250 ok', data: '354 go', dot: '250 ok', rset: '250 ok', ehlo, greeting: '220 far' }[point]
  const goodFor = point === 'rcpt' ? RECIPIENTS.length : 1
  return { ehlo, [point]: once ? (_line: string, nth: number) => (nth < goodFor ? good : nasty) : nasty }
}

interface Ending {
  readonly result: Delivered
  readonly sessions: readonly ServerSession[]
}

async function deliver(world: SmtpAgentHarness, one: Case, packets: readonly Buffer[]): Promise<Ending> {
  const server = world.host('far.example', '192.0.2.1', scriptOf(one, packets))
  if (one.kept) await world.deliver({ to: RECIPIENTS, keep: true })
  const result = await world.deliver({ to: RECIPIENTS })
  return { result, sessions: server.sessions }
}

const summary = ({ result }: Ending) => ({
  outcomes: RECIPIENTS.map((address) => result.of(address)),
  feedback: result.feedback,
  congestion: result.congestion,
  possiblySent: result.possiblySent,
})

function judge(world: SmtpAgentHarness, one: Case, { result, sessions }: Ending): void {
  expect(result.took).toBeLessThanOrEqual(
    world.policies.for(world.router.route('a@example.net', '').destination).settings.smtp_attempt_time_limit + 1000,
  )
  for (const address of RECIPIENTS) {
    const outcome = result.of(address)
    expect(isEnhancedStatus(outcome.status)).toBe(true)
    expect(outcome.status[0]).toBe({ delivered: '2', deferred: '4', bounced: '5' }[outcome.outcome])
    // oxlint-disable-next-line no-control-regex -- checks that control characters are masked
    expect(outcome.reason).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
    if (outcome.outcome !== 'delivered') continue
    expect(sessions.at(-1)?.contents.at(-1)).toBe(CONTENT)
    // A valid 2xx reply; control characters in its text are masked.
    if (one.point === 'dot') expect(one.bytes.toString('latin1')).toMatch(/^(?:2\d\d-[^\n]*\n)*2\d\d(?: [^\n]*|\r?)\n/)
  }
}

/**
 * Expects that every attempt ends within its time limits with a well-formed outcome, equal for every segmentation, and that mail
 * counts as delivered only if the whole content was sent and a valid 2xx reply followed.
 */
export async function repliesAreClassified(runs: number, seed?: number): Promise<void> {
  const world = new SmtpAgentHarness({ config: ['relayhost=[192.0.2.1]', 'maximal_queue_lifetime=1d'] })
  const property = fc.asyncProperty(cases, fc.array(fc.nat(40), { maxLength: 4 }), async (one, cuts) => {
    const whole = await deliver(world, one, [one.bytes])
    judge(world, one, whole)
    const cut = await deliver(world, one, cuts.length === 0 ? singleBytes(one.bytes) : cutAt(one.bytes, cuts))
    expect(summary(cut)).toEqual(summary(whole))
  })
  await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }) })
}
