/** Random races of cancellations against the begin of attempts, in virtual time, with a store whose calls take time. */
import { Operations } from '../../src/queue/operations.ts'
import type { Cancelled } from '../../src/queue/cancellation.ts'
import { parseQueueId } from '../../src/mail/queue-id.ts'
import { intercepted } from '../../src/store/methods.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { openInlineStore } from '../../src/store/sqlite/open-store.ts'
import { sleep, type Timers } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { Events } from '../../src/telemetry/events.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { QueueWorld } from './queue-world.ts'

/** Messages, each with two recipients, and so many cancellations. */
const MESSAGES = 50
const DOMAINS = ['one.example', 'two.example', 'three.example']

export interface Races {
  readonly cancelled: number
  readonly tooLate: number
  /** Cancelled recipients that were delivered, or to which a delivery began after the answer. */
  readonly broken: readonly string[]
  /** Recipients that were neither cancelled nor got an outcome. */
  readonly lost: readonly string[]
}

interface Answered {
  readonly at: number
  readonly outcome: Cancelled
}

/** Runs MESSAGES races. Mail is due at once, or scheduled within the second in which it is cancelled. */
export async function raceCancellations(seed: number): Promise<Races> {
  const random = seededRandom(seed).stream('races')
  const below = (n: number): number => Math.floor(random() * n)
  let clock: Timers | null = null
  const opened = seed % 5 === 0 ? await openInlineStore({ memory: true }) : openMemoryStore()
  const pause = async (): Promise<void> => (clock === null ? undefined : sleep(clock, below(4)))
  const store = intercepted(opened.store, async (_method, _args, perform) => {
    await pause()
    const answer = await perform()
    await pause()
    return answer
  })
  const began = new Map<string, number[]>()
  const world = await QueueWorld.create({
    seed,
    queue: { store, reader: opened.reader },
    config: { smtpd_future_release_limit: '1d', default_destination_concurrency_limit: 2, initial_destination_concurrency: 2 },
    remote: ({ request, at }) => {
      for (const { address } of request.recipients) began.set(address, [...(began.get(address) ?? []), at])
      const takes = below(30)
      return below(4) === 0 ? { kind: 'replies', reply: '450 4.2.1 busy', takes } : { kind: 'accepts', takes }
    },
  })
  clock = world.clock
  const { relay, reader } = world
  const operations = new Operations({
    recorder: relay.recorder,
    store,
    reader,
    clock: new QueueClock(world.clock),
    events: new Events(() => world.clock.now()),
    policies: () => relay.policies,
    retention: () => relay.config,
    scheduler: relay.schedulerControl,
  })
  const answers: Answered[] = []
  const submitting: Promise<unknown>[] = []
  for (let n = 0; n < MESSAGES; n++) {
    const race = async (): Promise<void> => {
      await sleep(world.clock, below(300))
      const release = below(2) === 0 ? undefined : { kind: 'span' as const, span: 1 + below(300) }
      const to = [0, 1].map((i) => ({ address: `u${n}-${i}@${DOMAINS[below(DOMAINS.length)] ?? ''}` }))
      const receiver = relay.acceptor.open({
        envelope: { sender: 'app@us.example', recipients: to, release },
        client: { name: 'localhost', address: '127.0.0.1', helo: '', protocol: 'HTTP', local: true, own: true },
      })
      await receiver.write([Buffer.from('Subject: hi\r\n\r\nhi\r\n')])
      await receiver.end()
      await sleep(world.clock, below(350))
      const id = parseQueueId(receiver.queueId)
      if (id === undefined) throw new Error('a message without an id')
      const [outcome] = await operations.cancel([{ id: id.row, createdAt: id.createdAt }], 'app')
      if (outcome !== undefined) answers.push({ at: world.clock.now() - BEGINNING, outcome })
    }
    submitting.push(race())
  }
  await world.advance(60_000)
  await Promise.all(submitting)
  await world.advance(4 * 24 * 3_600_000)
  const races = judged(world, answers, began)
  await world.close()
  return races
}

function judged(world: QueueWorld, answers: readonly Answered[], began: ReadonlyMap<string, readonly number[]>): Races {
  const expired = new Set(
    world.happened('expired').flatMap(({ unattempted }) => unattempted?.request.recipients.map(({ address }) => address) ?? []),
  )
  const ended = (address: string): boolean =>
    world.arrivals(address).length > 0 || expired.has(address) || (began.get(address) ?? []).length > 1
  const cancelled = answers.flatMap(({ at, outcome }) => outcome.cancelled.map((address) => ({ at, address })))
  const tooLate = answers.flatMap(({ outcome }) => outcome.tooLate)
  const isBroken = ({ at, address }: { readonly at: number; readonly address: string }): boolean =>
    world.arrivals(address).length > 0 || (began.get(address) ?? []).some((begin) => begin > at)
  return {
    cancelled: cancelled.length,
    tooLate: tooLate.length,
    broken: cancelled.filter(isBroken).map(({ address }) => address),
    lost: tooLate.filter((address) => !ended(address)),
  }
}
