/**
 * Holds and deletes claimed mail of a daemon with one slot, and kills the daemon during the commands, or soon after their answers. The
 * remote server keeps a message in transfer meanwhile.
 */
import { mulberry32 } from '../../src/system/random.ts'
import { KillableRelay } from './killable-relay.ts'
import { Operator } from './operator.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Messages per cycle, and those of them that a command names. */
const MESSAGES = 12
const NAMED = 6

/** A command that has answered. */
interface Answered {
  /** Numbers of its messages. */
  readonly numbers: readonly number[]
  /** Number of them that the answer said to be in transfer. */
  readonly inTransfer: number
  /** Number of their deliveries before it. */
  readonly before: number
}

export interface ClaimKills {
  readonly acknowledged: number
  /** Numbers of commands that answered, and of those that the kill has cut. */
  readonly answered: number
  readonly cut: number
  /** Number of commands of whose messages more were sent after the answer than it said to be in transfer. */
  readonly sentAfter: number
  /** Numbers of acknowledged messages that never arrived, and of repeated deliveries. */
  readonly lost: number
  readonly repeated: number
}

export async function killedWithClaims(cycles: number, seed = 1): Promise<ClaimKills> {
  const lab = new KillableRelay({ default_process_limit: '1' })
  const operator = new Operator()
  const random = mulberry32(seed)
  const run = (...argv: readonly string[]) => operator.run(argv, { env: { DEFERD_QUEUE_DIRECTORY: lab.queueDirectory } })
  const deliveries = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + (lab.far.delivered.get(number) ?? 0), 0)
  const answered: Answered[] = []
  let cut = 0
  try {
    lab.load.pace = null
    await lab.open(2, (number) => `ann-${number}@far.example`)
    for (let cycle = 0; cycle < cycles; cycle++) {
      const gate = Promise.withResolvers<void>()
      lab.far.gate = gate.promise
      const known = new Set(lab.acknowledged.keys())
      await lab.startDaemon()
      lab.load.pace = 0
      await lab.acknowledges(known.size + MESSAGES)
      lab.load.pace = null
      while (lab.far.inTransfer === 0 || lab.load.sessions > 0) await pause(5)
      const named = [...lab.acknowledged].filter(([number]) => !known.has(number)).slice(0, NAMED)
      const numbers = named.map(([number]) => number)
      const before = deliveries(numbers)
      const command = cycle % 2 === 0 ? 'hold' : 'delete'
      const answer = run('queue', command, ...named.map(([, queueId]) => queueId), '--json').then(({ code, out }) => {
        if (code !== 0) return void cut++
        const { in_transfer: inTransfer } = JSON.parse(out) as { readonly in_transfer: number }
        answered.push({ numbers, inTransfer, before })
      })
      // Half of the kills come while the command runs. The others come after its answer, when the slot is free for other mail.
      if (random() < 0.5) await pause(random() * 30)
      else await answer.then(() => (gate.resolve(), pause(random() * 200)))
      await lab.die(0)
      gate.resolve()
      await answer
    }
    lab.far.gate = Promise.resolve()
    const sentAfter = answered.filter((one) => deliveries(one.numbers) - one.before > one.inTransfer).length
    await lab.startDaemon()
    for (const [command, ...of] of [['restore'], ['release'], ['release', '--queue', 'corrupt']] as const)
      await run('queue', command, ...of, '--all')
    if (!(await lab.drained(120_000))) throw new Error(`the queue is not empty: ${(await lab.left()).join('\n')}`)
    const times = [...lab.acknowledged.keys()].map((number) => lab.far.delivered.get(number) ?? 0)
    return {
      acknowledged: times.length,
      answered: answered.length,
      cut,
      sentAfter,
      lost: times.filter((count) => count === 0).length,
      repeated: times.reduce((sum, count) => sum + Math.max(0, count - 1), 0),
    }
  } finally {
    await lab.close()
    operator.leave()
  }
}
