/** A receiver gets each kept event, in order and with one id on every try; the events that it refuses are parked and hold up no other. */
import type { WorldEvent } from '../../../src/testkit/index.ts'
import type { ReceivedEvent, ReceivedRequest } from '../record.ts'
import type { SimulatedReceiver } from '../scenario.ts'
import type { Complain, Invariant, InvariantMaker } from '../replay.ts'

/** Number of tries after which a refused event is parked. */
const REFUSALS = 6

export const eventsAreSent: InvariantMaker = (complain, { receiver }): Invariant => ({
  see({ where, event }) {
    if (where !== 'test' || event.did !== 'received' || receiver === undefined) return
    const { events, requests, parked } = event
    const kept = new Map(events.map((one) => [one.seq, one]))
    for (const request of requests) for (const sent of request.events) compare(sent, kept, complain)
    isOrderly(requests, complain)
    isComplete({ events, requests, parked: new Set(parked) }, receiver, complain)
  },
})

function compare(sent: ReceivedEvent, kept: ReadonlyMap<number, WorldEvent>, complain: Complain): void {
  const event = kept.get(sent.number)
  if (event === undefined) complain(`the receiver got event ${sent.number}, which is no event of the queue`)
  else if (event.type !== sent.type || JSON.stringify(event.data) !== JSON.stringify(sent.data))
    complain(`the receiver got event ${sent.number} with another type or other data`)
}

const isTaken = ({ status }: ReceivedRequest): boolean => status !== null && status < 300

const numbersIn = ({ events }: ReceivedRequest): readonly number[] => events.map(({ number }) => number)

/** Taken events follow each other by number, except those that a crash repeats. */
function isOrderly(requests: readonly ReceivedRequest[], complain: Complain): void {
  const seen = new Set<number>()
  let last = 0
  for (const number of requests.filter(isTaken).flatMap(numbersIn)) {
    if (seen.has(number)) continue
    if (number < last) complain(`event ${number} was taken after event ${last}`)
    seen.add(number)
    last = number
  }
}

function isComplete(
  {
    events,
    requests,
    parked,
  }: { readonly events: readonly WorldEvent[]; readonly requests: readonly ReceivedRequest[]; readonly parked: ReadonlySet<number> },
  { refuses }: SimulatedReceiver,
  complain: Complain,
): void {
  const taken = new Set(requests.filter(isTaken).flatMap(numbersIn))
  const alone = requests.map(numbersIn).filter((numbers) => numbers.length === 1)
  for (const { seq } of events) {
    const isRefused = seq % refuses === 0
    if (!isRefused && !taken.has(seq)) complain(`event ${seq} was never taken`)
    if (isRefused !== parked.has(seq)) complain(`event ${seq} is ${isRefused ? 'refused and not parked' : 'parked and not refused'}`)
    const tries = alone.filter(([number]) => number === seq).length
    if (isRefused && tries < REFUSALS) complain(`event ${seq} was parked after ${tries} tries`)
  }
}
