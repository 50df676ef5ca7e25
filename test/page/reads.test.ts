/** The reads of a screen: their number does not depend on the size of the queue. Counts over the whole queue, which are kept for 30 s, are not among them. */
import { afterEach, expect, test } from 'vitest'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ApiWorld } from '../support/api-world.ts'
import { newWebhook, addWebhook } from '../../src/queries/programs/webhook-changes.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { ADMIN, PageScreens } from '../support/page-screens.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

const SCREENS = [
  '',
  'trends',
  'destinations',
  'destinations?name=*b*',
  'destinations/a.example.org',
  'causes',
  'messages',
  'messages?order=newest',
  'messages?destination=b.example.org&order=newest',
  'messages?arrived_after=2020-01-01T10:00',
  'history',
  'audit',
  'events',
  'webhooks',
  'webhooks/app',
  'webhooks/app/remove',
  'suppressions',
  'quotas',
  'shares',
  'tokens',
  'planner',
  'deliverability',
  'deliverability/us.example',
]

/** The names of the reads that each screen makes, in their order. */
async function readsWith(messages: number): Promise<ReadonlyMap<string, readonly string[]>> {
  opened = await ApiWorld.open('memory')
  const { queue } = opened
  for (let n = 0; n < messages; n++) await queue.accept([`ann${n}@${['a', 'b', 'c'][n % 3]}.example.org`], { sender: 'app@us.example' })
  await queue.advance(60_000)
  const { view } = opened.api.api
  const secret = newSigningSecret(seededRandom(1))
  await addWebhook(view, newWebhook.parse({ name: 'app', to: 'https://app.example/hook', types: ['recipient.bounced'], secret }), ADMIN)
  const reads: string[] = []
  const reader: QueueReader = new Proxy(view.reader, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...given: readonly unknown[]): unknown => {
        reads.push(String(name))
        return Reflect.apply(member, target, given)
      }
    },
  })
  const counted = new Proxy(view, { get: (target, name): unknown => (name === 'reader' ? reader : Reflect.get(target, name)) })
  const found = new Map<string, readonly string[]>()
  const shown = new PageScreens(opened, counted)
  for (const screen of SCREENS) {
    reads.length = 0
    await shown.text(screen)
    found.set(screen, [...reads])
  }
  await opened.close()
  opened = undefined
  return found
}

test('each screen makes the same reads over 160 messages and over 480', async () => {
  const few = await readsWith(160)
  expect([...(await readsWith(480))]).toEqual([...few])
  for (const [screen, reads] of few) expect(reads.length, `${screen}: ${reads.join(', ')}`).toBeLessThanOrEqual(40)
  expect([...few.values()].some((reads) => reads.length > 0)).toBe(true)
  // A pattern is compared with names alone: the mail of destinations that are not shown is not counted.
  expect(few.get('destinations?name=*b*')).toContain('destinationNames')
  expect(few.get('destinations?name=*b*')).not.toContain('destinationLoads')
})
