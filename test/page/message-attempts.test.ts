/** Attempts with the same reply are one row, with the begin and the end of them. */
import { expect, test } from 'vitest'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'
import { delaysText, foldedAttempts } from '../../src/page/screens/messages/message-attempts.ts'

type Attempt = Parameters<typeof foldedAttempts>[0][number]

const attempt = (time: number, reply: string | null, more: Partial<Attempt> = {}): Attempt => ({
  time,
  recipient: 'ann@far.example',
  host: 'mx.far.example[192.0.2.1]:25',
  stage: 'rcpt',
  reply,
  status: '4.0.0',
  hint: null,
  class: null,
  class_rule: null,
  outcome: 'deferred',
  delays: [0, 0, 0, 0],
  reason: reply ?? 'connect to mx.far.example[192.0.2.1]:25: Connection refused',
  tls: null,
  session: null,
  ...more,
})

const shown = (history: readonly Attempt[]) => foldedAttempts(history).map((group) => [group.length, group[0].time, group.at(-1)?.time])

test('equal replies are folded, also when others are between them; the latest row is the first', () => {
  const history = [
    attempt(10, '421 4.7.28 [192.0.2.1] unusual rate. 5b1f17b1804b1-43ab2 - gsmtp'),
    attempt(20, '451 4.7.1 greylisted'),
    attempt(30, '421 4.7.28 [192.0.2.2] unusual rate. 98si12c55 - gsmtp'),
    attempt(40, '250 2.0.0 Ok', { outcome: 'delivered' }),
  ]
  expect(shown(history)).toEqual([
    [1, 40, 40],
    [2, 10, 30],
    [1, 20, 20],
  ])
})

test('other outcomes, and attempts without a reply for another reason, have rows of their own', () => {
  expect(shown([attempt(10, '450 busy'), attempt(20, '450 busy', { outcome: 'bounced' }), attempt(30, null)])).toHaveLength(3)
  expect(shown([attempt(10, null), attempt(20, null)])).toEqual([[2, 10, 20]])
  expect(shown([])).toEqual([])
})

test('2,400 attempts for 600 recipients with one reply are one row', () => {
  const history = Array.from({ length: 2_400 }, (_, i) => attempt(i, '450 4.2.1 busy', { recipient: `r${i % 600}@far.example` }))
  expect(shown(history)).toEqual([[2_400, 0, 2_399]])
})

test('delays that are zero are left out', () => {
  expect(delaysText([0, 1_501.12, 0.04, 0.41])).toBe('25m 1s in the queue, 0.4 s transmission')
  expect(delaysText([0, 0, 0, 0])).toBe('less than 0.1 s')
})

test('a row of attempts at several servers has their number, and not one of them', async () => {
  const world = await ApiWorld.open('memory')
  const id = await world.queue.accept(['ann@a.example.org', 'bob@b.example.org'])
  const alone = await world.queue.accept(['ann@a.example.org'])
  await world.queue.rest()
  const screens = new PageScreens(world)
  const serversIn = async (one: string) =>
    /<td[^>]*data-label="Server"[^>]*>([^]*?)<\/td>/.exec(await screens.text(`messages/${one}`))?.[1]?.replaceAll(/<[^>]*>|\s+/g, ' ')
  expect(await serversIn(id)).toContain('2 servers')
  expect(await serversIn(alone)).toContain('[192.0.2.1]')
  await world.close()
})
