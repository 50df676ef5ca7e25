/** Hints about a refused login, wherever its mail is shown. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hintOf } from '../../src/mail/login-refusal.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { destinationScreen } from '../../src/page/screens/destination-screen.ts'
import type { View } from '../../src/page/markup/view.ts'
import { causeJson } from '../../src/resources/cause-json.ts'
import { destinationDetailsJson } from '../../src/resources/destination-json.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { attempt, deferred, first, ownerOf, queue } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

const REFUSED: DeliveryStatus = {
  status: '4.7.3',
  reason: 'SASL authentication failed; server hop.example[192.0.2.1] said: 535 5.7.3 Authentication unsuccessful',
  reply: '535 5.7.3 Authentication unsuccessful',
  stage: 'auth',
}
const HINT = hintOf(REFUSED) ?? 'no hint'
const HOP = 'hop.example'

let operator: Operator
let id: string

beforeEach(async () => {
  operator = new Operator()
  await operator.own(async (store) => {
    const message = await queue(store, { at: NOW - 60_000, leased: true, to: [{ address: 'ann@far.example', destination: HOP }] })
    id = formatQueueId(NOW - 60_000, message)
    await store.settle({
      owner: ownerOf(store),
      message,
      recipients: [deferred(first(message), NOW + 60_000, { last: REFUSED })],
      attempts: [attempt(first(message), NOW - 30_000, 'deferred', REFUSED)],
    })
    const dead = { deadUntil: NOW + 300_000, probeInterval: 300_000, suspension: null }
    await store.saveDestination({ name: HOP, ...dead, siteStatus: REFUSED })
  })
})
afterEach(() => operator.leave())

/** Text whose lines are joined, because screens wrap it. */
const joined = (text: string): string => text.replaceAll(/\s+/g, ' ')

test.each([
  ['queue show', () => ['queue', 'show', id]],
  ['queue causes', () => ['queue', 'causes']],
  ['destination show', () => ['destination', 'show', HOP]],
  ['status', () => ['status']],
])('%s shows it', async (_name, argv) => {
  expect(joined(await operator.says(...argv()))).toMatch(/ to do:? Wrong user, password or token\. .* needs SMTP\.SendAsApp/)
})

test.each([
  ['queue show', () => ['queue', 'show', id, '--json']],
  ['queue causes', () => ['queue', 'causes', '--json']],
  ['destination show', () => ['destination', 'show', HOP, '--json']],
  ['status', () => ['status', '--json']],
])('%s --json has it', async (_name, argv) => {
  expect(await operator.says(...argv())).toContain(`"hint":${JSON.stringify(HINT)}`)
})

test('the page shows it beside the last reply and the cause', () => {
  const record = { name: HOP, deadUntil: NOW, probeInterval: 1, suspension: null, siteStatus: REFUSED }
  const row = { name: HOP, destination: HOP, load: undefined, live: undefined, record, provider: null }
  const example = { queueId: id, address: 'ann@far.example', status: REFUSED }
  const cause = {
    destination: HOP,
    kind: 'failed',
    isHeld: false,
    cause: '535',
    recipients: 1,
    since: NOW,
    last: NOW,
    example,
    filter: null,
    isExact: true,
  } as const
  const clock = new VirtualClock()
  const view: View = {
    root: './',
    here: '',
    now: NOW,
    clock,
    relay: 'relay.example',
    version: '1',
    files: 'static/x',
    classes: [],
    health: null,
    requester: { name: 'root', mayOperate: true, mayAdminister: true, mayReadContent: true },
  }
  const facts = {
    destination: destinationDetailsJson(
      { row, node: null, scheduled: 0, recent: undefined, settings: { table: null, values: {}, origins: {} }, asOf: 1 },
      clock.wall,
    ),
    causes: { as_of: 1, causes: [causeJson(cause, clock.wall)] },
    senders: null,
    differing: [],
  }
  const { main } = destinationScreen(view, facts)
  expect(joined(main.markup).split(HINT)).toHaveLength(3)
})
