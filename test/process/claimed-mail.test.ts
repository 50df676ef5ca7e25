/** Operations of commands on mail that a daemon has claimed and that waits for its slot; test/long has 200 kills. */
import { expect, test } from 'vitest'
import { KillableRelay } from '../support/killable-relay.ts'
import { killedWithClaims } from '../support/killed-with-claims.ts'
import { Operator } from '../support/operator.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

test('with one slot, held and deleted mail is not sent when the slot becomes free', { timeout: 120_000 }, async () => {
  const lab = new KillableRelay({ default_process_limit: '1' })
  const operator = new Operator()
  const run = (...argv: readonly string[]) => operator.run(argv, { env: { DEFERD_QUEUE_DIRECTORY: lab.queueDirectory } })
  const gate = Promise.withResolvers<void>()
  lab.far.gate = gate.promise
  lab.load.pace = null
  try {
    await lab.open(1, (number) => `ann-${number}@far.example`)
    await lab.startDaemon()
    lab.load.pace = 0
    await lab.acknowledges(9)
    lab.load.pace = null
    while (lab.far.inTransfer === 0 || lab.load.sessions > 0) await pause(10)
    const entries = [...lab.acknowledged]
    const of = (from: number, to: number) => entries.slice(from, to).map(([, queueId]) => queueId)
    expect((await run('queue', 'hold', ...of(0, 4), '--dry-run', '--json')).out).toContain('"in_transfer":1')
    expect((await run('queue', 'hold', ...of(0, 4))).out).toBe('4 messages put on hold; 1 is in transfer: delivered and bounced stand\n')
    expect((await run('queue', 'delete', ...of(4, 8))).out).toBe('4 messages deleted\n')
    gate.resolve()
    const free = entries.filter((_, n) => n === 0 || n >= 8).map(([number]) => number)
    while (free.some((number) => !lab.far.delivered.has(number))) await pause(10)
    expect([...lab.far.delivered.keys()]).toEqual(free)
    expect((await run('queue', 'release', '--all')).out).toMatch(/ messages? released/)
    while (lab.far.delivered.size < entries.length - 4) await pause(10)
    expect(entries.slice(4, 8).filter(([number]) => lab.far.delivered.has(number))).toEqual([])
  } finally {
    gate.resolve()
    await lab.close()
    operator.leave()
  }
})

test(
  'a daemon that is killed with held and deleted claimed mail loses none of it, and sends none after the answer',
  { timeout: 240_000 },
  async () => {
    const { answered, cut, sentAfter, lost } = await killedWithClaims(3)
    expect([answered + cut, sentAfter, lost]).toEqual([3, 0, 0])
  },
)
