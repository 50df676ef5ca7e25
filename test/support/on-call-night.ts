/**
 * The queue of a bad night: 30,500 recipients that wait for six causes or are on hold, 200 domains of them behind one silent host, as the
 * store and the memory of a daemon have it.
 */
import type { LiveStatus } from '../../src/queue/queue-status.ts'
import { recipientId, type DestinationName } from '../../src/mail/message.ts'
import type { DeliveryStatus, Stage } from '../../src/mail/smtp-reply.ts'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { completeTally } from '../../src/store/counts/queue-tally.ts'
import { NO_TRAFFIC } from '../../src/store/counts/traffic.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { attempt, deferred, mail, ownerOf } from '../conformance/mail.ts'
import { liveDestination } from './live-destination.ts'
import { operate } from './operate.ts'

const MINUTE = 60_000
const PER_MESSAGE = 50

interface Place {
  readonly domain: string
  readonly destination?: DestinationName
  readonly recipients: number
  readonly sender: string
  /** Null for mail that was not tried yet. */
  readonly failure: DeliveryStatus | null
  readonly isHeld?: true
  readonly isDead?: true
}

const replied = (host: string, reply: string, stage: Stage): DeliveryStatus => ({
  status: reply.slice(4, 9),
  reason:
    stage === 'auth'
      ? `SASL authentication failed; server ${host} said: ${reply}`
      : `host ${host} said: ${reply} (in reply to RCPT TO command)`,
  reply,
  stage,
})

const BLOCKED = replied('mx.blocked.test[192.0.2.7]', '451 4.7.1 Service unavailable; client host blocked using bl.test', 'rcpt')
const LOGIN: DeliveryStatus = { ...replied('relay.shop.test[192.0.2.8]', '535 5.7.8 authentication failed', 'auth'), status: '4.7.8' }
const SILENT: DeliveryStatus = {
  status: '4.4.1',
  reason: 'connect to mx.deadprov.test[185.30.0.31]:25: Connection timed out',
  stage: 'connect',
}
const GREY = replied('mx.grey.test[192.0.2.9]', '450 4.7.1 Greylisted for 300 seconds', 'rcpt')
const FULL = replied('mx.quota.test[192.0.2.10]', '452 4.2.2 mailbox full', 'rcpt')
const RATE = replied('mx.bulk.test[192.0.2.11]', '421 4.7.0 too many messages from your network', 'mail')

const PLACES: readonly Place[] = [
  { domain: 'blocked.test', recipients: 8_000, sender: 'intern@corp.test', failure: BLOCKED },
  { domain: 'blocked.test', recipients: 3_000, sender: 'spam@corp.test', failure: BLOCKED, isHeld: true },
  ...Array.from({ length: 200 }, (_, n) => ({
    domain: `firm${n}.test`,
    recipients: n < 100 ? 38 : 37,
    sender: `app${n % 7}@corp.test`,
    failure: SILENT,
    isDead: true as const,
  })),
  ...Array.from({ length: 40 }, (_, n) => ({ domain: `grey${n}.test`, recipients: 100, sender: 'news@corp.test', failure: GREY })),
  { domain: 'bulk.test', recipients: 3_500, sender: 'news@corp.test', failure: RATE },
  {
    domain: 'customer.test',
    destination: 'smtp:[relay.shop.test]:587',
    recipients: 3_000,
    sender: 'orders@shop.test',
    failure: LOGIN,
    isDead: true,
  },
  { domain: 'quota.test', recipients: 1_000, sender: 'news@corp.test', failure: FULL },
  { domain: 'good.test', recipients: 500, sender: 'boss@corp.test', failure: null },
]

async function fillPlace(store: QueueStore, place: Place, now: number): Promise<string> {
  const { domain, destination = domain, recipients, sender, failure } = place
  const [owner, at] = [ownerOf(store), now - 60 * MINUTE]
  let last = ''
  for (let from = 0; from < recipients; from += PER_MESSAGE) {
    const to = Array.from({ length: Math.min(PER_MESSAGE, recipients - from) }, (_, n) => ({
      address: `user${from + n}@${domain}`,
      destination,
    }))
    const entry = mail(store, { at, leased: failure !== null, sender, to })
    await store.enqueue(entry)
    const { id } = entry.message
    last = formatQueueId(at, id)
    if (failure === null) continue
    const all = to.map((_, n) => recipientId(id, n))
    await store.settle({
      owner,
      message: id,
      recipients: all.map((one) => deferred(one, now + 2 * MINUTE, { last: failure })),
      attempts: all.map((one) => attempt(one, at + 1_000, 'deferred', failure)),
    })
    if (place.isHeld === true) await operate(store, id, { kind: 'hold' })
  }
  return last
}

/** The destination as the scheduler has it in memory. */
const liveOf = ({ domain, destination = domain, recipients, failure, isDead }: Place, now: number): LiveDestination =>
  liveDestination(destination, {
    nextDueAt: now + 2 * MINUTE,
    ...(isDead === true ? { state: 'dead', deadUntil: now + 4 * MINUTE, probeInterval: 10 * MINUTE, siteStatus: failure } : {}),
    undelivered: failure === null ? undefined : { count: recipients, since: now - 59 * MINUTE, last: failure },
  })

export interface Night {
  readonly status: LiveStatus
  /** Queue id of a message to blocked.test. */
  readonly blocked: string
}

export async function fillNight(store: QueueStore, now: number): Promise<Night> {
  const ids = new Map<string, string>()
  for (const place of PLACES) {
    const id = await fillPlace(store, place, now)
    if (place.isHeld !== true) ids.set(place.domain, id)
    const live = liveOf(place, now)
    const { destination: name, deadUntil, probeInterval, siteStatus } = live
    if (place.isDead === true) await store.saveDestination({ name, deadUntil, probeInterval, suspension: null, siteStatus })
  }
  const destinations = PLACES.filter(({ isHeld }) => isHeld !== true).map((place) => liveOf(place, now))
  const tally = await completeTally(() => store.tally(250))
  const rates = { last10s: { ...NO_TRAFFIC, accepted: 0.4 }, last5min: { ...NO_TRAFFIC, accepted: 101.7, deferred: 95.2 } }
  const deliveries = { inFlight: 100, limit: 100, connecting: [{ address: '185.30.0.31', count: 20 }] }
  return {
    status: { version: '1.0', tally, rates, deliveries, destinations, tokens: [], recent: [] },
    blocked: ids.get('blocked.test') ?? '',
  }
}
