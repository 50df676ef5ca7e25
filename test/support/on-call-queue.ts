/**
 * The queue of the on-call story: 40,000 deferred recipients at four destinations, a quarter of them from one abusive sender, and
 * some mail that was delivered. Made by calls of the store, with the failures that servers of such destinations report.
 */
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { recipientId, type MessageId } from '../../src/mail/message.ts'
import { attempt, deferred, delivered, mail, ownerOf } from '../conformance/mail.ts'

export const ABUSER = 'promo@deals.example'
const MINUTE = 60_000
/** Calls that are committed together. */
const BATCH = 512

interface Place {
  readonly domain: string
  readonly share: number
  readonly failure: (n: number) => DeliveryStatus
}

const replied = (domain: string, reply: string): DeliveryStatus => ({
  status: reply.slice(4, 9),
  reason: `host mx.${domain}[192.0.2.25] said: ${reply} (in reply to RCPT TO command)`,
  reply,
  remoteMta: `mx.${domain}`,
  stage: 'rcpt',
})

/** Destinations with their share of the queue, in percent. */
const PLACES: readonly Place[] = [
  {
    domain: 'gmail.example',
    share: 68,
    failure: (n) =>
      replied(
        'gmail.example',
        `421 4.7.28 Our system has detected an unusual rate of mail originating from your IP address [192.0.2.${n % 7}]. To protect our users from spam, mail has been temporarily rate limited. ${(n * 7919).toString(16).padStart(10, '0')}a1 - gsmtp`,
      ),
  },
  {
    domain: 'outlook.example',
    share: 20,
    failure: (n) =>
      n % 50 === 0
        ? replied('outlook.example', `452 4.2.2 <user${n}@outlook.example>: mailbox full`)
        : replied('outlook.example', `451 4.7.500 Server busy. Please try again later from [192.0.2.${n % 7}]. (S77714)`),
  },
  {
    domain: 'greylist.example',
    share: 9,
    failure: (n) => replied('greylist.example', `450 4.7.1 Greylisted for ${(n % 300) + 1} seconds`),
  },
  {
    domain: 'down.example',
    share: 3,
    failure: () => ({
      status: '4.4.1',
      reason: 'connect to mx.down.example[192.0.2.99]:25: Connection timed out',
      stage: 'connect',
    }),
  },
]

function placeOf(n: number): Place {
  let at = n % 100
  for (const place of PLACES) {
    if (at < place.share) return place
    at -= place.share
  }
  throw new Error('the shares do not add up to 100')
}

interface Planned {
  readonly entry: ReturnType<typeof mail>
  readonly settle: (id: MessageId) => Parameters<QueueStore['settle']>[0]
}

export interface OnCallQueue {
  readonly messages: number
  readonly recipientsPerMessage: number
  /** All times are before this one. */
  readonly now: number
}

/** Queues deferred messages, and a hundredth of their number that were delivered. */
export async function fillOnCallQueue(store: QueueStore, { messages, recipientsPerMessage, now }: OnCallQueue): Promise<void> {
  const owner = ownerOf(store)
  const plan = (n: number): Planned => {
    const at = now - 180 * MINUTE + Math.floor((n * 150 * MINUTE) / messages)
    const isGone = n >= messages
    const { domain, failure } = placeOf(n)
    const sender = n % 4 === 0 ? ABUSER : `app${n % 17}@us.example`
    const users = Array.from({ length: recipientsPerMessage }, (_, m) => n * recipientsPerMessage + m)
    const to = users.map((user) => ({ address: `user${user}@${isGone ? 'fine.example' : domain}` }))
    const entry = mail(store, { at, leased: true, sender, to })
    const settle = (id: MessageId) => {
      const all = users.map((user, position) => ({ user, id: recipientId(id, position) }))
      if (isGone) return { owner, message: id, recipients: all.map((one) => delivered(one.id, at + 900)), attempts: [] }
      const dueAt = now + (n % 3_000) * 1_000
      return {
        owner,
        message: id,
        recipients: all.map((one) => deferred(one.id, dueAt, { last: failure(one.user), steps: 2, attempts: 2 })),
        attempts: all.flatMap((one) => [at + 800, at + 5 * MINUTE].map((time) => attempt(one.id, time, 'deferred', failure(one.user)))),
      }
    }
    return { entry, settle }
  }
  const all = messages + messages / 100
  for (let from = 0; from < all; from += BATCH) {
    const planned = Array.from({ length: Math.min(BATCH, all - from) }, (_, n) => plan(from + n))
    const entered = planned.map(({ entry }) => store.enqueue(entry))
    const settled = planned.map(({ entry, settle }) => store.settle(settle(entry.message.id)))
    await Promise.all([...entered, ...settled])
  }
  const timedOut = PLACES[3]?.failure(0) ?? null
  await store.saveDestination({
    name: 'down.example',
    deadUntil: now + 4 * MINUTE,
    probeInterval: 20 * MINUTE,
    suspension: null,
    siteStatus: timedOut,
  })
}
