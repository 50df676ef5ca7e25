/** The admin API at full size: pages while mail moves, plans that were outgrown, deletes of 100,000 messages that are cut, many kills. */
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { ApiWorld } from '../support/api-world.ts'
import { cancelledOperation, cutOperation } from '../support/cut-operation.ts'
import { answeredThenKilled, repeatedUntilAnswered } from '../support/http-kills.ts'
import { KillableRelay } from '../support/killable-relay.ts'
import { pagesOfMovingMail } from '../support/moving-pages.ts'

const MESSAGES = 100_000

test('pages of 7 through 1,000 messages while 500 arrive and 500 leave: each that stays exactly once', async () => {
  const world = await ApiWorld.open()
  try {
    await pagesOfMovingMail(world, { messages: 1_000, arriving: 500, leaving: 500, limit: 7 })
  } finally {
    await world.close()
  }
})

test('a plan of 2,000 messages is refused after 150 more, though these are fewer than 10 %, and never changes them', async () => {
  const world = await ApiWorld.open()
  const as = { as: 'operator' }
  try {
    await world.fill(2_000)
    const asked = { operation: 'delete', selection: { kind: 'filter', filter: { destination: 'a.example.org' } }, dry_run: true }
    const { plan } = (await world.api.post('/operations', asked, as)).json
    await world.fill(150)
    expect((await world.api.post('/operations', { plan: plan.token }, as)).status).toBe(409)
    const trash = async () => (await world.queue.reader.find({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: 10_000 })).length
    expect(await trash()).toBe(0)
    const done = await world.api.post('/operations', { plan: plan.token, accept_growth: true }, as)
    expect(done.json).toMatchObject({ changed: 2_000, expected: 2_000 })
    expect(await trash()).toBe(2_000)
  } finally {
    await world.close()
  }
})

test(`a delete of ${MESSAGES} messages is cancelled at 30 %, and its undo restores exactly its messages`, async () => {
  const lab = new KillableRelay()
  try {
    await cancelledOperation(lab, { messages: MESSAGES, cancelAt: 0.3 * MESSAGES })
  } finally {
    await lab.close()
  }
})

test(`a delete of ${MESSAGES} messages that SIGKILL cuts has its exact count, and its undo restores exactly its messages`, async () => {
  const lab = new KillableRelay()
  try {
    await cutOperation(lab, { messages: MESSAGES, cutAt: 0.3 * MESSAGES })
  } finally {
    await lab.close()
  }
})

test('30 kills right after answers with 202 lose nothing', async () => {
  const lab = new KillableRelay()
  try {
    await lab.open(0)
    await lab.startDaemon()
    await answeredThenKilled(lab, 30)
  } finally {
    await lab.close()
  }
})

test('60 requests with an Idempotency-Key that SIGKILL cuts, and that are sent again, queue 60 messages', async () => {
  const lab = new KillableRelay()
  try {
    await lab.open(0)
    await lab.startDaemon()
    const repeated = await repeatedUntilAnswered(lab, 60)
    // Some of the kills come before the commit, and some after it.
    expect(repeated).toBeGreaterThan(5)
    expect(repeated).toBeLessThan(55)
  } finally {
    await lab.close()
  }
})
